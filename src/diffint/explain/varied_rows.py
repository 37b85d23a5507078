"""Rows at all distances from normal ones, which show what a model takes for normal.

Every row starts at a training row and goes some way in some direction. What real anomalies look
like is unknown, so there are many kinds of directions: some break what holds between the features,
others follow it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..core.model import FittedModel
from .stored_rows import as_in_training

Array = NDArray[np.float64]
Random = np.random.Generator

_SHARES = (0.1, 0.25, 0.5, 1.0)  # of the cells of a row that are varied
_SHORTEST, _WHOLE_SHARE = 0.02, 0.25  # of the ways; share of rows that go the whole way
_SPREAD_LIMIT = 0.02  # smallest spread of a feature
_BEYOND = 0.05  # how far cells go beyond the range, as a share of it
_FARTHEST = 2.5  # scaled value
_NEAR_OF = 16  # the nearest of so many rows is a near one
_KEPT_VARIANCE = 0.99  # of the principal axes


def varied_rows(model: FittedModel, scaled: Array, count: int) -> Array:
    """Rows made from training rows. → (count, features) in original units

    scaled: (rows, features) training rows, scaled, without missing values
    """
    rng = np.random.default_rng(0)
    base = _any(scaled, count, rng)
    kinds = [*_PARTIAL, *_WHOLE]
    kind = rng.integers(len(kinds), size=count)
    varied = rng.random(base.shape) < rng.choice(_SHARES, size=(count, 1))
    varied[np.arange(count), rng.integers(base.shape[1], size=count)] = True
    varied[kind >= len(_PARTIAL)] = True
    way = np.zeros_like(base)
    for k, direction in enumerate(kinds):
        way[kind == k] = direction(base[kind == k], scaled, rng)
    length = np.exp(rng.uniform(np.log(_SHORTEST), 0.0, size=(count, 1)))
    length[rng.random(count) < _WHOLE_SHARE] = 1.0
    varied &= np.ptp(scaled, axis=0) > 0
    made = np.clip(base + length * varied * way, -_FARTHEST, _FARTHEST)
    return as_in_training(model, model.members[0].scaler.to_original(made))


def _any(scaled: Array, count: int, rng: Random) -> Array:
    return scaled[rng.integers(len(scaled), size=count)]


def _to_another(base: Array, scaled: Array, rng: Random) -> Array:
    return _any(scaled, len(base), rng) - base


def _from_another(base: Array, scaled: Array, rng: Random) -> Array:
    return -_to_another(base, scaled, rng)


def _from_near(base: Array, scaled: Array, rng: Random) -> Array:
    others = scaled[rng.integers(len(scaled), size=(len(base), _NEAR_OF))]
    near = np.abs(others - base[:, None]).sum(axis=2).argmin(axis=1)
    return np.asarray(2.0 * (base - others[np.arange(len(base)), near]))


def _difference(base: Array, scaled: Array, rng: Random) -> Array:
    return _any(scaled, len(base), rng) - _any(scaled, len(base), rng)


def _cells_of_others(base: Array, scaled: Array, rng: Random) -> Array:
    return scaled[rng.integers(len(scaled), size=base.shape), np.arange(base.shape[1])] - base


def _anywhere(base: Array, scaled: Array, rng: Random) -> Array:
    low, high = scaled.min(axis=0), scaled.max(axis=0)
    place = rng.uniform(-_BEYOND, 1.0 + _BEYOND, size=base.shape)
    return np.asarray(low + (high - low) * place - base)


def _noise(base: Array, scaled: Array, rng: Random) -> Array:
    spread = np.abs(scaled - np.median(scaled, axis=0)).mean(axis=0) + _SPREAD_LIMIT
    return np.asarray(2.0 * spread * rng.normal(size=base.shape))


def _mirrored(base: Array, scaled: Array, rng: Random) -> Array:
    return np.asarray(2.0 * (np.median(scaled, axis=0) - base))


def _along_an_axis(base: Array, scaled: Array, rng: Random) -> Array:
    """Up to three standard deviations along a principal axis."""
    deviation, axes = _principal_axes(scaled)
    variance = np.cumsum(deviation**2)
    n_axes = 1 + int((variance < _KEPT_VARIANCE * variance[-1]).sum())
    axis = rng.integers(min(n_axes, len(axes)), size=len(base))
    sign = rng.choice([-3.0, 3.0], size=len(base))
    return np.asarray((sign * deviation[axis])[:, None] * axes[axis])


def _to_a_normal_draw(base: Array, scaled: Array, rng: Random) -> Array:
    """To a draw from the normal distribution with the covariance of the rows, or twice as wide."""
    deviation, axes = _principal_axes(scaled)
    width = rng.uniform(0.7, 2.0, size=(len(base), 1))
    drawn = (rng.normal(size=(len(base), len(axes))) * deviation * width) @ axes
    return np.asarray(scaled.mean(axis=0) + drawn - base)


def _principal_axes(scaled: Array) -> tuple[Array, Array]:
    """Standard deviations (axes,) and axes (axes, features)."""
    _, singular, axes = np.linalg.svd(scaled - scaled.mean(axis=0), full_matrices=False)
    return singular / np.sqrt(len(scaled)), axes


_PARTIAL = (_to_another, _difference, _cells_of_others, _anywhere, _noise, _mirrored)
_WHOLE = (
    *(_to_another, _difference, _from_another, _from_near),
    *(_along_an_axis, _to_a_normal_draw),
)
