"""Spectral normalisation: what makes the certified decoder's Lipschitz constant explicit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..compiling import compiled, compiled_sums
from .layout import Shape, Spectral, Weights

_ONE, _ZERO = np.float32(1.0), np.float32(0.0)
_START_ITERATIONS = 15


@compiled_sums
def power_iteration(weight, left, right):
    """One power iteration on weight (n, m) in place; returns the estimate of its norm."""
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
def through_normalisation(gradient, in_force, norm, left, right):
    """Gradient of W from that of W/‖W‖: (G − ⟨G, W/‖W‖⟩ u vᵀ)/‖W‖, in place."""
    along = _ZERO
    for i in range(gradient.shape[0]):
        for j in range(gradient.shape[1]):
            along += gradient[i, j] * in_force[i, j]
    for i in range(gradient.shape[0]):
        scale = along * left[i]
        for j in range(gradient.shape[1]):
            gradient[i, j] = (gradient[i, j] - scale * right[j]) / norm


@compiled
def use_weights(w, shape, spectral, work, iterate):
    """Put the decoder weights in force into `work`; returns the norms they were divided by."""
    if not shape.certified:
        _copy_scaled(w.hidden_weight, _ONE, work.hidden_weight)
        _copy_scaled(w.output_weight, _ONE, work.output_weight)
        return _ONE, _ONE
    for _ in range(iterate):
        hidden_norm = power_iteration(w.hidden_weight, spectral.hidden_left, spectral.hidden_right)
        output_norm = power_iteration(w.output_weight, spectral.output_left, spectral.output_right)
    _copy_scaled(w.hidden_weight, hidden_norm, work.hidden_weight)
    _copy_scaled(w.output_weight, output_norm, work.output_weight)
    return hidden_norm, output_norm


def start_spectral(rng: np.random.Generator, w: Weights, shape: Shape) -> Spectral:
    """Singular vectors near the leading ones of the starting weights."""

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
    if shape.certified:
        for _ in range(_START_ITERATIONS):
            power_iteration(hidden, spectral.hidden_left, spectral.hidden_right)
            power_iteration(output, spectral.output_left, spectral.output_right)
    return spectral
