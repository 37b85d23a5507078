"""The boxes of a member: which units are patterns, their size, and the rows inside."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.calibration import conformal_quantile
from ..core.model import joint_depth
from ..engine.cpu.box_counts import count_inside
from ..engine.cpu.interval_layer import gradients
from ..score.nearest_pattern import center_distances, nearest_units

_SMALLEST_SCALE = 1e-3
_FEWEST_ROWS = 2  # that the box of a pattern contains when patterns are chosen

Array = NDArray[np.float32]


def mean_memberships(rows: Array, lower: Array, upper: Array, temperature: float) -> Array:
    """Mean membership of the values that are present, 1 for a feature without values.

    rows: (rows, features) scaled; lower, upper: (units, features) → (units, features)
    """
    present = (~np.isnan(rows)).sum(axis=0)
    sums = gradients(rows, lower, upper, temperature).memberships
    means = sums / np.maximum(present, 1)
    return np.where(present > 0, means, 1.0).astype(np.float32)


def coverages(rows: Array, lower: Array, upper: Array) -> Array:
    """Share of the present values that lie between the bounds, 1 for a feature without values.

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
    """Share of rows inside a unit's 1, 2, … most important ranges together. → (units, n)

    Only rows with a value in each of these features are counted; 1 if there are none.
    rows: (rows, features) scaled; lower, upper, importance: (units, features)
    """
    depth = joint_depth(rows.shape[1])
    order = np.argsort(-importance, axis=1, kind="stable")[:, :depth]
    shares = np.ones((len(lower), depth), dtype=np.float32)
    columns = np.ascontiguousarray(rows.T)
    known = ~np.isnan(columns)
    complete = np.asarray(known.all(axis=1))
    for k, chosen in enumerate(order):
        inside, present = np.ones((2, len(rows)), dtype=bool)
        n_present = len(rows)
        for place, j in enumerate(chosen):
            inside &= columns[j] >= lower[k, j]
            inside &= columns[j] <= upper[k, j]
            if not complete[j]:
                present &= known[j]
                n_present = int(np.count_nonzero(present))
            if n_present:
                shares[k, place] = np.count_nonzero(inside) / n_present
    return shares


class Counts(NamedTuple):
    """Numbers of rows inside boxes.

    inside: (units,) rows inside the box in every feature.
    peers: (units, features) rows with a value in this feature that are inside in all others.
    peers_inside: (units, features) those of them that are inside in this feature too.
    """

    inside: NDArray[np.int64]
    peers: NDArray[np.int64]
    peers_inside: NDArray[np.int64]


def count_peers(rows: Array, lower: Array, upper: Array) -> Counts:
    """Count the rows inside each box, and those inside it in all features but possibly one.

    rows: (rows, features) scaled; lower, upper: (units, features)
    """
    inside = np.zeros(len(lower), dtype=np.int64)
    kept, left = np.zeros((2, *lower.shape), dtype=np.int64)
    count_inside(np.ascontiguousarray(rows.T), lower, upper, inside, kept, left)
    return Counts(inside, kept + left, kept)


class Boxes(NamedTuple):
    """The boxes of a member.

    is_pattern: (units,); scale: factor on the half-widths; lower, upper: (units, features);
    counts: numbers of rows inside.
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
    box_center: Array,
    temperature: float,
    coverage: float,
) -> Boxes:
    """Find the patterns among the units, and scale the boxes to cover the left-out rows.

    The boxes are scaled at least twice. The first time, rows are matched to all units; a unit whose
    box then contains at least two of the counted rows is a pattern, and if there is none, every
    unit is one. The second time, rows are matched to the patterns only. This changes the scale a
    little; it is repeated without patterns whose final box contains no row, unless all are so.

    rows: (rows, features) to count; clipped, unclipped: (rows, features) to be covered; center,
    half_width, box_center: (units, features), of the intervals and of the boxes; all scaled.
    coverage: share of rows to cover.
    """
    lower, upper = center - half_width, center + half_width
    allowed, fewest = np.ones(len(center), dtype=bool), _FEWEST_ROWS
    while True:
        unit = nearest_units(clipped, lower, upper, temperature, allowed)
        scale = covering_scale(center_distances(unclipped, unit, box_center, half_width), coverage)
        reach = np.float32(scale) * half_width
        box_lower, box_upper = box_center - reach, box_center + reach
        counts = count_peers(rows, box_lower, box_upper)
        fitting = allowed & (counts.inside >= fewest)
        if not fitting.any() or fitting.sum() == allowed.sum():
            return Boxes(allowed, scale, box_lower, box_upper, counts)
        allowed, fewest = fitting, 1  # repeat, matching rows to these units only


def covering_scale(reach: NDArray[np.float64], coverage: float) -> float:
    """Factor on the half-widths for which a share `coverage` of new rows lies inside.

    reach: (rows,) the factor that each row needs. A coverage of 0 gives 1.
    """
    if coverage == 0.0 or not len(reach):
        return 1.0
    # Rows exactly at the centers would give boxes of width 0.
    return max(conformal_quantile(reach, coverage), _SMALLEST_SCALE)
