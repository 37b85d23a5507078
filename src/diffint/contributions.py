"""Which features carry a row's score."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .model import FittedModel
from .scoring import evaluate


def feature_contributions(
    model: FittedModel, x: NDArray[Any], n_jobs: int = 1
) -> NDArray[np.float64]:
    """Each feature's part of the anomaly score: the parts of a row sum to its score.

    x: (rows, features) in original units → (rows, features); 0 where a cell is missing
    """
    total = np.zeros(x.shape)
    for member in model.members:
        clipped, unclipped = member.scaler.transform(x)
        target = unclipped if model.config.error == "unclipped" else clipped
        output = evaluate(model, member, x, n_jobs, reconstruct=True).reconstruction
        error = np.abs(target.astype(np.float64) - output)
        present = np.maximum((~np.isnan(error)).sum(axis=1, keepdims=True), 1)
        total += np.nan_to_num(error) / present / len(model.members)
    return total
