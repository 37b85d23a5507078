"""Each feature's part of a score."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .prepared import PreparedMembers


def feature_parts(
    prepared: PreparedMembers, x: NDArray[Any], n_jobs: int = 1
) -> NDArray[np.float64]:
    """Each feature's part of the anomaly score: the parts of a row sum to its score.

    x: (rows, features) in original units → (rows, features); a missing cell has a part too, unless
    the configuration ignores missing cells
    """
    return scores_and_parts(prepared, x, n_jobs)[1]


def scores_and_parts(
    prepared: PreparedMembers, x: NDArray[Any], n_jobs: int = 1
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The anomaly scores (rows,), equal to `scoring.anomaly_scores`, and their parts."""
    return prepared.packed.parts(x, n_jobs)
