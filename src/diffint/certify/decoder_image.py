"""How far a box is from everything that a decoder can output: a lower bound on the error.

The outputs of a box's rows are g(f) for some code f. With weights u_j between −1 and 1,

    Σ_j |x_j − g_j(f)| ≥ Σ_j u_j·x_j − Σ_j u_j·g_j(f),

so an upper bound on one linear function of the outputs bounds the errors of all features together.
Bounding each output by itself would let every feature have the code that suits it best.

Σ_j u_j·g_j is Σ_i v_i·ReLU(z_i) with z linear in the code. As a code is a mean of units, weighted
by its components, and a ReLU is convex, ReLU(z_i(f)) is at most Σ_k f_k·ReLU(z_i(unit k)); this
bounds the terms with v_i > 0. The others are concave, and at most their tangents at any code: 0
or v_i·z_i. Both are linear in the code, and `knapsack` finds their maximum.

Any u and any tangents give a valid bound. Good ones are found by a few steps of Frank and Wolfe's
method: the code moves to where the linear function is largest, u follows the signs of x − g there,
and the tangents are those at this code.

With a LayerNorm, z is linear in the code times the inverse deviation. The bound is convex in that,
so both ends of its range are enough.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..core.scaling import Range
from .float_error import SLIGHT
from .hidden_layer import HiddenLayer
from .knapsack import fullest

Array = NDArray[np.float64]

_STEPS = 8
_SOFT = 0.3  # differences of x and g, in scaled units, from which u is ±1


class DecoderImage:
    """The outputs of one decoder.

    layer: the hidden layer; output_weight: (hidden, features); output_bias: (features,)
    """

    def __init__(self, layer: HiddenLayer, output_weight: Array, output_bias: Array) -> None:
        self._layer, self._weight, self._bias = layer, output_weight, output_bias
        self._vertices = layer.gain * (layer.weight + layer.bias)  # (units, hidden), before a shift

    def distance(self, target: Range, codes: Range | None, stretch: Range, error: Array) -> Array:
        """Lower bounds on Σ_j |x_j − output_j| for all x in the target.

        target: (boxes, features), NaN where missing, possibly infinite; codes: (boxes, units),
        None for any codes; stretch: (boxes,) of the hidden layer; error: (boxes, features) of
        computed outputs → (boxes,)
        """
        layer, ends = self._layer, self._ends(stretch)
        active = [np.maximum(end, 0.0) for end in ends]
        best, code = np.zeros(len(target.low)), self._start(len(target.low), codes)
        scale = ((stretch.low + stretch.high) / 2)[:, None]
        u = np.zeros(target.low.shape)
        for step in range(_STEPS):
            hidden = scale * (code @ self._vertices) + layer.shift
            output = np.maximum(hidden, 0.0) @ self._weight + self._bias
            with np.errstate(invalid="ignore"):  # missing cells have no direction
                gap = np.maximum(target.low - output, 0.0) - np.maximum(output - target.high, 0.0)
                direction = np.clip(np.nan_to_num(gap) / _SOFT, -1.0, 1.0)
            u += (direction - u) * (2.0 / (step + 2.0))
            v = u @ self._weight.T
            raising, lowering = np.maximum(v, 0.0), np.minimum(v, 0.0) * (hidden > 0.0)
            along = np.maximum.reduce(
                [
                    _times(a, raising) + _times(z, lowering)
                    for a, z in zip(active, ends, strict=True)
                ]
            )
            fill = fullest(codes, along)
            highest = (fill * along).sum(axis=1) + u @ self._bias
            size = (fill * np.abs(along)).sum(axis=1) + np.abs(u) @ np.abs(self._bias)
            reached = np.where(u > 0, u * _finite(target.low, u > 0), 0.0) + np.where(
                u < 0, u * _finite(target.high, u < 0), 0.0
            )
            slack = (np.abs(u) * error).sum(axis=1)
            slack += SLIGHT * (1.0 + size + np.abs(reached).sum(axis=1))
            best = np.maximum(best, reached.sum(axis=1) - highest - slack)
            code += (fill - code) * (2.0 / (step + 3.0))
        return best

    def _start(self, n_boxes: int, codes: Range | None) -> Array:
        """A code in the middle. → (boxes, units)"""
        if codes is None:
            return np.full((n_boxes, len(self._vertices)), 1.0 / len(self._vertices))
        room = codes.width / np.maximum(codes.width.sum(axis=1, keepdims=True), SLIGHT)
        return np.asarray(codes.low + (1.0 - codes.low.sum(axis=1, keepdims=True)) * room)

    def _ends(self, stretch: Range) -> list[Array]:
        """z of every unit at both ends of the stretch. → (1 or boxes, units, hidden) each"""
        if not self._layer.normalises:
            return [self._vertices[None] + self._layer.shift]
        return [s[:, None, None] * self._vertices + self._layer.shift for s in stretch]


def _times(values: Array, weights: Array) -> Array:
    """Σ_i values[·, k, i]·weights[n, i]. values: (1 or boxes, units, hidden) → (boxes, units)"""
    if len(values) == 1:
        return np.asarray(weights @ values[0].T)
    return np.asarray((values @ weights[:, :, None])[:, :, 0])


def _finite(values: Array, needed: NDArray[np.bool_]) -> Array:
    """The values where they are needed, 0 elsewhere: they may be infinite there."""
    return np.where(needed, values, 0.0)
