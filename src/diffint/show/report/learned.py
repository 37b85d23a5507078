"""Data of the report's section on the model: feature bars and pattern drawings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...core.formatting import counted, percent, printable
from ...core.model import FeatureSummary
from ...explain.global_explanation import GlobalExplanation
from ..plots.boxes import bars, drawn_ends, shows_whole
from ..plots.drawing import padded
from .drawing import Axis, Tick, bar_path

Array = NDArray[np.float64]

_INCHES = 1.8  # width of an axis with three patterns side by side
N_FEATURES, N_PATTERNS, N_CONSTRAINTS = 10, 3, 4


@dataclass(frozen=True)
class FeatureBar:
    """A feature's importance; width: percentage of the most important feature's."""

    name: str
    importance: str
    width: float


@dataclass(frozen=True)
class ConstraintDrawing:
    """One range over the histogram of its feature; positions are percentages of the width.

    text: the range. alone, together: coverage of this range, and of this and all above it.
    values, kept: SVG paths of the histogram and of its part inside the range.
    start, end: ends of the range. below, above: whether the end binds.
    """

    name: str
    text: str
    alone: str
    together: str
    values: str
    kept: str
    start: float
    end: float
    below: bool
    above: bool
    ticks: list[Tick]


@dataclass(frozen=True)
class PatternDrawing:
    """A pattern and its most important ranges."""

    unit: int
    inside: str
    rows: str
    together: str
    constraints: list[ConstraintDrawing]


def feature_bars(learned: GlobalExplanation) -> list[FeatureBar]:
    """The most important features, without constant ones."""
    order = learned.feature_order
    order = order[~learned.constant[order] & (learned.feature_importance[order] > 0)]
    most = float(learned.feature_importance[order[0]]) if len(order) else 1.0
    return [
        FeatureBar(
            printable(learned.feature_names[j]),
            f"{learned.feature_importance[j]:.2f}",
            round(100 * float(learned.feature_importance[j]) / most, 1),
        )
        for j in order[:N_FEATURES]
    ]


def pattern_drawings(learned: GlobalExplanation, features: FeatureSummary) -> list[PatternDrawing]:
    """The patterns to show; empty if no range excludes anything."""
    units = learned.top_units(N_PATTERNS, N_CONSTRAINTS)
    return [_pattern(learned, features, unit) for unit in units]


def _pattern(learned: GlobalExplanation, features: FeatureSummary, unit: int) -> PatternDrawing:
    order = learned.constraint_order(unit)[:N_CONSTRAINTS]
    # Ranges that exclude nothing come last and are not drawn.
    order = order[learned.importance[unit, order] > 0]
    where = "held-out" if learned.held_out else "training"
    return PatternDrawing(
        unit=unit,
        inside=learned.rows_inside(unit),
        rows=counted(int(learned.coverage_counts[unit].max()), f"{where} row"),
        together=_together(learned, unit, len(order) - 1),
        constraints=[
            _constraint(learned, features, unit, int(j), place) for place, j in enumerate(order)
        ],
    )


def _together(learned: GlobalExplanation, unit: int, place: int) -> str:
    """Joint coverage of the ranges up to this place; empty for the first."""
    if not 0 < place < learned.joint_coverage.shape[1]:
        return ""
    return percent(float(learned.joint_coverage[unit, place]))


def _constraint(
    learned: GlobalExplanation, features: FeatureSummary, unit: int, j: int, place: int
) -> ConstraintDrawing:
    lower, upper = float(learned.lower[unit, j]), float(learned.upper[unit, j])
    lower, upper = drawn_ends(lower, upper, j in learned.categories)
    left, right, counts = bars(features, j)
    ends = min(float(left.min()), lower), max(float(right.max()), upper)
    names = learned.categories.get(j, ())
    axis = Axis(*padded(*ends, 0.02), _INCHES, whole=bool(features.whole[j]), names=names)
    height = 95 * counts / max(float(counts.max()), 1.0)
    inside = _inside(left, right, lower, upper, shows_whole(features, j))
    start, end = axis.place(np.array([lower, upper]))
    single = learned.lower[unit, j] == learned.upper[unit, j]
    return ConstraintDrawing(
        name=printable(learned.feature_names[j]),
        text=learned.constraint_text(unit, j),
        alone=percent(float(learned.coverage[unit, j])),
        together=_together(learned, unit, place),
        values=bar_path(axis.place(left), axis.place(right), height),
        kept=bar_path(
            axis.place(inside[0]),
            axis.place(inside[1]),
            np.where(inside[1] > inside[0], height, 0.0),
        ),
        start=round(float(start), 2),
        end=round(float(end), 2),
        below=bool(learned.binds_below[unit, j]) or single,
        above=bool(learned.binds_above[unit, j]) or single,
        ticks=axis.ticks,
    )


def _inside(
    left: Array, right: Array, lower: float, upper: float, whole: bool
) -> tuple[Array, Array]:
    """Left and right of the part of every bar (bars,) inside the range.

    whole: whether each bar is a single value, either inside or outside.
    """
    if whole:
        middle = (left + right) / 2
        return left, np.where((middle >= lower) & (middle <= upper), right, left)
    return np.maximum(left, lower), np.minimum(right, upper)
