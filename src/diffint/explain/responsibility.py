"""Which features are responsible for a row's anomaly?

The plain reconstruction error of a feature answers badly where one wrong value changes the
reconstruction of all the others: a single distant coordinate rules out every unit that the row
otherwise belongs to. So the row is encoded again in a way that lets no feature do that: a
membership counts at least a floor, and beyond an interval's edge it makes no difference how far.
The units that match *most* of the row then win, and a feature is as responsible as its value is
far from what they reconstruct (docs/results/explain_quality.md has what that gains).
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
    part of the value beyond the training range, in scaled units; 0 where a cell is missing. Values
    are unclipped, whatever error the score uses.
    """
    return prepared.packed.explained(x, n_jobs).responsibility
