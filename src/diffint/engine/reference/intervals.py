"""The interval layer in float64 NumPy: the definition that fast versions are tested against."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, softmax

from ...core.constants import MIN_MEMBERSHIP

Array = NDArray[np.float64]


def log_memberships(
    x: NDArray[Any], lower: NDArray[Any], upper: NDArray[Any], temperature: float
) -> Array:
    """log I of every (row, unit, feature).

    x: (rows, features); lower, upper: (units, features) → (rows, units, features)
    """
    x, lower, upper = (np.asarray(a, dtype=np.float64) for a in (x, lower, upper))
    value = x[:, None, :]
    log_membership = log_expit((value - lower) / temperature)
    log_membership += log_expit((upper - value) / temperature)
    clamped = np.maximum(log_membership, np.log(MIN_MEMBERSHIP))
    return np.where(np.isnan(value), 0.0, clamped)


def log_box_memberships(
    x: NDArray[Any], lower: NDArray[Any], upper: NDArray[Any], temperature: float
) -> Array:
    """Σ_j log I_kj: the log membership of a row in each unit's box. → (rows, units)"""
    return np.asarray(log_memberships(x, lower, upper, temperature).sum(axis=2))


def bounded_log_box_memberships(
    x: NDArray[Any], lower: NDArray[Any], upper: NDArray[Any], temperature: float, floor: float
) -> Array:
    """Σ_j log max(I_kj, floor): bounds the effect of a single feature. → (rows, units)"""
    logs = log_memberships(x, lower, upper, temperature)
    return np.asarray(np.maximum(logs, np.log(floor)).sum(axis=2))


def codes(x: NDArray[Any], lower: NDArray[Any], upper: NDArray[Any], temperature: float) -> Array:
    """f_k: softmax over the units of the log box memberships. → (rows, units), rows sum to 1"""
    return np.asarray(softmax(log_box_memberships(x, lower, upper, temperature), axis=1))


def gradients(
    x: NDArray[Any],
    lower: NDArray[Any],
    upper: NDArray[Any],
    temperature: float,
    upstream: NDArray[Any],
) -> tuple[Array, Array, Array]:
    """Gradients of Σ upstream · log_box_memberships with respect to (lower, upper, x).

    upstream: (rows, units) → (units, features), (units, features), (rows, features)
    """
    x, lower, upper = (np.asarray(a, dtype=np.float64) for a in (x, lower, upper))
    value = x[:, None, :]
    log_low = log_expit((value - lower) / temperature)
    log_up = log_expit((upper - value) / temperature)
    flows = (log_low + log_up > np.log(MIN_MEMBERSHIP)) & ~np.isnan(value)
    weight = np.where(flows, np.asarray(upstream, dtype=np.float64)[:, :, None], 0.0) / temperature
    beyond_low = np.where(flows, -np.expm1(np.where(flows, log_low, 0.0)), 0.0)  # 1 − σ
    beyond_up = np.where(flows, -np.expm1(np.where(flows, log_up, 0.0)), 0.0)
    from_low, from_up = weight * beyond_low, weight * beyond_up
    return -from_low.sum(axis=0), from_up.sum(axis=0), (from_low - from_up).sum(axis=1)
