"""Which features carry a row's score."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .model import FittedModel
from .packed_members import packed_members


def feature_contributions(
    model: FittedModel, x: NDArray[Any], n_jobs: int = 1
) -> NDArray[np.float64]:
    """Each feature's part of the anomaly score: the parts of a row sum to its score.

    x: (rows, features) in original units → (rows, features); 0 where a cell is missing
    """
    return scores_and_contributions(model, x, n_jobs)[1]


def scores_and_contributions(
    model: FittedModel, x: NDArray[Any], n_jobs: int = 1
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The anomaly scores (rows,), as `scoring.anomaly_scores` gives them, and their parts."""
    return packed_members(model).parts(x, n_jobs)
