"""The arrays of one member in training: parameters, scratch space and settings."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.decoder import Decoder
from ..parameters import Parameters
from .intervals import SAFE_EXPONENT, padded
from .linear import TILE_ROWS
from .team import team_state


class Weights(NamedTuple):
    """The padded parameters; all arrays are views of one flat vector."""

    center: NDArray[np.float32]  # (features, padded units)
    width_logit: NDArray[np.float32]
    hidden_weight: NDArray[np.float32]  # (padded units, padded hidden)
    hidden_bias: NDArray[np.float32]
    norm_gain: NDArray[np.float32]
    norm_shift: NDArray[np.float32]
    output_weight: NDArray[np.float32]  # (padded hidden, padded features)
    output_bias: NDArray[np.float32]


class Shape(NamedTuple):
    """The unpadded sizes and the settings that every compiled function needs."""

    features: int
    units: int
    hidden: int
    temperature: float
    layer_norm: bool
    normalised: bool  # both maps of the decoder, spectrally
    by_difference: bool


class Workspace(NamedTuple):
    """Arrays that a step fills, allocated once."""

    x: NDArray[np.float32]  # (rows, features)
    u: NDArray[np.float32]  # (rows, features to 4)
    v: NDArray[np.float32]
    lower: NDArray[np.float32]  # (features, units)
    upper: NDArray[np.float32]
    slope: NDArray[np.float32]
    p: NDArray[np.float32]  # (features to 4, units)
    q: NDArray[np.float32]
    c: NDArray[np.float32]
    exponent: NDArray[np.int32]  # (rows, units)
    log_box: NDArray[np.float32]  # (rows, units)
    code: NDArray[np.float32]
    normed: NDArray[np.float32]  # (rows, hidden)
    inverse_deviation: NDArray[np.float32]  # (rows,)
    activation: NDArray[np.float32]  # (rows, hidden)
    output: NDArray[np.float32]  # (rows, padded features)
    row_loss: NDArray[np.float32]  # (rows,)
    d_output: NDArray[np.float32]
    d_activation: NDArray[np.float32]  # (rows, hidden)
    d_hidden: NDArray[np.float32]
    d_code: NDArray[np.float32]
    d_lower: NDArray[np.float32]  # (features, units)
    d_upper: NDArray[np.float32]
    total: NDArray[np.float32]
    hidden_transposed: NDArray[np.float32]  # (hidden, units)
    output_transposed: NDArray[np.float32]  # (padded features, hidden)
    hidden_weight: NDArray[np.float32]  # effective weights
    output_weight: NDArray[np.float32]
    norms: NDArray[np.float32]  # (2,) the norms they were divided by
    team: NDArray[np.int64]  # state of the barrier between threads


class Spectral(NamedTuple):
    """The running singular vectors of both linear maps (certified decoder)."""

    hidden_left: NDArray[np.float32]
    hidden_right: NDArray[np.float32]
    output_left: NDArray[np.float32]
    output_right: NDArray[np.float32]


class Schedule(NamedTuple):
    """Adam's learning rate, constant or a half cosine over all steps, and the coverage weight.

    The learning rate of the intervals is `interval_rate` times that of the decoder.
    """

    learning_rate: float
    interval_rate: float
    total_steps: int
    cosine: bool
    coverage_weight: float


def _sizes(shape: Shape) -> list[tuple[int, ...]]:
    units, hidden, out = (padded(n) for n in (shape.units, shape.hidden, shape.features))
    return [
        (shape.features, units),
        (shape.features, units),
        (units, hidden),
        (hidden,),
        (hidden,),
        (hidden,),
        (hidden, out),
        (out,),
    ]


def flat_size(shape: Shape) -> int:
    """Length of the flat parameter vector."""
    return sum(int(np.prod(size)) for size in _sizes(shape))


def views(flat: NDArray[np.float32], shape: Shape) -> Weights:
    """The named parts of a flat vector."""
    parts, start = [], 0
    for size in _sizes(shape):
        stop = start + int(np.prod(size))
        parts.append(flat[start:stop].reshape(size))
        start = stop
    return Weights(*parts)


def pack(parameters: Parameters, shape: Shape) -> NDArray[np.float32]:
    """A member's parameters as a padded flat vector."""
    flat = np.zeros(flat_size(shape), dtype=np.float32)
    w, decoder = views(flat, shape), parameters.decoder
    w.center[:, : shape.units] = parameters.center.T
    w.width_logit[:, : shape.units] = parameters.width_logit.T
    w.hidden_weight[: shape.units, : shape.hidden] = decoder.hidden_weight
    w.hidden_bias[: shape.hidden] = decoder.hidden_bias
    w.norm_gain[: shape.hidden] = decoder.norm_gain
    w.norm_shift[: shape.hidden] = decoder.norm_shift
    w.output_weight[: shape.hidden, : shape.features] = decoder.output_weight
    w.output_bias[: shape.features] = decoder.output_bias
    return flat


def unpack(w: Weights, shape: Shape, decoder: type[Decoder]) -> Parameters:
    """The inverse of `pack`; copies the arrays."""
    units, hidden, features = shape.units, shape.hidden, shape.features
    return Parameters(
        center=w.center[:, :units].T.copy(),
        width_logit=w.width_logit[:, :units].T.copy(),
        decoder=decoder(
            hidden_weight=w.hidden_weight[:units, :hidden].copy(),
            hidden_bias=w.hidden_bias[:hidden].copy(),
            norm_gain=w.norm_gain[:hidden].copy(),
            norm_shift=w.norm_shift[:hidden].copy(),
            output_weight=w.output_weight[:hidden, :features].copy(),
            output_bias=w.output_bias[:features].copy(),
        ),
    )


def workspace(shape: Shape, weights: Weights, max_rows: int) -> Workspace:
    """Scratch space for up to `max_rows` rows at a time, shared by the threads of a team.

    The effective decoder weights are views of the weights themselves, unless they are normalised.
    """
    rows, features = padded(max_rows, TILE_ROWS), shape.features
    features4, out = padded(features, 4), padded(features)
    units, hidden = padded(shape.units), padded(shape.hidden)

    def zeros(*size: int) -> NDArray[np.float32]:
        return np.zeros(size, dtype=np.float32)

    return Workspace(
        x=zeros(rows, features),
        u=zeros(rows, features4),
        v=zeros(rows, features4),
        lower=zeros(features, units),
        upper=zeros(features, units),
        slope=zeros(features, units),
        p=zeros(features4, units),
        q=zeros(features4, units),
        c=np.ones((features4, units), dtype=np.float32),
        exponent=np.zeros((rows, units), dtype=np.int32),
        log_box=zeros(rows, units),
        code=zeros(rows, units),
        normed=zeros(rows, hidden),
        inverse_deviation=zeros(rows),
        activation=zeros(rows, hidden),
        output=zeros(rows, out),
        row_loss=zeros(rows),
        d_output=zeros(rows, out),
        d_activation=zeros(rows, hidden),
        d_hidden=zeros(rows, hidden),
        d_code=zeros(rows, units),
        d_lower=zeros(features, units),
        d_upper=zeros(features, units),
        total=zeros(features, units),
        hidden_transposed=zeros(hidden, units),
        output_transposed=zeros(out, hidden),
        hidden_weight=zeros(units, hidden) if shape.normalised else weights.hidden_weight,
        output_weight=zeros(hidden, out) if shape.normalised else weights.output_weight,
        norms=np.ones(2, dtype=np.float32),
        team=team_state(),
    )


def shape_of(parameters: Parameters, temperature: float, largest_input: float) -> Shape:
    """The sizes of a member, and whether its inputs exceed the safe range of the exponentials."""
    units, features = parameters.center.shape
    by_difference = bool(largest_input / temperature > SAFE_EXPONENT)
    decoder = parameters.decoder
    hidden = decoder.hidden_weight.shape[1]
    return Shape(
        features,
        units,
        hidden,
        float(temperature),
        decoder.layer_norm,
        decoder.normalised,
        by_difference,
    )
