"""The report of `explain_quality.py`, made of its lines alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from diffint.core.formatting import counted
from explain_lines import Lines
from explain_measures import MEASURES, WHERE_SHOWN, interval
from explain_planting import BROKEN, FITTING_TABLES, KINDS
from explain_reasons import MANY_FRESH, SOME_FRESH
from explain_rivals import METHODS, ORDER, SHOWN, WITHOUT

_MEANING = {
    "top-1": "how often the first feature is a changed one; a row in which none is named is a miss",
    WHERE_SHOWN: "the same for every method, in the rows for which our detector shows a reason",
    "AUC": "ROC-AUC of the ranking of features within a row",
    "recall": "share of the changed features among the first k, for k changed ones",
}
_BY_TABLE = (SHOWN, ORDER, "KernelSHAP", WITHOUT)


def report(lines: Lines, command: str) -> str:
    """The results as Markdown."""
    text = ["# Explanations of planted errors", "", f"Created by `{command}`.", ""]
    planted, mixed, diamonds = (lines.of(section=s) for s in ("planted", "mixed", "diamonds"))
    if planted:
        text += [*_setting(planted), *_ranking(planted), *_reasons(planted), *_tables(planted)]
    if mixed:
        text += _mixed(mixed)
    if diamonds:
        text += _diamonds(diamonds)
    return "\n".join(text)


def _setting(lines: Lines) -> Iterator[str]:
    tables, seeds = lines.names("table"), lines.names("seed")
    rows = int(lines.sum(figure="rows"))
    yield (
        f"{len(tables)} ADBench tables (5–70 features, at least 120 rows; trained on at most "
        f"10,000), {counted(len(seeds), 'seed')}, {rows:,} planted rows, the same for every "
        "method. Means over the tables with 95 % confidence intervals (t-intervals over the "
        "tables' means)."
    )
    yield ""
    yield (
        "Planted rows are test inliers with features replaced. Out of range and in range: 1–3 "
        "features, by a value 5–50 % of the range beyond it, or by the one of 200 training values "
        "that is farthest from the median of the row's 20 nearest training rows. Broken: exactly "
        "1, 2 or 3 features, by the one of 100 training values within 1.5 standard deviations of "
        "the mean that is farthest from this median. The last method uses the neighbours of the "
        "row before planting, which the others cannot know."
    )
    yield ""
    left = [name for name in METHODS if name not in lines.names("method")]
    left += [name for name in FITTING_TABLES if name not in tables]
    if left:
        yield f"Not measured: {', '.join(left)}."
        yield ""


def _ranking(lines: Lines) -> Iterator[str]:
    methods = [name for name in METHODS if name in lines.names("method")]
    kinds = [kind for kind in KINDS if lines.of(kind=kind, figure="top-1")]
    head = [f"| method | {' | '.join(kinds)} |", "|---" * (len(kinds) + 1) + "|"]
    for figure in (*MEASURES, WHERE_SHOWN):
        yield f"## {figure[0].upper()}{figure[1:]}: {_MEANING[figure]}"
        yield ""
        yield from head
        for name in methods:
            each = [lines.by_table(figure=figure, kind=kind, method=name) for kind in kinds]
            cells = [_mean(by_table) if by_table else "–" for by_table in each]
            yield f"| {name} | {' | '.join(cells)} |"
        yield ""
        for ours in (SHOWN, ORDER):
            yield f"{ours[0].upper()}{ours[1:]} minus each other method, paired by table:"
            yield ""
            yield from head
            for name in methods:
                if name not in (SHOWN, ORDER):
                    cells = [_difference(lines, figure, kind, ours, name) for kind in kinds]
                    yield f"| {name} | {' | '.join(cells)} |"
            yield ""
    yield "## Cost"
    yield ""
    yield (
        "Rows evaluated with the model per explained row (integrated gradients: each with a "
        "backward pass), and milliseconds per row on one thread, the fit of rivals included:"
    )
    yield ""
    yield from ("| method | evaluations | ms |", "|---|---|---|")
    for name in methods:
        evaluations, ms = (
            np.mean(list(lines.by_table(figure=figure, method=name).values()))
            for figure in ("evaluations", "ms per row")
        )
        yield f"| {name} | {evaluations:,.0f} | {ms:,.2f} |"
    yield ""


def _mean(values: dict[str, float], sign: str = "") -> str:
    middle, half = interval(values.values())
    return f"{middle:{sign}.3f}" + ("" if np.isnan(half) else f" ± {half:.3f}")


def _difference(lines: Lines, figure: str, kind: str, own: str, rival: str) -> str:
    """Our method minus the rival, on the tables where both were measured."""
    ours, theirs = (lines.by_table(figure=figure, kind=kind, method=name) for name in (own, rival))
    both = {table: ours[table] - theirs[table] for table in ours if table in theirs}
    return _mean(both, "+") if both else "–"


def _reasons(lines: Lines) -> Iterator[str]:
    own = lines.of(method=SHOWN)
    kinds = [kind for kind in KINDS if own.of(kind=kind)]
    yield "## The reasons shown (at most 3)"
    yield ""
    yield f"| | {' | '.join(kinds)} |"
    yield "|---" * (len(kinds) + 1) + "|"
    for figure in (
        "recall of the reasons shown",
        "rows with a reason",
        "reasons per row",
        "same first reason with another seed",
    ):
        cells = [_mean(own.by_table(figure=figure, kind=kind)) for kind in kinds]
        yield f"| {figure} | {' | '.join(cells)} |"
    yield ""
    n = lines.sum(figure="reasons")
    if not n:
        return
    conditions = [
        f"{lines.sum(figure=f'reasons with {count} conditions') / n:.1%} with {count}"
        for count in range(3)
    ]
    support = np.median([line.value for line in lines.of(figure="median support")])
    few = int(n - lines.sum(figure="reasons with enough support"))
    yield (
        f"- Of {n:,.0f} reasons, {', '.join(conditions)} conditions. The median support is "
        f"{support:,.0f} training rows (median over tables and seeds). Reasons with less than 30 "
        f"rows and less than 5 % of the table: {few}."
    )
    wrong = lines.sum(figure="conditions on a changed feature")
    wrong /= max(lines.sum(figure="conditions"), 1)
    circular = int(lines.sum(figure="reasons with a condition on their own feature"))
    yield (
        f"- Conditions on a feature that was changed: {wrong:.1%}. Reasons with a condition on "
        f"their own feature: {circular}."
    )
    inside = int(lines.sum(figure="reasons inside their range"))
    near = int(lines.sum(figure="reasons at an end of their range"))
    yield (
        f"- Reasons whose value lies inside the range that they state: {inside}; to six digits, as "
        f"a reader sees them: {near}."
    )
    some, many = (
        lines.sum(figure=f"ranges with {count} fresh rows") for count in (SOME_FRESH, MANY_FRESH)
    )
    if some:
        signed = lines.sum(figure="sum of stated − fresh") / some
        yield (
            f"- Stated coverage minus that of fresh test inliers: {signed:+.4f}, mean over "
            f"{some:,.0f} ranges with at least {SOME_FRESH} fresh comparable rows (of "
            f"{lines.sum(figure='reasons with a range'):,.0f})."
        )
    if many:
        apart = lines.sum(figure="sum of |stated − fresh|") / many
        chance = lines.sum(figure="sum of |stated − fresh| by chance") / many
        n_tables = len(
            {x.table for x in lines.of(figure=f"ranges with {MANY_FRESH} fresh rows") if x.value}
        )
        yield (
            f"- Mean absolute difference of the two: {apart:.4f} over {many:,.0f} ranges of "
            f"{n_tables} tables with at least {MANY_FRESH} fresh comparable rows; the number of "
            f"fresh rows alone would give {chance:.4f} by chance."
        )
    explain, each = (
        np.mean(list(lines.by_table(figure=figure).values()))
        for figure in ("explain, ms per row", "reasons_of, ms per row")
    )
    yield (
        f"- Time on one thread, mean over the tables: `explain` {explain:.4f} ms per row in a "
        f"batch of 10,000 rows, `reasons_of` {each:.3f} ms per row."
    )
    yield ""


def _tables(lines: Lines) -> Iterator[str]:
    shown = [name for name in _BY_TABLE if name in lines.names("method")]
    first = next(iter(BROKEN))
    yield "## By table"
    yield ""
    yield (
        f"Top-1 in rows with {first} feature, and how many features make up 80 % of the score of "
        "the test anomalies, and of their responsibilities; and the mean of |stated − fresh| "
        f"coverage over ranges with at least {MANY_FRESH} fresh comparable rows:"
    )
    yield ""
    head = [*shown, "80 % of score", "80 % of resp.", "coverage off by"]
    yield f"| table | features | {' | '.join(head)} |"
    yield "|---" * (len(head) + 2) + "|"
    features = lines.by_table(figure="features")
    hits = [lines.by_table(figure="top-1", kind=first, method=name) for name in shown]
    needed = [
        lines.by_table(figure=f"features for 80 % of the {what}")
        for what in ("score", "responsibility")
    ]
    for table, count in features.items():
        cells = [f"{some[table]:.2f}" if table in some else "–" for some in hits]
        cells += [f"{some[table]:.1f}" if table in some else "–" for some in needed]
        ranges = lines.sum(table=table, figure=f"ranges with {MANY_FRESH} fresh rows")
        off = lines.sum(table=table, figure="sum of |stated − fresh|")
        cells.append(f"{off / ranges:.3f} ({ranges:.0f})" if ranges else "–")
        yield f"| {table} | {count:.0f} | {' | '.join(cells)} |"
    yield ""
    score, resp = (np.mean(list(some.values())) for some in needed)
    yield (
        f"On average {score:.1f} of {np.mean(list(features.values())):.1f} features make up 80 % "
        f"of an anomaly's score, and {resp:.1f} make up 80 % of its responsibilities; in the "
        "paper, 10.8 of 20."
    )
    yield ""


def _mixed(lines: Lines) -> Iterator[str]:
    yield "## Tables with categories"
    yield ""
    yield (
        "Broken dependencies of numbers in tables with text columns, trained on at most 8,000 "
        "rows. For the neighbours, a category has one column per value, all standardised. Top-1 / "
        "recall, means over the seeds:"
    )
    yield ""
    methods = lines.names("method")
    yield f"| table | kind | {' | '.join(methods)} |"
    yield "|---" * (len(methods) + 2) + "|"
    for table in lines.names("table"):
        for kind in lines.of(table=table).names("kind"):
            some = lines.of(table=table, kind=kind)
            cells = [
                " / ".join(
                    f"{value:.2f}"
                    for figure in ("top-1", "recall")
                    for value in some.by_table(figure=figure, method=name).values()
                )
                for name in methods
            ]
            yield f"| {table} | {kind} | {' | '.join(cells)} |"
    yield ""


def _diamonds(lines: Lines) -> Iterator[str]:
    yield "## Known errors of the diamonds"
    yield ""
    yield (
        "`find_anomalies` on the raw table of 53,940 diamonds: how often the first feature is the "
        "wrong one, where this one can be named. A column counts as wrong if its value is "
        "impossible (gross errors), if replacing it by what the others say mends all physical "
        "rules, or if its value is more than 6 standard deviations from the mean. By seed:"
    )
    yield ""
    rows = {line.kind: int(line.value) for line in lines.of(figure="rows")}
    yield "| method | " + " | ".join(f"{kind}, of {n}" for kind, n in rows.items()) + " |"
    yield "|---" * (len(rows) + 1) + "|"
    for name in lines.names("method"):
        cells = [
            ", ".join(f"{x.value:.0f}" for x in lines.of(figure="right", method=name, kind=kind))
            for kind in rows
        ]
        yield f"| {name} | {' | '.join(cells)} |"
    yield ""
