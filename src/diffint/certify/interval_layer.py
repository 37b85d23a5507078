"""What the interval layer guarantees by itself, whatever decoder follows it.

Three of the paper's propositions, as functions that return the two sides of an inequality or the
bound of one: how strongly a violated unit is suppressed, how fast codes can change, and how well a
union of soft boxes describes a region. Everything is in scaled units and in float64.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit

from ..core.constants import MIN_MEMBERSHIP
from ..core.errors import InputError
from ..core.model import FittedModel, Member
from ..core.scaling import Scaler
from ..engine.reference.intervals import log_box_memberships, log_memberships
from .rows import ACTIVE_THRESHOLD, MARGIN, active

Array = NDArray[np.float64]

_CELLS_PER_TEMPERATURE = 64  # of the grid on which slopes are bounded: error about 1/64 of one
_MOST_CELLS = 4_096  # of one feature, for a temperature that is tiny beside the range
_MOST_LOGS = 2_000_000  # (rows, units, features) that are computed at a time
_FAR = -np.log(MIN_MEMBERSHIP) + 1.0  # beyond an interval by this many τ its membership is clamped


# --- Graded suppression ------------------------------------------------------------------------


class Suppression(NamedTuple):
    """How strongly units are suppressed by the features of rows that violate them.

    (rows, units) each:
    n_violated: active intervals that the row is beyond by at least the margin (the paper's s_k).
    log_weight: log of the unit's weight exp(ℓ_k) before the softmax, its log box membership.
    log_bound: what it cannot exceed, n_violated · log max(β, 1e-8) with β = σ(−margin/τ).
    """

    n_violated: NDArray[np.int64]
    log_weight: Array
    log_bound: Array


def graded_suppression(
    model: FittedModel,
    x: NDArray[Any],
    member: int = 0,
    active_threshold: float = ACTIVE_THRESHOLD,
    margin: float = MARGIN,
) -> Suppression:
    """The paper's corollary on partial violation: exp(ℓ_k) ≤ max(β, 1e-8)^{s_k} for every unit k.

    Proof. ℓ_k is a sum of log memberships, none of which is above 0. Beyond one end of an interval
    by at least the margin, one of the two sigmoids of a membership is at most β and the other at
    most 1, so that the membership, clamped from below, is at most max(β, 1e-8). ∎

    It holds for either side of each feature, and if all violated intervals are counted instead of
    the active ones only. x: (rows, features) in original units; missing values violate nothing.
    """
    fitted = model.members[member]
    scaled = _as_encoded(fitted.scaler, x)
    lower, upper = fitted.lower.astype(np.float64), fitted.upper.astype(np.float64)
    temperature = model.config.temperature
    constraining = active(fitted, active_threshold)
    counts = np.empty((len(scaled), len(lower)), dtype=np.int64)
    weights = np.empty(counts.shape)
    block = max(1, _MOST_LOGS // lower.size)
    for start in range(0, len(scaled), block):
        rows = slice(start, start + block)
        value = scaled[rows, None, :]
        beyond = (value <= lower - margin) | (value >= upper + margin)
        counts[rows] = (beyond & constraining).sum(axis=2)
        weights[rows] = log_box_memberships(scaled[rows], lower, upper, temperature)
    step = max(float(log_expit(-margin / temperature)), np.log(MIN_MEMBERSHIP))
    return Suppression(counts, weights, counts * step)


# --- Lipschitz bound of the encoder ------------------------------------------------------------


def encoder_lipschitz_bound(model: FittedModel, member: int = 0) -> float:
    """A bound on ‖f(x) − f(y)‖₂ / ‖x − y‖₂ over all rows x, y that the encoder can be given.

    f(x) is the code of a complete scaled row. The paper's constant is K·d/τ for K units, d features
    and temperature τ. This one is at most √(d/2)/τ, which no constant that depends on d and τ alone
    can improve (`tests/certify` has intervals that attain it), and much less for most intervals.

    Proof. Let g_kj be the slope of log I_kj at x_j and G the matrix of them, so that along a
    direction v the logits have slopes w = Gv and the code f ∘ (w − f·w). Its entries sum to 0 and
    their magnitudes to Σ_k f_k·|w_k − f·w|, the mean absolute deviation of w under f, which is at
    most half of its spread ω = max w − min w. A vector that sums to 0 has a positive and a negative
    part of equal sums, so that its 2-norm is at most its 1-norm divided by √2: together ω/(2√2).
    For ‖v‖₂ = 1, ω = max over k, l of Σ_j (g_kj − g_lj)·v_j ≤ ‖D‖₂, where D_j is the largest spread
    over units of the slopes in feature j, over all values that it can have. So the Lipschitz
    constant is at most ‖D‖₂/(2√2), by the mean value inequality along the segment from x to y:
    codes have this slope everywhere but at the points where a clamp begins to bind. As the slope is
    τ⁻¹·[σ(b) − σ(a)], a = (x − lower)/τ, b = (upper − x)/τ, no D_j is above 2/τ.
    D_j is bounded on cells of a grid: a slope falls with x, so that it is between those at the ends
    of a cell, or 0 where the clamp binds, which it does at an end if it does anywhere in the cell
    (log I is concave). ∎
    """
    fitted, temperature = model.members[member], model.config.temperature
    spread = [_largest_slope_spread(fitted, temperature, j) for j in range(model.n_features)]
    return float(np.linalg.norm(spread) / np.sqrt(8.0)) * (1.0 + 1e-9)


def _largest_slope_spread(member: Member, temperature: float, feature: int) -> float:
    """D_j: a bound on the largest difference of two units' slopes of log I, at any value."""
    scaler = member.scaler
    if not scaler.seen[feature] or len(member.center) == 1:
        return 0.0
    lower = member.lower[:, feature].astype(np.float64)
    upper = member.upper[:, feature].astype(np.float64)
    # Farther out, the memberships of all units are clamped, and have no slope.
    start, stop = lower.min() - _FAR * temperature, upper.max() + _FAR * temperature
    if scaler.clips:
        start, stop = max(start, scaler.lower[feature]), min(stop, scaler.upper[feature])
    if start >= stop:
        return 0.0
    n_cells = int(np.ceil(_CELLS_PER_TEMPERATURE * min((stop - start) / temperature, 1e6)))
    ends = np.linspace(start, stop, min(n_cells, _MOST_CELLS) + 1)
    below, above = (ends[:, None] - lower) / temperature, (upper - ends[:, None]) / temperature
    slope = (expit(above) - expit(below)) / temperature
    clamped = log_expit(below) + log_expit(above) <= np.log(MIN_MEMBERSHIP)
    clamped = clamped[:-1] | clamped[1:]  # somewhere in the cell
    most, least = slope[:-1], slope[1:]
    most = np.where(clamped, np.maximum(most, 0.0), most).max(axis=1)
    least = np.where(clamped, np.minimum(least, 0.0), least).min(axis=1)
    return float((most - least).max())


# --- Unions of soft boxes ----------------------------------------------------------------------


def soft_union(
    x: NDArray[Any], lower: NDArray[Any], upper: NDArray[Any], temperature: float
) -> Array:
    """F = 1 − ∏_k (1 − m_k): the membership of rows in a union of soft boxes. → (rows,) in [0, 1]

    x: (rows, features); lower, upper: (boxes, features), all in the same units. m_k is the product
    of the row's memberships in box k.
    """
    union = np.empty(len(x))
    block = max(1, _MOST_LOGS // np.asarray(lower).size)
    for start in range(0, len(x), block):
        rows = slice(start, start + block)
        log_box = log_memberships(x[rows], lower, upper, temperature).sum(axis=2)
        with np.errstate(divide="ignore"):  # a membership of exactly 1 gives 1
            union[rows] = -np.expm1(np.log1p(-np.exp(log_box)).sum(axis=1))
    return union


def soft_union_error(depth: float, n_boxes: int, n_features: int, temperature: float) -> float:
    """A bound on |F − 1_C| for a row at this depth, where C is the union of the hard boxes.

    Depth r means: inside, the row is at least r away from all faces of one of the boxes; outside,
    it is beyond each box by at least r in some feature.

    Proof. Inside, both sigmoids of that box are at least σ(r/τ) in each of d features, so that
    F ≥ m_k ≥ σ(r/τ)^{2d} ≥ 1 − 2d·e^{−r/τ}. Outside, one sigmoid of each box is at most σ(−r/τ) ≤
    e^{−r/τ}, the others are at most 1, and F ≤ Σ_k m_k ≤ K·e^{−r/τ} (the clamp adds at most 1e-8
    to each). ∎

    This is the paper's proposition on capacity with numbers: a region D is described uniformly well
    by boxes of which each row of D is r deep inside one, and from which the other rows are r away.
    Boxes that only touch each other do not suffice, as the paper's dyadic ones do: on a common face
    of two boxes F is 3/4 for every τ. Boxes that overlap by 2r do.
    """
    if not depth >= 0 or not temperature > 0:
        raise InputError(f"depth={depth} must be at least 0, temperature={temperature} above 0")
    inside = -np.expm1(2 * n_features * log_expit(depth / temperature))
    outside = n_boxes * (expit(-depth / temperature) + MIN_MEMBERSHIP)
    return float(min(1.0, max(inside, outside)))


def _as_encoded(scaler: Scaler, x: NDArray[Any]) -> Array:
    """Rows in original units as the encoder gets them. → (rows, features) float64"""
    return scaler.transform(np.asarray(x, dtype=np.float64))[0].astype(np.float64)
