"""The paper's configuration on every table for which the paper prints an accuracy."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from sklearn.metrics import average_precision_score, roc_auc_score

from ..bench.markdown import table
from ..bench.paper_numbers import ROC_AUC
from ..core.formatting import listed
from ..show.plots.drawing import INK, QUIET, legend_below, new_figure, top_title
from .page import figure_text, mean_of, present, standard_error, values_of
from .study import Claim, Findings, Measured, Row, Setup, Study, Task, verdict
from .style import COLOURS, named_axes

# ROC-AUC and average precision of another implementation of the same configuration, seeds 0–4.
INDEPENDENT = {
    "14_glass": (0.8511, 0.1733),
    "18_Ionosphere": (0.9567, 0.9424),
    "21_Lymphography": (0.9942, 0.9244),
    "29_Pima": (0.6978, 0.5338),
    "6_cardio": (0.9734, 0.8082),
    "31_satimage-2": (0.9976, 0.9322),
    "37_Stamps": (0.9544, 0.6425),
    "39_vertebral": (0.4879, 0.1438),
    "42_WBC": (0.9896, 0.8839),
    "45_wine": (0.8836, 0.5406),
    "46_WPBC": (0.5331, 0.2627),
}
_SAME = 0.015  # a difference that does not count, however small the standard error is


def tasks(setup: Setup, tables: list[str]) -> list[Task]:
    """Five seeds of every table."""
    return [{"table": t, "seed": seed} for t in tables for seed in setup.seed_range(5, quick=3)]


def measure(task: Task, setup: Setup) -> Measured:
    """ROC-AUC and average precision on the test part."""
    name, seed = str(task["table"]), int(task["seed"])
    train, test, labels = setup.trial(name, seed)
    detector = setup.paper_detector(setup.table(name).n_rows, seed).fit(train)
    scores = detector.anomaly_score(test)
    return {
        "roc_auc": roc_auc_score(labels, scores),
        "average_precision": average_precision_score(labels, scores),
    }


def report(rows: list[Row]) -> Findings:
    """Both comparisons, and the tables that differ by more than two standard errors."""
    tables = present(rows, "table")
    values = {name: values_of(rows, "roc_auc", table=name) for name in tables}
    mean = {name: float(np.mean(values[name])) for name in tables}
    error = {name: standard_error(values[name]) for name in tables}

    def differing(theirs: dict[str, float]) -> list[str]:
        return [t for t in tables if not abs(mean[t] - theirs[t]) <= max(2 * error[t], _SAME)]

    paper = {name: ROC_AUC[name].value for name in tables}
    claims = []
    for what, theirs in (
        ("the paper's accuracy is reproduced", paper),
        (
            "(not in the paper) another implementation gives the same",
            {t: INDEPENDENT[t][0] for t in tables},
        ),
    ):
        others = differing(theirs)
        n_same = len(tables) - len(others)
        shown = [f"{t} ({mean[t]:.3f} against {theirs[t]:.3f})" for t in others]
        claims.append(
            Claim(
                what,
                f"mean {np.mean(list(theirs.values())):.3f}",
                f"mean {np.mean(list(mean.values())):.3f}",
                verdict(not others, n_same > len(tables) / 2),
                f"{n_same} of {len(tables)} tables agree within two standard errors or {_SAME}"
                + (f"; not {listed(shown)}" if others else ""),
            )
        )
    lines = [
        [
            name,
            figure_text(mean[name]),
            figure_text(error[name]),
            figure_text(paper[name]) + (" / 0.891" if name == "14_glass" else ""),
            figure_text(INDEPENDENT[name][0]),
            figure_text(mean_of(rows, "average_precision", table=name)),
            figure_text(INDEPENDENT[name][1]),
        ]
        for name in tables
    ]
    header = ("table", "ours", "s.e.", "the paper", "independent run", "our AP", "independent AP")
    text = (
        f"Mean ROC-AUC over {len(present(rows, 'seed'))} seeds of the benchmark's split, with its "
        "standard error (s.e.); AP: average precision. The independent run is another "
        "implementation of the same configuration, over the same five seeds. The paper gives its "
        "numbers over three seeds for the tables of tab:ab-norm; tab:certify has 0.891 for glass. "
        "wine has about four anomalies in a test part.\n\n" + table(header, lines)
    )
    return Findings(claims, text, _figure(tables, mean, error, paper))


def _figure(
    tables: list[str], mean: dict[str, float], error: dict[str, float], paper: dict[str, float]
) -> Figure:
    figure = new_figure(height=0.9 + 0.3 * len(tables))
    ax = figure.add_subplot()
    for place, name in enumerate(reversed(tables)):
        bar = {"xerr": 2 * np.nan_to_num(error[name]), "ecolor": COLOURS[0], "capsize": 2.5}
        ax.errorbar(mean[name], place, fmt="o", color=COLOURS[0], markersize=5, **bar)
        ax.plot(paper[name], place + 0.16, "D", color=INK, fillstyle="none", markersize=5)
        ax.plot(INDEPENDENT[name][0], place - 0.16, "s", color=QUIET, markersize=4)
    named_axes(ax, "ROC-AUC", "")
    ax.set_yticks(range(len(tables)), list(reversed(tables)))
    top_title(figure, "The paper's configuration: ours, the paper, and an independent run")
    handles = [
        Line2D(
            [], [], linestyle="", marker="o", color=COLOURS[0], label="ours ± 2 standard errors"
        ),
        Line2D([], [], linestyle="", marker="D", color=INK, fillstyle="none", label="the paper"),
        Line2D([], [], linestyle="", marker="s", color=QUIET, label="independent run"),
    ]
    legend_below(figure, list(handles), 3)
    return figure


STUDY = Study(
    name="paper-check",
    paper="tab:ab-norm, tab:certify",
    question="Does the paper's configuration reach the paper's accuracy?",
    cost="55 fits of about 2 s",
    keys=("table", "seed"),
    measures=("roc_auc", "average_precision"),
    tasks=tasks,
    measure=measure,
    report=report,
    tables=tuple(INDEPENDENT),
    quick_tables=("42_WBC", "37_Stamps", "29_Pima"),
)
