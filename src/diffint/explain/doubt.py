"""Doubt: which values of a row are most likely the wrong ones.

A value is doubted if rows that agree with the *rest* of the row have other values. These are found
among the kept rows, without the feature itself, so that a wrong value does not choose its own
company; and no other feature counts much, so that a second wrong value does not choose it either:
near is what agrees in most features. The deviation is the distance of the value from the middle of
their values, in units of their spread.

The doubt is the product of the deviation, the value's responsibility, the root of its share of the
score and the fourth root of its distance from the mean; it is larger for values beyond all training
values. Of such products, this one finds most values that contradict their row, among those that
find values of the wrong size as often as the responsibility alone. Chosen on half of the tables;
measured in docs/results/explain_quality.md.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..core.model import FeatureSummary, FittedModel, Member
from ..engine.cpu.neighbour_kernel import find_deviations
from ..engine.threads import run_blocks
from ..score.prepared import PreparedModel
from .constraints import quantiles_of, training_range

Array = NDArray[np.float64]

N_NEAREST = 10  # kept rows to compare with
N_COMPARED = 4  # features of a row that are compared
_MOST_ROWS = 1024  # kept rows among which the nearest are found
_MOST_APART = 0.7  # standard deviations by which a feature separates rows; more counts little
_MOST_OF_KEPT = 1 / 3  # of few kept rows, the nearest are at most this share
_LEAST_SPREAD = 1e-6  # standard deviation of the kept rows' scaled values
_FLOOR = 0.2  # added to the spread, in standard deviations of the kept rows
_LARGE_DEVIATION = 6.0  # larger ones count little more: their neighbours happen to agree closely
_LEAST_DEVIATION, _LEAST_SHARE = 0.1, 1e-3
_LEAST_APART, _MOST_DISTANT = 0.3, 8.0  # distances from the mean, in standard deviations
# Of a value beyond the training values, in lengths of their tail (the outermost 5 %). One length
# does not count: where tails are long or rows are few, many normal rows have such a value.
_BEYOND_WEIGHT, _MOST_BEYOND = 4.0, 4.0
_TAIL = 0.05
_SHORTEST_TAIL, _LONGEST_TAIL = 0.05, 0.3  # in training ranges; the former is added
_BLOCK_ROWS = 256


def doubts(
    prepared: PreparedModel, x: Array, responsibility: Array, share: Array, n_jobs: int = 1
) -> Array:
    """How much each value is doubted; all arrays and the result: (rows, features).

    0 where the responsibility is 0. Of a model without kept rows, the responsibility itself.
    """
    if not len(prepared.model.members[0].kept_rows):
        return responsibility
    model, kept = prepared.model, prepared.once(_kept_of)
    rows = kept.weighted(x)
    distance = np.nan_to_num(np.minimum(np.abs(rows - kept.middle) / kept.spread, _MOST_DISTANT))
    beyond = _beyond(x, model.features)
    # The order of categories has no middle, and no ends.
    distance[:, list(model.categories)] = beyond[:, list(model.categories)] = 0.0
    found = responsibility * np.sqrt(share + _LEAST_SHARE)
    found *= np.sqrt(np.sqrt(distance + _LEAST_APART))
    found *= 1 + _BEYOND_WEIGHT * beyond
    # Only the foremost are compared, which takes most of the time.
    n_compared = min(N_COMPARED, x.shape[1])
    each = np.arange(len(x))[:, None]
    wanted = np.argpartition(-found, n_compared - 1, axis=1)[:, :n_compared]
    deviation = np.zeros(x.shape)
    deviation[each, wanted] = _deviations(kept, rows, wanted, n_jobs)
    deviation /= 1 + deviation / _LARGE_DEVIATION
    found *= deviation + _LEAST_DEVIATION
    return np.asarray(np.where(responsibility > 0, found, 0.0))


def _beyond(x: Array, features: FeatureSummary) -> Array:
    """How far values are beyond the training values and once their tail, in lengths of the tail.

    x, result: (rows, features); 0 where missing
    """
    smallest, largest = training_range(features)
    low, high = quantiles_of(features, _TAIL, 1 - _TAIL)
    span = np.where(largest > smallest, largest - smallest, 1.0)
    beyond = np.zeros(x.shape)
    with np.errstate(invalid="ignore", over="ignore"):
        for outside, tail in ((smallest - x, low - smallest), (x - largest, largest - high)):
            length = np.minimum(tail / span, _LONGEST_TAIL)
            beyond = np.fmax(beyond, (outside / span - length) / (length + _SHORTEST_TAIL))
    return np.minimum(beyond, _MOST_BEYOND)


def _deviations(
    kept: _Kept, rows: NDArray[np.float32], wanted: NDArray[np.intp], n_jobs: int
) -> Array:
    """How far values are from those of kept rows that agree with the rest of their row.

    |value − median| / (mean distance from the median + floor) among the N_NEAREST kept rows found
    without the feature; 0 where missing.
    rows: (rows, features) as `weighted` gives them; wanted: (rows, some) features → (rows, some)
    """
    found = np.empty(wanted.shape)

    def compare(start: int) -> None:
        block = slice(start, start + _BLOCK_ROWS)
        scratch = np.empty((2, kept.rows.shape[1]), dtype=np.float32)
        nearest = np.empty((2, N_NEAREST), dtype=np.float32)
        find_deviations(
            *(rows[block], kept.rows, kept.missing, kept.n_nearest, kept.floor, kept.most_apart),
            *(wanted[block], found[block], scratch, nearest),
        )

    run_blocks(compare, range(0, len(rows), _BLOCK_ROWS), n_jobs)
    return found


class _Kept:
    """Kept rows to compare with. One member's: more rows of one tell more than fewer of each.

    rows, missing: (features, kept) float32, and which cells were missing: they stand for the
    middle in distances, and count nowhere else; middle, spread: (features,) means and standard
    deviations; floor: (features,) float64, 0 for features that are not used; most_apart:
    (features,) float32; n_nearest: (features,) how many nearest rows are compared
    """

    def __init__(self, member: Member) -> None:
        # Neighbours stand near each other, so that every few of them still are everywhere.
        step = -(-len(member.kept_rows) // _MOST_ROWS)
        self._member, kept = member, member.kept_rows[::step].astype(np.float64)
        missing = member.kept_missing[::step]
        self.rows = np.ascontiguousarray(kept.T, dtype=np.float32)
        self.missing = np.ascontiguousarray(missing.T)
        present = np.where(missing, np.nan, kept)
        n_present = (~missing).sum(axis=0)
        present[:, n_present == 0] = 0.0
        self.middle, spread = np.nanmean(present, axis=0), np.nanstd(present, axis=0)
        self.spread = np.maximum(spread, _LEAST_SPREAD)
        self.floor, self.most_apart = _FLOOR * spread, (_MOST_APART * spread).astype(np.float32)
        most = np.maximum((_MOST_OF_KEPT * n_present).astype(np.intp), 1)
        self.n_nearest = np.minimum(most, N_NEAREST)

    def weighted(self, x: Array) -> NDArray[np.float32]:
        """Rows in original units as the kept rows are. (rows, features)"""
        scaled = self._member.scaler.target(x, "unclipped")
        return np.ascontiguousarray(scaled * self._member.kept_weight, dtype=np.float32)


def _kept_of(model: FittedModel) -> _Kept:
    return _Kept(model.members[0])
