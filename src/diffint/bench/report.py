"""Write a report of result rows to a folder: pages, figures, and CSV files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas

from ..tables.atomic_write import atomic_write, check_not_an_input
from .figures import TimedMethod, accuracy_against_time, critical_difference_diagram, svg_bytes
from .pages.common import METRIC_NAMES, Report, sentence
from .pages.comparisons import comparisons_page
from .pages.first import first_page
from .pages.ranks import ranks_page
from .pages.tables import tables_page
from .pages.times import time_page
from .paper_numbers import METRICS, N_TABLES
from .protocol import TABLES, Regime
from .results import each, read_results
from .selection import Selection

Progress = Callable[[int, int], None]

_CSV_FILES = ("values.csv", "ranks.csv", "tests.csv", "comparisons.csv", "times.csv")


def write_report(
    rows: pandas.DataFrame,
    folder: Path,
    *,
    tables: Sequence[str] = (),
    methods: Sequence[str] = (),
    selection: Selection | None = None,
    inputs: Sequence[Path] = (),
    progress: Progress | None = None,
) -> list[Path]:
    """Write README.md, the pages, figures and CSV files that it links to. → their paths

    rows: one per table, method, regime and seed. tables, methods: names to report (for tables also
    scale groups), all by default. selection: the tables to report, without those that have no
    rows. inputs: files that must not be overwritten. progress: called with the number of figures
    drawn and the total. The same rows give the same bytes.
    """
    folder = Path(folder)
    for name in _CSV_FILES:
        check_not_an_input(folder / name, *inputs)
    report = Report(read_results(rows, tables, methods, selection))
    files = _figures(report, progress)
    drawn = list(files)
    content: dict[str, bytes] = {f"figures/{name}": figure for name, figure in files.items()}
    pages = {
        "README.md": first_page(report, drawn),
        "ranks.md": ranks_page(report, drawn),
        "comparisons.md": comparisons_page(report),
        "time.md": time_page(report, drawn),
    }
    for regime in report.results.regimes:
        for metric in METRICS:
            pages[f"tables-{regime}-{metric}.md"] = tables_page(report, regime, metric)
    content |= {name: page.encode() for name, page in pages.items()}
    content |= {name: _csv(frame) for name, frame in _frames(report).items()}
    # Write only after everything was made without an error.
    for name in content:
        check_not_an_input(folder / name, *inputs)
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    for name, data in content.items():
        atomic_write(folder / name, data)
    return [folder / name for name in content]


def _frames(report: Report) -> dict[str, pandas.DataFrame]:
    times = [
        "table", "scale", "method", "regime", "state", "fit_seconds", "estimated",
        "measured_fit_seconds", "score_seconds", "peak_memory_mb", "time_limit", "over_limit",
        "n_seeds", "n_failed",
    ]  # fmt: skip
    frames = (
        report.cells,
        report.ranks,
        report.friedman,
        report.comparisons,
        report.results.cells[times],
    )
    return dict(zip(_CSV_FILES, frames, strict=True))


def _csv(frame: pandas.DataFrame) -> bytes:
    return frame.to_csv(index=False, float_format="%.6g", lineterminator="\n").encode()


def _figures(report: Report, progress: Progress | None) -> dict[str, bytes]:
    """The figures that can be drawn, by file name."""
    tests = report.friedman[report.friedman["pool"] == "line-up"]
    tests = tests[tests["critical_difference"].notna()]
    regimes = report.results.regimes
    total = len(tests) + len(regimes)
    files: dict[str, bytes] = {}
    for test in each(tests):
        ranking = report.ranking(test.regime, "line-up", "A", test.group, test.metric)
        title = (
            f"{sentence(METRIC_NAMES[test.metric])}, {_tables(report, test.group, test.n_tables)}, "
            f"{test.regime} regime: mean ranks of {test.n_methods} methods"
        )
        figure = critical_difference_diagram(ranking["mean_rank"], test.critical_difference, title)
        files[f"cd-{test.regime}-{test.metric}-{test.group}.svg"] = svg_bytes(figure)
        if progress is not None:
            progress(len(files), total)
    for done, regime in enumerate(regimes, len(tests) + 1):
        points = _timed_methods(report, regime)
        if points:
            n_tables = len(report.results.values(regime, "roc_auc", report.results.methods(regime)))
            title = (
                f"Accuracy against time, {_tables(report, 'overall', n_tables)}, {regime} regime"
            )
            figure = accuracy_against_time(points, title, METRIC_NAMES["roc_auc"])
            files[f"time-{regime}.svg"] = svg_bytes(figure)
        if progress is not None:
            progress(done, total)
    return files


def _tables(report: Report, group: str, n_tables: int) -> str:
    """The tables of a figure: ``36 of the paper's 48 tables``, ``11 of 12 small tables``."""
    results = report.results
    others = not results.suite.in_paper or any(name not in TABLES for name in results.tables)
    if group == "overall":
        return f"{n_tables} tables" if others else f"{n_tables} of the paper's {N_TABLES} tables"
    of = sum(table.scale == group for table in TABLES.values())
    return f"{n_tables} of {of} {group} tables"


def _timed_methods(report: Report, regime: Regime) -> list[TimedMethod]:
    """The methods of a regime with a known time, with mean ranks by ROC-AUC."""
    results = report.results
    pool = "everyone" if set(results.methods(regime)) != set(results.line_up(regime)) else "line-up"
    ranks = report.ranking(regime, pool, "A", "overall", "roc_auc")["mean_rank"]
    times = report.times
    times = times[(times["regime"] == regime) & (times["group"] == "overall")]
    return [
        TimedMethod(row.method, row.seconds, float(ranks[row.method]), row.at_least, row.estimated)
        for row in each(times)
        if np.isfinite(row.seconds) and np.isfinite(ranks[row.method])
    ]
