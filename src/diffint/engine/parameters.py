"""The trainable arrays of one member, and their initial values."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.config import Config
from ..core.decoder import DECODERS, Decoder

Array32 = NDArray[np.float32]

_GAUSSIAN_START = 0.1  # standard deviation of centers and width logits in the paper
_CERTIFIED_START = 0.5  # limit of the hidden weights of the certified decoder
_NARROWEST_START = 0.05  # smallest half-width of the data start, in scaled units


@dataclass(frozen=True)
class Parameters:
    """The trainable arrays of one member: intervals and decoder, float32.

    center, width_logit: (units, features); the half-width is softplus(width_logit).
    """

    center: Array32
    width_logit: Array32
    decoder: Decoder

    def arrays(self) -> dict[str, Array32]:
        """All arrays by name, including those of the decoder."""
        own = {"center": self.center, "width_logit": self.width_logit}
        return own | {f.name: getattr(self.decoder, f.name) for f in fields(self.decoder)}

    @property
    def half_width(self) -> Array32:
        """(units, features) Δ = softplus(width_logit)"""
        return softplus(self.width_logit)


def softplus(x: NDArray[Any]) -> Array32:
    """log(1 + e^x), without overflow."""
    return np.asarray(np.logaddexp(np.float32(0), x).astype(np.float32))


def inverse_softplus(y: NDArray[Any]) -> Array32:
    """The x with softplus(x) = y > 0."""
    y = np.asarray(y, dtype=np.float64)
    return np.asarray((y + np.log(-np.expm1(-y))).astype(np.float32))


def initial_parameters(
    rng: np.random.Generator, rows: NDArray[np.float32], config: Config
) -> Parameters:
    """Initial parameters of one member. rows: (rows, features), scaled, NaN where missing."""
    n_rows, n_features = rows.shape
    shape = (config.n_units, n_features)
    if config.init == "gaussian":
        center = rng.normal(0.0, _GAUSSIAN_START, shape)
        width_logit = rng.normal(0.0, _GAUSSIAN_START, shape)
    else:
        chosen = rng.choice(n_rows, config.n_units, replace=config.n_units > n_rows)
        mean, deviation = _mean_and_deviation(rows)
        center = np.where(np.isnan(rows[chosen]), mean, rows[chosen])
        half_width = np.maximum(deviation, _NARROWEST_START)
        width_logit = np.broadcast_to(inverse_softplus(half_width), shape)
    hidden_weight, hidden_bias = _linear(rng, config.n_units, config.hidden_width)
    decoder = DECODERS[config.decoder]
    if not decoder.layer_norm and not decoder.normalised:
        # A code sums to 1, so that hidden values are means over the units. With the usual start
        # they would hardly differ between rows, and no LayerNorm would amplify the differences.
        hidden_weight *= np.float32(_CERTIFIED_START * np.sqrt(config.n_units))
    output_weight, output_bias = _linear(rng, config.hidden_width, n_features)
    return Parameters(
        center=center.astype(np.float32),
        width_logit=np.array(width_logit, dtype=np.float32),
        decoder=decoder(
            hidden_weight=hidden_weight,
            hidden_bias=hidden_bias,
            norm_gain=np.ones(config.hidden_width, dtype=np.float32),
            norm_shift=np.zeros(config.hidden_width, dtype=np.float32),
            output_weight=output_weight,
            output_bias=output_bias,
        ),
    )


def _linear(rng: np.random.Generator, n_in: int, n_out: int) -> tuple[Array32, Array32]:
    limit = 1.0 / np.sqrt(n_in)
    weight = rng.uniform(-limit, limit, (n_in, n_out)).astype(np.float32)
    return weight, rng.uniform(-limit, limit, n_out).astype(np.float32)


def _mean_and_deviation(rows: NDArray[np.float32]) -> tuple[Array32, Array32]:
    """Per feature, over the present cells; (0, 0) where there are none."""
    present = ~np.isnan(rows)
    count = np.maximum(present.sum(axis=0), 1)
    mean = np.where(present, rows, 0).sum(axis=0, dtype=np.float64) / count
    squares = np.where(present, rows - mean.astype(np.float32), 0) ** 2
    deviation = np.sqrt(squares.sum(axis=0, dtype=np.float64) / count)
    return mean.astype(np.float32), deviation.astype(np.float32)
