"""Robust memberships in float64: the definition of responsibilities and nearest patterns.

A membership below a floor counts as the floor, so that no single feature can exclude a unit: the
units that match most features of the row have the largest membership.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from ...core.config import Config
from ...core.constants import BEYOND_WEIGHT, MEMBERSHIP_FLOOR
from ...core.model import FittedModel, Member
from .intervals import bounded_log_box_memberships

Array = NDArray[np.float64]


def robust_log_box(config: Config, member: Member, x: NDArray[Any]) -> Array:
    """Log box memberships of rows in original units. x: (rows, features) → (rows, units)"""
    return bounded_log_box_memberships(
        member.scaler.transform(x)[0],
        member.lower,
        member.upper,
        config.temperature,
        MEMBERSHIP_FLOOR,
    )


def robust_reconstruction(config: Config, member: Member, x: NDArray[Any]) -> Array:
    """One member's reconstruction of rows, in its scaled units. → (rows, features)"""
    code = softmax(robust_log_box(config, member, x), axis=1)
    return member.decoder.reconstruct(code)


def nearest_units(config: Config, member: Member, x: NDArray[Any]) -> NDArray[np.intp]:
    """The nearest pattern of each row. → (rows,)"""
    log_box = robust_log_box(config, member, x)
    return np.asarray(np.where(member.is_pattern, log_box, -np.inf).argmax(axis=1))


def expected_and_responsibility(model: FittedModel, x: NDArray[Any]) -> tuple[Array, Array]:
    """Value predicted from the rest of the row, in original units, and the distance from it.

    The distance is in scaled units, 0 where a cell is missing. → (rows, features) each
    """
    distances, expectations, n_seen = np.zeros(x.shape), np.zeros(x.shape), np.zeros(x.shape[1])
    for member in model.members:
        scaler = member.scaler
        value = scaler.transform(x)[1].astype(np.float64)
        expected = robust_reconstruction(model.config, member, x)
        distance = np.abs(value - expected)
        distance += BEYOND_WEIGHT * np.abs(value - np.clip(value, scaler.lower, scaler.upper))
        distances += np.nan_to_num(distance)
        expectations += np.where(scaler.seen, scaler.to_original(expected), 0.0)
        n_seen += scaler.seen
    count = np.maximum(n_seen, 1.0)
    return np.where(n_seen > 0, expectations / count, np.nan), distances / count
