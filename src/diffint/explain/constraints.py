"""Box bounds converted to original units and rounded for display."""

from __future__ import annotations

from dataclasses import dataclass

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


def readable(
    lower: Array, upper: Array, features: FeatureSummary, value: Array | None = None
) -> Ends:
    """Ends for display: cut to the training range, and integers where the feature is.

    lower, upper: (…, features) in original units. value: of the same shape, the values to be
    compared with the ends. Where a value lies outside the training range, the end on that side is
    not cut; where it is not an integer, the ends are not rounded. So a value always appears on
    the side of the end where it really lies.
    """
    smallest, largest = training_range(features)
    binds_below, binds_above = lower > smallest, upper < largest
    known = np.full(lower.shape, np.nan) if value is None else value
    # A box outside the training range does not overlap it, so it cannot be cut to it.
    outside = (lower > largest) | (upper < smallest)
    low = np.where(binds_below | outside | (known < smallest), lower, smallest)
    up = np.where(binds_above | outside | (known > largest), upper, largest)
    with np.errstate(invalid="ignore"):
        fraction = known != np.floor(known)
    to_round = features.whole & (np.isnan(known) | ~fraction)
    # Tolerance for the float32 error of ends that should be integers.
    slack = 2e-6 * (largest - smallest)
    low_whole, up_whole = np.ceil(low - slack), np.floor(up + slack)
    to_round &= low_whole <= up_whole
    return Ends(
        np.where(to_round, low_whole, low) + 0.0,  # turns −0.0 into 0.0
        np.where(to_round, up_whole, up) + 0.0,
        binds_below,
        binds_above,
    )


def training_range(features: FeatureSummary) -> tuple[Array, Array]:
    """Smallest and largest training value of every feature. → (features,) each"""
    return features.quantiles[:, 0], features.quantiles[:, -1]
