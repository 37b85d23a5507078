"""Which features carry a row's score."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.model import FittedModel
from .scoring import evaluate, scale


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
    scores, total = np.zeros(len(x)), np.zeros(x.shape)
    for member in model.members:
        clipped, unclipped = scale(member.scaler, x)
        target = unclipped if model.config.error == "unclipped" else clipped
        result = evaluate(model, member, x, n_jobs, reconstruct=True)
        error = np.abs(target.astype(np.float64) - result.reconstruction)
        present = np.maximum((~np.isnan(error)).sum(axis=1, keepdims=True), 1)
        scores += result.scores
        total += np.nan_to_num(error) / present / len(model.members)
    return scores / len(model.members), total
