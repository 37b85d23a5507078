"""Which features are responsible for a row's anomaly?

The plain reconstruction error of a feature answers badly where one wrong value changes the
reconstruction of all the others: a single distant coordinate rules out every unit that the row
otherwise belongs to. So the row is encoded again in a way that lets no feature do that: a
membership counts at least a floor, and beyond an interval's edge it makes no difference how far.
The units that match *most* of the row then win, and a feature is as responsible as its value is
far from what they reconstruct (docs/results/explain_quality.md has what that gains).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engine.cpu.member_kernel import scale
from ..score.prepared import PreparedMembers

# From trusting hardly any single feature to trusting each a good deal. Any one of them does
# nearly as well; their mean depends less on how wide and how soft the intervals are.
MEMBERSHIP_FLOORS = (1 / 2, 1 / 4, 1 / 8)
# How much more a distance counts where it lies beyond every training value: no normal row at all
# has such a value.
BEYOND_WEIGHT = 4.0


@dataclass(frozen=True)
class Attribution:
    """What the rest of each row calls for, and how far its values are from that.

    expected: (rows, features) in original units, NaN for a feature that training never saw.
    responsibility: (rows, features) ≥ 0 in scaled units, 0 where a cell is missing.
    """

    expected: NDArray[np.float64]
    responsibility: NDArray[np.float64]


def attribute(prepared: PreparedMembers, x: NDArray[Any], n_jobs: int = 1) -> Attribution:
    """Compare each value with what its row as a whole calls for. x: (rows, features)

    The responsibility is the mean over members and floors of |value − robust reconstruction|, plus
    `BEYOND_WEIGHT` times the part of it beyond the training range. Values are unclipped, whatever
    error the score uses. One evaluation of the model per row and floor.
    """
    x = np.asarray(x, dtype=np.float64)
    distances, expectations, knowing = np.zeros(x.shape), np.zeros(x.shape), np.zeros(x.shape[1])
    for member, kernel in zip(prepared.members, prepared.kernels, strict=True):
        scaler = member.scaler
        clipped, unclipped = scale(scaler, x)
        value = unclipped.astype(np.float64)
        distance = BEYOND_WEIGHT * np.abs(value - np.clip(value, scaler.lower, scaler.upper))
        expectation = np.zeros(x.shape)
        for floor in MEMBERSHIP_FLOORS:
            expected = kernel.robust_reconstruction(clipped, floor, n_jobs)
            distance += np.abs(value - expected) / len(MEMBERSHIP_FLOORS)
            expectation += expected / len(MEMBERSHIP_FLOORS)
        distances += np.nan_to_num(distance)
        expectations += np.where(scaler.seen, scaler.to_original(expectation), 0.0)
        knowing += scaler.seen
    count = np.maximum(knowing, 1.0)
    return Attribution(np.where(knowing > 0, expectations / count, np.nan), distances / count)


def responsibilities(
    prepared: PreparedMembers, x: NDArray[Any], n_jobs: int = 1
) -> NDArray[np.float64]:
    """How responsible each value is for its row's anomaly. x, result: (rows, features)"""
    return attribute(prepared, x, n_jobs).responsibility
