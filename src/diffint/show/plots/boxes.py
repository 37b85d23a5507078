"""Figures of boxes: a projection on two features, and ranges over training values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from numpy.typing import NDArray

from ...core.checks import check_count
from ...core.errors import InputError
from ...core.formatting import counted, percent
from ...core.model import FeatureSummary, FittedModel
from ...explain.global_explanation import GlobalExplanation
from ...tables.frames import read_rows
from .checks import check_features, check_unit, explanation_of, features_of, row_mask
from .drawing import (
    ANOMALY,
    BOX,
    FAINT,
    INK,
    MOST_POINTS,
    NORMAL,
    QUIET,
    SMALL,
    TEXT,
    WIDTH,
    fitted,
    left_title,
    legend_below,
    new_figure,
    number_axis,
    padded,
    plain,
    text_width,
    top_title,
)

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ...estimator import DiffInt

Array = NDArray[np.float64]

_CENTRAL = (0.005, 0.995)  # quantiles of the normal rows that are always inside the picture


def box_projection(
    explained: GlobalExplanation | FittedModel | DiffInt,
    X: Any,
    anomalies: Any = None,
    unit: int | None = None,
    features: str | int | Sequence[str | int] | None = None,
) -> Figure:
    """One unit's box and the rows of a table, projected on two features.

    explained: a detector, its `model_`, or its `explain_global()`.
    X: (rows, features) in original units; rows with a missing value in these features are not
        drawn.
    anomalies: (rows,) True/False or 0/1: rows to mark.
    unit: the top unit by default.
    features: one or two features, by name or number; by default those of the unit's most
        important constraints.
    """
    explanation = explanation_of(explained)
    unit = check_unit(explanation, unit, 2)
    box = _Box(explanation, unit, _projected(explanation, unit, features))
    kinds = explanation.kinds
    table = read_rows(X, kinds.columns(explanation.feature_names), kinds)
    x = np.asarray(table, dtype=np.float64)[:, box.features]
    marked = row_mask(anomalies, len(x), "anomalies")
    view = [_view(x[~marked, i], x[marked, i], box, i) for i in range(len(box))]
    points, inside = x, box.contains(x)
    if len(box) == 1:  # the row number is the second axis
        points = np.column_stack([x, np.arange(len(x))])
        view.append(padded(0.0, float(max(len(x) - 1, 1))))

    figure = new_figure(5.0)
    ax = figure.add_subplot()
    plain(ax)
    handles = _draw_box(ax, box)
    n_beyond = 0
    groups = ((~marked, NORMAL, "o", "normal rows"), (marked, ANOMALY, "^", "anomalies"))
    for group, colour, marker, name in groups:
        drawn = group & ~np.isnan(points).any(axis=1)
        if drawn.any():
            n_beyond += _draw_points(ax, points[drawn], np.array(view), colour, marker)
            share = percent(float(inside[drawn].mean()))
            label = f"{name}: {share} of {int(drawn.sum()):,} inside"
            handles.append(Line2D([], [], linestyle="", marker=marker, color=colour, label=label))
    if n_beyond:
        label = f"outside the picture, drawn at its edge: {counted(n_beyond, 'row')}"
        handles.append(Line2D([], [], linestyle="", marker="x", color=QUIET, label=label))
    names = [explanation.categories.get(j, ()) for j in box.features] + [()]
    number_axis(ax.xaxis, *view[0], 5.5, names=names[0])
    number_axis(ax.yaxis, *view[1], 3.0, whole=len(box) == 1, names=names[1])
    labels = [
        _constraint_label(explanation, unit, j, inches)
        for j, inches in zip(box.features, (5.5, 3.5), strict=False)
    ]
    ax.set_xlabel(labels[0], size=TEXT)
    ax.set_ylabel(labels[1] if len(box) == 2 else "row", size=TEXT)
    of_all = counted(len(explanation.feature_names), "feature")
    left_title(ax, f"The box of pattern {unit}, in {len(box)} of {of_all}")
    legend_below(figure, handles)
    return figure


class _Box:
    """The ends of a unit's box in some features; arrays are (features,).

    If both ends are equal they always bind.
    """

    def __init__(self, explanation: GlobalExplanation, unit: int, features: list[int]) -> None:
        self.features = features
        self.lower = explanation.lower[unit, features]
        self.upper = explanation.upper[unit, features]
        single = self.lower == self.upper
        self.binds_below = explanation.binds_below[unit, features] | single
        self.binds_above = explanation.binds_above[unit, features] | single

    def __len__(self) -> int:
        return len(self.features)

    def contains(self, x: Array) -> NDArray[np.bool_]:
        """Whether rows lie inside the ends that bind. x: (rows, features) → (rows,)"""
        outside = (self.binds_below & (x < self.lower)) | (self.binds_above & (x > self.upper))
        return np.asarray(~outside.any(axis=1))


def _projected(
    explanation: GlobalExplanation, unit: int, features: str | int | Sequence[str | int] | None
) -> list[int]:
    """Numbers of the one or two features to project on."""
    if features is None:
        order = explanation.constraint_order(unit)
        known = order[~np.isnan(explanation.lower[unit, order])]
        return [int(j) for j in (known if len(known) else order)[:2]]
    shown = check_features(explanation.feature_names, features)
    if not 1 <= len(set(shown)) == len(shown) <= 2:
        raise InputError(f"features={features!r} must be one feature or two different ones")
    return shown


def _view(normal: Array, marked: Array, box: _Box, i: int) -> tuple[float, float]:
    """Limits of an axis: the box and the bulk of the normal rows, and other rows if near.

    The axis extends beyond box and bulk by at most their width on each side, so that one extreme
    value cannot compress everything else.
    """
    normal, marked = normal[~np.isnan(normal)], marked[~np.isnan(marked)]
    bulk = normal if len(normal) else marked
    sure = [float(end) for end in (box.lower[i], box.upper[i]) if not np.isnan(end)]
    sure += np.quantile(bulk, _CENTRAL).tolist() if len(bulk) else []
    if not sure:
        return 0.0, 1.0
    low, high = min(sure), max(sure)
    reach = high - low if high > low else max(abs(low), abs(high))
    everything = np.concatenate([normal, marked, sure])
    smallest, largest = float(everything.min()), float(everything.max())
    return padded(max(smallest, low - reach), min(largest, high + reach))


def _draw_box(ax: Axes, box: _Box) -> list[Artist]:
    """Draw the box: ends that bind solid, ends of the training range dashed. → legend entries"""
    if np.isnan(box.lower).any():
        return []
    left, right = box.lower[0], box.upper[0]
    bottom, top = (box.lower[1], box.upper[1]) if len(box) == 2 else (0.0, 1.0)
    place = ax.transData if len(box) == 2 else ax.get_xaxis_transform()
    fill: dict[str, Any] = {"color": BOX, "alpha": 0.12, "linewidth": 0}
    ax.add_patch(
        Rectangle((left, bottom), right - left, top - bottom, transform=place, zorder=1, **fill)
    )
    sides = [([left, left], [bottom, top]), ([right, right], [bottom, top])]
    sides += [([left, right], [bottom, bottom]), ([left, right], [top, top])]
    solid = np.column_stack([box.binds_below, box.binds_above]).ravel()
    for (xs, ys), binds in zip(sides, solid, strict=False):  # with one feature only two sides
        ax.add_line(Line2D(xs, ys, transform=place, zorder=3, **_end_style(bool(binds))))
    return _end_handles(solid)


def _end_handles(binds: NDArray[np.bool_]) -> list[Artist]:
    """Legend entries for the kinds of ends that occur."""
    handles: list[Artist] = []
    if binds.any():
        handles.append(Line2D([], [], label="end of the box", **_end_style(True)))
    if not binds.all():
        label = "end of the training range (no limit)"
        handles.append(Line2D([], [], label=label, **_end_style(False)))
    return handles


def _end_style(binds: bool) -> dict[str, Any]:
    width, line = (1.8, "-") if binds else (1.1, (0, (4, 3)))
    return {"color": BOX, "linewidth": width, "linestyle": line}


def _draw_points(ax: Axes, points: Array, view: Array, colour: str, marker: str) -> int:
    """Draw points (rows, 2), equal ones as one larger mark. → number of points outside the view"""
    places, counts = np.unique(points, axis=0, return_counts=True)
    if len(places) > MOST_POINTS:
        some = np.linspace(0, len(places) - 1, MOST_POINTS).astype(np.intp)
        places, counts = places[some], counts[some]
    sizes = np.minimum(12.0 * np.sqrt(counts), 300.0)
    inside = ((places >= view[:, 0]) & (places <= view[:, 1])).all(axis=1)
    style: dict[str, Any] = {"color": colour, "clip_on": False, "zorder": 4}
    across, up = places[inside].T
    ax.scatter(across, up, sizes[inside], marker=marker, alpha=0.55, linewidths=0, **style)
    across, up = np.clip(places[~inside], view[:, 0], view[:, 1]).T
    ax.scatter(across, up, 18.0, marker="x", alpha=0.8, linewidths=1, **style)
    outside = (points < view[:, 0]) | (points > view[:, 1])
    return int(outside.any(axis=1).sum())


def _constraint_label(
    explanation: GlobalExplanation, unit: int, feature: int, inches: float
) -> str:
    """``name: at most 0.0783``"""
    text = explanation.constraint_text(unit, feature)
    room = max(inches - text_width(f": {text}"), 0.8)
    return f"{fitted(explanation.feature_names[feature], room)}: {text}"


def constraint_bars(
    explained: GlobalExplanation | FittedModel | DiffInt,
    features: FeatureSummary | None = None,
    unit: int | None = None,
    n_constraints: int = 4,
) -> Figure:
    """One unit's most important ranges over histograms of the training values.

    explained: a detector, its `model_`, or its `explain_global()`.
    features: `FittedModel.features`; needed only if `explained` is a `GlobalExplanation`.
    unit: the top unit by default.
    n_constraints: number of ranges to draw.
    """
    explanation = explanation_of(explained)
    features = features_of(explained, features, len(explanation.feature_names))
    count = check_count(n_constraints, "constraints")
    unit = check_unit(explanation, unit, count)
    order = explanation.constraint_order(unit)[:count]
    figure = new_figure(0.75 + 0.95 * len(order))
    panels = figure.subplots(len(order), 1, squeeze=False)[:, 0]
    where = "held-out" if explanation.held_out else "training"
    for ax, j in zip(panels, order, strict=True):
        plain(ax, "left")
        ax.set_yticks([])
        known = not np.isnan(explanation.lower[unit, j])
        rows = counted(int(explanation.coverage_counts[unit, j]), f"{where} row")
        holds = f"holds for {percent(explanation.coverage[unit, j])} of {rows}" if known else ""
        room = WIDTH - 0.5 - text_width(holds, SMALL)
        ax.set_title(_constraint_label(explanation, unit, j, room), size=TEXT, loc="left", pad=3)
        ax.set_title(holds, size=SMALL, loc="right", pad=3, color=INK)
        _draw_constraint(ax, explanation, features, unit, int(j))
    top_title(figure, f"Pattern {unit}: {_together(explanation, unit, len(order))}")
    handles: list[Artist] = [
        Patch(color=FAINT, label="training values"),
        Patch(color=NORMAL, alpha=0.75, label="inside the range"),
    ]
    sides = _Box(explanation, unit, order.tolist())
    handles += _end_handles(np.column_stack([sides.binds_below, sides.binds_above]))
    legend_below(figure, handles, columns=4)
    return figure


def _together(explanation: GlobalExplanation, unit: int, count: int) -> str:
    """Joint coverage of the first `count` ranges if it was measured, and the rows in the box."""
    inside = counted(int(explanation.box_rows[unit]), "training row")
    if not 1 < count <= explanation.joint_coverage.shape[1]:
        return f"{inside} inside all its ranges"
    share = percent(explanation.joint_coverage[unit, count - 1])
    return f"all {count} together hold for {share}; {inside} inside all its ranges"


def _draw_constraint(
    ax: Axes, explanation: GlobalExplanation, features: FeatureSummary, unit: int, j: int
) -> None:
    """Draw a feature's histogram, coloured inside the range, and the ends of the range."""
    lower, upper = float(explanation.lower[unit, j]), float(explanation.upper[unit, j])
    if np.isnan(lower):
        ax.set_xticks([])
        return
    lower, upper = drawn_ends(lower, upper, j in explanation.categories)
    left, right, height = bars(features, j)
    ax.bar(left, height, right - left, align="edge", color=FAINT, linewidth=0)
    if shows_whole(features, j):  # each bar is one value, either inside or outside
        middle = (left + right) / 2
        inside = (middle >= lower) & (middle <= upper)
        start, stop, tall = left[inside], right[inside], height[inside]
    else:
        start, stop = np.maximum(left, lower), np.minimum(right, upper)
        if lower == upper:  # the bar of a constant has a width, its range does not
            start, stop = left, right
        start, stop, tall = (part[stop > start] for part in (start, stop, height))
    ax.bar(start, tall, stop - start, align="edge", color=NORMAL, alpha=0.75, linewidth=0)
    side = _Box(explanation, unit, [j])
    ax.axvline(lower, **_end_style(bool(side.binds_below[0])))
    ax.axvline(upper, **_end_style(bool(side.binds_above[0])))
    ax.set_ylim(0, 1.05 * float(height.max()))
    ends = min(left.min(), lower), max(right.max(), upper)
    view = padded(*ends, 0.02 if len(height) > 1 else 2.0)
    names = explanation.categories.get(j, ())
    number_axis(ax.xaxis, *view, WIDTH - 0.5, bool(features.whole[j]), names)


def drawn_ends(lower: float, upper: float, is_category: bool) -> tuple[float, float]:
    """Where to draw the ends of a range: those of a category half way to the next values."""
    if not is_category or np.isnan(lower) or np.ceil(lower) > np.floor(upper):
        return lower, upper
    return float(np.ceil(lower)) - 0.5, float(np.floor(upper)) + 0.5


def shows_whole(features: FeatureSummary, j: int) -> bool:
    """Whether a feature has only whole values, few enough for one bin each."""
    smallest, largest = features.bin_edges[j, [0, -1]]
    return bool(features.whole[j]) and 0 < largest - smallest < features.bin_counts.shape[1]


def bars(features: FeatureSummary, j: int) -> tuple[Array, Array, Array]:
    """Left, right and height (bars,) of a feature's histogram; one bar per value if whole."""
    edges, counts = features.bin_edges[j], features.bin_counts[j].astype(np.float64)
    if edges[0] == edges[-1]:
        half = 0.02 * abs(edges[0]) or 0.02
        return edges[:1] - half, edges[:1] + half, counts.sum(keepdims=True)
    if not shows_whole(features, j):
        return edges[:-1], edges[1:], counts
    values = np.arange(edges[0], edges[-1] + 1)
    bins = np.searchsorted(edges, values, side="right") - 1
    return values - 0.4, values + 0.4, counts[np.minimum(bins, len(counts) - 1)]
