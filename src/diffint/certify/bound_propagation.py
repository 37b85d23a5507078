"""Interval arithmetic through one member: bounds on its score over ranges of rows.

The method is described in `regions`. All arithmetic is in float64; `float_error` bounds the error
of the scorer's float32. The first axis of every array is the boxes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ..core.config import Config
from ..core.constants import MIN_MEMBERSHIP
from ..core.model import Member
from ..core.scaling import Range, ScaledRegion
from ..engine.reference.score import missing_parts
from .decoder_image import DecoderImage
from .float_error import SLIGHT, decoder_rounding, encoder_rounding
from .hidden_layer import HiddenLayer, combine_others
from .kept_distances import KeptDistances
from .knapsack import least, most

Array = NDArray[np.float64]

_LARGEST = 1.0 / MIN_MEMBERSHIP
_EXPONENT_LIMIT = 50.0  # larger exponents are clamped anyway
# Bounds are rounded outwards to multiples of this. Otherwise float64 rounding could make a bound
# grow when the region shrinks.
_GRID = 2.0**-36


class ScoreBounds(NamedTuple):
    """score: (boxes,); influence: (boxes, features) part of the width caused by each feature."""

    score: Range
    influence: Array


class _Decoded(NamedTuple):
    """outputs: (boxes, features); stretch: (boxes,) of the hidden layer; error: (boxes, features)
    of outputs as the scorer computes them, compared with exact ones of the same code."""

    outputs: Range
    stretch: Range
    error: Array


class IntervalNetwork:
    """One member, evaluated on ranges instead of rows."""

    def __init__(self, config: Config, member: Member) -> None:
        self.scaler, self.error = member.scaler, config.error
        self.temperature, self.member = config.temperature, member
        self.missing_counts = config.missing == "signal"
        self.lower, self.upper = member.lower.astype(np.float64), member.upper.astype(np.float64)
        self.encoder_rounding = encoder_rounding(member, self.temperature)
        self.hidden = HiddenLayer.of(config, member)
        self.output_weight = member.decoder.output_weight.astype(np.float64)
        self.output_bias = member.decoder.output_bias.astype(np.float64)
        self.output_rounding = decoder_rounding(member, self.encoder_rounding).output
        self.kept = KeptDistances(member)
        self.image = DecoderImage(self.hidden, self.output_weight, self.output_bias)

    def scale(self, lower: Array, upper: Array) -> ScaledRegion:
        """Scale boxes given in original units. lower, upper: (boxes, features)"""
        return self.scaler.bounds_of(lower, upper, self.error)

    def bound(self, boxes: ScaledRegion) -> ScoreBounds:
        """Bounds on the score of every row in each box."""
        logs = self._log_memberships(boxes.encoded)
        codes = self._codes(logs)
        decoded = self._decode(codes)
        outputs, target = decoded.outputs, boxes.target
        known = ~np.isnan(target.low)
        count = np.maximum(known.sum(axis=1), 1).astype(np.float64)
        missing = np.zeros(len(known))
        if self.missing_counts:
            count[:] = self.scaler.n_seen
            missing = missing_parts(self.member, ~known).sum(axis=1)
        beyond = np.maximum(target.low - outputs.high, outputs.low - target.high)
        across = np.maximum(target.high - outputs.low, outputs.high - target.low)
        apart = self.kept.bounds(target)
        each = np.where(known, np.maximum(beyond, 0.0), 0.0).sum(axis=1)
        together = self.image.distance(target, codes, decoded.stretch, decoded.error)
        low = (np.maximum(each, together) + apart.low + missing) / count
        high = (np.where(known, across, 0.0).sum(axis=1) + apart.high + missing) / count
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

    def least_errors(self, target: NDArray[np.float32]) -> Array:
        """Lower bounds on Σ_j |x_j − output_j| of rows, whatever their codes.

        target: (rows, features) scaled, NaN where missing → (rows,)
        """
        rows = target.astype(np.float64)
        none, all_of_it = np.zeros((1, len(self.lower))), np.ones((1, len(self.lower)))
        any_code = self._decode(Range(none, all_of_it))
        return self.image.distance(Range(rows, rows), None, any_code.stretch, any_code.error)

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

    def _decode(self, codes: Range) -> _Decoded:
        """Ranges of the reconstructions as the scorer computes them."""
        layer = self.hidden
        centered = Range(
            layer.bias + least(codes, layer.weight.T, layer.order[:, ::-1]) - layer.error,
            layer.bias + most(codes, layer.weight.T, layer.order) + layer.error,
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
        outputs = Range(outputs.low - error, outputs.high + error)
        before = np.abs(layer.gain) * stretch.high[:, None] * layer.error + layer.shift_error
        return _Decoded(outputs, stretch, error + before @ np.abs(self.output_weight))

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
        stretched = most(codes, along) + np.einsum("nij,i->nj", scaled, layer.bias)
        stretched += np.einsum("nij,i->nj", np.abs(scaled), layer.error)
        # Linear in the stretch, so the maximum is at one of its ends.
        ends = (stretch.low[:, None] * stretched, stretch.high[:, None] * stretched)
        return np.asarray(np.maximum(*ends) + offset + sign * self.output_bias)


def _reciprocals(x: Array, lower: Array, upper: Array, temperature: float) -> Array:
    """1/I, at most 1e8; 1 where x is missing. x: (rows, 1 or units, features) → with units"""
    inverse = 1.0 / temperature
    below = np.exp(np.minimum((lower - x) * inverse, _EXPONENT_LIMIT))
    above = np.exp(np.minimum((x - upper) * inverse, _EXPONENT_LIMIT))
    reciprocal = np.minimum((1.0 + below) * (1.0 + above), _LARGEST)
    return np.where(np.isnan(reciprocal), 1.0, reciprocal)


def _share(own: Array, others: Array) -> Array:
    """Softmax of each unit with its logit from `own` and all other logits from `others`.

    own, others: (boxes, units) → (boxes, units)
    """
    return np.asarray(expit(own - combine_others(np.logaddexp, others, -np.inf)))
