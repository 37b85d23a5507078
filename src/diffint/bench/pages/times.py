"""The page of time and memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...core.formatting import listed, number
from ..markdown import MISSING, seconds_text, table
from ..results import each
from .common import Report, absent_line, page_of, shown_method


def time_page(report: Report, figures: Sequence[str]) -> str:
    """The page; figures: the names of the figures that were drawn."""
    results, times = report.results, report.times
    parts = [
        "# Time and memory\n",
        "Seconds on one core per seed, geometric means over tables: fit + score. ≥: some runs were "
        "stopped at the time limit and count with it; other missing runs are left out.\n",
    ]
    if times["estimated"].any():
        parts.append(
            "≈: some fits ran on a GPU; their time on one core is an estimate. The measured "
            "times are in [times.csv](times.csv).\n"
        )
    parts.append(absent_line(results))
    for regime in results.regimes:
        parts.append(f"## {regime.capitalize()} regime\n")
        name = f"time-{regime}.svg"
        if name in figures:
            parts.append(f"![Mean rank against seconds, {regime} regime](figures/{name})\n")
        in_regime, groups = times[times["regime"] == regime], report.groups(regime)
        order = in_regime[in_regime["group"] == "overall"].sort_values("seconds", kind="stable")[
            "method"
        ]
        cells = {(row.method, row.group): row for row in each(in_regime)}
        seconds, memory = [], []
        for method in order:
            of_method = [cells[method, group] for group in groups]
            seconds.append([shown_method(method), *(_seconds(one) for one in of_method)])
            peaks = [one.peak_memory_mb for one in of_method]
            shown = [MISSING if math.isnan(peak) else number(peak) for peak in peaks]
            memory.append([shown_method(method), _finished(of_method[0]), *shown])
        parts.append(table(["seconds, fit + score", *groups], seconds))
        parts.append(
            "Finished tables, and the largest memory of any run in MB, including the preloaded "
            "libraries of its process (200 to 800 MB, depending on the methods that were run).\n"
        )
        parts.append(table(["", "finished", *groups], memory))
    return page_of(parts)


def _seconds(cell: Any) -> str:
    fit, score = cell.fit_seconds, cell.score_seconds
    text = seconds_text(fit, cell.at_least, cell.estimated)
    return text if math.isnan(score) else f"{text} + {seconds_text(score)}"


def _finished(cell: Any) -> str:
    """``33 (3 timeout)``"""
    reasons = [
        f"{getattr(cell, name)} {name.replace('_', ' ')}"
        for name in ("timeout", "out_of_memory", "error", "not_run")
        if getattr(cell, name)
    ]
    finished = str(cell.finished)
    return f"{finished} ({listed(reasons)})" if reasons else finished
