"""The paper's end-to-end picture: five rows and two units, before and after training."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ..bench.markdown import table
from ..show.plots.drawing import (
    ANOMALY,
    INK,
    NORMAL,
    QUIET,
    SMALL,
    TEXT,
    left_title,
    legend_below,
    new_figure,
    plain,
    top_title,
)
from .page import figure_text
from .study import Claim, Findings, Measured, Row, Setup, Study, Task, verdict
from .style import COLOURS, named_axes

# x⁽¹⁾ to x⁽⁴⁾ are inliers, x⁽⁵⁾ is the anomaly; already in [−1, 1].
ROWS = np.array(
    [
        [-0.30, 0.20, 0.05, -0.15],
        [-0.20, 0.30, -0.05, -0.25],
        [-0.25, 0.15, 0.10, -0.10],
        [-0.35, 0.25, 0.00, -0.20],
        [0.80, -0.70, 0.90, 0.75],
    ]
)
N_INLIERS, N_UNITS = 4, 2
_NO_STEP = 1e-12  # a learning rate that leaves the intervals where they start
# The paper's learning rate, and one at which a model with one step per epoch can move.
RATES = {"paper": 5e-5, "larger": 5e-3}


def tasks(setup: Setup, tables: list[str]) -> list[Task]:
    """Both learning rates, 1000 epochs of one step each."""
    return [{"rate": rate} for rate in RATES]


def measure(task: Task, setup: Setup) -> Measured:
    """Intervals at the start and after training, and the scores of all five rows."""
    inliers = ROWS[:N_INLIERS]
    full = Setup(device=setup.device)  # it takes no time: a quick run is the same
    settings: dict[str, Any] = {"n_units": N_UNITS, "scaling": "none"}
    rate = RATES[str(task["rate"])]
    start = full.paper_detector(len(ROWS), 0, learning_rate=_NO_STEP, epochs=1, **settings)
    trained = full.paper_detector(len(ROWS), 0, learning_rate=rate, **settings)
    measured: Measured = {}
    for when, detector in (("start", start.fit(inliers)), ("end", trained.fit(inliers))):
        member = detector.model_.members[0]
        inside = (inliers[:, None] >= member.lower) & (inliers[:, None] <= member.upper)
        measured |= {
            f"{when}_lower": list(member.lower.ravel()),
            f"{when}_upper": list(member.upper.ravel()),
            f"{when}_half_width": member.half_width.mean(),
            f"{when}_inside": inside.mean(),
            f"{when}_scores": list(detector.anomaly_score(ROWS)),
        }
    return measured


def report(rows: list[Row]) -> Findings:
    """Whether the intervals shrink onto the inliers, and whether x⁽⁵⁾ has the largest error."""
    by_rate = {row["rate"]: row for row in rows}
    paper, larger = by_rate["paper"], by_rate["larger"]

    def change(row: Row) -> str:
        return f"{row['start_half_width']:.2f} → {row['end_half_width']:.2f}"

    def contrast(row: Row) -> float:
        return float(row["end_scores"][-1] / max(row["end_scores"][:-1]))

    shrinks = [row["end_half_width"] < 0.8 * row["start_half_width"] for row in (paper, larger)]
    claims = [
        Claim(
            "intervals shrink onto the inliers",
            "no numbers",
            f"mean half-width {change(paper)}",
            verdict(shrinks[0], shrinks[1]),
            f"at the paper's learning rate the half-width goes {change(paper)}, at a hundred times "
            f"that {change(larger)}",
        ),
        Claim(
            "the error is small for inliers and visibly large for x⁽⁵⁾",
            "no numbers",
            f"{contrast(paper):.1f} times the largest of an inlier",
            verdict(contrast(paper) > 3, contrast(paper) > 1),
            f"x⁽⁵⁾ has {paper['end_scores'][-1]:.2f}, the inliers at most "
            f"{max(paper['end_scores'][:-1]):.2f}",
        ),
    ]
    lines = [
        [
            f"{RATES[name]:g}",
            change(row),
            f"{100 * row['end_inside']:.0f} %",
            *(figure_text(score) for score in row["end_scores"]),
        ]
        for name, row in by_rate.items()
    ]
    names = [f"x({i + 1})" for i in range(len(ROWS))]
    text = (
        f"{N_UNITS} units trained on x(1) to x(4) for 1000 epochs of one step each. The figure has "
        "the larger learning rate.\n\n"
        + table(("learning rate", "mean half-width", "inlier values inside", *names), lines)
    )
    return Findings(claims, text, _figure(larger))


def _figure(row: Row) -> Figure:
    figure = new_figure(height=3.6, width=9.0)
    grid = figure.add_gridspec(2, 4, width_ratios=(1.05, 1, 1.1, 1.1), height_ratios=(1.5, 1))
    _draw_rows(figure.add_subplot(grid[:, 0]))
    before, after = figure.add_subplot(grid[:, 1]), figure.add_subplot(grid[0, 3])
    for ax, when in ((before, "start"), (after, "end")):
        lower, upper = (
            np.reshape(row[f"{when}_{end}"], (N_UNITS, -1)) for end in ("lower", "upper")
        )
        for unit in range(N_UNITS):
            places = np.arange(lower.shape[1]) + 0.22 * (unit - 0.5)
            ax.vlines(places, lower[unit], upper[unit], color=COLOURS[2 + unit], linewidth=5)
            ax.plot(places, (lower[unit] + upper[unit]) / 2, "o", color=INK, markersize=3)
        for values in ROWS[:N_INLIERS]:
            ax.plot(range(len(values)), values, "_", color=NORMAL, markersize=9)
        ax.plot(range(ROWS.shape[1]), ROWS[-1], "^", color=ANOMALY, markersize=4)
        named_axes(ax, "", "")
        ax.set_xticks(range(ROWS.shape[1]), [f"x{j + 1}" for j in range(ROWS.shape[1])])
        ax.set_ylim(-1.15, 1.15)
    left_title(before, "(b) start")
    left_title(after, "(d) after training")
    _draw_layer(figure.add_subplot(grid[:, 2]))
    bars = figure.add_subplot(grid[1, 3])
    colours = [NORMAL] * N_INLIERS + [ANOMALY]
    bars.bar(range(len(ROWS)), row["end_scores"], color=colours)
    named_axes(bars, "", "error")
    bars.set_xticks(range(len(ROWS)), [f"x⁽{i}⁾" for i in "¹²³⁴⁵"])
    top_title(figure, "From rows to intervals to errors")
    look: dict[str, Any] = {"linestyle": ""}
    handles: list[Any] = [
        Line2D([], [], color=COLOURS[2 + k], linewidth=5, label=f"unit {k + 1}")
        for k in range(N_UNITS)
    ]
    handles.append(Line2D([], [], marker="_", color=NORMAL, label="inliers", **look))
    handles.append(Line2D([], [], marker="^", color=ANOMALY, label="anomaly", **look))
    legend_below(figure, handles, 4)
    return figure


def _draw_rows(ax: Any) -> None:
    """The table as coloured cells with their numbers."""
    ax.imshow(ROWS, cmap="PuOr", vmin=-1.4, vmax=1.4, aspect="auto")
    for i, values in enumerate(ROWS):
        for j, value in enumerate(values):
            shown = f"{value:.2f}".replace("-", "−")
            ax.text(j, i, shown, ha="center", va="center", size=SMALL, color=INK)
    plain(ax, "left", "bottom")
    ax.tick_params(length=0)
    ax.set_xticks(range(ROWS.shape[1]), [f"x{j + 1}" for j in range(ROWS.shape[1])])
    ax.set_yticks(range(len(ROWS)), [f"x⁽{i}⁾" for i in "¹²³⁴⁵"])
    left_title(ax, "(a) rows")


def _draw_layer(ax: Any) -> None:
    """Features, units and reconstructed features, joined by lines."""
    n_features = ROWS.shape[1]
    sides = np.linspace(1, 0, n_features)
    middle = np.linspace(0.75, 0.25, N_UNITS)
    for k, y in enumerate(middle):
        for side in sides:
            ax.plot([0, 0.5], [side, y], color=COLOURS[2 + k], linewidth=0.8, zorder=1)
            ax.plot([0.5, 1], [y, side], color=QUIET, linewidth=0.8, zorder=1)
        ax.plot(0.5, y, "o", color=COLOURS[2 + k], markersize=20)
        ax.text(0.5, y, f"$\\mathcal{{X}}_{k + 1}$", ha="center", va="center", size=TEXT)
    for x, hat in ((0, ""), (1, "hat")):
        for j, side in enumerate(sides):
            ax.plot(x, side, "o", color="white", markeredgecolor=INK, markersize=20)
            name = f"$\\hat{{x}}_{j + 1}$" if hat else f"$x_{j + 1}$"
            ax.text(x, side, name, ha="center", va="center", size=TEXT)
    ax.set_xlim(-0.18, 1.18)
    ax.set_ylim(-0.15, 1.15)
    ax.set_axis_off()
    left_title(ax, "(c) intervals, decoder")


STUDY = Study(
    name="pipeline",
    paper="fig:framework",
    question="Do two intervals learn four rows, and does a fifth one stand out?",
    cost="2 fits of about 0.2 s",
    keys=("rate",),
    measures=tuple(
        f"{when}_{what}"
        for when in ("start", "end")
        for what in ("lower", "upper", "half_width", "inside", "scores")
    ),
    tasks=tasks,
    measure=measure,
    report=report,
)
