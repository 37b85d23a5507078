"""Parameters, time and memory of the paper's configuration as rows, features and units grow."""

from __future__ import annotations

import contextlib
import multiprocessing
import tempfile
import time
import warnings
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter
from numpy.typing import NDArray

from ..bench.markdown import table
from ..bench.worker import estimated_one_core_seconds, peak_memory_mb
from ..core.calibration import MAX_SCORES
from ..core.formatting import number
from ..estimator import DiffInt
from ..show.plots.drawing import QUIET, left_title, new_figure, top_title
from .page import beside, figure_text
from .study import Claim, Findings, Measured, Row, Setup, Study, Task, verdict
from .style import look_of, named_axes, ticks_at

# What grows, while the others keep the sizes of USUAL.
SIZES = {
    "n_rows": (2_000, 8_000, 32_000, 128_000),
    "n_features": (10, 40, 160, 640),
    "n_units": (25, 50, 100, 200, 400),
}
_QUICK = {"n_rows": (1_000, 4_000), "n_features": (10, 80), "n_units": (50, 200)}
_QUICK_USUAL = {"n_rows": 1_000, "n_features": 20, "n_units": 200}
USUAL = {"n_rows": 4_000, "n_features": 20, "n_units": 200}
WHAT = {"n_rows": "rows n", "n_features": "features d", "n_units": "units K"}
_BATCH_ROWS = 256  # the same for all sizes
_EPOCHS = 1000
_SCORED_ROWS = 10_000
# tab:complexity: interval parameters 2Kd, and seconds of 1000 epochs.
PAPER = {
    "6_cardio": (8_400, 3.0),
    "31_satimage-2": (14_400, 54.6),
    "26_optdigits": (25_600, 60.1),
    "48_arrhythmia": (109_600, 30.2),
    "32_shuttle": (3_600, 193.5),
}
_TABLE = "table"


def tasks(setup: Setup, tables: list[str]) -> list[Task]:
    """Generated rows of every size, and the paper's tables."""
    grown: list[Task] = [
        {"grows": name, "table": "", **(_QUICK_USUAL if setup.quick else USUAL), name: size}
        for name, sizes in (_QUICK if setup.quick else SIZES).items()
        for size in sizes
    ]
    for name in tables:
        n_rows, n_features = setup.table(name).x.shape
        sizes = {"n_rows": n_rows, "n_features": n_features, "n_units": USUAL["n_units"]}
        grown.append({"grows": _TABLE, "table": name, **sizes})
    return grown


def measure(task: Task, setup: Setup) -> Measured:
    """Count, time and weigh one model; times are those of one core, from fits of few epochs."""
    n_rows, n_units = int(task["n_rows"]), int(task["n_units"])
    weighed = not setup.quick or task["grows"] == "n_rows"  # it takes a process of its own
    settings: dict[str, Any] = {"n_units": n_units}
    if task["table"]:
        rows = setup.trial(str(task["table"]), 0).train
    else:
        rows = generated(n_rows, int(task["n_features"]))
        settings["batch_size"] = _BATCH_ROWS
    full = Setup(setup.data, False, setup.seeds, "cpu")
    seconds = estimated_one_core_seconds(full.paper_detector(n_rows, 0, **settings), rows)
    detector = full.paper_detector(n_rows, 0, **{**settings, "epochs": 1}).fit(rows)
    member = detector.model_.members[0]
    weights = [getattr(member.decoder, field.name).size for field in fields(member.decoder)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.diffint"
        detector.save(path)
        file_kb = path.stat().st_size / 1024
    return {
        "interval_parameters": member.center.size + member.half_width.size,
        "parameters": member.center.size + member.half_width.size + sum(weights),
        "fit_seconds": seconds,
        "score_us": 1e6 * _score_seconds(detector, rows) / _SCORED_ROWS,
        "fit_mb": _memory_of_fit(rows, settings) if weighed else None,
        "table_mb": rows.nbytes / 2**20,
        "file_kb": file_kb,
    }


def generated(n_rows: int, n_features: int) -> NDArray[np.float64]:
    """Correlated normal rows (rows, features)."""
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(n_features, n_features)) / np.sqrt(n_features)
    return np.asarray(rng.normal(size=(n_rows, n_features)) @ mixing)


def _score_seconds(detector: DiffInt, rows: NDArray[np.float64]) -> float:
    """The best of five times for `_SCORED_ROWS` rows."""
    block = rows[np.arange(_SCORED_ROWS) % len(rows)]
    best = np.inf
    for _ in range(5):
        started = time.process_time()
        detector.anomaly_score(block)
        best = min(best, time.process_time() - started)
    return best


def _memory_of_fit(rows: NDArray[np.float64], settings: dict[str, Any]) -> float:
    """Megabytes that a fit of two epochs needs beside the rows, in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return float(pool.apply(_growth, (rows, {**settings, "epochs": 2})))


def _growth(rows: NDArray[np.float64], settings: dict[str, Any]) -> float:
    warnings.simplefilter("ignore")
    detector = Setup().paper_detector(len(rows), 0, **settings)
    detector.fit(rows[:64])  # what is loaded and compiled does not count
    before = _peak_mb()
    detector.fit(rows)
    return _peak_mb() - before


def _peak_mb() -> float:
    """Largest resident size of this process; what it inherited from its parent does not count."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 1024
    return peak_memory_mb()


def report(rows: list[Row]) -> Findings:
    """How fast time and memory grow, and the paper's table."""
    grown = {name: [row for row in rows if row["grows"] == name] for name in SIZES}
    tables = [row for row in rows if row["grows"] == _TABLE]
    powers = {name: _power(grown[name], name, "fit_seconds") for name in SIZES}
    exact = all(
        row["interval_parameters"] == 2 * row["n_units"] * row["n_features"] for row in rows
    )
    by_rows = grown["n_rows"]
    first, last = by_rows[0], by_rows[-1]
    beside_table = last["fit_mb"] / last["table_mb"]
    file_growth = last["file_kb"] / first["file_kb"]
    score_growth = last["score_us"] / first["score_us"]
    most = max(rows, key=lambda row: row["parameters"])
    claims = [
        Claim(
            "the bottleneck has 2Kd parameters, for any number of rows",
            "2Kd",
            "2Kd" if exact else "not 2Kd",
            verdict(exact),
            f"counted in {len(rows)} models; with the decoder at most {most['parameters']:,.0f}, "
            f"at {most['n_features']:g} features and {most['n_units']:g} units",
        ),
        Claim(
            "training takes O(n K d) time",
            "n^1 d^1 K^1",
            " ".join(f"{WHAT[m][-1]}^{power:.2f}" for m, power in powers.items()),
            verdict(max(powers.values()) <= 1.15, max(powers.values()) <= 1.3),
            "time grows at most in proportion: the exponents, from straight lines through "
            "logarithms, are "
            + ", ".join(f"{power:.2f} for {WHAT[m]}" for m, power in powers.items())
            + (
                " (less than 1 where a fixed part of a step weighs)"
                if min(powers.values()) < 0.9
                else ""
            ),
        ),
        Claim(
            "the memory of training does not depend on n",
            "none",
            f"{first['fit_mb']:.0f} MB → {last['fit_mb']:.0f} MB",
            verdict(last["fit_mb"] - first["fit_mb"] < 5, beside_table < 4),
            f"beside the table itself ({last['table_mb']:.0f} MB at {last['n_rows']:,.0f} rows) a "
            f"fit needs {last['fit_mb']:.0f} MB, which grows with the rows",
        ),
        Claim(
            "a trained model is as large, and scores as fast, for any n",
            "constant",
            f"× {file_growth:.2f} and × {score_growth:.2f}",
            verdict(score_growth < 1.3 and file_growth < 1.3, score_growth < 1.3),
            f"from {first['n_rows']:,.0f} to {last['n_rows']:,.0f} rows the file goes from "
            f"{first['file_kb']:.0f} to {last['file_kb']:.0f} kB (it keeps scores for the "
            f"threshold, at most {MAX_SCORES:,}) and a row is scored in "
            f"{first['score_us']:.1f} and {last['score_us']:.1f} µs",
        ),
    ]
    text = "".join(
        f"Growing {WHAT[name]}, otherwise {_usual(grown[name][0], name)}, in batches of "
        f"{_BATCH_ROWS} rows:\n\n{_sizes_table(grown[name], name)}\n"
        for name in SIZES
    )
    if tables:
        lines = [
            [
                row["table"],
                f"{row['n_rows']:,.0f}",
                f"{row['n_features']:g}",
                f"{row['interval_parameters']:,.0f} [{PAPER[row['table']][0]:,}]",
                f"{row['parameters']:,.0f}",
                beside(row["fit_seconds"], PAPER[row["table"]][1], 1),
            ]
            for row in tables
        ]
        header = ("table", "n", "d", "bottleneck 2Kd", "all parameters", "seconds of training")
        text += "The paper's tables; in square brackets the paper's numbers:\n\n"
        text += table(header, lines)
    text += (
        f"\nSeconds are for {_EPOCHS} epochs on one core, estimated from fits of few epochs. "
        "Memory is what a fit needs beside the table and the loaded libraries."
    )
    return Findings(claims, text, _figure(grown))


def _usual(row: Row, grows: str) -> str:
    shown = [f"{row[name]:,.0f} {WHAT[name].split()[0]}" for name in WHAT if name != grows]
    return " and ".join(shown)


def _sizes_table(rows: list[Row], grows: str) -> str:
    header = (WHAT[grows], "parameters", "seconds of training", "µs per scored row")
    lines = [
        [
            f"{row[grows]:,.0f}",
            f"{row['parameters']:,.0f}",
            number(row["fit_seconds"], 3),
            f"{row['score_us']:.1f}",
            figure_text(row["fit_mb"], 0),
            f"{row['file_kb']:,.0f}",
        ]
        for row in rows
    ]
    return table((*header, "MB of a fit", "kB of the model file"), lines)


def _power(rows: list[Row], grows: str, measure: str) -> float:
    """The exponent of growth: the slope of a straight line through the logarithms."""
    x, y = (np.log([float(row[name]) for row in rows]) for name in (grows, measure))
    return float(np.polyfit(x, y, 1)[0])


def _figure(grown: dict[str, list[Row]]) -> Figure:
    figure = new_figure(height=3.0)
    axes = figure.subplots(1, 3, sharey=True)
    for ax, (name, rows) in zip(axes, grown.items(), strict=True):
        x, y = [row[name] for row in rows], [row["fit_seconds"] for row in rows]
        ax.plot(x, y, **look_of(0))
        ax.plot(x, [y[-1] * size / x[-1] for size in x], color=QUIET, linestyle=":")
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter(lambda value, _: number(value, 3))
        ax.yaxis.set_minor_formatter(NullFormatter())
        ticks_at(ax, x, short=True)
        named_axes(ax, WHAT[name], f"seconds of {_EPOCHS} epochs" if name == "n_rows" else "")
        power = _power(rows, name, "fit_seconds")
        left_title(ax, f"power {power:.2f}")
    top_title(figure, "Time of training on one core; dotted: in proportion")
    return figure


STUDY = Study(
    name="complexity",
    paper="tab:complexity, sec:complexity",
    question="How do parameters, time and memory grow with rows, features and units?",
    cost="18 models of about 4 s",
    keys=("grows", "table", "n_rows", "n_features", "n_units"),
    measures=(
        *("interval_parameters", "parameters", "fit_seconds", "score_us"),
        *("fit_mb", "table_mb", "file_kb"),
    ),
    tasks=tasks,
    measure=measure,
    report=report,
    tables=tuple(PAPER),
)
