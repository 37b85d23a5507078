"""The pages of values: mean, deviation and rank of each method on each table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas

from ...core.formatting import counted, number
from ..markdown import bold, escaped, score_text, table
from ..paper_numbers import ROC_AUC, Metric, PaperNumber
from ..protocol import SCALES, Regime
from ..results import each
from .common import (
    METRIC_NAMES,
    REGIME_TEXTS,
    Report,
    absent_line,
    page_of,
    sentence,
    shown_method,
    some_names,
)

_COLUMNS = 5  # tables per block


def tables_page(report: Report, regime: Regime, metric: Metric) -> str:
    """Mean ± sd (rank) of every method on every table, by scale."""
    results = report.results
    cells = report.cells
    cells = cells[(cells["regime"] == regime) & (cells["metric"] == metric)]
    n_seeds = int(cells["n_seeds"].max())
    limit = results.time_limit
    parts = [
        f"# {sentence(METRIC_NAMES[metric])} per table, {regime} regime\n",
        f"{REGIME_TEXTS[regime]} Mean ± sd over {counted(n_seeds, 'seed')}, in brackets the rank "
        "among all methods; the best is bold. A dash marks a run that did not finish, with the "
        "reason.\n",
    ]
    if cells["over_limit"].any():
        parts.append(
            f"† would not have finished on one core in {number(limit)} s, the time limit of "
            "the baselines.\n"
        )
    parts.append(absent_line(results))
    by_key = {(cell.table, cell.method): cell for cell in each(cells)}
    for scale in (*SCALES, ""):
        in_scale = cells[(cells["scale"] == scale) & (cells["method"] != "")]
        names = list(dict.fromkeys(in_scale["table"]))
        if not names:
            continue
        title = f"{scale.capitalize() or 'Other'} tables" if results.suite.in_paper else "Tables"
        parts.append(f"## {title} ({len(names)})\n")
        n_blocks = math.ceil(len(names) / _COLUMNS)
        width = math.ceil(len(names) / n_blocks)
        for start in range(0, len(names), width):
            block = names[start : start + width]
            papers = ROC_AUC if results.suite.in_paper and metric == "roc_auc" else {}
            parts.append(_block(by_key, results.methods(regime), block, papers))
        parts.append(_fewer_seeds(in_scale[in_scale["state"] == "ok"], n_seeds))
    return page_of(parts)


def _fewer_seeds(finished: pandas.DataFrame, n_seeds: int) -> str:
    """A sentence that names the methods with fewer than `n_seeds` seeds; empty if there are none.

    finished: the cells with a value.
    """
    short = finished[finished["n_seeds"] < n_seeds]
    texts = []
    for (method, n), cells in short.groupby(["method", "n_seeds"], sort=False):
        everywhere = len(cells) == (finished["method"] == method).sum() > 1
        where = "every table that it finished" if everywhere else some_names(list(cells["table"]))
        texts.append(f"{escaped(str(method))} with {n} on {where}")
    return f"Fewer than {n_seeds} seeds: {'; '.join(texts)}.\n" if texts else ""


def _block(
    cells: dict[tuple[str, str], Any],
    methods: Sequence[str],
    names: Sequence[str],
    papers: Mapping[str, PaperNumber],
) -> str:
    """papers: the paper's values of DiffInt by table."""
    best = {name: min(cells[name, method].rank for method in methods) for name in names}
    rows = []
    for method in methods:
        row = [shown_method(method)]
        for name in names:
            cell = cells[name, method]
            text = score_text(cell.mean, cell.sd, cell.rank, cell.state, cell.over_limit)
            is_best = cell.rank == best[name] and not math.isnan(cell.mean)
            row.append(bold(text) if is_best else text)
        rows.append(row)
        if method == "DiffInt-paper" and set(names) & set(papers):
            shown = [f"[{papers[name].value:.3f}]" if name in papers else "" for name in names]
            rows.append(["the paper", *shown])
    return table(["", *map(escaped, names)], rows)
