"""Box bounds converted to original units and rounded for display."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.config import Config
from ..core.model import FeatureSummary, Member

Array = NDArray[np.float64]

_ROUNDING = 2e-6  # float32 error of the end of a box, as a share of the scaled training range


class BoxEnds(NamedTuple):
    """Ends of boxes in original units, not rounded; all arrays of shape (…, features).

    outer_lower, outer_upper: the same ends, moved outwards by what float32 may have moved them
    inwards. In original units this differs along a curve, so it is added to the scaled ends.
    """

    lower: Array
    upper: Array
    outer_lower: Array
    outer_upper: Array

    def at(self, index: Any) -> BoxEnds:
        """The ends with this index."""
        return BoxEnds(*(array[index] for array in self))


@dataclass(frozen=True)
class Ends:
    """Lower and upper ends of ranges in original units; all arrays of shape (…, features).

    lower, upper: the range, cut to the training range.
    binds_below, binds_above: whether the end lies inside the training range. An end that does not
        excludes no training value.
    """

    lower: Array
    upper: Array
    binds_below: NDArray[np.bool_]
    binds_above: NDArray[np.bool_]


def box_ends(_config: Config, member: Member) -> BoxEnds:
    """Ends of every box of a member. → (units, features) each"""
    scaler, lower, upper = member.scaler, member.box_lower, member.box_upper
    rounding = _ROUNDING * scaler.span
    scaled = lower, upper, lower - rounding, upper + rounding
    return BoxEnds(*(scaler.to_original(end) for end in scaled))


def readable(box: BoxEnds, features: FeatureSummary) -> Ends:
    """Ends for display: cut to the training range, and integers where the feature is."""
    smallest, largest = training_range(features)
    return _readable(box, smallest, largest, features.whole, np.asarray(np.nan))


def readable_for(
    value: Array, ends: Ends, boxes: BoxEnds, unit: NDArray[np.intp], features: FeatureSummary
) -> Ends:
    """Ends for display beside values (rows, features).

    ends: (rows, features) the readable ends; boxes: (units, features) the exact ones; unit: (rows,)
    the unit of each row. Where a value lies outside the training range, the end on that side is not
    cut; where it is not an integer, the ends are not rounded. So a value always appears on the side
    of the end where it really lies.
    """
    smallest, largest = training_range(features)
    with np.errstate(invalid="ignore"):
        special = (value < smallest) | (value > largest)
        special |= features.whole & (value != np.floor(value))
    cells = np.nonzero(special)
    row, j = cells
    exact = _readable(
        boxes.at((unit[row], j)), smallest[j], largest[j], features.whole[j], value[cells]
    )
    low, up = ends.lower.copy(), ends.upper.copy()
    low[cells], up[cells] = exact.lower, exact.upper
    return Ends(low, up, ends.binds_below, ends.binds_above)


def _readable(
    box: BoxEnds, smallest: Array, largest: Array, whole: NDArray[Any], value: Array
) -> Ends:
    """All arrays of one shape, or broadcast to it; NaN stands for no value."""
    lower, upper = box.lower, box.upper
    binds_below, binds_above = lower > smallest, upper < largest
    # A box outside the training range does not overlap it, so it cannot be cut to it.
    outside = (lower > largest) | (upper < smallest)
    own_low = binds_below | outside | (value < smallest)
    own_up = binds_above | outside | (value > largest)
    low, up = np.where(own_low, lower, smallest), np.where(own_up, upper, largest)
    with np.errstate(invalid="ignore"):
        to_round = whole & (np.isnan(value) | (value == np.floor(value)))
    # The outer ends, for ends that should be integers.
    low_whole = np.ceil(np.where(own_low, box.outer_lower, smallest))
    up_whole = np.floor(np.where(own_up, box.outer_upper, largest))
    to_round = to_round & (low_whole <= up_whole)
    return Ends(
        np.where(to_round, low_whole, low) + 0.0,  # turns −0.0 into 0.0
        np.where(to_round, up_whole, up) + 0.0,
        binds_below,
        binds_above,
    )


def values_between(values: Sequence[str], lower: float, upper: float) -> list[str]:
    """The values of a category whose positions lie in a range; none if it is unknown."""
    if np.isnan(lower) or np.isnan(upper):
        return []
    return list(values[max(math.ceil(lower), 0) : max(math.floor(upper) + 1, 0)])


def training_range(features: FeatureSummary) -> tuple[Array, Array]:
    """Smallest and largest training value of every feature. → (features,) each"""
    return features.quantiles[:, 0], features.quantiles[:, -1]


def quantiles_of(features: FeatureSummary, *levels: float) -> list[Array]:
    """Quantiles of the training values at some of the stored levels. → (features,) each"""
    places = [list(features.levels).index(level) for level in levels]
    return [features.quantiles[:, place] for place in places]
