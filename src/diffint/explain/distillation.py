"""Compact patterns trained to order rows as the model does.

What patterns save in the description of a row (compact.py) is differentiable in their ranges, tails
and weights. They are trained on rows at all distances from normal ones, so that description lengths
correlate with what the model says of these rows. A pattern that starts with a range in every
feature loses the conditions that matter least, step by step, until it has as few as allowed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.calibration import Calibration
from .compact import Box, beyond
from .mining import Rows

Array = NDArray[np.float64]
Array32 = NDArray[np.float32]

_STEPS, _BATCH, _RATE = 400, 512, 0.03
_PRUNING = (0.05, 0.3)  # shares of the steps between which conditions are closed
_STAGES = 6  # of closing conditions
_IMPORTANCE_ROWS = 2_000
_NEAR_SHARE = 0.07  # of the rows, that a pattern starts with
_OUTSIDE = 0.2  # share of them at either side of a range
_FRESH_WEIGHT = np.exp(-1.0)  # of a pattern that was not mined, at first
_NARROWEST = 1e-3  # half-width
_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8  # Adam

NORMAL_SHARE = 0.95  # share of normal scores that are told apart by their rank
_FAR_TIMES, _FAR_TARGET = 6.0, 0.5  # a score so many times higher has a target higher by so much
MOST_TARGET = NORMAL_SHARE + _FAR_TARGET  # of rows that patterns are trained on
_BINS, _FEWEST_IN_BIN = 24, 1 / 20  # of targets; share of the average bin


def target_of(scores: Array, calibration: Calibration) -> Array:
    """How anomalous scores are: their rank among normal scores, then their logarithm. → (rows,)"""
    normal, counts = np.unique(calibration.scores, return_counts=True)
    rank = (np.cumsum(counts) - counts / 2) / counts.sum()
    limit = max(float(np.quantile(calibration.scores, NORMAL_SHARE)), 1e-12)
    far = np.log(np.maximum(scores, limit) / limit) / np.log(_FAR_TIMES)
    near = np.minimum(np.interp(scores, normal, rank), NORMAL_SHARE)
    return np.asarray(np.where(scores <= limit, near, NORMAL_SHARE + _FAR_TARGET * far))


def evenly_chosen(target: Array, count: int) -> NDArray[np.intp]:
    """Rows whose targets are spread evenly, none far above; some rows more than once. → (count,)"""
    which = np.clip((target / MOST_TARGET * _BINS).astype(np.intp), 0, _BINS - 1)
    in_bin = np.bincount(which, minlength=_BINS)
    chance = 1.0 / np.maximum(in_bin[which], len(target) / _BINS * _FEWEST_IN_BIN)
    if (target <= MOST_TARGET).any():
        chance[target > MOST_TARGET] = 0.0
    rng = np.random.default_rng(0)
    return rng.choice(len(target), size=count, p=chance / chance.sum())


class Network(NamedTuple):
    """Patterns that are trained. features: (patterns, conditions) which; is_open: whether they are.

    middle, half_logit (half-width = log(1 + exp(it))), log_slope (of 1 / tail): (patterns,
    conditions); worth, log_weight: (patterns,)
    """

    features: NDArray[np.intp]
    is_open: NDArray[np.bool_]
    middle: Array32
    half_logit: Array32
    log_slope: Array32
    worth: Array32
    log_weight: Array32

    @property
    def trained(self) -> tuple[Array32, ...]:
        return self[2:]


class Pass(NamedTuple):
    """What a forward pass computes; shapes (rows, patterns[, conditions])."""

    slope: Array32  # (patterns, conditions) 1 / tail; 0 where a condition is closed
    side: Array32  # −1 below the range, 1 above it, 0 inside
    cells: Array32  # what is lost outside the ranges, negative
    gain: Array32
    saved: Array32  # without the weights
    total: Array32  # (rows,) saved by all patterns, weighted


def forward(network: Network, x: Array32) -> Pass:
    """What the patterns save in the description of rows (rows, features)."""
    away = x[:, network.features] - network.middle
    half = np.logaddexp(np.float32(0.0), network.half_logit)
    outside = np.maximum(np.abs(away) - half, 0.0)
    slope = np.where(network.is_open, np.exp(network.log_slope), np.float32(0.0))
    cells = -outside * slope
    gain = network.worth + cells.sum(axis=2)
    saved = np.logaddexp(np.float32(0.0), gain)
    total = saved @ np.exp(network.log_weight)
    return Pass(slope, np.sign(away) * (outside > 0), cells, gain, saved, total)


def gradients(network: Network, done: Pass, upstream: Array32) -> tuple[Array32, ...]:
    """Of a loss with the gradient `upstream` (rows,) in what is saved; as `Network.trained`."""
    weight = np.exp(network.log_weight)
    by_saved = upstream[:, None] * weight
    by_gain = by_saved * _sigmoid(done.gain)
    by_end = np.einsum("bk,bkc->kc", by_gain, done.side) * done.slope
    by_half = np.einsum("bk,bkc->kc", by_gain, np.abs(done.side)) * done.slope
    return (
        by_end,
        by_half * _sigmoid(network.half_logit),
        np.einsum("bk,bkc->kc", by_gain, done.cells),
        by_gain.sum(axis=0),
        (by_saved * done.saved).sum(axis=0),
    )


def loss_and_upstream(total: Array32, cost: Array32, target: Array32) -> tuple[float, Array32]:
    """1 − correlation of `cost − total` with the target, and its gradient in `total` (rows,)."""
    length = cost - total
    length, target = length - length.mean(), target - target.mean()
    size = max(float(np.linalg.norm(length)), 1e-9)
    wanted = target / max(float(np.linalg.norm(target)), 1e-9)
    correlation = float(length @ wanted) / size
    by_length = -(wanted - correlation * length / size) / size
    return 1.0 - correlation, -(by_length - by_length.mean())


def distilled(
    rows: Rows,
    mined: list[Box],
    made: Array,
    target: Array,
    max_patterns: int,
    max_conditions: int,
) -> list[Box]:
    """As many patterns as there may be, or as there are different rows, trained.

    mined: patterns to start from; the others start near rows that are far from each other. made:
    (rows, features) scaled rows to train on; target: (rows,) theirs
    """
    network = _start(rows, mined, max_patterns, max_conditions)
    x, y = made.astype(np.float32), target.astype(np.float32)
    cost = beyond(made).sum(axis=1).astype(np.float32)
    first = [np.zeros_like(w) for w in network.trained]
    second = [np.zeros_like(w) for w in network.trained]
    rng = np.random.default_rng(0)
    stages = _stages(network.features.shape[1], max_conditions)
    for step in range(_STEPS):
        if step in stages:
            network, kept = _pruned(network, x[:_IMPORTANCE_ROWS], stages[step])
            for moments in (first, second):
                moments[:3] = [np.take_along_axis(m, kept, axis=1) for m in moments[:3]]
        batch = rng.integers(len(x), size=min(_BATCH, len(x)))
        done = forward(network, x[batch])
        _, upstream = loss_and_upstream(done.total, cost[batch], y[batch])
        rate = _RATE * 0.5 * (1.0 + np.cos(np.pi * step / _STEPS))
        for w, g, m, s in zip(
            network.trained, gradients(network, done, upstream), first, second, strict=True
        ):
            m += (1.0 - _BETA1) * (g - m)
            s += (1.0 - _BETA2) * (g * g - s)
            corrected = np.sqrt(s / (1.0 - _BETA2 ** (step + 1))) + _EPSILON
            w -= (rate * (m / (1.0 - _BETA1 ** (step + 1))) / corrected).astype(np.float32)
    return _boxes(network)


def _start(rows: Rows, mined: list[Box], max_patterns: int, max_conditions: int) -> Network:
    """Mined patterns, and patterns of the rows nearest to places far from each other."""
    n_features = rows.scaled.shape[1]
    places = _far_apart(rows, max_patterns - len(mined))
    max_patterns = len(mined) + len(places)
    n_open = n_features if len(places) else min(max_conditions, n_features)
    shape = max_patterns, n_open
    features = np.tile(np.arange(n_open), (max_patterns, 1))
    is_open = np.tile(rows.varies[:n_open], (max_patterns, 1))
    middle, half, tail = np.zeros(shape), np.zeros(shape), np.ones(shape)
    worth, weight = np.zeros(max_patterns), np.ones(max_patterns)
    for k, box in enumerate(mined):
        others = np.setdiff1d(np.arange(n_features), box.features)
        features[k] = np.concatenate([box.features, others])[:n_open]
        n = len(box.features)
        is_open[k] = np.arange(n_open) < n
        middle[k, :n], half[k, :n] = (box.lower + box.upper) / 2, (box.upper - box.lower) / 2
        tail[k, :n], worth[k] = box.tail, box.worth
    count = min(max(int(len(rows.scaled) * _NEAR_SHARE), 5), len(rows.scaled))
    for k, place in enumerate(places, start=len(mined)):
        order = np.argsort(np.abs(rows.scaled - place) @ rows.weight, kind="stable")
        lower, upper = np.quantile(rows.scaled[order[:count]], [_OUTSIDE, 1 - _OUTSIDE], axis=0)
        middle[k], half[k] = (lower + upper) / 2, (upper - lower) / 2
        tail[k] = half[k] / 2 + rows.spread / 4 + 0.03
        outside = np.maximum(np.abs(rows.scaled - middle[k]) - half[k], 0.0) / tail[k]
        # A row saves something if it is among twice as many nearest ones.
        worth[k] = np.quantile(outside.sum(axis=1), min(2 * _NEAR_SHARE, 1.0))
        weight[k] = _FRESH_WEIGHT
    half = np.maximum(half, _NARROWEST)
    half_logit = half + np.log(-np.expm1(-half))  # log(exp(half) − 1), for every half
    arrays = middle, half_logit, -np.log(tail), worth, np.log(weight)
    return Network(features, is_open, *(array.astype(np.float32) for array in arrays))


def _far_apart(rows: Rows, count: int) -> Array:
    """Different rows, drawn one after the other, more likely far from those before.

    → (places, features), as many as are wanted, or fewer if there are not so many different rows
    """
    rng = np.random.default_rng(0)
    chosen = [int(rng.integers(len(rows.scaled)))]
    distance = np.full(len(rows.scaled), np.inf)
    while len(chosen) < count:
        last = np.abs(rows.scaled - rows.scaled[chosen[-1]]) @ rows.weight
        distance = np.minimum(distance, last)
        if not distance.any():
            break
        chosen.append(int(rng.choice(len(distance), p=distance / distance.sum())))
    return rows.scaled[chosen[:count]]


def _stages(n_open: int, max_conditions: int) -> dict[int, int]:
    """How many conditions a pattern keeps from a step on: ever fewer, by the same factor."""
    if n_open <= max_conditions:
        return {}
    first, last = (int(share * _STEPS) for share in _PRUNING)
    steps = np.linspace(first, last, _STAGES).astype(int).tolist()
    counts = np.geomspace(n_open, max_conditions, _STAGES + 1)[1:].round().astype(int).tolist()
    return dict(zip(steps, counts, strict=True))


def _pruned(network: Network, x: Array32, count: int) -> tuple[Network, NDArray[np.intp]]:
    """The network with the conditions that rows near each pattern lose most by, and their places.

    What these rows lose by the other conditions on average is taken off the worth of the pattern.
    """
    done = forward(network, x)
    near = _sigmoid(done.gain)
    important = np.einsum("bk,bkc->kc", near + np.float32(0.05), -done.cells)
    important += np.where(network.is_open, np.float32(1e-9), np.float32(0.0))
    kept = np.sort(np.argsort(-important, axis=1, kind="stable")[:, :count], axis=1)
    lost = np.einsum("bk,bkc->kc", near, done.cells) / np.maximum(near.sum(axis=0), 1e-6)[:, None]
    np.put_along_axis(lost, kept, 0.0, axis=1)
    narrower = network._replace(
        features=np.take_along_axis(network.features, kept, axis=1),
        is_open=np.take_along_axis(network.is_open, kept, axis=1),
        middle=np.take_along_axis(network.middle, kept, axis=1),
        half_logit=np.take_along_axis(network.half_logit, kept, axis=1),
        log_slope=np.take_along_axis(network.log_slope, kept, axis=1),
        worth=network.worth + lost.sum(axis=1),
    )
    return narrower, kept


def _boxes(network: Network) -> list[Box]:
    boxes = []
    half = np.logaddexp(0.0, network.half_logit.astype(np.float64))
    for k, chosen in enumerate(network.is_open):
        order = np.flatnonzero(chosen)[np.argsort(network.features[k, chosen])]
        middle = network.middle[k, order].astype(np.float64)
        boxes.append(
            Box(
                network.features[k, order],
                middle - half[k, order],
                middle + half[k, order],
                np.exp(-network.log_slope[k, order].astype(np.float64)),
                float(network.worth[k]),
                float(np.exp(network.log_weight[k])),
            )
        )
    return boxes


def _sigmoid(x: Array32) -> Array32:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * x)), dtype=np.float32)
