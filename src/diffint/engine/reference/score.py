"""The score in float64: the definition that kernels, parts and bounds are tested against.

A row is scaled, encoded as the softmax of its log box memberships, and decoded. A member's score
is the mean absolute error over the row's present features; the score is the mean over the members.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.config import Config
from ...core.model import FittedModel, Member
from .intervals import codes

Array = NDArray[np.float64]


def scores(model: FittedModel, x: NDArray[Any]) -> Array:
    """The anomaly scores of rows in original units. x: (rows, features) → (rows,)"""
    return np.asarray(parts(model, x).sum(axis=1))


def parts(model: FittedModel, x: NDArray[Any]) -> Array:
    """Each feature's part of the score, 0 where it is missing. → (rows, features)"""
    return np.asarray(np.mean([member_parts(model.config, m, x) for m in model.members], axis=0))


def member_parts(config: Config, member: Member, x: NDArray[Any]) -> Array:
    """One member's errors divided by the number of present features. → (rows, features)"""
    target = member.scaler.target(x, config.error).astype(np.float64)
    error = np.abs(target - reconstruction(config, member, x))
    present = (~np.isnan(error)).sum(axis=1, keepdims=True)
    return np.asarray(np.nan_to_num(error) / np.maximum(present, 1))


def reconstruction(config: Config, member: Member, x: NDArray[Any]) -> Array:
    """One member's reconstruction of rows, in its scaled units. → (rows, features)"""
    encoded = member.scaler.transform(x)[0]
    code = codes(encoded, member.lower, member.upper, config.temperature)
    return member.decoder.reconstruct(code)
