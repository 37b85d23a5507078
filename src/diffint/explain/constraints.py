"""The sides of boxes as readable constraints, in original units."""

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


def readable(lower: Array, upper: Array, features: FeatureSummary) -> Ends:
    """Ends as people should read them: cut to the training range, whole where the feature is.

    lower, upper: (…, features) in original units.
    """
    smallest, largest = training_range(features)
    return _readable(lower, upper, smallest, largest, features.whole, np.asarray(np.nan))


def readable_for(
    value: Array, ends: Ends, lower: Array, upper: Array, features: FeatureSummary
) -> Ends:
    """Readable ends that a value can be compared with; all arrays (rows, features).

    ends: the readable ones; lower, upper: as they are. Where the value itself lies outside of the
    training range, or is not whole where the feature was, the end on its side stays as it is, so
    that it says on which side the value lies.
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
    """Arrays of shapes that fit; a value that is not known is NaN."""
    binds_below, binds_above = lower > smallest, upper < largest
    # A box that lies wholly beyond the range has no part inside it to cut to.
    outside = (lower > largest) | (upper < smallest)
    low = np.where(binds_below | outside | (value < smallest), lower, smallest)
    up = np.where(binds_above | outside | (value > largest), upper, largest)
    with np.errstate(invalid="ignore"):
        to_round = whole & (np.isnan(value) | (value == np.floor(value)))
    # What float32 arithmetic on the scaled range may have taken from, or added to, a whole number.
    slack = 2e-6 * (largest - smallest)
    low_whole, up_whole = np.ceil(low - slack), np.floor(up + slack)
    to_round = to_round & (low_whole <= up_whole)
    return Ends(
        np.where(to_round, low_whole, low) + 0.0,  # no minus zero
        np.where(to_round, up_whole, up) + 0.0,
        binds_below,
        binds_above,
    )


def training_range(features: FeatureSummary) -> tuple[Array, Array]:
    """The smallest and largest training value of every feature. → (features,) each"""
    return features.quantiles[:, 0], features.quantiles[:, -1]
