"""The page of mean ranks: by scale, by treatment of missing runs, and by training rows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas

from ...core.formatting import counted
from ..markdown import MISSING, bold, p_text, rank_text, table
from ..paper_numbers import COMPLETE_CASE, METRICS, N_COMPLETE, N_TABLES, POOL_SIZES, Metric
from ..protocol import Regime
from ..ranking import ALPHA, SCHEMES
from ..results import each
from ..standings import comparable_with_paper, pools
from .common import (
    BRACKETS,
    METRIC_NAMES,
    REGIME_TEXTS,
    Report,
    absent_line,
    page_of,
    sentence,
    shown_method,
)


def ranks_page(report: Report, figures: Sequence[str]) -> str:
    """The page; figures: the names of the figures that were drawn."""
    results = report.results
    comparable = any(comparable_with_paper(results, "paper", pool) for pool in POOL_SIZES)
    parts = [
        "# Mean ranks\n",
        "Lower is better, ties share their mean rank; a run that did not finish gets the worst "
        f"rank, the number of methods.{' ' + BRACKETS if comparable else ''}\n",
        absent_line(results),
    ]
    for regime in results.regimes:
        parts += [f"## {regime.capitalize()} regime\n", REGIME_TEXTS[regime] + "\n"]
        for pool in ("line-up", "everyone"):
            if pool in pools(results, regime):
                parts += _by_scale(report, regime, pool)
        parts += _tests(report, regime, figures)
        parts += _schemes(report, regime)
        if regime == "paper" and results.suite.in_paper:
            parts += _split_pools(report)
    return page_of(parts)


def _by_scale(report: Report, regime: Regime, pool: str) -> list[str]:
    methods = pools(report.results, regime)[pool]
    groups = report.groups(regime)
    title = "By scale" if report.results.suite.in_paper else "All tables"
    title = "With methods that are not in the paper" if pool == "everyone" else title
    parts = [f"### {title}: {counted(len(methods), 'method')}\n"]
    for metric in METRICS:
        columns = [report.ranking(regime, pool, "A", group, metric) for group in groups]
        header = [sentence(METRIC_NAMES[metric])]
        header += [f"{group} ({_n_tables(c)})" for group, c in zip(groups, columns, strict=True)]
        parts.append(_rank_table(header, columns))
    return parts


def _n_tables(ranking: pandas.DataFrame) -> int:
    return int(ranking["n_tables"].iloc[0]) if len(ranking) else 0


def _rank_table(header: list[str], columns: list[pandas.DataFrame]) -> str:
    """A row per method, in the first column's order; the best of each column in bold."""
    best = [column["mean_rank"].min() for column in columns]
    rows = []
    for method in columns[0].index:
        row = [shown_method(str(method))]
        for column, lowest in zip(columns, best, strict=True):
            rank, paper = column.loc[method, ["mean_rank", "paper"]]
            text = rank_text(rank)
            text = bold(text) if rank == lowest else text
            row.append(text if math.isnan(paper) else f"{text} [{paper:.2f}]")
        rows.append(row)
    return table(header, rows)


def _tests(report: Report, regime: Regime, figures: Sequence[str]) -> list[str]:
    """Friedman's test and Nemenyi's critical difference, with the diagrams by scale."""
    tests = report.friedman[
        (report.friedman["regime"] == regime)
        & (report.friedman["pool"] == "line-up")
        & report.friedman["group"].isin(report.groups(regime))
    ]
    rows = []
    for test in each(tests):
        name = f"cd-{regime}-{test.metric}-{test.group}.svg"
        link = f"[diagram](figures/{name})" if name in figures else MISSING
        chi2 = MISSING if math.isnan(test.chi2) else f"{test.chi2:.2f}"
        chi2 += "" if math.isnan(test.paper_chi2) else f" [{test.paper_chi2:.2f}]"
        rows.append(
            [
                f"{sentence(METRIC_NAMES[test.metric])}, {test.group}",
                str(test.n_methods),
                str(test.n_tables),
                chi2,
                p_text(test.p),
                rank_text(test.critical_difference, test.paper_critical_difference),
                link,
            ]
        )
    head = ["", "methods", "tables", "Friedman χ²", "p", "critical difference", ""]
    parts = [
        "### Do the ranks differ?\n",
        "Friedman's test over all methods (those that did not finish share the worst rank), and "
        f"Nemenyi's critical difference at {100 * (1 - ALPHA):.0f} %: mean ranks that are closer "
        "do not differ significantly.\n",
        table(head, rows),
    ]
    if comparable_with_paper(report.results, regime, "line-up"):
        parts.append("By scale the paper's critical differences are about 9 to 11 (tab:ranks).\n")
    if tests["chi2"].isna().any():
        parts.append("A dash: the test needs three methods, two tables and different values.\n")
    return parts


def _schemes(report: Report, regime: Regime) -> list[str]:
    over_limit = bool(report.results.cells["over_limit"].any())
    rankings = {
        (metric, scheme): report.ranking(regime, "line-up", scheme, "overall", metric)
        for metric in METRICS
        for scheme in SCHEMES
        if scheme != "D" or over_limit
    }
    on_one_core = ""
    if over_limit:
        on_one_core = (
            " D: the worst rank, also for runs on a GPU that would not have finished on one core "
            "within the time limit of the other methods."
        )
    short = {"roc_auc": "AUC", "average_precision": "AP"}
    n_complete = _n_tables(rankings["roc_auc", "B"])
    n_all = _n_tables(rankings["roc_auc", "A"])
    papers = ""
    if comparable_with_paper(report.results, regime, "line-up"):
        papers = f" [{N_COMPLETE} of {N_TABLES}]"
    return [
        "### Treatment of missing runs\n",
        f"A: the worst rank. B: only the {n_complete} of {n_all} tables that every method "
        f"finished{papers}. C: the median of the table's ranks.{on_one_core}\n",
        _rank_table(
            ["method", *(f"{short[metric]} {scheme}" for metric, scheme in rankings)],
            list(rankings.values()),
        ),
    ]


def _split_pools(report: Report) -> list[str]:
    found = pools(report.results, "paper")
    parts = [
        "### Methods with the same training rows\n",
        "The paper regime mixes methods that train on inliers with methods that train on "
        "contaminated rows; here they are ranked separately, with DiffInt in both groups.\n",
    ]
    titles = {
        "inlier-only": "Inlier-only, DiffInt as in the paper",
        "inlier-only (DiffInt)": "Inlier-only, DiffInt as recommended",
        "contaminated": "Contaminated, with DiffInt as in the paper",
        "contaminated (DiffInt)": "Contaminated, with DiffInt as recommended",
    }
    shown = [pool for pool in titles if pool in found]
    if not shown:
        parts.append("This needs rows of DiffInt and of a method of either group.\n")
    for pool in shown:
        parts.append(f"#### {titles[pool]} ({len(found[pool])} methods)\n")
        if pool.startswith("inlier"):
            for metric in METRICS:
                groups = report.groups("paper")
                columns = [report.ranking("paper", pool, "A", group, metric) for group in groups]
                header = [sentence(METRIC_NAMES[metric])]
                header += [
                    f"{group} ({_n_tables(column)})"
                    for group, column in zip(groups, columns, strict=True)
                ]
                parts.append(_rank_table(header, columns))
        else:
            columns = [
                report.ranking("paper", pool, scheme, "overall", metric)
                for metric in METRICS
                for scheme in ("A", "B")
            ]
            n_all, n_complete = (_n_tables(column) for column in columns[:2])
            header = ["method"]
            for metric in METRICS:
                header += [f"{METRIC_NAMES[metric]}, all ({n_all})", f"complete ({n_complete})"]
            parts.append(_rank_table(header, columns))
    if comparable_with_paper(report.results, "paper", "line-up"):
        parts += _complete_case(report)
    return parts


def _complete_case(report: Report) -> list[str]:
    """Ranks by scheme B with those of the paper's text, which differ from its table."""
    rows = []
    for method in dict.fromkeys(key.method for key in COMPLETE_CASE):
        row = [shown_method(method)]
        for metric in METRICS:
            ranking = report.ranking("paper", "line-up", "B", "overall", metric)
            rank = float(ranking["mean_rank"].get(method, math.nan))
            row.append(rank_text(rank, _complete_case_number(method, metric)))
        rows.append(row)
    return [
        "#### All methods of the paper on complete tables\n",
        "This is scheme B above. The text of the paper's appendix (sup:strat) and its table "
        "(tab:rank-sens) give different numbers; in brackets are those of the text.\n",
        table(["method", *METRIC_NAMES.values()], rows),
    ]


def _complete_case_number(method: str, metric: Metric) -> float:
    return next(
        number.value
        for key, number in COMPLETE_CASE.items()
        if (key.method, key.metric) == (method, metric)
    )
