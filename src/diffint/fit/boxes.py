"""The readable boxes of a member: how far they reach, and which rows lie inside."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.model import joint_depth
from ..engine.cpu.box_counts import count_inside
from ..engine.cpu.interval_layer import gradients
from ..score.nearest_pattern import own_units, reaches

_SMALLEST_SCALE = 1e-3
_FEWEST_ROWS = 2  # that fit the box of a pattern

Array = NDArray[np.float32]


def mean_memberships(rows: Array, lower: Array, upper: Array, temperature: float) -> Array:
    """Mean membership over the present cells, 1 where a feature has none.

    rows: (rows, features) scaled; lower, upper: (units, features) → (units, features)
    """
    present = (~np.isnan(rows)).sum(axis=0)
    sums = gradients(rows, lower, upper, temperature).memberships
    means = sums / np.maximum(present, 1)
    return np.where(present > 0, means, 1.0).astype(np.float32)


def coverages(rows: Array, lower: Array, upper: Array) -> Array:
    """Share of the present values between the bounds, 1 where there are none.

    rows: (rows, features) scaled; lower, upper: (units, features) → (units, features)
    """
    shares = np.ones(lower.shape, dtype=np.float32)
    for j in range(rows.shape[1]):
        column = np.sort(rows[:, j])
        column = column[: len(column) - np.isnan(column).sum()]
        if len(column):
            below = np.searchsorted(column, lower[:, j], side="left")
            upto = np.searchsorted(column, upper[:, j], side="right")
            shares[:, j] = (upto - below) / len(column)
    return shares


def joint_coverages(rows: Array, lower: Array, upper: Array, importance: NDArray[Any]) -> Array:
    """Share of rows between a unit's 1, 2, … most important bounds together; → (units, n)

    Of the rows that have a value in each of them, 1 where there are none.
    """
    depth = joint_depth(rows.shape[1])
    order = np.argsort(-importance, axis=1, kind="stable")[:, :depth]
    shares = np.empty((len(lower), depth), dtype=np.float32)
    for k, chosen in enumerate(order):
        values = rows[:, chosen]
        inside = (values >= lower[k, chosen]) & (values <= upper[k, chosen])
        kept = np.logical_and.accumulate(inside, axis=1).sum(axis=0)
        present = np.logical_and.accumulate(~np.isnan(values), axis=1).sum(axis=0)
        shares[k] = np.where(present > 0, kept / np.maximum(present, 1), 1.0)
    return shares


class Counts(NamedTuple):
    """Rows inside boxes; see `compiled.boxes.count_inside`.

    inside: (units,); peers, peers_inside: (units, features)
    """

    inside: NDArray[np.int64]
    peers: NDArray[np.int64]
    peers_inside: NDArray[np.int64]


def count_peers(rows: Array, lower: Array, upper: Array) -> Counts:
    """Rows wholly inside each box, and rows inside all its sides but perhaps one.

    rows: (rows, features) scaled; lower, upper: (units, features)
    """
    inside = np.zeros(len(lower), dtype=np.int64)
    kept, left = np.zeros((2, *lower.shape), dtype=np.int64)
    count_inside(rows, lower, upper, inside, kept, left)
    return Counts(inside, kept + left, kept)


class Boxes(NamedTuple):
    """What is known of a member's boxes.

    is_pattern: (units,); scale: of the half-widths; lower, upper: (units, features); counts: of the
    rows inside them.
    """

    is_pattern: NDArray[np.bool_]
    scale: float
    lower: Array
    upper: Array
    counts: Counts


def find_boxes(
    rows: Array,
    clipped: Array,
    unclipped: Array,
    center: Array,
    half_width: Array,
    temperature: float,
    coverage: float,
) -> Boxes:
    """Which units are patterns, and how far their boxes must reach to cover rows left out.

    A pattern is a unit whose box several training rows fit: what a single row fits is no pattern.
    Where there is none such, every unit is.

    rows: (rows, features) to count; clipped, unclipped: (rows, features) to be covered; center,
    half_width: (units, features), all scaled
    """
    lower, upper = center - half_width, center + half_width
    allowed = np.ones(len(center), dtype=bool)
    while True:
        unit = own_units(clipped, lower, upper, temperature, allowed)
        scale = covering_scale(reaches(unclipped, unit, center, half_width), coverage)
        reach = np.float32(scale) * half_width
        counts = count_peers(rows, center - reach, center + reach)
        fitting = counts.inside >= _FEWEST_ROWS
        if not allowed.all() or not fitting.any() or fitting.all():
            return Boxes(allowed, scale, center - reach, center + reach, counts)
        allowed = fitting  # and once more, with those alone


def covering_scale(reach: NDArray[np.float64], coverage: float) -> float:
    """The factor on the half-widths with which that share of rows like these lies inside.

    Conformal: of n exchangeable rows the ⌈(n + 1)·coverage⌉-th smallest reach bounds that of a
    new one with at least this probability. 1 where no coverage is asked for.
    """
    if coverage == 0.0 or not len(reach):
        return 1.0
    rank = min(int(np.ceil((len(reach) + 1) * coverage)), len(reach))
    # A row that sits on every center is no reason for boxes without extent.
    return float(max(np.sort(reach)[rank - 1], _SMALLEST_SCALE))
