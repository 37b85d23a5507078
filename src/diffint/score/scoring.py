"""Scores and reconstructions by the compiled code; engine/reference/score.py defines them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InputWarning, warn
from ..core.formatting import counted
from ..core.model import FittedModel
from .prepared import PreparedMembers

Array = NDArray[np.float64]


def anomaly_scores(prepared: PreparedMembers, x: NDArray[Any], n_jobs: int = 1) -> Array:
    """The mean of the members' scores. x: (rows, features) in original units → (rows,)"""
    return prepared.packed.scores(x, n_jobs)


def reconstructions(prepared: PreparedMembers, x: NDArray[Any], n_jobs: int = 1) -> Array:
    """The mean of the members' reconstructions, in original units. → (rows, features)"""
    total, n_seen = np.zeros(x.shape), np.zeros(x.shape[1])
    every = prepared.packed.reconstructions(x, n_jobs)
    for member, scaled in zip(prepared.members, every, strict=True):
        # A member may have seen no value of a rare feature.
        seen = member.scaler.seen
        total += np.where(seen, member.scaler.to_original(scaled), 0.0)
        n_seen += seen
    return np.where(n_seen > 0, total / np.maximum(n_seen, 1), np.nan)


def count_blank_rows(model: FittedModel, x: NDArray[Any], scores: NDArray[Any]) -> int:
    """Number of rows without a value in any column known from training; their score is 0."""
    zero = np.flatnonzero(scores == 0.0)
    known = model.features.missing_share < 1.0
    return int(np.isnan(x[zero][:, known]).all(axis=1).sum()) if len(zero) else 0


def warn_of_blank_rows(count: int) -> None:
    """Warn if there are rows without any value, whose score is 0."""
    if count:
        have = "has" if count == 1 else "have"
        warn(
            f"{counted(count, 'row')} {have} no value in any column known from training; the "
            "score of such a row is 0",
            InputWarning,
        )
