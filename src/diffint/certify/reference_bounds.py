"""Bounds on the score of every row in a box, computed a second time: plain, slow and independent.

`verification` checks certificates with it. It shares no code with the bounds that made them
(`bound_propagation` and what that uses) nor with the compiled scorer: only the model and the
scaler's definition. One box and one member at a time, in float64.

1. *Scaling* keeps the order of values, except at the training value of a constant feature. So the
   scaled range of a feature is that of its ends, of this value and of its two neighbours.
2. *Memberships.* 1/I = 1 + e^((l−u)/τ) + e^((l−x)/τ) + e^((x−u)/τ) is convex in x with its minimum
   at the center: largest at an end of the range, smallest at the point nearest to the center.
3. *Codes.* A code is largest if its own logit is as high, and all others are as low, as they can
   be. Codes are the polytope P of all f within these ranges that sum to 1.
4. *Linear functions of a code.* For any λ, max over P of Σ_k w_k·f_k is at most
   λ + Σ_k low_k·(w_k − λ) + Σ_k (high_k − low_k)·max(w_k − λ, 0).
5. *Hidden layer.* z_i(f, s) = gain_i·s·c_i(f) + shift_i with c linear in f and s the inverse
   deviation (1 without a LayerNorm). The length of c(f) is at least min over P of d·c(f) for any
   unit vector d, and at most the largest mean of the units' lengths.
6. *Outputs.* An upper bound on Σ_i v_i·ReLU(z_i): if v_i > 0, a ReLU is at most its chord over the
   range of z_i, and also at most Σ_k f_k·ReLU(z_i(unit k, s)), as it is convex; if v_i < 0, it is
   at least 0 and at least z_i. All of these are linear in f, so 4. bounds the sum; and convex in s,
   so both ends of its range are enough.
7. *Error.* Σ_j |x_j − g_j| ≥ Σ_j u_j·x_j − Σ_j u_j·g_j for all u_j between −1 and 1; and each
   |x_j − g_j| is between what the ranges of both allow.

Float32. u = 2⁻²⁴; one operation has a relative error of at most u, a sum of n products in any order
γ_n = n·u/(1 − n·u) times the sum of magnitudes. The scorer's e^x is taken to have a relative error
of at most 4u (the largest measured is 1.5u).

- 1/I from exponentials e^(±x/τ), e^(l/τ), e^(−u/τ): an argument is rounded twice, so every term but
  the 1 has a relative error of at most 2.1u·(|x| + |l|, |x| + |u| or |l| + |u|)/τ + 2·4u + 2u.
  Exponents of ends are clipped at ±49, |x|/τ is at most 30 here: where that matters, 1/I is clamped
  at 1e8 anyway, or the term is below e⁻¹⁹ < u/8.
- 1/I from differences (|x|/τ may exceed 30): the argument is rounded three times, and terms with an
  argument above 19 are clamped: 3.1u·20 + 4u for each of the two factors, together twice that.
- Three additions, the product over the features, and a missing cell's factor, which is divided out
  again, add less than 7u for each feature. Division and scaling of a code: 4u.
- All codes have a common factor 1 ± (K + 4)·u from their sum. Codes below 2⁻³⁰ are dropped; with K
  units they sum to at most δ = K·2⁻³⁰, and the others grow by 1/(1 − δ). Together the computed
  codes differ from the exact softmax of the computed logits by at most (K + 4)·u + 2.1·δ in sum.
- A pre-activation: this times the largest weight, and γ_(K+2) for its sum. The mean over the hidden
  layer: γ_(H+2), the subtraction: u. The inverse deviation: γ_(H+4)/2 + 4u, relative. Gain and
  shift: 3u of the magnitudes, where a normalised value is at most √H. An output: γ_(H+2).
- Errors are summed in float64. The nearest kept row is found by float32 sums: the one that is
  chosen may be farther than the nearest by 2.01·γ_(d+1).

Float64 sums here have fewer than 10,000 terms, so their error is below 1.2e-12 times the sum of
magnitudes; every bound is widened by `_SLIGHT` times it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.config import Config
from ..core.constants import MIN_MEMBERSHIP, NORM_EPSILON
from ..core.model import FittedModel, Member
from .reference_surprise import surprise_bounds

Array = NDArray[np.float64]

_SLIGHT = 2e-12
_U = 2.0**-24
_EXP = 4 * _U
_SAFE_EXPONENT = 30.0  # the scorer takes differences where |x|/τ can be larger
_DROPPED_CODE = 2.0**-30
_EPSILON = float(np.float32(NORM_EPSILON))
_SOFT = 0.3  # differences of x and its reconstruction, in scaled units, from which u is ±1


class Ends(NamedTuple):
    """The smallest and the largest value, of one number or of each in an array."""

    low: Array
    high: Array


class Hidden(NamedTuple):
    """The hidden layer over a box.

    stretch: both ends of s. exact: (hidden,) range of z(f, s). active: (hidden,) range of the
    computed ReLUs. error: (features,) of computed outputs, compared with exact ones of f and s.
    """

    stretch: tuple[float, float]
    exact: Ends
    active: Ends
    error: Array


class Box(NamedTuple):
    """What is known about one member's rows in a box, before their errors are bounded."""

    target: Ends  # (features,) scaled, NaN where missing
    codes: Ends  # (units,)
    hidden: Hidden
    outputs: Ends  # (features,)
    beside: tuple[float, float]  # the score without the errors
    counted: float  # what a sum of errors is divided by


class ReferenceBounds:
    """Bounds for one model; see the module's docstring."""

    def __init__(self, model: FittedModel) -> None:
        self._members = [_ReferenceMember(model.config, member) for member in model.members]

    def bounds(self, lower: Array, upper: Array, steps: int) -> tuple[float, float]:
        """Bounds on the score of all rows between two ends, NaN where they have no value.

        lower, upper: (features,) in original units; steps: of the search for better bounds
        """
        found = [member.bounds(lower, upper, steps) for member in self._members]
        low, high = (sum(ends) / len(found) for ends in zip(*found, strict=True))
        # No score is below 0: it is a sum of magnitudes.
        return max(low - _SLIGHT * (1.0 + abs(low)), 0.0), high + _SLIGHT * (1.0 + abs(high))

    def is_one_row(self, lower: Array, upper: Array) -> bool:
        """Whether all rows between two ends are the same after scaling, and so have one score."""
        for member in self._members:
            if len(member.associations.categories) and not (lower == upper).all():
                return False
            for ends in member.scaled(lower, upper):
                if (ends.low < ends.high).any():
                    return False
        return True

    def widest(self, lower: Array, upper: Array) -> NDArray[np.intp]:
        """Features with the widest scaled ranges first. lower, upper: (features,)"""
        width = np.zeros(len(lower))
        for member in self._members:
            encoded, target = member.scaled(lower, upper)
            width += np.nan_to_num(encoded.high - encoded.low)
            width += np.nan_to_num(target.high - target.low)
        return np.argsort(-width, kind="stable")[: int((width > 0).sum())]

    def middle(self, low: float, high: float, feature: int) -> float:
        """A value that halves the scaled range of a feature, in original units."""
        scaler = self._members[0].member.scaler
        ends = np.zeros((2, len(scaler.offset)))
        ends[:, feature] = low, high
        scaled = scaler.target(ends, self._members[0].config.error).astype(np.float64)
        return float(scaler.to_original(scaled.mean(axis=0))[feature])


class _ReferenceMember:
    """One member."""

    def __init__(self, config: Config, member: Member) -> None:
        self.config, self.member, self.associations = config, member, member.associations
        decoder = member.decoder
        self.lower, self.upper = member.lower.astype(np.float64), member.upper.astype(np.float64)
        weight, bias = decoder.hidden_weight.astype(np.float64), decoder.hidden_bias.astype(float)
        n_units, width = weight.shape
        self.normalises = decoder.layer_norm
        self.gain, self.shift = np.ones(width), np.zeros(width)
        self.output_weight = decoder.output_weight.astype(np.float64)  # (hidden, features)
        self.output_bias = decoder.output_bias.astype(np.float64)
        # Float32 errors of c, of the inverse deviation (relative), and after it; see above.
        codes_error = (n_units + 4) * _U + 2.1 * n_units * _DROPPED_CODE
        largest = np.abs(weight).max(axis=0)
        size = 1.01 * (np.abs(bias) + largest)
        self.c_error = codes_error * largest + _gamma(n_units + 2) * size
        self.stretch_error, self.z_error = 0.0, np.zeros(width)
        if self.normalises:
            weight = weight - weight.mean(axis=1, keepdims=True)
            bias = bias - bias.mean()
            self.gain, self.shift = (
                a.astype(np.float64) for a in (decoder.norm_gain, decoder.norm_shift)
            )
            self.c_error = self.c_error + self.c_error.mean() + _gamma(width + 2) * size.mean()
            self.c_error += 2.1 * _U * (size + size.mean())
            self.stretch_error = 0.5 * _gamma(width + 4) + 4 * _U
            self.z_error = 3.1 * _U * (math.sqrt(width) * np.abs(self.gain) + np.abs(self.shift))
        self.c_error += _SLIGHT * size
        self.vertices = weight + bias  # (units, hidden): c of a code that is 1 for one unit

    # --- The whole score -------------------------------------------------------------------

    def bounds(self, lower: Array, upper: Array, steps: int) -> tuple[float, float]:
        """Bounds on this member's score; see `ReferenceBounds.bounds`."""
        box = self._box(lower, upper, steps)
        target, outputs = box.target, box.outputs
        known = ~np.isnan(target.low)
        beyond = np.maximum(target.low - outputs.high, outputs.low - target.high)
        across = np.maximum(target.high - outputs.low, outputs.high - target.low)
        least = float(np.maximum(beyond, 0.0)[known].sum())
        least = max(least, self._least_error(box, steps))
        most = float(across[known].sum())
        low = (least * (1 - _SLIGHT)) / box.counted + box.beside[0]
        return low, (most * (1 + _SLIGHT)) / box.counted + box.beside[1]

    def _box(self, lower: Array, upper: Array, steps: int) -> Box:
        encoded, target = self.scaled(lower, upper)
        codes = self._codes(encoded)
        hidden = self._hidden(codes, steps)
        missing = np.isnan(target.low)
        counted, lost = float(max((~missing).sum(), 1)), 0.0
        if self.config.missing == "signal":
            counted, lost = float(self.member.scaler.n_seen), self._missing_parts(missing)
        near, far = self._kept_distances(target)
        surprise = surprise_bounds(self.associations, lower, upper)
        n_seen = self.member.scaler.n_seen
        beside = (
            ((near + lost) / counted + surprise[0] / n_seen) * (1 - _SLIGHT),
            ((far + lost) / counted + surprise[1] / n_seen) * (1 + _SLIGHT),
        )
        return Box(target, codes, hidden, self._outputs(codes, hidden), beside, counted)

    def scaled(self, lower: Array, upper: Array) -> tuple[Ends, Ends]:
        """Ranges of the encoder's inputs, and of what errors are measured against (features,)."""
        constant = self.member.scaler.constant
        rows = [lower, upper]
        for value in (constant, np.nextafter(constant, -np.inf), np.nextafter(constant, np.inf)):
            inside = (lower <= value) & (value <= upper)
            rows.append(np.where(inside, value, lower))
        clipped, unclipped = self.member.scaler.transform(np.array(rows))
        target = unclipped if self.config.error == "unclipped" else clipped
        encoded, measured = (
            Ends(*(f(axis=0).astype(np.float64) for f in (values.min, values.max)))
            for values in (clipped, target)
        )
        return encoded, measured

    def _missing_parts(self, missing: NDArray[np.bool_]) -> float:
        """What the missing cells count."""
        member = self.member
        surprise, total = member.missing_surprise[missing].sum(), member.missing_surprise.sum()
        share = surprise / total if total > 0 else 0.0
        return float(member.missing_error[missing].sum() + surprise * share**3)

    def _kept_distances(self, target: Ends) -> tuple[float, float]:
        """Bounds on the weighted distance from the nearest kept row."""
        member = self.member
        if not len(member.kept_rows) or member.distance_weight == 0.0:
            return 0.0, 0.0
        weight, kept = member.kept_weight, member.kept_rows.astype(np.float64)
        low, high = ((end.astype(np.float32) * weight).astype(np.float64) for end in target)
        below, above = np.nan_to_num(low - kept), np.nan_to_num(kept - high)
        nearest = np.maximum(np.maximum(below, above), 0.0).sum(axis=1).min()
        farthest = np.maximum(np.abs(below), np.abs(above)).sum(axis=1).min()
        error = 2.01 * _gamma(kept.shape[1] + 1)
        return member.distance_weight * nearest, member.distance_weight * farthest * (1.0 + error)

    # --- Encoder ---------------------------------------------------------------------------

    def _codes(self, encoded: Ends) -> Ends:
        """Ranges of the codes. → (units,) each"""
        tau, present = self.config.temperature, ~np.isnan(encoded.low)
        low, high = encoded.low[present], encoded.high[present]
        starts, ends = self.lower[:, present], self.upper[:, present]

        def reciprocal(x: Array) -> Array:  # 1/I; larger ones are clamped at 1e8
            a, b = (np.exp(np.minimum(t / tau, 50.0)) for t in (starts - x, x - ends))
            return np.asarray((1.0 + a) * (1.0 + b))

        largest = np.maximum(reciprocal(low), reciprocal(high))
        smallest = reciprocal(np.clip((starts + ends) / 2, low, high))
        if self.member.scaler.largest_input / tau > _SAFE_EXPONENT:
            edge: Array | float = 2 * (3.1 * _U * 20 + _EXP)
        else:
            furthest = np.maximum(np.abs(low), np.abs(high))
            sizes = np.minimum(np.maximum(np.abs(starts), np.abs(ends)) / tau, 49.0)
            pair = np.maximum(furthest / tau + sizes, 2 * sizes)
            edge = 1.01 * (2.1 * _U * pair + 2 * _EXP + 2 * _U)
        edge = edge + _SLIGHT
        clamp = 1.0 / MIN_MEMBERSHIP
        largest = np.minimum(1.0 + (largest - 1.0) * (1.0 + edge), clamp)
        smallest = np.minimum(1.0 + (smallest - 1.0) * (1.0 - edge), clamp)
        rest = 7 * _U * len(starts[0]) + 4 * _U + _SLIGHT
        lowest = -np.log(largest).sum(axis=1) - rest
        highest = -np.log(smallest).sum(axis=1) + rest

        def share(own: Array, others: Array) -> Array:
            with np.errstate(over="ignore"):
                ratio = np.exp(others[None, :] - own[:, None])
            np.fill_diagonal(ratio, 1.0)
            return np.asarray(1.0 / ratio.sum(axis=1))

        return Ends(
            share(lowest, highest) * (1 - _SLIGHT),
            np.minimum(share(highest, lowest) * (1 + _SLIGHT) + 1e-300, 1.0),
        )

    # --- Decoder ---------------------------------------------------------------------------

    def _hidden(self, codes: Ends, steps: int) -> Hidden:
        c = Ends(-_highest(codes, -self.vertices.T)[0], _highest(codes, self.vertices.T)[0])
        computed = Ends(c.low - self.c_error, c.high + self.c_error)
        stretch = self._stretch(codes, computed, steps)
        products = [s * end for s in stretch for end in c]
        exact = self._normed(Ends(np.minimum.reduce(products), np.maximum.reduce(products)), 0.0)
        products = [s * end for s in stretch for end in computed]
        normed = Ends(np.minimum.reduce(products), np.maximum.reduce(products))
        if self.normalises:
            alone = self._alone(computed)
            normed = Ends(np.maximum(normed.low, alone.low), np.minimum(normed.high, alone.high))
        z = self._normed(normed, self.z_error)
        active = Ends(np.maximum(z.low, 0.0), np.maximum(z.high, 0.0))
        size = np.abs(self.output_weight)
        summed = active.high @ size + np.abs(self.output_bias)
        error = (np.abs(self.gain) * stretch[1] * self.c_error + self.z_error) @ size
        error += (_gamma(len(self.gain) + 2) + _SLIGHT) * summed + _SLIGHT
        return Hidden(stretch, exact, active, error)

    def _stretch(self, codes: Ends, computed: Ends, steps: int) -> tuple[float, float]:
        """Both ends of the inverse deviation as the scorer computes it."""
        if not self.normalises:
            return 1.0, 1.0
        width, error = len(self.gain), float(np.linalg.norm(self.c_error)) * (1 + _SLIGHT)
        squared = _squares(computed)
        lengths = np.linalg.norm(self.vertices, axis=1) * (1 + _SLIGHT)
        longest = float(_highest(codes, lengths[None])[0][0]) + error
        shortest, code = 0.0, _inside(codes)
        for step in range(steps + 3):
            direction = code @ self.vertices
            direction /= max(float(np.linalg.norm(direction)) * (1 + _SLIGHT), 1e-300)
            lowest, nearest = _highest(codes, -(self.vertices @ direction)[None])
            shortest = max(shortest, -float(lowest[0]) - error)
            code = code + (nearest[0] - code) * (2.0 / (step + 3.0))
        least = max(float(squared.low.sum()), shortest**2) * (1 - _SLIGHT) / width
        most = min(float(squared.high.sum()), longest**2) * (1 + _SLIGHT) / width
        return (
            (1 - self.stretch_error - _SLIGHT) / math.sqrt(most + _EPSILON),
            (1 + self.stretch_error + _SLIGHT) / math.sqrt(least + _EPSILON),
        )

    def _alone(self, c: Ends) -> Ends:
        """Ranges of c_i / deviation, which shrinks as the squares of the others grow."""
        squared, width = _squares(c), len(self.gain)
        slack = _SLIGHT * float(squared.high.sum())
        fewest = np.maximum(squared.low.sum() - squared.low - slack, 0.0)
        most = squared.high.sum() - squared.high + slack

        def ratio(value: Array, others: Array, sign: float) -> Array:
            found = value / np.sqrt((value**2 + others) / width + _EPSILON)
            return np.asarray(found + sign * (self.stretch_error + _SLIGHT) * np.abs(found))

        return Ends(
            ratio(c.low, np.where(c.low > 0, most, fewest), -1.0),
            ratio(c.high, np.where(c.high > 0, fewest, most), 1.0),
        )

    def _normed(self, values: Ends, error: Array | float) -> Ends:
        """gain · values + shift ± error."""
        ends = [self.gain * end for end in values]
        slack = error + _SLIGHT * (1.0 + np.maximum(*np.abs(ends)) + np.abs(self.shift))
        return Ends(np.minimum(*ends) + self.shift - slack, np.maximum(*ends) + self.shift + slack)

    def _outputs(self, codes: Ends, hidden: Hidden) -> Ends:
        """Ranges of the outputs as the scorer computes them. → (features,) each"""
        code, bias = _inside(codes), self.output_bias
        high = self._highest_sum(codes, hidden, self.output_weight.T, code)[0]
        low = -self._highest_sum(codes, hidden, -self.output_weight.T, code)[0]
        up, down = np.maximum(self.output_weight, 0.0), np.minimum(self.output_weight, 0.0)
        # From the ranges of the computed ReLUs, which lack only the rounding of the sum.
        largest = hidden.active.high @ up + hidden.active.low @ down
        smallest = hidden.active.low @ up + hidden.active.high @ down
        summed = hidden.active.high @ np.abs(self.output_weight) + np.abs(bias)
        error = (_gamma(len(self.gain) + 2) + _SLIGHT) * summed + _SLIGHT
        return Ends(
            np.maximum(low - hidden.error, smallest - error) + bias - _SLIGHT * np.abs(bias),
            np.minimum(high + hidden.error, largest + error) + bias + _SLIGHT * np.abs(bias),
        )

    def _highest_sum(
        self, codes: Ends, hidden: Hidden, weights: Array, code: Array
    ) -> tuple[Array, Array]:
        """Upper bounds on Σ_i v_i·ReLU(z_i(f, s)) for all codes f, and codes that reach them.

        weights: (n, hidden) the v; code: (units,) where the linear bounds should be good
        → (n,), (n, units)
        """
        low, high = hidden.exact
        unsettled = (low < 0.0) & (high > 0.0)
        chord = np.where(unsettled, high / np.where(unsettled, high - low, 1.0), low >= 0.0)
        raising = np.maximum(weights, 0.0)
        lowering = np.minimum(weights, 0.0)
        best, reached = np.full(len(weights), -np.inf), np.zeros((len(weights), len(code)))
        middle = (hidden.stretch[0] + hidden.stretch[1]) / 2
        z_here = self.gain * middle * (code @ self.vertices) + self.shift
        slope = np.where(unsettled, z_here > 0.0, low >= 0.0)
        for s in dict.fromkeys(hidden.stretch):
            z = self.gain * s * self.vertices + self.shift  # (units, hidden)
            convex = np.maximum(z, 0.0)
            line = chord * z - np.where(unsettled, chord * low, 0.0)
            use_convex = unsettled & (code @ convex < code @ line)
            upper = np.where(use_convex, convex, line)
            along = raising @ upper.T + lowering @ (slope * z).T  # (n, units)
            size = raising @ np.abs(upper).T + np.abs(lowering) @ np.abs(slope * z).T
            value, where = _highest(codes, along + _SLIGHT * size)
            higher = value > best
            best, reached = np.where(higher, value, best), np.where(higher[:, None], where, reached)
        return best, reached

    def _least_error(self, box: Box, steps: int) -> float:
        """A lower bound on Σ_j |x_j − output_j|, by point 7 of the docstring."""
        codes, hidden, target = box.codes, box.hidden, box.target
        known = ~np.isnan(target.low)
        code, u, best = _inside(codes), np.zeros(len(known)), 0.0
        middle = (hidden.stretch[0] + hidden.stretch[1]) / 2
        for step in range(steps):
            z = self.gain * middle * (code @ self.vertices) + self.shift
            output = np.maximum(z, 0.0) @ self.output_weight + self.output_bias
            gap = np.maximum(target.low - output, 0.0) - np.maximum(output - target.high, 0.0)
            direction = np.clip(np.where(known, gap, 0.0) / _SOFT, -1.0, 1.0)
            u = u + (direction - u) * (2.0 / (step + 2.0))
            v = self.output_weight @ u
            highest, reached = self._highest_sum(codes, hidden, v[None], code)
            rounding = _SLIGHT * (np.abs(self.output_weight) @ np.abs(u)) @ hidden.active.high
            ends = np.where(u > 0, target.low, target.high)
            terms = np.where(known, u * ends, 0.0) - u * self.output_bias
            slack = np.abs(u) @ hidden.error + rounding + _SLIGHT * (1.0 + np.abs(terms).sum())
            best = max(best, float(terms.sum() - highest[0] - slack))
            code = code + (reached[0] - code) * (2.0 / (step + 3.0))
        return best


def _gamma(n: int) -> float:
    return n * _U / (1.0 - n * _U)


def _squares(values: Ends) -> Ends:
    low, high = values.low**2, values.high**2
    around_zero = (values.low <= 0.0) & (values.high >= 0.0)
    return Ends(np.where(around_zero, 0.0, np.minimum(low, high)), np.maximum(low, high))


def _inside(codes: Ends) -> Array:
    """Some code within the ranges. → (units,)"""
    room = codes.high - codes.low
    code = codes.low + room * ((1.0 - codes.low.sum()) / max(float(room.sum()), 1e-300))
    return np.asarray(np.clip(code, codes.low, codes.high))


def _highest(codes: Ends, weights: Array) -> tuple[Array, Array]:
    """Upper bounds on Σ_k f_k·w_k over codes, and codes that reach them.

    weights: (n, units) → (n,), (n, units). Point 4 of the docstring, which holds for any λ; the
    best is the weight of the unit at which the codes, filled in the order of weights, sum to 1.
    """
    room = codes.high - codes.low
    left = 1.0 - codes.low.sum()
    order = np.argsort(-weights, axis=1)
    before = np.cumsum(room[order], axis=1) - room[order]
    taken = np.clip(left - before, 0.0, room[order])
    filled = np.empty(weights.shape)
    np.put_along_axis(filled, order, codes.low[order] + taken, axis=1)
    last = np.minimum((before + room[order] < left).sum(axis=1), weights.shape[1] - 1)
    rank = np.take_along_axis(order, last[:, None], axis=1)
    multiplier = np.take_along_axis(weights, rank, axis=1)
    above = weights - multiplier
    value = multiplier[:, 0] + above @ codes.low + np.maximum(above, 0.0) @ room
    size = np.abs(multiplier[:, 0]) + np.abs(above) @ codes.high
    return value + _SLIGHT * size, filled
