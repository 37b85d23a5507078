"""Responsibility: how strongly each feature of a row causes its anomaly.

The plain reconstruction error of a feature misleads when one wrong value changes the reconstruction
of all others: a single distant value excludes every unit that the row otherwise belongs to. So the
row is encoded again with memberships bounded from below by a floor; beyond an interval's edge the
distance then makes no difference. The units that match *most* of the row win, and a feature's
responsibility is the distance of its value from what they reconstruct. Measured in
docs/results/explain_quality.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engine.cpu.member_kernel import scale
from ..score.prepared import PreparedMembers

# The larger the floor, the less influence a single feature has. Each floor alone works nearly as
# well; their mean depends less on the width and softness of the intervals.
MEMBERSHIP_FLOORS = (1 / 2, 1 / 4, 1 / 8)
# Extra weight of the distance beyond the training range, where no normal row has a value.
BEYOND_WEIGHT = 4.0


@dataclass(frozen=True)
class Attribution:
    """The value expected in each cell given the rest of its row, and the responsibilities.

    expected: (rows, features) in original units, NaN for a feature without training values.
    responsibility: (rows, features) ≥ 0 in scaled units, 0 where a cell is missing.
    """

    expected: NDArray[np.float64]
    responsibility: NDArray[np.float64]


def attribute(prepared: PreparedMembers, x: NDArray[Any], n_jobs: int = 1) -> Attribution:
    """Compare each value with the one expected from its row as a whole. x: (rows, features)

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
    """Responsibility of each value for its row's anomaly. x, result: (rows, features)"""
    return attribute(prepared, x, n_jobs).responsibility
