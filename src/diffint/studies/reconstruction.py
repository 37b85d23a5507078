"""The error on inliers beside BinaPs, and the time of training beside BinaPs and LUNAR.

All times are processor time of one thread for 1000 epochs. DiffInt is trained in full. The others
are timed over few epochs, from which the time of 1000 follows.
"""

from __future__ import annotations

import importlib.util
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ..bench.markdown import table
from ..bench.protocol import scale_trial
from ..core.errors import InputError
from ..core.formatting import listed
from ..show.plots.drawing import FAINT, INK, legend_below, new_figure, top_title
from .page import beside, figure_text, mean_of, present
from .study import Claim, Findings, Measured, Row, Setup, Study, Task, verdict
from .style import COLOURS, named_axes

METHODS = ("DiffInt", "BinaPs", "LUNAR")
EPOCHS = 1000
_TIMED_EPOCHS = (2, 12)
_BINAPS_STEPS, _QUICK_STEPS = 5_000, 500
# tab:binaps: error of BinaPs and DiffInt, seconds of DiffInt and LUNAR. "wbc" is WDBC, as in
# tab:certify, which gives it 30 features; 42_WBC is here beside it.
PAPER: dict[str, tuple[float | None, float | None, float | None, float | None]] = {
    "48_arrhythmia": (0.296, 0.121, 30.2, 7.9),
    "6_cardio": (0.305, 0.064, 3.0, 20.6),
    "14_glass": (0.336, 0.043, 9.2, 7.5),
    "18_Ionosphere": (0.252, 0.129, 16.1, 7.2),
    "26_optdigits": (0.281, 0.203, 60.1, 57.6),
    "29_Pima": (0.295, 0.070, 8.6, 8.1),
    "30_satellite": (0.247, 0.035, 38.7, 52.6),
    "31_satimage-2": (0.257, 0.033, 54.6, 65.7),
    "32_shuttle": (0.057, 0.001, 193.5, 658.0),
    "40_vowels": (None, 0.061, 2.7, 31.3),
    "43_WDBC": (None, 0.067, 2.6, 15.9),
    "42_WBC": (None, None, None, None),
}


def tasks(setup: Setup, tables: list[str]) -> list[Task]:
    """Three seeds of the errors, one of LUNAR's time; LUNAR only if PyOD is installed."""
    if importlib.util.find_spec("torch") is None:
        raise InputError(
            "the study reconstruction needs torch; install it with pip install 'diffint-ad[bench]'"
        )
    chosen: list[Task] = [
        {"table": name, "method": method, "seed": seed}
        for name in tables
        for method in ("DiffInt", "BinaPs")
        for seed in setup.seed_range(3)
    ]
    if importlib.util.find_spec("pyod") is not None and not setup.quick:
        chosen += [{"table": name, "method": "LUNAR", "seed": 0} for name in tables]
    return chosen


def measure(task: Task, setup: Setup) -> Measured:
    """The mean error of test inliers in [−1, 1] units, and the seconds of 1000 epochs."""
    name, seed = str(task["table"]), int(task["seed"])
    trial = setup.trial(name, seed)
    if task["method"] == "DiffInt":
        detector = setup.paper_detector(setup.table(name).n_rows, seed, epochs=EPOCHS)
        setup.paper_detector(64, seed, epochs=10).fit(trial.train[:64])  # compiles, if need be
        started = time.process_time()
        detector.fit(trial.train)
        seconds = (time.process_time() - started) * EPOCHS / int(detector.epochs)
        # In this configuration the score is the error.
        error = detector.anomaly_score(trial.test[trial.test_labels == 0]).mean()
        return {"error": error, "train_seconds": seconds}
    import torch

    torch.set_num_threads(1)
    scaled = scale_trial(trial, "minmax")
    inliers = np.clip(scaled.test[scaled.test_labels == 0], -1.0, 1.0)
    if task["method"] == "LUNAR":
        return {"train_seconds": _extrapolated(lambda epochs: _lunar(epochs, seed), scaled.train)}
    from ..bench.rivals.binaps import BinaPs

    steps = _QUICK_STEPS if setup.quick else _BINAPS_STEPS
    fitted = BinaPs(epochs=EPOCHS, most_steps=steps, random_state=seed).fit(scaled.train)
    binned = fitted.binning_.numbers(fitted.binning_.columns(inliers))
    return {
        "error": np.abs(inliers - fitted.reconstruct(inliers)).mean(),
        "bin_error": np.abs(inliers - binned).mean(),
        "steps": fitted.n_steps_,
        "patterns": int((fitted.patterns_.sum(axis=1) > 1).sum()),
        "train_seconds": _extrapolated(
            lambda epochs: BinaPs(epochs=epochs, random_state=seed), scaled.train
        ),
    }


def _lunar(epochs: int, seed: int) -> Any:
    import torch
    from pyod.models.lunar import LUNAR

    torch.manual_seed(seed)
    return LUNAR(n_epochs=epochs, verbose=0)


def _extrapolated(make: Callable[[int], Any], rows: Any) -> float:
    """Seconds of a fit of 1000 epochs, from fits of few."""
    seconds = []
    for epochs in (_TIMED_EPOCHS[0], *_TIMED_EPOCHS):  # the first time does not count
        started = time.process_time()
        make(epochs).fit(rows)
        seconds.append(time.process_time() - started)
    few, more = _TIMED_EPOCHS
    per_epoch = max(seconds[2] - seconds[1], 0.0) / (more - few)
    return float(seconds[1] + (EPOCHS - few) * per_epoch)


def report(rows: list[Row]) -> Findings:
    """The paper's table, with both numbers in every cell."""
    tables = present(rows, "table")
    error, seconds = (
        {
            (t, method): mean_of(rows, m, table=t, method=method)
            for t in tables
            for method in METHODS
        }
        for m in ("error", "train_seconds")
    )
    better = [t for t in tables if error[t, "DiffInt"] < error[t, "BinaPs"]]
    worse = [t for t in tables if t not in better]
    slower = {t: seconds[t, "BinaPs"] / seconds[t, "DiffInt"] for t in tables}
    timed = [t for t in tables if not math.isnan(seconds[t, "LUNAR"])]
    faster = [t for t in timed if seconds[t, "DiffInt"] < seconds[t, "LUNAR"]]
    ratio = float(np.exp(np.mean(np.log(list(slower.values())))))
    claims = [
        Claim(
            "DiffInt reconstructs inliers far better than BinaPs",
            "on 9 of 9 tables",
            f"on {len(better)} of {len(tables)} tables",
            verdict(len(better) == len(tables), len(better) > len(tables) / 2),
            f"mean error {np.mean([error[t, 'DiffInt'] for t in tables]):.3f} against "
            f"{np.mean([error[t, 'BinaPs'] for t in tables]):.3f}"
            + (f"; not on {listed(worse)}" if worse else ""),
        ),
        Claim(
            "DiffInt trains 10 to 100 times as fast as BinaPs",
            "10 to 100 times",
            f"{min(slower.values()):.1f} to {max(slower.values()):.1f} times",
            verdict(min(slower.values()) >= 10, max(slower.values()) >= 10),
            f"the geometric mean over {len(tables)} tables is {ratio:.1f}, with our compiled "
            "training and BinaPs in torch, one thread each",
        ),
    ]
    if timed:
        claims.append(
            Claim(
                "DiffInt trains faster than LUNAR on most tables",
                "on 6 of 11 tables",
                f"on {len(faster)} of {len(timed)} tables",
                verdict(len(faster) > len(timed) / 2),
                "shuttle "
                + " against ".join(
                    f"{seconds.get(('32_shuttle', m), math.nan):.0f} s"
                    for m in ("DiffInt", "LUNAR")
                )
                if "32_shuttle" in timed
                else f"faster on {', '.join(faster) or 'none'}",
            )
        )
    lines = []
    for name in tables:
        of_binaps, of_diffint, paper_seconds, of_lunar = PAPER[name]
        lines.append(
            [
                name,
                beside(error[name, "BinaPs"], of_binaps),
                figure_text(mean_of(rows, "bin_error", table=name)),
                beside(error[name, "DiffInt"], of_diffint),
                beside(seconds[name, "DiffInt"], paper_seconds, 1),
                figure_text(seconds[name, "BinaPs"], 1),
                beside(seconds[name, "LUNAR"], of_lunar, 1),
            ]
        )
    header = (
        *("table", "error: BinaPs", "bins alone", "DiffInt"),
        *("seconds of 1000 epochs: DiffInt", "BinaPs", "LUNAR"),
    )
    text = (
        "Mean absolute error of test inliers in [−1, 1] units; in square brackets the paper's. "
        "*Bins alone*: the error if BinaPs reconstructed every bin. BinaPs has 200 patterns, as "
        f"DiffInt has 200 units, and at most {_BINAPS_STEPS:,} steps; what it does is described in "
        "`bench/rivals/binaps.py`. The paper's times mix machines, so that only ratios can be "
        "compared.\n\n" + table(header, lines)
    )
    if not timed:
        text += "\nLUNAR was not timed: it needs PyOD (`pip install 'diffint-ad[bench]'`).\n"
    return Findings(claims, text, _figure(tables, error))


def _figure(tables: list[str], error: dict[tuple[str, str], float]) -> Figure:
    figure = new_figure(height=0.9 + 0.32 * len(tables))
    ax = figure.add_subplot()
    for place, name in enumerate(reversed(tables)):
        ends = [error[name, "DiffInt"], error[name, "BinaPs"]]
        ax.plot(ends, [place, place], color=FAINT, linewidth=2, zorder=1)
        for method, value, colour in zip(METHODS, ends, COLOURS, strict=False):
            ax.plot(value, place, "o" if method == "DiffInt" else "s", color=colour, markersize=6)
        of_binaps, of_diffint, *_ = PAPER[name]
        for theirs, marker in ((of_diffint, "o"), (of_binaps, "s")):
            if theirs is not None:
                ax.plot(theirs, place, marker, color=INK, fillstyle="none", markersize=6)
    named_axes(ax, "mean absolute error of test inliers", "")
    ax.set_yticks(range(len(tables)), list(reversed(tables)))
    ax.set_ylim(-0.6, len(tables) - 0.4)
    ax.set_xlim(left=0)
    top_title(figure, "Reconstruction of inliers")
    look: dict[str, Any] = {"linestyle": "", "markersize": 6}
    handles: list[Any] = [
        Line2D([], [], marker="o", color=COLOURS[0], label="DiffInt", **look),
        Line2D([], [], marker="s", color=COLOURS[1], label="BinaPs", **look),
        Line2D([], [], marker="o", color=INK, fillstyle="none", label="the paper: DiffInt", **look),
        Line2D([], [], marker="s", color=INK, fillstyle="none", label="the paper: BinaPs", **look),
    ]
    legend_below(figure, handles, 4)
    return figure


STUDY = Study(
    name="reconstruction",
    paper="tab:binaps",
    question="Do intervals reconstruct inliers better than binary patterns, and train faster?",
    cost="33 fits of DiffInt and 33 of BinaPs, each of about 7 s, and 11 short ones of LUNAR",
    keys=("table", "method", "seed"),
    measures=("error", "bin_error", "steps", "patterns", "train_seconds"),
    tasks=tasks,
    measure=measure,
    report=report,
    tables=tuple(PAPER),
    quick_tables=("14_glass", "29_Pima"),
)
