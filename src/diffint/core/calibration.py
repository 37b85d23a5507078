"""Calibration scores, and the formulas of the threshold and the p-values."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .immutable import Immutable

# More scores would hardly change a threshold at any rate in practical use.
MAX_SCORES = 100_000
_BISECTIONS = 60

Array = NDArray[np.float64]


def _no_codes() -> NDArray[np.int64]:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Calibration(Immutable):
    """Scores of inliers, ascending, and how they were obtained.

    kind: `"holdout"` (rows that no member has seen, scored by all: the p-values are proven),
        `"members"` (each row scored by the members that left it out) or `"training"` (training
        rows: optimistic).
    scores: (rows,) ascending.
    group_sizes: (rows,) how many of these scores come from the same group of rows as this one. A
        row counts as much as its share of its group, so that each group counts once: rows of one
        group resemble each other, and new rows come from new groups.
    segments: (rows,) the segment of each row, as a place in `segment_names`, and groups: (rows,) a
        number for its group; empty if there are no segments.
    cleaned: whether suspects were left out of these rows, so that new rows are not like them.
    sample: (stored, features) some of these rows in original units, to compare new rows with, and
        sample_scores: (stored,) their scores; empty if the model stores no rows.
    """

    kind: str
    scores: Array
    group_sizes: NDArray[np.int64]
    segments: NDArray[np.int64] = field(default_factory=_no_codes)
    groups: NDArray[np.int64] = field(default_factory=_no_codes)
    segment_names: tuple[str, ...] = ()
    cleaned: bool = False
    sample: Array = field(default_factory=lambda: np.empty((0, 0)))
    sample_scores: Array = field(default_factory=lambda: np.empty(0))

    @property
    def held_out(self) -> bool:
        """Whether the rows were left out when the scaler and the scoring member were fitted."""
        return self.kind != "training"

    @property
    def proven(self) -> bool:
        """Whether new normal rows are exchangeable with these, so that theorems apply."""
        return self.kind == "holdout" and not self.cleaned

    @property
    def grouped(self) -> bool:
        """Whether any rows belong to one group."""
        return bool((self.group_sizes > 1).any())

    @cached_property
    def n_groups(self) -> int:
        """The number of groups; a row that belongs to no group is one of its own."""
        return round(float((1.0 / self.group_sizes).sum()))

    @property
    def unit(self) -> str:
        """What is counted: ``"row"`` or ``"group"``."""
        return "group" if self.grouped else "row"

    @cached_property
    def _at_least(self) -> Array:
        """(rows + 1,) how many groups score at least as high as above 0, 1, …, all scores."""
        from_above = np.cumsum((1.0 / self.group_sizes)[::-1])[::-1]
        return np.asarray(np.minimum(np.append(from_above, 0.0), self.n_groups))

    def p_values(self, scores: NDArray[Any], confidence: float | None = None) -> Array:
        """Conformal p-values: (1 + number of calibration scores ≥ s) / (1 + their number).

        In groups, each score counts as 1 / its group's size, and groups are counted instead of
        scores (hierarchical conformal prediction).

        confidence: instead, the upper confidence bound of the share of normal rows that score at
        least s. The share of normal rows with p ≤ rate is then at most the rate with this
        probability over the calibration rows, and not only on average over them.
        """
        return self.tails(np.searchsorted(self.scores, scores, side="left"), confidence)

    def tails(self, n_below: NDArray[np.intp], confidence: float | None) -> Array:
        """The p-value of a score above exactly so many scores. → the same shape"""
        at_least, n = self._at_least[n_below], self.n_groups
        if confidence is None:
            return np.asarray((1.0 + at_least) / (1.0 + n))
        if self.grouped:
            return _chernoff_bound(at_least, n, confidence)
        from scipy.special import betaincinv  # takes long to import

        # Clopper and Pearson
        inside = at_least < n
        bound = betaincinv(at_least + 1.0, np.where(inside, n - at_least, 1.0), confidence)
        return np.where(inside, bound, 1.0)

    def reaches(self, rate: float, confidence: float | None = None) -> bool:
        """Whether a p-value can be as small as `rate`."""
        return bool(self.tails(np.array([len(self.scores)]), confidence)[0] <= rate)

    def threshold(self, rate: float, confidence: float | None = None) -> float:
        """The score above which (strictly) p ≤ rate; the largest score if p is never so small."""
        if not self.reaches(rate, confidence):
            return float(self.scores[-1])
        low, high = -1, len(self.scores)  # p > rate at low, p ≤ rate at high; p descends
        while high - low > 1:
            middle = (low + high) // 2
            small = self.tails(np.array([middle]), confidence)[0] <= rate
            low, high = (low, middle) if small else (middle, high)
        return float(self.scores[max(high - 1, 0)])

    def within(self, segments: NDArray[Any]) -> Calibration:
        """Only the scores of some segments. segments: their places in `segment_names`"""
        return self._only(np.flatnonzero(np.isin(self.segments, segments)))

    def by_segment(self) -> list[Calibration]:
        """The scores of each segment."""
        order = np.argsort(self.segments, kind="stable")  # ascending scores in each
        starts = np.searchsorted(self.segments[order], np.arange(len(self.segment_names) + 1))
        return [self._only(order[a:b]) for a, b in itertools.pairwise(starts)]

    def _only(self, rows: NDArray[np.intp]) -> Calibration:
        sizes = group_sizes(self.groups[rows])
        return Calibration(self.kind, self.scores[rows], sizes, cleaned=self.cleaned)


def conformal_quantile(values: Array, share: float) -> float:
    """A number that a new value does not exceed with a probability of at least `share`.

    Of n exchangeable values this is the ⌈(n + 1) · share⌉-th smallest; with too few, the largest.
    share: above 0
    """
    rank = min(int(np.ceil((len(values) + 1) * share)), len(values))
    return float(np.sort(values)[max(rank, 1) - 1])


def group_sizes(groups: NDArray[Any]) -> NDArray[np.int64]:
    """How many of the rows belong to the group of each. (rows,) → (rows,)"""
    group_of = np.unique(groups, return_inverse=True)[1].ravel()
    return np.asarray(np.bincount(group_of)[group_of], dtype=np.int64)


def _chernoff_bound(at_least: Array, n: int, confidence: float) -> Array:
    """The largest mean for which n shares in [0, 1] with so small a sum are not too unlikely.

    A mean of m or less has at most the probability exp(−n · kl(m, u)) if u ≥ m is expected
    (Hoeffding 1963), also where the shares of groups are not 0 or 1. Found by bisection.
    """
    from scipy.special import rel_entr

    seen, allowed = at_least / n, np.log(1.0 / (1.0 - confidence)) / n
    low, high = seen.copy(), np.ones_like(seen)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        apart = rel_entr(seen, middle) + rel_entr(1.0 - seen, 1.0 - middle)
        likely = apart <= allowed
        low, high = np.where(likely, middle, low), np.where(likely, high, middle)
    return high
