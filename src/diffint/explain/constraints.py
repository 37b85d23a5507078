"""Box bounds converted to original units and rounded for display."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.config import Config
from ..core.model import FeatureSummary, Member

Array = NDArray[np.float64]


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


def box_ends(_config: Config, member: Member) -> tuple[Array, Array]:
    """Ends of every box of a member in original units, not rounded. → (units, features) each"""
    to_original = member.scaler.to_original
    return to_original(member.box_lower), to_original(member.box_upper)


def readable(lower: Array, upper: Array, features: FeatureSummary) -> Ends:
    """Ends for display: cut to the training range, and integers where the feature is.

    lower, upper: (…, features) in original units.
    """
    smallest, largest = training_range(features)
    return _readable(lower, upper, smallest, largest, features.whole, np.asarray(np.nan))


def readable_for(
    value: Array, ends: Ends, lower: Array, upper: Array, features: FeatureSummary
) -> Ends:
    """Ends for display beside values; all arrays (rows, features).

    ends: the readable ends; lower, upper: the exact ones. Where a value lies outside the training
    range, the end on that side is not cut; where it is not an integer, the ends are not rounded. So
    a value always appears on the side of the end where it really lies.
    """
    smallest, largest = training_range(features)
    with np.errstate(invalid="ignore"):
        special = (value < smallest) | (value > largest)
        special |= features.whole & (value != np.floor(value))
    cells = np.nonzero(special)
    j = cells[1]
    exact = _readable(
        lower[cells], upper[cells], smallest[j], largest[j], features.whole[j], value[cells]
    )
    low, up = ends.lower.copy(), ends.upper.copy()
    low[cells], up[cells] = exact.lower, exact.upper
    return Ends(low, up, ends.binds_below, ends.binds_above)


def _readable(
    lower: Array, upper: Array, smallest: Array, largest: Array, whole: NDArray[Any], value: Array
) -> Ends:
    """All arrays of one shape, or broadcast to it; NaN stands for no value."""
    binds_below, binds_above = lower > smallest, upper < largest
    # A box outside the training range does not overlap it, so it cannot be cut to it.
    outside = (lower > largest) | (upper < smallest)
    low = np.where(binds_below | outside | (value < smallest), lower, smallest)
    up = np.where(binds_above | outside | (value > largest), upper, largest)
    with np.errstate(invalid="ignore"):
        to_round = whole & (np.isnan(value) | (value == np.floor(value)))
    # Tolerance for the float32 error of ends that should be integers.
    slack = 2e-6 * (largest - smallest)
    low_whole, up_whole = np.ceil(low - slack), np.floor(up + slack)
    to_round = to_round & (low_whole <= up_whole)
    return Ends(
        np.where(to_round, low_whole, low) + 0.0,  # turns −0.0 into 0.0
        np.where(to_round, up_whole, up) + 0.0,
        binds_below,
        binds_above,
    )


def training_range(features: FeatureSummary) -> tuple[Array, Array]:
    """Smallest and largest training value of every feature. → (features,) each"""
    return features.quantiles[:, 0], features.quantiles[:, -1]
