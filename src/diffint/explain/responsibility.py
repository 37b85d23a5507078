"""Responsibility: how strongly each feature of a row causes its anomaly.

The plain reconstruction error of a feature misleads when one wrong value changes the reconstruction
of all others: a single distant value excludes every unit that the row otherwise belongs to. So the
row is encoded again with memberships bounded from below by a floor; beyond an interval's edge the
distance then makes no difference. The units that match *most* of the row win, and a feature's
responsibility is the distance of its value from what they reconstruct. Measured in
docs/results/explain_quality.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..score.prepared import PreparedMembers


def responsibilities(
    prepared: PreparedMembers, x: NDArray[Any], n_jobs: int = 1
) -> NDArray[np.float64]:
    """How responsible each value is for its row's anomaly. x, result: (rows, features)

    The mean over the members of |value − robust reconstruction|, plus `BEYOND_WEIGHT` times the
    part of the value beyond the scaled training range, in scaled units; 0 where a cell is missing.
    Values are unclipped, whatever error the score uses.
    """
    return prepared.packed.explained(x, n_jobs).responsibility
