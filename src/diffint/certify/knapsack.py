"""Extremes of linear functions of a code: its components have ranges, and sum to 1.

Each is a fractional knapsack: units are filled in the order of their weights.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..core.scaling import Range
from ..engine.cpu.knapsack import fill_knapsacks

Array = NDArray[np.float64]


def most(codes: Range, weights: Array, order: NDArray[np.intp] | None = None) -> Array:
    """Maximum of Σ_k f_k·w_k over codes within their ranges that sum to 1.

    codes: (boxes, units); weights: (functions, units) or (boxes, functions, units); order: the
    units of each function sorted by weight, largest first → (boxes, functions)
    """
    if order is None:
        order = np.argsort(-weights, axis=-1)
    if weights.ndim == 2:
        weights, order = weights[None], order[None]
    filled = (weights @ codes.low[:, :, None])[:, :, 0]
    fill_knapsacks(weights, order, codes.width, 1.0 - codes.low.sum(axis=1), filled)
    return np.asarray(filled)


def least(codes: Range, weights: Array, order: NDArray[np.intp] | None = None) -> Array:
    """Minimum of the same sum; order: smallest weight first."""
    return -most(codes, -weights, order)


def fullest(codes: Range | None, weights: Array) -> Array:
    """The code with the largest Σ_k f_k·w_k. codes, weights: (boxes, units) → (boxes, units)

    codes: None if they have no ranges.
    """
    if codes is None:
        code = np.zeros(weights.shape)
        code[np.arange(len(code)), weights.argmax(axis=1)] = 1.0
        return code
    order = np.argsort(-weights, axis=1)
    room = np.take_along_axis(codes.width, order, axis=1)
    left = (1.0 - codes.low.sum(axis=1))[:, None]
    taken = np.clip(left - (np.cumsum(room, axis=1) - room), 0.0, room)
    code = codes.low.copy()
    np.put_along_axis(code, order, np.take_along_axis(codes.low, order, axis=1) + taken, axis=1)
    return code
