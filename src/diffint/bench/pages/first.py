"""The first page: what was run, the main ranks of both regimes, and what did not finish."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas

from ...core.formatting import counted, listed, number
from ..markdown import bold, escaped, p_text, ranges_text, rank_text, table, wrapped_names
from ..paper_numbers import METRICS, N_METHODS, N_TABLES, Metric
from ..protocol import SCALES, TABLES, Regime
from ..ranking import complete_tables
from ..results import Results, is_plugin, sorted_methods
from ..standings import comparable_with_paper, pools
from ..store import NOT_RUN
from .common import (
    BRACKETS,
    METRIC_NAMES,
    REGIME_TEXTS,
    Report,
    absent_line,
    page_of,
    sentence,
    shown_method,
    some_names,
)

_NUMBERS = r"\d+(?:\.\d+)?"  # messages that differ only in these are the same kind


def first_page(report: Report, figures: Sequence[str]) -> str:
    """The page; figures: the names of the figures that were drawn."""
    results = report.results
    parts = ["# How the detectors compare\n", _what_was_run(results), absent_line(results)]
    if results.n_repeated:
        was = "was" if results.n_repeated == 1 else "were"
        parts.append(
            f"{counted(results.n_repeated, 'row')} {was} replaced by later rows of the same table, "
            "method, regime and seed.\n"
        )
    for regime in results.regimes:
        parts += _regime(report, regime, figures)
    parts += ["## More\n", _links(results)]
    parts += ["## Runs that did not finish\n", *_failures(results)]
    return page_of(parts)


def _what_was_run(results: Results) -> str:
    rows = results.rows
    methods = results.all_methods
    plugins = [name for name in methods if is_plugin(name)]
    outside = f"; plugins: {wrapped_names(plugins)}" if plugins else ""
    suite = [] if results.suite.in_paper else [["suite", results.suite.name]]
    lines = [
        *suite,
        ["regimes", listed(list(results.regimes))],
        ["tables", _tables(results)],
        ["methods", f"{len(methods)}: {wrapped_names(methods)}{outside}"],
        ["seeds", ranges_text(rows["seed"].tolist())],
        ["limits per run", _limits(rows)],
        ["processors", _distinct(rows["processor"])],
        ["versions", _distinct(rows["versions"])],
    ]
    return table(
        ["what was run", ""], [[name, text or "not given"] for name, text in lines]
    ).replace("--:", ":--")


def _tables(results: Results) -> str:
    """The tables with rows: their number, and their scales or names."""
    names = results.tables
    if not results.suite.in_paper:
        return f"{len(names)}: {some_names(names)}"
    scales = [
        (scale, sum(TABLES[n].scale == scale for n in names if n in TABLES)) for scale in SCALES
    ]
    known = [f"{count} {scale}" for scale, count in scales if count]
    others = [name for name in names if name not in TABLES]
    text = f"{len(names) - len(others)} of the paper's {N_TABLES}"
    text += f": {', '.join(known)}" if known else ""
    return text + (f"; and {len(others)} more: {wrapped_names(others)}" if others else "")


def _limits(rows: pandas.DataFrame) -> str:
    limits = []
    for together in sorted({int(n) for n in rows["seeds_together"]}):
        same = rows[rows["seeds_together"] == together]
        seconds = sorted(set(same["time_limit"].dropna()))
        if seconds:
            seeds = f" for {together} seeds in one launch" if together > 1 else ""
            limits.append(f"{' or '.join(number(value) for value in seconds)} s{seeds}")
    memory = sorted(set(rows["memory_limit_gb"].dropna()))
    if memory:
        limits.append(f"{' or '.join(number(value) for value in memory)} GB")
    return ", ".join(limits)


def _distinct(texts: pandas.Series) -> str:
    return "<br>".join(escaped(text, 400) for text in sorted(set(texts)) if text)


# --- A regime ------------------------------------------------------------------------------------


def _regime(report: Report, regime: Regime, figures: Sequence[str]) -> list[str]:
    results = report.results
    found = pools(results, regime)
    parts = [f"## {regime.capitalize()} regime\n", REGIME_TEXTS[regime] + "\n"]
    n_papers = sum(not is_plugin(name) for name in found["line-up"])
    if "everyone" in found and n_papers < N_METHODS:
        parts.append(f"{n_papers} of the paper's {N_METHODS} methods have rows here.\n")
    for metric in METRICS:
        parts.append(_test_line(report, regime, metric))
        name = f"cd-{regime}-{metric}-overall.svg"
        if name in figures:
            text = f"Mean ranks by {METRIC_NAMES[metric]}, {regime} regime"
            parts.append(f"![{text}](figures/{name})\n")
    note = f" {BRACKETS}" if comparable_with_paper(results, regime, "line-up") else ""
    parts += [
        "Mean ranks (lower is better; a run that did not finish gets the worst rank), and means "
        "over the tables that all methods finished (ignoring methods that finished none)."
        f"{note}\n",
        _headline(report, regime, "line-up"),
    ]
    if "everyone" in found:
        more = [name for name in found["everyone"] if name not in found["line-up"]]
        parts += [
            f"With {listed([escaped(name) for name in more])}, which the paper does not include:\n",
            _headline(report, regime, "everyone"),
        ]
    return parts


def _test_line(report: Report, regime: Regime, metric: Metric) -> str:
    tests = report.friedman
    test = tests[
        (tests["regime"] == regime)
        & (tests["metric"] == metric)
        & (tests["pool"] == "line-up")
        & (tests["group"] == "overall")
    ].iloc[0]
    over = (
        f"{counted(int(test['n_methods']), 'method')} over "
        f"{counted(int(test['n_tables']), 'table')}"
    )
    name = sentence(METRIC_NAMES[metric])
    if math.isnan(test["chi2"]):
        return (
            f"{bold(name)}: {over}, too few for Friedman's test, which needs three methods and "
            "two tables with different values.\n"
        )
    chi2 = f"{test['chi2']:.2f}"
    chi2 += "" if math.isnan(test["paper_chi2"]) else f" [{test['paper_chi2']:.2f}]"
    cd = rank_text(test["critical_difference"], test["paper_critical_difference"])
    return (
        f"{bold(name)}: {over}; Friedman χ² = {chi2}, p = {p_text(test['p'])}; Nemenyi's critical "
        f"difference {cd}.\n"
    )


def _headline(report: Report, regime: Regime, pool: str) -> str:
    """A row per method, best mean rank by ROC-AUC first."""
    results = report.results
    methods = pools(results, regime)[pool]
    values = [results.values(regime, metric, methods) for metric in METRICS]
    # A method that finished no table would leave none to average over.
    complete = complete_tables(values[0].dropna(axis=1, how="all"))
    rankings = [report.ranking(regime, pool, "A", "overall", metric) for metric in METRICS]
    columns = [ranking["mean_rank"] for ranking in rankings]
    columns += [-frame.loc[complete].mean() for frame in values]  # negative: the lowest is best
    best = [column.min() for column in columns]
    rows = []
    for method in rankings[0].index:
        row = [shown_method(str(method))]
        for place, column in enumerate(columns):
            value = float(column[method])
            text = rank_text(value) if place < 2 else "–" if math.isnan(value) else f"{-value:.3f}"
            text = bold(text) if value == best[place] else text
            paper = rankings[place].loc[method, "paper"] if place < 2 else math.nan
            row.append(text if math.isnan(paper) else f"{text} [{paper:.2f}]")
        finished = int(values[0][method].notna().sum())
        rows.append([*row, f"{finished} of {len(values[0])}"])
    head = ["method", "rank, ROC-AUC", "rank, AP"]
    head += [f"mean {name} ({len(complete)} tables)" for name in ("ROC-AUC", "AP")]
    return table([*head, "finished"], rows)


# --- Links and failures --------------------------------------------------------------------------


def _links(results: Results) -> str:
    contents = "tests, treatment of missing runs"
    if results.suite.in_paper:
        contents = f"by scale, with {contents}, training rows"
    lines = [f"- [Mean ranks](ranks.md): {contents}"]
    for regime in results.regimes:
        for metric in METRICS:
            lines.append(
                f"- [{sentence(METRIC_NAMES[metric])} per table, {regime} regime]"
                f"(tables-{regime}-{metric}.md)"
            )
    lines += [
        "- [Pairwise comparisons](comparisons.md): wins, ties, losses, Wilcoxon's test",
        "- [Time and memory](time.md)",
        "- As data: [values](values.csv), [ranks](ranks.csv), [tests](tests.csv), "
        "[comparisons](comparisons.csv), [times](times.csv)",
    ]
    return "\n".join(lines) + "\n"


def _failures(results: Results) -> list[str]:
    """Failed runs, grouped by method and reason; then runs that were never made."""
    parts = []
    failed = results.rows[results.rows["state"] != "ok"]
    if len(failed):
        rows = []
        failed = failed.sort_values("method", key=_method_positions, kind="stable")
        kind = failed["message"].str.removeprefix(NOT_RUN).str.replace(_NUMBERS, "…", regex=True)
        for (method, state, _), group in failed.groupby(["method", "state", kind], sort=False):
            message = group["message"].iloc[0].removeprefix(NOT_RUN)
            others = group["message"].str.removeprefix(NOT_RUN).nunique() - 1
            message += " (the numbers vary)" if others else ""
            rows.append(
                [
                    shown_method(str(method)),
                    escaped(str(state)),
                    some_names(list(dict.fromkeys(group["table"]))),
                    ", ".join(dict.fromkeys(group["regime"])),
                    ranges_text(group["seed"].tolist()),
                    escaped(str(message)),
                ]
            )
        head = ["method", "state", "tables", "regimes", "seeds", "message"]
        parts += [
            "A method that exceeds the time or memory limit on its first seed counts as missing on "
            "that table; if it does so on the inliers alone, it is not run on all rows. After an "
            "error, the other seeds still count.\n",
            table(head, rows).replace("--:", ":--"),
        ]
    else:
        parts.append("No run failed.\n")
    never = results.cells[results.cells["state"] == "not run"]
    if len(never):
        lines = []
        for (regime, method), group in never.groupby(["regime", "method"], sort=False):
            tables = some_names(list(group["table"]))
            lines.append(f"- {shown_method(str(method))}, {regime} regime: {tables}")
        parts += [
            "Methods without rows on tables that others were run on; they count as not finished:\n",
            "\n".join(lines) + "\n",
        ]
    return parts


def _method_positions(names: pandas.Series) -> pandas.Series:
    places = {name: place for place, name in enumerate(sorted_methods(set(names)))}
    return names.map(places)
