"""The first page: what was run, the headline ranks of both regimes, and what did not finish."""

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
from ..standings import like_the_papers, pools
from ..store import NOT_RUN
from .common import (
    BRACKETS,
    METRIC_NAMES,
    REGIME_TEXTS,
    Report,
    absent_line,
    sentence,
    shown_method,
)

_MOST_NAMES = 12  # of tables in one cell
_NUMBERS = r"\d+(?:\.\d+)?"  # by which messages of one kind may differ


def first_page(report: Report, figures: Sequence[str]) -> str:
    """`figures` are the names of those that were drawn."""
    results = report.results
    parts = ["# How the detectors compare\n", _what_was_run(results), absent_line(results)]
    if results.n_repeated:
        parts.append(
            f"{counted(results.n_repeated, 'row')} came more than once (the same table, method, "
            "regime and seed); the last of each counts.\n"
        )
    for regime in results.regimes:
        parts += _regime(report, regime, figures)
    parts += ["## More\n", _links(results)]
    parts += ["## Runs that did not finish\n", *_failures(results)]
    return "\n".join(parts)


def _what_was_run(results: Results) -> str:
    rows, names = results.rows, results.tables
    scales = [
        (scale, sum(TABLES[n].scale == scale for n in names if n in TABLES)) for scale in SCALES
    ]
    known = [f"{count} {scale}" for scale, count in scales if count]
    others = [name for name in names if name not in TABLES]
    tables = f"{len(names) - len(others)} of the paper's {N_TABLES}"
    tables += f": {', '.join(known)}" if known else ""
    if others:
        tables += f"; and {len(others)} more: {wrapped_names(others)}"
    methods = results.all_methods
    plugins = [name for name in methods if is_plugin(name)]
    outside = f"; from outside: {wrapped_names(plugins)}" if plugins else ""
    lines = [
        ["regimes", listed(list(results.regimes))],
        ["tables", tables],
        ["methods", f"{len(methods)}: {wrapped_names(methods)}{outside}"],
        ["seeds", ranges_text(rows["seed"].tolist())],
        ["limits per run", _limits(rows)],
        ["processors", _distinct(rows["processor"])],
        ["versions", _distinct(rows["versions"])],
    ]
    return table(
        ["what was run", ""], [[name, text or "not given"] for name, text in lines]
    ).replace("--:", ":--")


def _limits(rows: pandas.DataFrame) -> str:
    limits = []
    for together in sorted({int(n) for n in rows["seeds_together"]}):
        alike = rows[rows["seeds_together"] == together]
        seconds = sorted(set(alike["time_limit"].dropna()))
        if seconds:
            whose = f" for {together} seeds in one launch" if together > 1 else ""
            limits.append(f"{' or '.join(number(value) for value in seconds)} s{whose}")
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
        parts.append(f"{n_papers} of the paper's {N_METHODS} methods are among these rows.\n")
    for metric in METRICS:
        parts.append(_test_line(report, regime, metric))
        name = f"cd-{regime}-{metric}-overall.svg"
        if name in figures:
            text = f"Mean ranks by {METRIC_NAMES[metric]}, {regime} regime"
            parts.append(f"![{text}](figures/{name})\n")
    note = f" {BRACKETS}" if like_the_papers(results, regime, "line-up") else ""
    parts += [
        "Mean ranks (lower is better; a run that did not finish gets the worst rank), and means "
        f"over the tables that every method here finished, if it finished any.{note}\n",
        _headline(report, regime, "line-up"),
    ]
    if "everyone" in found:
        more = [name for name in found["everyone"] if name not in found["line-up"]]
        parts += [
            f"With {listed([escaped(name) for name in more])}, which the paper does not have:\n",
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
            f"{bold(name)}: {over}, too few for Friedman's test, which takes three methods and "
            "two tables with values that differ.\n"
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
    # One that finished nothing would leave no table to average over.
    complete = complete_tables(values[0].dropna(axis=1, how="all"))
    rankings = [report.ranking(regime, pool, "A", "overall", metric) for metric in METRICS]
    columns = [ranking["mean_rank"] for ranking in rankings]
    columns += [-frame.loc[complete].mean() for frame in values]  # the lowest is the best of each
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


# --- The rest ------------------------------------------------------------------------------------


def _links(results: Results) -> str:
    lines = [
        "- [Mean ranks](ranks.md) by scale, tests, missing runs, and those that train on the same",
    ]
    for regime in results.regimes:
        for metric in METRICS:
            lines.append(
                f"- [{sentence(METRIC_NAMES[metric])} per table, {regime} regime]"
                f"(tables-{regime}-{metric}.md)"
            )
    lines += [
        "- [Head to head](comparisons.md): wins, ties, losses, Wilcoxon's test",
        "- [Time and memory](time.md)",
        "- As data: [values](values.csv), [ranks](ranks.csv), [tests](tests.csv), "
        "[comparisons](comparisons.csv), [times](times.csv)",
    ]
    return "\n".join(lines) + "\n"


def _failures(results: Results) -> list[str]:
    """Failed runs, those of one method and reason together; then what was never run."""
    parts = []
    failed = results.rows[results.rows["state"] != "ok"]
    if len(failed):
        rows = []
        failed = failed.sort_values("method", key=_method_places, kind="stable")
        alike = failed["message"].str.removeprefix(NOT_RUN).str.replace(_NUMBERS, "…", regex=True)
        for (method, state, _), group in failed.groupby(["method", "state", alike], sort=False):
            message = group["message"].iloc[0].removeprefix(NOT_RUN)
            others = group["message"].str.removeprefix(NOT_RUN).nunique() - 1
            message += " (the numbers vary)" if others else ""
            rows.append(
                [
                    shown_method(str(method)),
                    escaped(str(state)),
                    _names(list(dict.fromkeys(group["table"]))),
                    ", ".join(dict.fromkeys(group["regime"])),
                    ranges_text(group["seed"].tolist()),
                    escaped(str(message)),
                ]
            )
        head = ["method", "what", "tables", "regimes", "seeds", "message"]
        parts += [
            "One that runs out of time or memory in its first seed is missing on that table; where "
            "that was on the inliers alone, it is not tried on all rows. After an error the other "
            "seeds still count.\n",
            table(head, rows).replace("--:", ":--"),
        ]
    else:
        parts.append("No run failed.\n")
    never = results.cells[results.cells["state"] == "not run"]
    if len(never):
        lines = []
        for (regime, method), group in never.groupby(["regime", "method"], sort=False):
            lines.append(
                f"- {shown_method(str(method))}, {regime} regime: {_names(list(group['table']))}"
            )
        parts += [
            "No rows at all, though others have some; they count as runs that did not finish:\n",
            "\n".join(lines) + "\n",
        ]
    return parts


def _method_places(names: pandas.Series) -> pandas.Series:
    places = {name: place for place, name in enumerate(sorted_methods(set(names)))}
    return names.map(places)


def _names(names: list[str]) -> str:
    if len(names) <= _MOST_NAMES:
        return wrapped_names(names)
    return f"{wrapped_names(names[:_MOST_NAMES])} and {len(names) - _MOST_NAMES} more"
