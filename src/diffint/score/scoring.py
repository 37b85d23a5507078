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
    total, seeing = np.zeros(x.shape), np.zeros(x.shape[1])
    every = prepared.packed.reconstructions(x, n_jobs)
    for member, scaled in zip(prepared.members, every, strict=True):
        # A member may have seen no value of a rare feature.
        seen = member.scaler.seen
        total += np.where(seen, member.scaler.to_original(scaled), 0.0)
        seeing += seen
    return np.where(seeing > 0, total / np.maximum(seeing, 1), np.nan)


def count_blank_rows(model: FittedModel, x: NDArray[Any], scores: NDArray[Any]) -> int:
    """How many rows have no value in any column known from training; their score is 0."""
    zero = np.flatnonzero(scores == 0.0)
    known = model.features.missing_share < 1.0
    return int(np.isnan(x[zero][:, known]).all(axis=1).sum()) if len(zero) else 0


def warn_of_blank_rows(count: int) -> None:
    """Say that rows without any value score 0, where there are any."""
    if count:
        have = "has" if count == 1 else "have"
        warn(
            f"{counted(count, 'row')} {have} no value in any column known from training: nothing "
            "can be said about such a row, and its score is 0",
            InputWarning,
        )
