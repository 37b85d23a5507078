"""The box of the most important unit, projected on its most important features."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from ..bench.markdown import table
from ..bench.protocol import scale_trial
from ..core.formatting import listed, percent
from ..estimator import DiffInt
from ..show.plots.drawing import (
    ANOMALY,
    BOX,
    NORMAL,
    left_title,
    legend_below,
    new_figure,
    top_title,
)
from .page import present
from .study import Claim, Findings, Measured, Row, Setup, Study, Task, verdict
from .style import named_axes

# fig:scatter: the features of the paper's candidate constraint, and their ends in [−1, 1] units.
PAPER = {
    "45_wine": {0: (-0.68, 0.48), 2: (-0.84, 0.50), 3: (-0.82, 0.49), 8: (-0.83, 0.53)},
    "31_satimage-2": {3: (-0.71, 0.49), 7: (-0.65, 0.63), 11: (-0.80, 0.48), 27: (-0.76, 0.57)},
}
N_SHOWN = 4  # features of the constraint
_DRAWN = 300  # inliers in the figure
CONFIGURATIONS = {"paper": "the paper's configuration", "ours": "our recommended configuration"}

_SHORT = {"paper": "the paper's settings", "ours": "our settings"}


def tasks(setup: Setup, tables: list[str]) -> list[Task]:
    """Both configurations; the first seed is drawn."""
    return [
        {"table": name, "configuration": configuration, "seed": seed}
        for name in tables
        for configuration in CONFIGURATIONS
        for seed in setup.seed_range(3)
    ]


def measure(task: Task, setup: Setup) -> Measured:
    """The box in [−1, 1] units of the training range, and which test rows lie inside."""
    name, seed = str(task["table"]), int(task["seed"])
    trial = setup.trial(name, seed)
    if task["configuration"] == "paper":
        detector = setup.paper_detector(setup.table(name).n_rows, seed)
    else:
        detector = DiffInt(random_state=seed, n_jobs=1, device=setup.device)
    learned = detector.fit(trial.train).explain_global()
    unit = learned.top_units(1, N_SHOWN)[0]
    features = learned.constraint_order(unit)[:N_SHOWN]
    ends = np.stack([learned.lower[unit], learned.upper[unit]])
    scaled = scale_trial(trial._replace(test=np.vstack([trial.test, ends])), "minmax").test
    points, (lower, upper) = scaled[:-2, features], scaled[-2:, features]
    inside = ((points >= lower) & (points <= upper)).all(axis=1)
    anomalous = trial.test_labels == 1
    members = detector.model_.members
    return {
        "unit": unit,
        "features": list(features),
        "lower": list(lower),
        "upper": list(upper),
        "inliers_inside": inside[~anomalous].mean(),
        "outliers_inside": inside[anomalous].mean(),
        "width": (upper - lower).mean() / 2,
        "moved": np.mean([member.center_movement for member in members]),
        "inliers": list(points[~anomalous][:_DRAWN, :2].ravel()),
        "outliers": list(points[anomalous][:, :2].ravel()),
    }


def report(rows: list[Row]) -> Findings:
    """Shares of rows in the box, and how far its intervals moved from their random start."""
    tables = present(rows, "table")

    def mean(measure: str, table: str, configuration: str) -> float:
        chosen = [r for r in rows if (r["table"], r["configuration"]) == (table, configuration)]
        return float(np.mean([row[measure] for row in chosen]))

    claims = []
    for name in tables:
        kept, left = (
            mean("inliers_inside", name, "paper"),
            1 - mean("outliers_inside", name, "paper"),
        )
        claims.append(
            Claim(
                f"{name}: the box has most inliers, and a large part of the outliers leaves it",
                "no numbers",
                f"{percent(kept)} of inliers inside, {percent(left)} of outliers outside",
                verdict(kept > 0.5 and left > 0.5, kept + left > 1.05),
                f"on the {N_SHOWN} features shown, {percent(kept)} of test inliers and "
                f"{percent(1 - left)} of outliers are inside (with our settings: "
                f"{percent(mean('inliers_inside', name, 'ours'))} and "
                f"{percent(mean('outliers_inside', name, 'ours'))})",
            )
        )
    moved = {name: mean("moved", name, "paper") for name in tables}
    ours_moved = listed([f"{mean('moved', name, 'ours'):.3f}" for name in tables])
    claims.append(
        Claim(
            "the bounds are learned",
            "–",
            listed([f"{name} {value:.3f}" for name, value in moved.items()]),
            verdict(min(moved.values()) > 0.2, max(moved.values()) > 0.1),
            "centers are drawn at random and moved by "
            f"{listed([f'{value:.3f}' for value in moved.values()])} on average in a range of 2 "
            f"(with our settings: {ours_moved})",
        )
    )
    lines = []
    for row in rows:
        ends = zip(row["features"], row["lower"], row["upper"], strict=True)
        shares = [percent(row[m]) for m in ("inliers_inside", "outliers_inside")]
        kind, shown = CONFIGURATIONS[row["configuration"]], ", ".join(_range(*one) for one in ends)
        lines.append([row["table"], kind, f"{row['seed']:g}", *shares, shown])
    published = ""
    for name in tables:
        ranges = ", ".join(_range(j, *ends) for j, ends in PAPER[name].items())
        published += f"- {name}: {ranges}\n"
    header = ("table", "configuration", "seed", "inliers inside", "outliers inside", "constraint")
    text = (
        f"The {N_SHOWN} most important constraints of the most important unit, chosen without "
        "labels, in [−1, 1] units of the training range.\n\n"
        + table(header, lines)
        + f"\nThe paper's, of another split:\n\n{published}"
    )
    return Findings(claims, text, _figure([row for row in rows if row["seed"] == 0]))


def _range(feature: float, lower: float, upper: float) -> str:
    return f"x{feature:g} in [{lower:.2f}, {upper:.2f}]".replace("-", "−")


def _figure(rows: list[Row]) -> Figure:
    tables = present(rows, "table")
    figure = new_figure(height=0.8 + 3.0 * len(tables))
    axes = figure.subplots(len(tables), len(CONFIGURATIONS), squeeze=False)
    point: dict[str, Any] = {"linestyle": "", "markersize": 3}
    for row in rows:
        place = tables.index(row["table"]), list(CONFIGURATIONS).index(row["configuration"])
        ax = axes[place]
        inliers, outliers = (np.reshape(row[name], (-1, 2)) for name in ("inliers", "outliers"))
        ax.plot(*inliers.T, marker="o", color=NORMAL, **{**point, "alpha": 0.6})
        ax.plot(*outliers.T, marker="^", color=ANOMALY, **{**point, "markersize": 4})
        (x0, y0), (x1, y1) = row["lower"][:2], row["upper"][:2]
        ax.add_patch(Rectangle((x0, y0), x1 - x0, y1 - y0, fill=False, edgecolor=BOX, linewidth=2))
        named_axes(ax, *(f"feature {j:g}" for j in row["features"][:2]))
        left_title(ax, f"{row['table']}: {_SHORT[row['configuration']]}")
        ax.set_xlim(-1.15, 1.15)
        ax.set_ylim(-1.15, 1.15)
    top_title(figure, "The box of the most important unit")
    handles: list[Any] = [
        Line2D([], [], marker="o", color=NORMAL, label="test inliers", **point),
        Line2D([], [], marker="^", color=ANOMALY, label="test outliers", **point),
        Line2D([], [], color=BOX, linewidth=2, label="box"),
    ]
    legend_below(figure, handles, 3)
    return figure


STUDY = Study(
    name="projection",
    paper="fig:scatter",
    question="Does the box of the most important unit hold inliers and leave outliers out?",
    cost="12 fits of about 3 s",
    keys=("table", "configuration", "seed"),
    measures=(
        *("unit", "features", "lower", "upper", "inliers_inside", "outliers_inside", "width"),
        *("moved", "inliers", "outliers"),
    ),
    tasks=tasks,
    measure=measure,
    report=report,
    tables=tuple(PAPER),
    quick_tables=("45_wine",),
)
