"""How the scaling of the features changes the accuracy of the paper's configuration."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from sklearn.metrics import roc_auc_score

from ..show.plots.drawing import FAINT, INK, legend_below, new_figure, top_title
from .page import comparison_table, figure_text, mean_of, paired_difference, present, signed
from .study import Claim, Findings, Measured, Row, Setup, Study, Task, verdict, verdict_on_gain
from .style import COLOURS, named_axes

# Our names of the maps, and the paper's. The last one is ours: [−1, 1] with curves for long tails.
MAPS = {
    "none": "none",
    "unit": "[0, 1]",
    "standard": "standard",
    "minmax": "[−1, 1]",
    "adaptive": "adaptive (ours)",
}
_PUBLISHED = ("none", "unit", "standard", "minmax")
# tab:ab-norm: three seeds.
PAPER = {
    name: dict(zip(_PUBLISHED, values, strict=True))
    for name, values in {
        "45_wine": (0.990, 0.932, 0.883, 0.950),
        "21_Lymphography": (0.990, 0.998, 0.996, 0.994),
        "46_WPBC": (0.510, 0.543, 0.541, 0.584),
        "14_glass": (0.896, 0.886, 0.877, 0.876),
        "42_WBC": (0.990, 0.989, 0.990, 0.998),
        "39_vertebral": (0.335, 0.498, 0.511, 0.477),
        "37_Stamps": (0.924, 0.921, 0.929, 0.953),
    }.items()
}
PAPER_MEANS = {"none": 0.805, "unit": 0.824, "standard": 0.818, "minmax": 0.833}


def tasks(setup: Setup, tables: list[str]) -> list[Task]:
    """Every map on every table, with the paper's three seeds."""
    return [
        {"table": name, "scaling": scaling, "seed": seed}
        for name in tables
        for scaling in MAPS
        for seed in setup.seed_range(3)
    ]


def measure(task: Task, setup: Setup) -> Measured:
    """ROC-AUC of the paper's configuration with this map."""
    name, seed = str(task["table"]), int(task["seed"])
    train, test, labels = setup.trial(name, seed)
    n_rows = setup.table(name).n_rows
    detector = setup.paper_detector(n_rows, seed, scaling=task["scaling"]).fit(train)
    return {"roc_auc": roc_auc_score(labels, detector.anomaly_score(test))}


def report(rows: list[Row]) -> Findings:
    """The table with the paper's numbers, and which differences are more than chance."""
    means = {scaling: mean_of(rows, "roc_auc", scaling=scaling) for scaling in MAPS}
    gains = {
        scaling: paired_difference(rows, "roc_auc", {"scaling": "minmax"}, {"scaling": scaling})
        for scaling in MAPS
        if scaling != "minmax"
    }
    published = {scaling: means[scaling] for scaling in _PUBLISHED}
    best = max(published, key=lambda scaling: published[scaling])
    bounded = [published[scaling] for scaling in ("unit", "standard", "minmax")]
    paper_bounded = [PAPER_MEANS[scaling] for scaling in ("unit", "standard", "minmax")]
    spread, cost = max(bounded) - min(bounded), gains["none"]
    paper_cost = PAPER_MEANS["minmax"] - PAPER_MEANS["none"]
    clear = [MAPS[s] for s in ("unit", "standard") if abs(gains[s][0]) > 2 * gains[s][1]]
    claims = [
        Claim(
            "no scaling costs about 3 points against [−1, 1]",
            signed(paper_cost),
            signed(*cost),
            verdict_on_gain(*cost, paper_cost),
            f"the loss without scaling is {signed(*cost)}, mean over the tables with its standard "
            "error" + ("" if cost[0] > 2 * cost[1] else f", which {_undecided(cost, paper_cost)}"),
        ),
        Claim(
            "[−1, 1] is the most accurate of the four maps",
            figure_text(PAPER_MEANS["minmax"]),
            figure_text(published["minmax"]),
            verdict(bool(clear), True)
            if best == "minmax"
            else verdict_on_gain(*gains[best], PAPER_MEANS["minmax"] - PAPER_MEANS[best]),
            f"the best mean is that of {MAPS[best]} ({published[best]:.3f}), and "
            + (
                f"it differs clearly from {' and '.join(clear)}"
                if clear
                else "no bounded or standardised map differs from [−1, 1] by two standard errors"
            ),
        ),
        Claim(
            "the bounded and standardised maps are within 1.5 points",
            figure_text(max(paper_bounded) - min(paper_bounded)),
            figure_text(spread),
            verdict(spread <= 0.015),
            f"their means span {spread:.3f}",
        ),
    ]
    text = (
        f"ROC-AUC of the paper's configuration, mean over {len(present(rows, 'seed'))} seeds; in "
        "square brackets the paper's.\n\n"
        + comparison_table(rows, "roc_auc", "scaling", MAPS, PAPER)
        + "\n[−1, 1] minus another map, mean over the tables with its standard error: "
        + ", ".join(f"{MAPS[s]} {signed(*gain)}" for s, gain in gains.items())
        + f".{_without_the_widest(rows)}"
    )
    return Findings(claims, text, _figure(rows))


def _without_the_widest(rows: list[Row]) -> str:
    """The means without the table on which the maps differ most."""

    def span(name: str) -> float:
        values = [mean_of(rows, "roc_auc", table=name, scaling=s) for s in _PUBLISHED]
        return max(values) - min(values)

    widest = max(present(rows, "table"), key=span)
    others = [row for row in rows if row["table"] != widest]
    means = [f"{MAPS[s]} {mean_of(others, 'roc_auc', scaling=s):.3f}" for s in MAPS]
    return (
        f" The maps differ most on {widest}, by {span(widest):.3f}; without it the means are "
        f"{', '.join(means)}."
    )


def _undecided(difference: tuple[float, float], paper: float) -> str:
    """What a difference that may be chance says about the paper's."""
    near = abs(difference[0] - paper) <= 2 * difference[1]
    return f"may be chance and {'may' if near else 'can hardly'} be the paper's {signed(paper)}"


def _figure(rows: list[Row]) -> Figure:
    """The tables as small points, and the means."""
    figure = new_figure(height=3.6)
    ax = figure.add_subplot()
    tables = present(rows, "table")
    points: dict[str, Any] = {"linestyle": "", "marker": "o", "color": FAINT, "markersize": 4}
    ours: dict[str, Any] = {"linestyle": "", "marker": "o", "color": COLOURS[0], "markersize": 8}
    theirs: dict[str, Any] = {**ours, "marker": "D", "color": INK, "fillstyle": "none"}
    for place, scaling in enumerate(MAPS):
        values = [mean_of(rows, "roc_auc", table=name, scaling=scaling) for name in tables]
        ax.plot([place] * len(values), values, **points)
        ax.plot(place - 0.12, float(np.mean(values)), **ours)
        if scaling in PAPER_MEANS:
            ax.plot(place + 0.12, np.mean([PAPER[name][scaling] for name in tables]), **theirs)
    named_axes(ax, "", "ROC-AUC")
    ax.set_xticks(range(len(MAPS)), list(MAPS.values()))
    top_title(figure, f"Accuracy and the scaling of features, {len(tables)} tables")
    handles: list[Any] = [
        Line2D([], [], label="our mean", **ours),
        Line2D([], [], label="the paper's mean", **theirs),
        Line2D([], [], label="our tables", **points),
    ]
    legend_below(figure, handles, 3)
    return figure


STUDY = Study(
    name="normalization",
    paper="tab:ablate (a), tab:ab-norm",
    question="Does the scaling of the features matter, and is [−1, 1] the best?",
    cost="105 fits of about 0.5 s",
    keys=("table", "scaling", "seed"),
    measures=("roc_auc",),
    tasks=tasks,
    measure=measure,
    report=report,
    tables=tuple(PAPER),
    quick_tables=("45_wine", "14_glass", "37_Stamps"),
)
