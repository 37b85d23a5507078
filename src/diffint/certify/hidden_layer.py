"""The hidden layer of a decoder, evaluated on ranges of codes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from ..core.config import Config
from ..core.constants import NORM_EPSILON
from ..core.model import Member
from ..core.scaling import Range
from ..engine.cpu.interval_layer import log_box_memberships
from .float_error import SLIGHT, UNIT_ROUNDOFF, decoder_rounding, encoder_rounding, sum_error
from .knapsack import least, most

Array = NDArray[np.float64]

_EPSILON = float(np.float32(NORM_EPSILON))
_MOST_DIRECTIONS = 200  # of each kind, used to bound the deviation from below


@dataclass(frozen=True)
class HiddenLayer:
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
    def of(cls, config: Config, member: Member) -> HiddenLayer:
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
        squared = squares(centered)
        error = float(np.linalg.norm(self.error)) + SLIGHT
        shortest = np.maximum(least(codes, self.along).max(axis=1) - error, 0.0)
        longest = most(codes, self.lengths)[:, 0] + error
        lowest = np.maximum(squared.low.sum(axis=1), shortest**2) / width
        highest = np.minimum(squared.high.sum(axis=1), longest**2) / width
        return Range(
            (1.0 - self.stretch_error) / np.sqrt(highest + _EPSILON),
            (1.0 + self.stretch_error) / np.sqrt(lowest + _EPSILON),
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
            squared = squares(centered)
            smallest, largest = (combine_others(np.add, s, 0.0) for s in squared)
            error = self.stretch_error + SLIGHT
            low = self._normalised(centered.low, np.where(centered.low > 0, largest, smallest))
            high = self._normalised(centered.high, np.where(centered.high > 0, smallest, largest))
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


def squares(values: Range) -> Range:
    """Ranges of the squares."""
    low, high = values.low**2, values.high**2
    straddles = (values.low <= 0) & (values.high >= 0)
    return Range(np.where(straddles, 0.0, np.minimum(low, high)), np.maximum(low, high))


def combine_others(combine: np.ufunc, values: Array, nothing: float) -> Array:
    """Combine, for each value, all other values of its row. values: (boxes, n) → (boxes, n)

    Taking the own value out of the total instead would cancel where it dominates: what is left of
    the others could be far too small, and a bound based on it wrong.
    """
    edge = np.full((len(values), 1), nothing)
    before = combine.accumulate(np.hstack([edge, values[:, :-1]]), axis=1)
    after = combine.accumulate(np.hstack([edge, values[:, :0:-1]]), axis=1)[:, ::-1]
    return np.asarray(combine(before, after))
