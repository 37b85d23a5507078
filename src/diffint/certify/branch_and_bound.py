"""Splits a region until the bounds of its parts decide it, or a budget is spent.

A part is decided when its bound is on the right side of the threshold; only parts that are not
are split further, those that are farthest from a decision first, each on the feature from which
the bound is expected to gain most. Rows in the middle of parts are scored as well: one row on the
wrong side of the threshold ends the search, as it disproves the statement.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.scaling import Range
from ..score.prepared import PreparedMembers
from ..score.scoring import anomaly_scores
from .bound_propagation import IntervalNetwork
from .float_error import ALONE

Array = NDArray[np.float64]
Progress = Callable[[int, int, float], None]
"""Called after each round with (splits so far, parts that are not decided, seconds)."""

_BATCH_PARTS = 16  # parts split at a time
_BATCH_CELLS = 1_000_000  # largest size of a (boxes, functions of the code, units) array


class Budget(NamedTuple):
    """How many parts may be split, and how many seconds that may take; None for any number."""

    splits: int
    seconds: float | None = None


@dataclass(frozen=True)
class Parts:
    """Parts of a region in original units, with bounds on the score in each.

    lower, upper: (boxes, features), NaN where the value is missing; score: (boxes,); influence:
    (boxes, features) expected gain of splitting on a feature, 0 where it cannot be split.
    """

    lower: Array
    upper: Array
    score: Range
    influence: Array

    def __len__(self) -> int:
        return len(self.lower)

    @classmethod
    def bounded(cls, prepared: PreparedMembers, lower: Array, upper: Array) -> Parts:
        """Parts with their bounds, which are means over the members."""
        n_boxes, n_features = lower.shape
        config, networks = prepared.config, prepared.derived(IntervalNetwork)
        cells = config.n_units * max(n_features, config.hidden_width, config.n_units)
        step = max(1, _BATCH_CELLS // cells)
        low, high, influence = np.zeros(n_boxes), np.zeros(n_boxes), np.zeros(lower.shape)
        single = np.ones(n_boxes, dtype=bool)
        for start in range(0, n_boxes, step):
            part = slice(start, start + step)
            for network in networks:
                scaled = network.scale(lower[part], upper[part])
                bounds = network.bound(scaled)
                low[part] += bounds.score.low / len(networks)
                high[part] += bounds.score.high / len(networks)
                influence[part] += bounds.influence
                for ends in scaled:
                    single[part] &= ~(ends.low < ends.high).any(axis=1)
        for member in prepared.members:
            found, n_seen = member.associations, member.scaler.n_seen
            if len(found.categories):
                least, most = found.bounds(lower, upper)
                low += least * (1 - ALONE) / n_seen / len(networks)
                high += most * (1 + ALONE) / n_seen / len(networks)
                # Rows that scale to the same values may be in different bins.
                single &= (lower == upper).all(axis=1)
        if single.any():
            # Every row in the box scales to the same values, so the score itself is the bound.
            scores = anomaly_scores(prepared, _any_row(lower[single], upper[single]))
            margin = ALONE * (1.0 + scores)
            low[single], high[single] = scores - margin, scores + margin
            influence[single] = 0.0
        return cls(lower, upper, Range(low, high), np.where(lower < upper, influence, 0.0))

    def take(self, places: NDArray[np.intp]) -> Parts:
        """Some of the parts."""
        return Parts(
            self.lower[places],
            self.upper[places],
            Range(self.score.low[places], self.score.high[places]),
            self.influence[places],
        )

    def and_also(self, other: Parts) -> Parts:
        """Both."""
        return Parts(
            np.concatenate([self.lower, other.lower]),
            np.concatenate([self.upper, other.upper]),
            Range(*(np.concatenate(ends) for ends in zip(self.score, other.score, strict=True))),
            np.concatenate([self.influence, other.influence]),
        )

    def halves(self, prepared: PreparedMembers) -> tuple[Parts, NDArray[np.intp]]:
        """Every part split on its most influential feature, and the parts that cannot be split."""
        networks = prepared.derived(IntervalNetwork)
        lower, upper, parents = [], [], []
        influence = self.influence.copy()
        for i in range(len(self)):
            cut, j = None, 0
            while cut is None and influence[i].max() > 0:
                j = int(influence[i].argmax())
                cut = _cut(networks, self.lower[i, j], self.upper[i, j], j)
                influence[i, j] = 0.0
            if cut is None:
                continue
            for low, high in ((self.lower[i, j], cut[0]), (cut[1], self.upper[i, j])):
                lower.append(self.lower[i].copy())
                upper.append(self.upper[i].copy())
                lower[-1][j], upper[-1][j] = low, high
            parents += [i, i]
        whole = np.setdiff1d(np.arange(len(self)), parents)
        if not parents:
            return self.take(np.array([], dtype=np.intp)), whole
        new = Parts.bounded(prepared, np.array(lower), np.array(upper))
        score = Range(
            np.maximum(new.score.low, self.score.low[parents]),
            np.minimum(new.score.high, self.score.high[parents]),
        )
        return replace(new, score=score), whole


class Searched(NamedTuple):
    """parts: of the whole region; rows: (rows, features) in it, with their scores (rows,);
    n_splits: how many times a part was split."""

    parts: Parts
    rows: Array
    scores: Array
    n_splits: int


def search(
    prepared: PreparedMembers,
    start: Parts,
    rows: Array,
    typical: Array,
    threshold: float | None,
    budget: Budget,
    progress: Progress | None = None,
) -> Searched:
    """Split parts until they are decided.

    rows: (rows, features) some rows of the region; typical: (features,) a row that fills features
    without ends
    """
    categories = prepared.members[0].associations.categories
    parts, n_splits, started = start, 0, time.monotonic()
    scores = anomaly_scores(prepared, rows)
    while n_splits < budget.splits:
        seconds = time.monotonic() - started
        chosen = _undecided(parts, scores, threshold)
        if progress is not None:
            progress(n_splits, len(chosen), seconds)
        if not len(chosen) or (budget.seconds is not None and seconds >= budget.seconds):
            break
        chosen = chosen[: min(_BATCH_PARTS, budget.splits - n_splits)]
        new, whole = parts.take(chosen).halves(prepared)
        n_splits += len(chosen)
        stuck = parts.take(chosen[whole])
        kept = parts.take(np.setdiff1d(np.arange(len(parts)), chosen))
        stuck = replace(stuck, influence=np.zeros_like(stuck.influence))
        parts = kept.and_also(stuck).and_also(new)
        if threshold is not None and len(new):
            found = middles(new, typical, categories)
            rows = np.concatenate([rows, found])
            scores = np.concatenate([scores, anomaly_scores(prepared, found)])
    return Searched(parts, rows, scores, n_splits)


def middles(parts: Parts, typical: Array, categories: NDArray[np.intp]) -> Array:
    """A row in the middle of each part, as typical as it can be in features without an end.

    typical: (features,); categories: their positions; a part between two values of a category has
    no row → (rows, features)
    """
    lower, upper = parts.lower.copy(), parts.upper.copy()
    lower[:, categories] = np.ceil(lower[:, categories])
    upper[:, categories] = np.floor(upper[:, categories])
    there = ~(lower > upper).any(axis=1)
    lower, upper = lower[there], upper[there]
    with np.errstate(invalid="ignore", over="ignore"):
        middle = lower / 2 + upper / 2
    rows = np.where(np.isfinite(middle), middle, np.clip(typical, lower, upper))
    rows[:, categories] = np.floor(rows[:, categories])
    return np.asarray(np.where(np.isnan(lower), np.nan, rows))


def _any_row(lower: Array, upper: Array) -> Array:
    """A row of each box; lower, upper: (boxes, features), NaN where missing."""
    rows = np.where(np.isfinite(lower), lower, np.where(np.isfinite(upper), upper, 0.0))
    return np.asarray(np.where(np.isnan(lower), np.nan, rows))


def _undecided(parts: Parts, scores: Array, threshold: float | None) -> NDArray[np.intp]:
    """The parts to split next, the first one first; none if all are decided, or a row is wrong."""
    can_be_split = parts.influence.max(axis=1) > 0
    low, high = parts.score
    if threshold is None:
        places = np.flatnonzero(can_be_split)
        lowest = places[np.argsort(low[places], kind="stable")]
        highest = places[np.argsort(-high[places], kind="stable")]
        both = np.stack([lowest, highest], axis=1).ravel()
        return np.asarray(list(dict.fromkeys(both.tolist())), dtype=np.intp)
    flagged = bool((scores > threshold).any() or (low > threshold).any())
    passed = bool((scores <= threshold).any() or (high <= threshold).any())
    if flagged and passed:
        return np.array([], dtype=np.intp)
    if not flagged and not passed:  # no row is known: aim at the nearer side
        flagged = bool((low.min() - threshold) > -(high.max() - threshold))
    places = np.flatnonzero(can_be_split & (low <= threshold if flagged else high > threshold))
    distance = low[places] if flagged else -high[places]
    return places[np.argsort(distance, kind="stable")]


def _cut(
    networks: tuple[IntervalNetwork, ...], low: float, high: float, j: int
) -> tuple[float, float] | None:
    """Split [low, high] of feature j: upper end of the left and lower end of the right half.

    None if a split gains nothing.
    """
    for network in networks:
        cut = network.scaler.cut(low, high, j, network.error)
        if cut is not None:
            return cut
    return None
