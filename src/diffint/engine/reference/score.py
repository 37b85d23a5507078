"""The score in float64: the definition that kernels, parts and bounds are tested against.

A row is scaled, encoded as the softmax of its log box memberships, and decoded. A member's score
has two parts, each a mean over the features: the absolute error, and the distance from the nearest
kept training row. The score is the mean over the members.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.config import Config
from ...core.model import FittedModel, Member
from .intervals import codes

Array = NDArray[np.float64]

_BLOCK_ROWS = 64
_TINY = float(np.finfo(float).tiny)


def scores(model: FittedModel, x: NDArray[Any]) -> Array:
    """The anomaly scores of rows in original units. x: (rows, features) → (rows,)"""
    return np.asarray(parts(model, x).sum(axis=1))


def parts(model: FittedModel, x: NDArray[Any]) -> Array:
    """Each feature's part of the score. → (rows, features)"""
    return np.asarray(np.mean([member_parts(model.config, m, x) for m in model.members], axis=0))


def member_parts(config: Config, member: Member, x: NDArray[Any]) -> Array:
    """One member's errors and distances, divided by the number of features. → (rows, features)

    The surprise of categories is added. Missing cells count as `missing_parts` says; or, if they
    are ignored, the mean is over the present features.
    """
    target = member.scaler.target(x, config.error)
    error = np.abs(target.astype(np.float64) - reconstruction(config, member, x))
    apart = np.nan_to_num(error) + member.distance_weight * distances(member, target)
    missing = np.isnan(target)
    if config.missing == "signal":
        apart = np.where(missing, missing_parts(member, missing), apart)
        counted: Any = member.scaler.n_seen
    else:
        counted = np.maximum((~missing).sum(axis=1, keepdims=True), 1)
    return np.asarray(apart / counted + member.associations.parts(x) / member.scaler.n_seen)


def missing_parts(member: Member, missing: NDArray[np.bool_]) -> Array:
    """What missing cells count, 0 for others. missing: (rows, features) → (rows, features)"""
    surprise = np.where(missing, member.missing_surprise, 0.0)
    share = surprise.sum(axis=1, keepdims=True) / max(member.missing_surprise.sum(), _TINY)
    return np.where(missing, member.missing_error + surprise * share**3, 0.0)


def distances(member: Member, target: NDArray[np.float32]) -> Array:
    """Each feature's distance from the nearest kept row, weighted; 0 where missing.

    target: (rows, features) scaled → (rows, features)
    """
    kept = member.kept_rows.astype(np.float64)
    if not len(kept):
        return np.zeros(target.shape)
    weighted = (target * member.kept_weight).astype(np.float64)
    result = np.empty(weighted.shape)
    for start in range(0, len(weighted), _BLOCK_ROWS):
        rows = slice(start, start + _BLOCK_ROWS)
        apart = np.nan_to_num(np.abs(weighted[rows, None] - kept))  # (rows, kept, features)
        nearest = apart.sum(axis=2).argmin(axis=1)
        result[rows] = apart[np.arange(len(apart)), nearest]
    return result


def reconstruction(config: Config, member: Member, x: NDArray[Any]) -> Array:
    """One member's reconstruction of rows, in its scaled units. → (rows, features)"""
    encoded = member.scaler.transform(x)[0]
    code = codes(encoded, member.lower, member.upper, config.temperature)
    return member.decoder.reconstruct(code)
