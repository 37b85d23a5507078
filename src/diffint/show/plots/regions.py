"""The figure of a certified region: its parts, and the calibration rows around it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.collections import PatchCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from numpy.typing import NDArray

from ...certify.region_ends import bounded_features
from ...core.errors import InputError
from ...core.formatting import counted
from .checks import check_features
from .drawing import (
    ACCENT,
    ANOMALY,
    BOX,
    INK,
    NORMAL,
    QUIET,
    TEXT,
    fitted,
    left_title,
    legend_below,
    new_figure,
    number_axis,
    padded,
    plain,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ...certify.regions import RegionCertificate

Array = NDArray[np.float64]

_CENTRAL = (0.01, 0.99)  # quantiles of the calibration rows that are always inside the picture


def region_plot(
    certificate: RegionCertificate, features: str | int | Sequence[str | int] | None = None
) -> Figure:
    """A certified region in one or two features: its parts, and stored calibration rows.

    A place is undecided if any part there is, whatever the values of the other features.
    features: one or two features, by name or number; by default those with an end, of which there
        may be two.
    """
    c = certificate
    chosen = _chosen(c, features)
    sample = c.sample if c.sample.size else np.empty((0, len(c.feature_names)))
    rows = sample[~np.isnan(sample[:, chosen]).any(axis=1)][:, chosen]
    view = [_view(c, j, rows[:, i]) for i, j in enumerate(chosen)]
    if len(chosen) == 1:  # the row number is the second axis
        rows = np.column_stack([rows, np.arange(len(rows))])
        view.append(padded(0.0, float(max(len(rows) - 1, 1))))
    figure = new_figure(5.0)
    ax = figure.add_subplot()
    plain(ax)
    handles: list[Any] = _draw_parts(ax, c, chosen, view)
    limits = np.array(view)
    beyond = ((rows < limits[:, 0]) | (rows > limits[:, 1])).any(axis=1)
    style: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 3, "color": QUIET}
    ax.plot(*rows[~beyond].T, **style, alpha=0.6, zorder=2)
    if len(rows):
        label = counted(len(rows), "calibration row")
        if beyond.any():
            label += f", {int(beyond.sum()):,} outside the picture"
        handles.append(Line2D([], [], **style, label=label))
    for row, name, marker, colour, height in (
        (c.flagged_row, "a row that is flagged", "^", ANOMALY, 2 / 3),
        (c.passed_row, "a row that is not", "o", NORMAL, 1 / 3),
    ):
        if row is None or np.isnan(row[chosen]).any():
            continue
        place = [*row[chosen], view[1][0] + height * (view[1][1] - view[1][0])][:2]
        shown = np.clip(place, *limits.T)
        mark: dict[str, Any] = {"linestyle": "", "marker": marker, "color": colour, "markersize": 8}
        ax.plot(*shown, **mark, markeredgecolor="white", zorder=4)
        handles.append(Line2D([], [], **mark, label=name))
    names = [c.categories.get(j, ()) for j in chosen] + [()]
    number_axis(ax.xaxis, *view[0], 5.5, names=names[0])
    number_axis(ax.yaxis, *view[1], 3.0, whole=len(chosen) == 1, names=names[1])
    labels = [
        fitted(c.feature_names[j], inches) for j, inches in zip(chosen, (5.5, 3.5), strict=False)
    ]
    ax.set_xlabel(labels[0], size=TEXT)
    ax.set_ylabel(labels[1] if len(chosen) == 2 else "row", size=TEXT)
    left_title(ax, _title(c))
    legend_below(figure, handles)
    return figure


def _chosen(c: RegionCertificate, features: str | int | Sequence[str | int] | None) -> list[int]:
    if features is not None:
        chosen = check_features(c.feature_names, features)
        if not 1 <= len(set(chosen)) == len(chosen) <= 2:
            raise InputError(f"features={features!r} must name one or two features")
        return chosen
    bounded = bounded_features(c.region_lower, c.region_upper, c.categories)
    if not 1 <= len(bounded) <= 2:
        raise InputError(
            f"the region has ends in {counted(len(bounded), 'feature')}; name one or two of them "
            "with features="
        )
    return bounded


def _view(c: RegionCertificate, j: int, values: Array) -> tuple[float, float]:
    """Limits of an axis: the ends of the region, its surroundings, and most calibration rows."""
    ends = [end for end in (c.region_lower[j], c.region_upper[j]) if np.isfinite(end)]
    ends += [row[j] for row in (c.flagged_row, c.passed_row) if row is not None and len(ends) < 2]
    if len(values):
        ends += np.quantile(values, _CENTRAL).tolist()
    ends = [end for end in ends if np.isfinite(end)] or [0.0]
    return padded(min(ends), max(ends), 0.08)


def _draw_parts(
    ax: Axes, c: RegionCertificate, chosen: list[int], view: list[tuple[float, float]]
) -> list[Any]:
    """Draw the parts and the region around them. → handles of the legend"""
    is_open = _rows_in(c.parts_lower, c.open_lower) & _rows_in(c.parts_upper, c.open_upper)
    handles = []
    for these, colour, name, order in (
        (~is_open, BOX, "decided", 0.5),
        (is_open, ACCENT, "not decided", 0.6),
    ):
        low, high = c.parts_lower[these][:, chosen], c.parts_upper[these][:, chosen]
        there = ~np.isnan(low).any(axis=1)
        shapes = {_rectangle(a, b, view) for a, b in zip(low[there], high[there], strict=True)}
        if not shapes:
            continue
        boxes = [Rectangle((x, y), width, height) for x, y, width, height in sorted(shapes)]
        fill: dict[str, Any] = {"facecolor": colour, "edgecolor": "white", "linewidth": 0.6}
        ax.add_collection(PatchCollection(boxes, **fill, alpha=0.35, zorder=order))
        label = f"{counted(int(these.sum()), 'part')} {name}"
        handles.append(Patch(facecolor=colour, alpha=0.35, label=label))
    x, y, width, height = _rectangle(c.region_lower[chosen], c.region_upper[chosen], view)
    ax.add_patch(Rectangle((x, y), width, height, fill=False, edgecolor=INK, zorder=3))
    handles.insert(0, Patch(fill=False, edgecolor=INK, label="the region"))
    return handles


def _rectangle(
    low: Array, high: Array, view: list[tuple[float, float]]
) -> tuple[float, float, float, float]:
    """Place and size of a box inside the picture; a single value is drawn as a narrow box."""
    shape = []
    for i, (first, last) in enumerate(view):
        start, end = (low[i], high[i]) if i < len(low) else (first, last)
        thin = 0.004 * (last - first)
        start, end = np.clip([start, end], first, last)
        if end - start < thin:
            start, end = start - thin / 2, start + thin / 2
        shape.append((float(start), float(end - start)))
    return shape[0][0], shape[1][0], shape[0][1], shape[1][1]


def _rows_in(rows: Array, others: Array) -> NDArray[np.bool_]:
    """Whether each row is one of the others; NaN equals NaN."""
    known = {row.tobytes() for row in np.ascontiguousarray(others)}
    return np.array([row.tobytes() in known for row in np.ascontiguousarray(rows)], dtype=bool)


def _title(c: RegionCertificate) -> str:
    if c.threshold is None:
        return "Bounds on the scores of a region"
    return {
        "all flagged": "All rows of the region are flagged",
        "none flagged": "No row of the region is flagged",
        "mixed": "Some rows of the region are flagged, and some are not",
        "undecided": "It is not decided whether rows of the region are flagged",
    }[c.verdict]
