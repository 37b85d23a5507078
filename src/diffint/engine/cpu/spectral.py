"""Spectral normalisation, which bounds the slope of the paper's certified decoder."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..kernel_cache import compiled, compiled_sums
from .layout import Shape, Spectral, Weights

_ZERO = np.float32(0.0)
_START_ITERATIONS = 15


@compiled_sums
def power_iteration(weight, left, right):
    """One power iteration on weight (n, m); updates left and right. → the estimated norm"""
    for j in range(right.shape[0]):
        right[j] = _ZERO
    for i in range(left.shape[0]):
        for j in range(right.shape[0]):
            right[j] += left[i] * weight[i, j]
    _normalise(right)
    for i in range(left.shape[0]):
        total = _ZERO
        for j in range(right.shape[0]):
            total += weight[i, j] * right[j]
        left[i] = total
    return _normalise(left)


@compiled_sums
def _normalise(vector):
    squares = _ZERO
    for i in range(vector.shape[0]):
        squares += vector[i] * vector[i]
    norm = max(np.sqrt(squares), np.float32(1e-12))
    for i in range(vector.shape[0]):
        vector[i] /= norm
    return norm


@compiled
def _copy_scaled(source, divisor, out):
    for i in range(source.shape[0]):
        for j in range(source.shape[1]):
            out[i, j] = source[i, j] / divisor


@compiled_sums
def _through_one(gradient, effective, norm, left, right):
    along = _ZERO
    for i in range(gradient.shape[0]):
        for j in range(gradient.shape[1]):
            along += gradient[i, j] * effective[i, j]
    for i in range(gradient.shape[0]):
        scale = along * left[i]
        for j in range(gradient.shape[1]):
            gradient[i, j] = (gradient[i, j] - scale * right[j]) / norm


@compiled
def through_normalisation(g, work, spectral):
    """Gradients of W from those of W/‖W‖, in place: (G − ⟨G, W/‖W‖⟩ u vᵀ)/‖W‖."""
    _through_one(
        g.hidden_weight,
        work.hidden_weight,
        work.norms[0],
        spectral.hidden_left,
        spectral.hidden_right,
    )
    _through_one(
        g.output_weight,
        work.output_weight,
        work.norms[1],
        spectral.output_left,
        spectral.output_right,
    )


@compiled
def use_weights(w, spectral, work):
    """Set the effective decoder weights: normalised, after one power iteration on each."""
    work.norms[0] = power_iteration(w.hidden_weight, spectral.hidden_left, spectral.hidden_right)
    work.norms[1] = power_iteration(w.output_weight, spectral.output_left, spectral.output_right)
    _copy_scaled(w.hidden_weight, work.norms[0], work.hidden_weight)
    _copy_scaled(w.output_weight, work.norms[1], work.output_weight)


def start_spectral(rng: np.random.Generator, w: Weights, shape: Shape) -> Spectral:
    """Approximate leading singular vectors of the initial weights."""

    def unit_vector(size: int, used: int) -> NDArray[np.float32]:
        vector = np.zeros(size, dtype=np.float32)
        vector[:used] = rng.normal(size=used)
        return vector / np.linalg.norm(vector)

    hidden, output = w.hidden_weight, w.output_weight
    spectral = Spectral(
        unit_vector(hidden.shape[0], shape.units),
        unit_vector(hidden.shape[1], shape.hidden),
        unit_vector(output.shape[0], shape.hidden),
        unit_vector(output.shape[1], shape.features),
    )
    if shape.normalised:
        for _ in range(_START_ITERATIONS):
            power_iteration(hidden, spectral.hidden_left, spectral.hidden_right)
            power_iteration(output, spectral.output_left, spectral.output_right)
    return spectral
