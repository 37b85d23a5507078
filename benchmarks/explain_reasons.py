"""Properties of the reasons of planted rows: stability, size, stated coverage, time."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from diffint import DiffInt
from diffint.explain.local_explanation import LocalExplanation
from diffint.explain.reasons import Kind, Reason
from explain_planting import Planted

Matrix = NDArray[np.float64]

MOST_SHOWN = 3
TIMED_ROWS = 10_000
SOME_FRESH, MANY_FRESH = 20, 200  # fresh comparable rows
_FEWEST_ROWS, _FEWEST_SHARE = 30, 0.05  # comparable rows of a reason, in number or of the table
_DIGITS = 6  # with which the ends of ranges are known


def of_one_kind(detector: DiffInt, other: DiffInt, planted: Planted) -> Iterator[tuple[str, float]]:
    """Figures of the reasons shown for planted rows; `other` has another random state."""
    why, again = detector.explain(planted.rows), other.explain(planted.rows)
    shown = [why.doubted(i, MOST_SHOWN) for i in range(len(why))]
    recalls = [
        planted.changed[i, features].sum() / planted.changed[i].sum()
        for i, features in enumerate(shown)
    ]
    yield "recall of the reasons shown", float(np.mean(recalls))
    yield "rows with a reason", float(np.mean([len(features) > 0 for features in shown]))
    yield "reasons per row", float(np.mean([len(features) for features in shown]))
    # A row without any reason by both detectors has no first reason that could differ.
    first = [(some[:1], again.doubted(i, 1)) for i, some in enumerate(shown)]
    same = [one == two for one, two in first if one or two]
    if same:
        yield "same first reason with another seed", float(np.mean(same))


def of_all(
    explained: list[tuple[LocalExplanation, Planted]], fresh: Matrix, train: Matrix
) -> Iterator[tuple[str, float]]:
    """Figures of all reasons, as sums that can be added over tables.

    fresh: (rows, features) normal rows that were not trained on; the planted rows were made of the
    first of them
    """
    found: list[tuple[Reason, int]] = []
    n_conditions = n_wrong = n_own = 0
    for why, planted in explained:
        for i, place in enumerate(planted.place.tolist()):
            for reason in why.reasons_of(i, MOST_SHOWN):
                found.append((reason, place))
                features = [condition.feature for condition in reason.conditions]
                n_conditions += len(features)
                n_wrong += int(planted.changed[i, features].sum())
                n_own += reason.feature in features
    reasons, span = [reason for reason, _ in found], np.ptp(train, axis=0)
    yield "reasons", len(reasons)
    if not reasons:
        return
    for count in range(3):
        n = sum(len(reason.conditions) == count for reason in reasons)
        yield f"reasons with {count} conditions", n
    yield "conditions", n_conditions
    yield "conditions on a changed feature", n_wrong
    yield "reasons with a condition on their own feature", n_own
    support = np.array([reason.support for reason in reasons])
    enough = (support >= _FEWEST_ROWS) | (support >= _FEWEST_SHARE * len(train))
    yield "median support", float(np.median(support))
    yield "reasons with enough support", int(enough.sum())
    yield "reasons inside their range", sum(r.lower <= r.value <= r.upper for r in reasons)
    at_end = [_between(np.array(r.value), r.lower, r.upper, span[r.feature]) for r in reasons]
    yield "reasons at an end of their range", int(np.sum(at_end))
    ranges = [(reason, place) for reason, place in found if reason.kind is Kind.RANGE]
    yield "reasons with a range", len(ranges)
    yield from _coverage(ranges, fresh, span)


def _coverage(
    ranges: list[tuple[Reason, int]], fresh: Matrix, span: Matrix
) -> Iterator[tuple[str, float]]:
    """Stated coverage of ranges against that of fresh rows, without the explained row itself."""
    differences, sizes, stated = [], [], []
    for reason, place in ranges:
        comparable = np.arange(len(fresh)) != place
        for condition in reason.conditions:
            ends = condition.lower, condition.upper
            comparable &= _between(fresh[:, condition.feature], *ends, span[condition.feature])
        values = fresh[comparable, reason.feature]
        within = _between(values, reason.lower, reason.upper, span[reason.feature])
        sizes.append(len(values))
        stated.append(reason.coverage)
        differences.append(reason.coverage - within.mean() if len(values) else np.nan)
    apart, n_fresh, coverage = np.array(differences), np.array(sizes), np.array(stated)
    some, many = n_fresh >= SOME_FRESH, n_fresh >= MANY_FRESH
    yield f"ranges with {SOME_FRESH} fresh rows", int(some.sum())
    yield f"ranges with {MANY_FRESH} fresh rows", int(many.sum())
    yield "sum of stated − fresh", float(apart[some].sum())
    yield "sum of |stated − fresh|", float(np.abs(apart[many]).sum())
    # The mean distance of a share of n fresh rows from its probability, by the normal distribution.
    chance = np.sqrt(2 / np.pi * coverage * (1 - coverage) / np.maximum(n_fresh, 1))
    yield "sum of |stated − fresh| by chance", float(chance[many].sum())


def _between(values: Matrix, lower: float, upper: float, span: float) -> NDArray[np.bool_]:
    """Whether values lie in a range, whose ends are known to about six digits."""
    exact = 10.0**-_DIGITS * max(span, abs(lower), abs(upper))
    return np.asarray((values >= lower - exact) & (values <= upper + exact))


def of_time(
    detector: DiffInt, rows: Matrix, planted: Planted, rng: np.random.Generator
) -> Iterator[tuple[str, float]]:
    """Milliseconds per row of `explain` and of `reasons_of`, on one thread."""
    batch = rows[rng.integers(len(rows), size=TIMED_ROWS)]
    started = time.perf_counter()
    detector.explain(batch)
    yield "explain, ms per row", 1e3 * (time.perf_counter() - started) / len(batch)
    why = detector.explain(planted.rows)
    started = time.perf_counter()
    for i in range(len(why)):
        why.reasons_of(i, MOST_SHOWN)
    yield "reasons_of, ms per row", 1e3 * (time.perf_counter() - started) / max(len(why), 1)
