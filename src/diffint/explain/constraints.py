"""The sides of boxes as readable constraints, in original units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..core.config import Config
from ..core.model import FeatureSummary, Member

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Ends:
    """The two ends of constraints, in original units; all arrays of one shape (…, features).

    lower, upper: where the constraint holds, cut to the training range.
    binds_below, binds_above: whether the end lies inside the training range; one that does not
        rules out nothing that was seen in training.
    """

    lower: Array
    upper: Array
    binds_below: NDArray[np.bool_]
    binds_above: NDArray[np.bool_]


def box_ends(_config: Config, member: Member) -> tuple[Array, Array]:
    """The ends of every box of a member in original units, as they are. → (units, features) each"""
    to_original = member.scaler.to_original
    return to_original(member.box_lower), to_original(member.box_upper)


def readable(
    lower: Array, upper: Array, features: FeatureSummary, value: Array | None = None
) -> Ends:
    """Ends as people should read them: cut to the training range, whole where the feature is.

    lower, upper: (…, features) in original units. `value`, of the same shape, is what they are
    held against: for one that itself lies outside of the training range, or is not whole where
    the feature was, the end on its side stays as it is, so that it says on which side it lies.
    """
    smallest, largest = training_range(features)
    binds_below, binds_above = lower > smallest, upper < largest
    known = np.full(lower.shape, np.nan) if value is None else value
    # A box that lies wholly beyond the range has no part inside it to cut to.
    outside = (lower > largest) | (upper < smallest)
    low = np.where(binds_below | outside | (known < smallest), lower, smallest)
    up = np.where(binds_above | outside | (known > largest), upper, largest)
    with np.errstate(invalid="ignore"):
        fraction = known != np.floor(known)
    to_round = features.whole & (np.isnan(known) | ~fraction)
    # What float32 arithmetic on the scaled range may have taken from, or added to, a whole number.
    slack = 2e-6 * (largest - smallest)
    low_whole, up_whole = np.ceil(low - slack), np.floor(up + slack)
    to_round &= low_whole <= up_whole
    return Ends(
        np.where(to_round, low_whole, low) + 0.0,  # no minus zero
        np.where(to_round, up_whole, up) + 0.0,
        binds_below,
        binds_above,
    )


def training_range(features: FeatureSummary) -> tuple[Array, Array]:
    """The smallest and largest training value of every feature. → (features,) each"""
    return features.quantiles[:, 0], features.quantiles[:, -1]
