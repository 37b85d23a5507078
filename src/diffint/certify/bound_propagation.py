"""Interval arithmetic through one member: bounds on its score over ranges of rows.

The method is described in `regions`. All arithmetic is in float64; `float_error` bounds the error
of the scorer's float32. The first axis of every array is the boxes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from ..core.config import Config
from ..core.constants import MIN_MEMBERSHIP, NORM_EPSILON
from ..core.model import Member
from ..core.scaling import Range, ScaledRegion
from ..engine.cpu.interval_layer import log_box_memberships
from .float_error import SLIGHT, UNIT_ROUNDOFF, decoder_rounding, encoder_rounding, sum_error
from .kept_distances import KeptDistances

Array = NDArray[np.float64]

_LARGEST = 1.0 / MIN_MEMBERSHIP
_EPSILON = float(np.float32(NORM_EPSILON))
_MOST_DIRECTIONS = 200  # of each kind, used to bound the deviation from below
_EXPONENT_LIMIT = 50.0  # larger exponents are clamped anyway
# Bounds are rounded outwards to multiples of this. Otherwise float64 rounding could make a bound
# grow when the region shrinks.
_GRID = 2.0**-36


class ScoreBounds(NamedTuple):
    """score: (boxes,); influence: (boxes, features) part of the width caused by each feature."""

    score: Range
    influence: Array


class IntervalNetwork:
    """One member, evaluated on ranges instead of rows."""

    def __init__(self, config: Config, member: Member) -> None:
        self.scaler, self.error = member.scaler, config.error
        self.temperature = config.temperature
        self.lower, self.upper = member.lower.astype(np.float64), member.upper.astype(np.float64)
        self.encoder_rounding = encoder_rounding(member, self.temperature)
        self.hidden = _HiddenLayer.of(config, member)
        self.output_weight = member.decoder.output_weight.astype(np.float64)
        self.output_bias = member.decoder.output_bias.astype(np.float64)
        self.output_rounding = decoder_rounding(member, self.encoder_rounding).output
        self.kept = KeptDistances(member)

    def scale(self, lower: Array, upper: Array) -> ScaledRegion:
        """Scale boxes given in original units. lower, upper: (boxes, features)"""
        return self.scaler.bounds_of(lower, upper, self.error)

    def bound(self, boxes: ScaledRegion) -> ScoreBounds:
        """Bounds on the score of every row in each box."""
        logs = self._log_memberships(boxes.encoded)
        codes = self._codes(logs)
        outputs = self._outputs(codes)
        target = boxes.target
        known = ~np.isnan(target.low)
        count = np.maximum(known.sum(axis=1), 1)
        beyond = np.maximum(target.low - outputs.high, outputs.low - target.high)
        across = np.maximum(target.high - outputs.low, outputs.high - target.low)
        apart = self.kept.bounds(target)
        low = (np.where(known, np.maximum(beyond, 0.0), 0.0).sum(axis=1) + apart.low) / count
        high = (np.where(known, across, 0.0).sum(axis=1) + apart.high) / count
        score = Range(
            np.floor((low - SLIGHT * (1.0 + low)) / _GRID) * _GRID,
            np.ceil((high + SLIGHT * (1.0 + high)) / _GRID) * _GRID,
        )

        # The width of a target is attributed to its own feature. The width of the outputs is
        # distributed by how much each feature changes the logits of units with a large code.
        weight = codes.high / codes.high.sum(axis=1, keepdims=True)
        moves = np.einsum("nk,nkj->nj", weight, logs.width)
        shared = np.where(known, outputs.width, 0.0).sum(axis=1) / count
        total = np.maximum(moves.sum(axis=1), np.finfo(float).tiny)
        own = np.where(known, target.width, 0.0) * (1.0 + self.kept.weight) / count[:, None]
        return ScoreBounds(score, own + moves * (shared / total)[:, None])

    def _log_memberships(self, encoded: Range) -> Range:
        """Ranges of log I as the scorer computes it. → (boxes, units, features)"""
        low, high = encoded.low[:, None, :], encoded.high[:, None, :]
        center = np.clip((self.lower + self.upper) / 2, low, high)
        largest = np.maximum(
            *(_reciprocals(x, self.lower, self.upper, self.temperature) for x in (low, high))
        )
        smallest = _reciprocals(center, self.lower, self.upper, self.temperature)
        edge, rest = self.encoder_rounding.edge, self.encoder_rounding.feature + SLIGHT
        largest = np.minimum(largest + edge * (largest - 1.0), _LARGEST)
        smallest = np.maximum(smallest - edge * (smallest - 1.0), 1.0)
        return Range(-np.log(largest) - rest, -np.log(smallest) + rest)

    def _codes(self, logs: Range) -> Range:
        """Ranges of the codes, which sum to exactly 1 here. → (boxes, units)

        `decoder_rounding` includes the rounding error of their sum.
        """
        low, high = logs.low.sum(axis=2), logs.high.sum(axis=2)
        error = self.encoder_rounding.unit + self.encoder_rounding.total * np.abs(low)
        low, high = low - error, high + error
        return Range(
            np.maximum(_share(low, high) - SLIGHT, 0.0), np.minimum(_share(high, low) + SLIGHT, 1.0)
        )

    def _outputs(self, codes: Range) -> Range:
        """Ranges of the reconstructions as the scorer computes them. → (boxes, features)"""
        layer = self.hidden
        centered = Range(
            layer.bias + _least(codes, layer.weight.T, layer.order[:, ::-1]) - layer.error,
            layer.bias + _most(codes, layer.weight.T, layer.order) + layer.error,
        )
        stretch = layer.stretches(centered, codes)
        inputs = layer.inputs(centered, stretch)
        size = layer.sizes(centered, inputs)
        outputs = Range(
            -self._highest(codes, inputs, stretch, -1.0),
            self._highest(codes, inputs, stretch, 1.0),
        )
        # The outputs of a LayerNorm are bounded even where the deviation is not.
        positive = np.maximum(self.output_weight, 0.0)
        negative = np.minimum(self.output_weight, 0.0)
        outputs = Range(
            np.maximum(outputs.low, size.low @ positive + size.high @ negative + self.output_bias),
            np.minimum(outputs.high, size.high @ positive + size.low @ negative + self.output_bias),
        )
        summed = size.high @ np.abs(self.output_weight) + np.abs(self.output_bias)
        error = self.output_rounding * summed + SLIGHT * (1.0 + summed)
        return Range(outputs.low - error, outputs.high + error)

    def _highest(self, codes: Range, inputs: Range, stretch: Range, sign: float) -> Array:
        """Upper bound on sign · output from linear bounds on the ReLUs. → (boxes, features)"""
        layer = self.hidden
        low, high = inputs.low[:, :, None], inputs.high[:, :, None]
        always = (low >= 0.0).astype(np.float64)
        unsettled = (low < 0.0) & (high > 0.0)
        chord = np.where(unsettled, high / np.where(unsettled, high - low, 1.0), always)
        weight = sign * self.output_weight  # (hidden, features)
        raising = weight > 0
        slope = weight * np.where(raising, chord, always)  # (boxes, hidden, features)
        offset = np.where(raising & unsettled, -weight * chord * low, 0.0).sum(axis=1)
        offset += np.einsum("nij,i->nj", slope, layer.shift)
        offset += np.einsum("nij,i->nj", np.abs(slope), layer.shift_error)
        scaled = slope * layer.gain[:, None]
        along = np.swapaxes(scaled, 1, 2) @ layer.weight.T  # (boxes, features, units)
        stretched = _most(codes, along) + np.einsum("nij,i->nj", scaled, layer.bias)
        stretched += np.einsum("nij,i->nj", np.abs(scaled), layer.error)
        # Linear in the stretch, so the maximum is at one of its ends.
        ends = (stretch.low[:, None] * stretched, stretch.high[:, None] * stretched)
        return np.asarray(np.maximum(*ends) + offset + sign * self.output_bias)


@dataclass(frozen=True)
class _HiddenLayer:
    """The hidden layer as ReLU(gain · stretch · (code @ weight + bias) + shift).

    With a LayerNorm, the mean over the hidden layer is subtracted from weight and bias, and the
    stretch is the inverse deviation; without one, the stretch is 1.

    weight: (units, hidden). order: (hidden, units) units sorted by weight, largest first.
    error, shift_error: (hidden,) float32 error before and after the stretch.
    stretch_error: relative error of the stretch. along, lengths: (directions, units) and
    (1, units), see `stretches`.
    """

    normalises: bool
    weight: Array
    bias: Array
    order: NDArray[np.intp]
    gain: Array
    shift: Array
    error: Array
    shift_error: Array
    stretch_error: float
    along: Array
    lengths: Array

    @classmethod
    def of(cls, config: Config, member: Member) -> _HiddenLayer:
        """The hidden layer of a member."""
        decoder, temperature = member.decoder, config.temperature
        weight = decoder.hidden_weight.astype(np.float64)
        bias = decoder.hidden_bias.astype(np.float64)
        rounding = decoder_rounding(member, encoder_rounding(member, temperature))
        error, width, u = rounding.hidden, weight.shape[1], UNIT_ROUNDOFF
        normalises = decoder.layer_norm
        gain, shift = np.ones(width), np.zeros(width)
        if normalises:
            weight -= weight.mean(axis=1, keepdims=True)
            bias -= bias.mean()
            gain, shift = (a.astype(np.float64) for a in (decoder.norm_gain, decoder.norm_shift))
            # The mean carries the error of its terms and that of the sum and the division; then
            # one subtraction.
            size = rounding.hidden_size
            mean_error = error.mean() + sum_error(width + 2) * size.mean()
            error = error + mean_error + 2 * u * (size + size.mean())
        vertices = weight + bias  # the value for a code of 1 in a single unit
        # |gain · normalised| ≤ |gain|·√width; one multiplication and one addition.
        after = 3 * u * (1.01 * np.sqrt(width) * np.abs(gain) + np.abs(shift))
        return cls(
            normalises=normalises,
            weight=weight,
            bias=bias,
            order=np.argsort(-weight.T, axis=1, kind="stable"),
            gain=gain,
            shift=shift,
            error=error + SLIGHT,
            shift_error=after if normalises else np.zeros(width),
            # Squares, sum, division, epsilon, square root, inverse, product.
            stretch_error=0.5 * sum_error(width + 4) + 5 * u,
            along=_directions(member, vertices, temperature) @ vertices.T
            if normalises
            else np.empty((0, len(weight))),
            lengths=np.linalg.norm(vertices, axis=1)[None],
        )

    def stretches(self, centered: Range, codes: Range) -> Range:
        """Range of the inverse deviation. centered: (boxes, hidden); codes: (boxes, units)

        → (boxes,). The deviation is ‖c(f)‖/√width. As c is linear in the code and codes sum to 1,
        c(f) is the mean of the units' vectors c weighted by the code. Its length is at most the
        mean of their lengths and at least the mean of their components along any direction. The
        directions are fixed, so that bounds stay monotone: those of the units' vectors, and those
        of rows at the units' centers.
        """
        n_boxes, width = centered.low.shape
        if not self.normalises:
            return Range(np.ones(n_boxes), np.ones(n_boxes))
        squares = _squares(centered)
        error = float(np.linalg.norm(self.error)) + SLIGHT
        shortest = np.maximum(_least(codes, self.along).max(axis=1) - error, 0.0)
        longest = _most(codes, self.lengths)[:, 0] + error
        least = np.maximum(squares.low.sum(axis=1), shortest**2) / width
        most = np.minimum(squares.high.sum(axis=1), longest**2) / width
        return Range(
            (1.0 - self.stretch_error) / np.sqrt(most + _EPSILON),
            (1.0 + self.stretch_error) / np.sqrt(least + _EPSILON),
        )

    def inputs(self, centered: Range, stretch: Range) -> Range:
        """Ranges of the ReLU inputs, with an independent stretch. → (boxes, hidden)"""
        low, high = stretch.low[:, None], stretch.high[:, None]
        return self._after_norm(
            Range(
                centered.low * np.where(centered.low > 0, low, high),
                centered.high * np.where(centered.high > 0, high, low),
            )
        )

    def sizes(self, centered: Range, inputs: Range) -> Range:
        """Ranges of the ReLU outputs, each bounded separately. → (boxes, hidden)

        A normalised value c/√((c² + others)/width + ε) increases with c and shrinks towards 0 as
        the squares of the other values grow.
        """
        if self.normalises:
            squares = _squares(centered)
            least, most = (_combine_others(np.add, s, 0.0) for s in squares)
            error = self.stretch_error + SLIGHT
            low = self._normalised(centered.low, np.where(centered.low > 0, most, least))
            high = self._normalised(centered.high, np.where(centered.high > 0, least, most))
            alone = self._after_norm(Range(low - error * np.abs(low), high + error * np.abs(high)))
            inputs = Range(np.maximum(inputs.low, alone.low), np.minimum(inputs.high, alone.high))
        return Range(np.maximum(inputs.low, 0.0), np.maximum(inputs.high, 0.0))

    def _normalised(self, value: Array, others: Array) -> Array:
        return np.asarray(
            value / np.sqrt((value**2 + others) / value.shape[1] + float(np.float32(NORM_EPSILON)))
        )

    def _after_norm(self, normed: Range) -> Range:
        ends = normed.low * self.gain, normed.high * self.gain
        return Range(
            np.minimum(*ends) + self.shift - self.shift_error,
            np.maximum(*ends) + self.shift + self.shift_error,
        )


def _directions(member: Member, vertices: Array, temperature: float) -> Array:
    """Unit vectors along `vertices` (units, hidden), and along the values of rows at the centers.

    → (directions, hidden)
    """
    n_units = len(vertices)
    chosen = np.linspace(0, n_units - 1, min(n_units, _MOST_DIRECTIONS)).astype(np.intp)
    center = member.center[chosen]
    logs = log_box_memberships(center, member.lower, member.upper, temperature)
    directions = np.concatenate([vertices[chosen], softmax(logs, axis=1) @ vertices])
    lengths = np.linalg.norm(directions, axis=1, keepdims=True)
    return np.asarray(directions / (np.maximum(lengths, np.finfo(float).tiny) * (1 + SLIGHT)))


def _reciprocals(x: Array, lower: Array, upper: Array, temperature: float) -> Array:
    """1/I, at most 1e8; 1 where x is missing. x: (rows, 1 or units, features) → with units"""
    inverse = 1.0 / temperature
    below = np.exp(np.minimum((lower - x) * inverse, _EXPONENT_LIMIT))
    above = np.exp(np.minimum((x - upper) * inverse, _EXPONENT_LIMIT))
    reciprocal = np.minimum((1.0 + below) * (1.0 + above), _LARGEST)
    return np.where(np.isnan(reciprocal), 1.0, reciprocal)


def _squares(values: Range) -> Range:
    """Ranges of the squares."""
    low, high = values.low**2, values.high**2
    straddles = (values.low <= 0) & (values.high >= 0)
    return Range(np.where(straddles, 0.0, np.minimum(low, high)), np.maximum(low, high))


def _share(own: Array, others: Array) -> Array:
    """Softmax of each unit with its logit from `own` and all other logits from `others`.

    own, others: (boxes, units) → (boxes, units)
    """
    return np.asarray(expit(own - _combine_others(np.logaddexp, others, -np.inf)))


def _combine_others(combine: np.ufunc, values: Array, nothing: float) -> Array:
    """Combine, for each value, all other values of its row. values: (boxes, n) → (boxes, n)

    Taking the own value out of the total instead would cancel where it dominates: what is left of
    the others could be far too small, and a bound based on it wrong.
    """
    edge = np.full((len(values), 1), nothing)
    before = combine.accumulate(np.hstack([edge, values[:, :-1]]), axis=1)
    after = combine.accumulate(np.hstack([edge, values[:, :0:-1]]), axis=1)[:, ::-1]
    return np.asarray(combine(before, after))


def _most(codes: Range, weights: Array, order: NDArray[np.intp] | None = None) -> Array:
    """Maximum of Σ_k f_k·w_k over codes within their ranges that sum to 1: a fractional knapsack.

    codes: (boxes, units); weights: (functions, units) or (boxes, functions, units); order: the
    units of each function sorted by weight, largest first → (boxes, functions)
    """
    if order is None:
        order = np.argsort(-weights, axis=-1)
    if weights.ndim == 2:
        weights, order = weights[None], order[None]
    room = codes.width[:, None, :]
    shape = np.broadcast_shapes(room.shape, order.shape)
    order = np.broadcast_to(order, shape)
    sorted_room = np.take_along_axis(np.broadcast_to(room, shape), order, axis=2)
    sorted_weights = np.take_along_axis(np.broadcast_to(weights, shape), order, axis=2)
    left = (1.0 - codes.low.sum(axis=1))[:, None, None]
    taken = np.clip(left - (np.cumsum(sorted_room, axis=2) - sorted_room), 0.0, sorted_room)
    base = (np.broadcast_to(weights, shape) @ codes.low[:, :, None])[:, :, 0]
    return np.asarray(base + (taken * sorted_weights).sum(axis=2))


def _least(codes: Range, weights: Array, order: NDArray[np.intp] | None = None) -> Array:
    """Minimum of the same sum; order: smallest weight first."""
    return -_most(codes, -weights, order)
