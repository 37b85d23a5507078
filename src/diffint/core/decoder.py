"""Decoders: maps from a code back to a row.

A new decoder is one subclass of `Decoder` and one entry in `DECODERS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .constants import NORM_EPSILON
from .immutable import Immutable

Array32 = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Decoder(Immutable):
    """Two linear maps with a ReLU between them.

    The weights are the effective ones, after any spectral normalisation.

    hidden_weight (units, hidden), hidden_bias (hidden,), norm_gain and norm_shift (hidden,) of
    the LayerNorm (ones and zeros, not used, if there is none), output_weight (hidden, features),
    output_bias (features,).
    """

    hidden_weight: Array32
    hidden_bias: Array32
    norm_gain: Array32
    norm_shift: Array32
    output_weight: Array32
    output_bias: Array32

    name: ClassVar[str]
    layer_norm: ClassVar[bool]  # whether the hidden layer is normalised, row by row
    certified: ClassVar[bool]  # whether the slope has a bound: scores have proven lower bounds
    normalised: ClassVar[bool]  # whether both maps are divided by their largest singular value

    def activations(self, code: NDArray[Any]) -> NDArray[np.float64]:
        """The hidden layer after the ReLU. code: (rows, units) → (rows, hidden) float64"""
        hidden = np.asarray(code, dtype=np.float64) @ self.hidden_weight.astype(np.float64)
        hidden += self.hidden_bias
        if self.layer_norm:
            hidden -= hidden.mean(axis=1, keepdims=True)
            hidden /= np.sqrt((hidden**2).mean(axis=1, keepdims=True) + NORM_EPSILON)
            hidden = hidden * self.norm_gain + self.norm_shift
        return np.asarray(np.maximum(hidden, 0.0))

    def largest_output(self) -> float:
        """A bound on the magnitude of every sum that gives an output, for any code.

        Also of the sum of squares in the LayerNorm, so that a moderate bound excludes overflow.
        """
        width = len(self.hidden_bias)
        active = _magnitude(self.hidden_weight) + _magnitude(self.hidden_bias)
        squares = 0.0
        if self.layer_norm:
            squares = width * (2.0 * active) ** 2
            active = width**0.5 * _magnitude(self.norm_gain) + _magnitude(self.norm_shift)
        outputs = width * active * _magnitude(self.output_weight) + _magnitude(self.output_bias)
        return max(outputs, squares)

    def reconstruct(self, code: NDArray[Any]) -> NDArray[np.float64]:
        """The reference definition, in float64. code: (rows, units) → (rows, features), scaled"""
        activations = self.activations(code)
        return np.asarray(activations @ self.output_weight.astype(np.float64) + self.output_bias)


class FreeDecoder(Decoder):
    """With LayerNorm: the most accurate, but its slope has no bound."""

    name, layer_norm, certified, normalised = "free", True, False, False


class CertifiedDecoder(Decoder):
    """Without LayerNorm: its slope is at most the product of its maps' largest singular values."""

    name, layer_norm, certified, normalised = "certified", False, True, False

    def spectral_norms(self) -> tuple[float, float]:
        """The largest singular values of both maps; their product bounds the decoder's slope."""
        hidden, output = (
            float(np.linalg.svd(weight.astype(np.float64), compute_uv=False)[0])
            for weight in (self.hidden_weight, self.output_weight)
        )
        return hidden, output


class SpectralDecoder(CertifiedDecoder):
    """The paper's certified decoder: both maps are divided by their largest singular value.

    Its slope is at most 1, which is too little to follow most tables: it is less accurate.
    """

    name, normalised = "spectral", True


def _magnitude(array: Array32) -> float:
    """The largest magnitude, without a copy of the array."""
    return max(float(array.max()), -float(array.min()))


DECODERS: dict[str, type[Decoder]] = {
    decoder.name: decoder for decoder in (FreeDecoder, CertifiedDecoder, SpectralDecoder)
}
