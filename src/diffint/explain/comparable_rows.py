"""The range that comparable training rows keep, of a value that is outside of it.

Rows are comparable if they agree with the row in one or two features that are not themselves in
doubt. The kept rows are divided into two halves: one chooses the conditions that make the range
sharpest, the other measures the range, so that its stated share holds for new rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.immutable import Immutable
from ..core.model import FittedModel
from ..core.scaling import Scaler
from ..engine.cpu.comparable_kernel import add_differences, find_meeting
from ..engine.cpu.condition_kernel import search_conditions
from .constraints import training_range
from .reasons import MOST_DOUBTED, Condition, Kind, Reason
from .stored_rows import kept_rows, last_digit

Array = NDArray[np.float64]

WINDOWS = (0.05, 0.1, 0.2, 0.4)  # shares of the rows that are near the row in a feature
BASE = 2  # the window of a first condition when there is a second one
MOST_CANDIDATES = 8  # features that may be in a condition on the range of a feature
TAIL = 0.02  # share of rows on each side that a range leaves out when conditions are chosen
NARROWEST = 0.02  # width of a range as a share of the scaled training range, for comparisons
SHARPER = 1.3  # how much sharper a range must be to be worth one more condition
_FEWEST_ROWS, _FEWEST_SHARE = 80, 0.2  # comparable rows in a half, or this share of it
_FEWEST_OF_MANY = 20  # the same of a feature that most rows miss
_FEWEST_MEASURED = 0.75  # of these, comparable rows in the half that measures
_TAILS = (0.002, 0.01, 0.03)  # shares on each side that a measured range may leave out
_N_PARTS = 8  # of the rows, by their values of a feature, to see what it tells about others
# A feature tells about another one that varies beside similar values of it at most this times as
# much as beside as many rows at random, in nine of ten of so many draws.
_TELLS, _LEVEL, _N_DRAWS = 0.97, 0.1, 20
_FEWER_KNOWN = 0.7  # a number of rows is rounded down to a power of this share of all
_MOST_TRIED = 3  # sets of conditions that are measured
_NEAR = 0.01  # share of the scaled training range
_N_NEAREST = 10  # rows whose median would fit


class _Half(NamedTuple):
    """Half of the rows, in original units.

    rows: (features, rows); order: (features, rows) the rows in the order of their values, those
    without a value last; known: (features,) how many have a value.
    """

    rows: Array
    order: NDArray[np.intp]
    known: NDArray[np.intp]

    @classmethod
    def of(cls, rows: Array) -> _Half:
        """Rows as (rows, features)."""
        columns = np.ascontiguousarray(rows.T)
        order = np.argsort(columns, axis=1, kind="stable")
        return cls(columns, order, (~np.isnan(columns)).sum(axis=1))

    def meeting(self, conditions: tuple[Condition, ...], feature: int) -> Array:
        """The values of a feature, in order, of the rows that meet all conditions."""
        found = np.empty(self.known[feature])
        features = np.array([c.feature for c in conditions], dtype=np.intp)
        ends = np.array([c[1:] for c in conditions]).reshape(-1, 2).T
        count = find_meeting(
            self.rows, self.order, feature, self.known[feature], features, *ends, found
        )
        return found[:count]


@dataclass(frozen=True, eq=False)
class ComparableRows(Immutable):
    """Training rows that a row is compared with, in original units.

    rows: (features, rows); choosing, measuring: their first and second half. ordered: (features,
    rows) the scaled values of the first half, sorted; rank: (features, rows) the place of each of
    its rows there. tells: (features, some) for each feature those that say most about it; alone:
    (features, some) whether one of these says enough for a single condition. smallest, largest:
    (features,) of all training rows; weighted: (features, rows) both halves, scaled and divided by
    `divisor` (features,) for distances. sampled: whether not all training rows are here.
    """

    rows: Array
    choosing: _Half
    measuring: _Half
    ordered: Array
    rank: NDArray[np.intp]
    tells: NDArray[np.intp]
    alone: NDArray[np.bool_]
    smallest: Array
    largest: Array
    weighted: Array
    divisor: Array
    is_category: NDArray[np.bool_]
    scaler: Scaler
    sampled: bool

    @classmethod
    def of(cls, model: FittedModel) -> ComparableRows | None:
        """The kept rows of all members; None if there are too few."""
        rows = kept_rows(model) if model.n_kept_rows else np.empty((0, model.n_features))
        if len(rows) < 2 * fewest_rows(len(rows) // 2):
            return None
        rows = rows[np.random.default_rng(0).permutation(len(rows))]
        rows = np.concatenate([rows[::2], rows[1::2]])
        n_first = -(-len(rows) // 2)
        first, second = _Half.of(rows[:n_first]), _Half.of(rows[n_first:])
        scaler = model.members[0].scaler
        scaled = np.array(scaler.target(rows, "unclipped").T, dtype=np.float64, order="C")
        own = scaled[:, :n_first]
        smallest, largest = training_range(model.features)
        divisor = np.sqrt(np.maximum(_spread(own), 1e-12))
        return cls(
            np.ascontiguousarray(rows.T),
            first,
            second,
            np.take_along_axis(own, first.order, axis=1),
            np.argsort(first.order, axis=1),
            *_telling(own, first.order, first.known, smallest < largest),
            smallest,
            largest,
            scaled / divisor[:, None],
            divisor,
            np.isin(np.arange(rows.shape[1]), list(model.categories)),
            scaler,
            len(rows) < model.training.n_rows,
        )

    def scale(self, rows: Array) -> Array:
        """Rows in original units as `ordered` is. rows, result: (rows, features)"""
        return np.asarray(self.scaler.target(rows, "unclipped"), dtype=np.float64)

    def reason(self, row: Array, scaled: Array, doubted: list[int], feature: int) -> Reason | None:
        """The reason to doubt a number, None if comparable rows have such values too.

        row: (features,) in original units; scaled: the same by `scale`; doubted: features that
        cannot tell which rows are comparable
        """
        tried = self._sharpest(row, scaled, feature, doubted)
        value = float(row[feature])
        # Kept rows are rounded: a value that differs less from an end is not outside.
        span = self.largest[feature] - self.smallest[feature]
        rounding = 10.0 ** float(last_digit(value, span))
        each = [self._measured(value, feature, conditions, rounding) for conditions in tried]
        measured = [reason for reason in each if reason is not None]
        if not measured:
            return None
        found = max(measured, key=lambda r: r.gap / SHARPER ** len(r.conditions))
        expected = self.fitting(scaled, doubted, feature)
        if not found.lower <= expected <= found.upper:
            return found
        return replace(found, expected=expected)

    def fitting(self, scaled: Array, doubted: list[int], feature: int) -> float:
        """What rows have that agree with the rest of a row."""
        left_out = list({feature, *doubted})
        if len(left_out) == len(scaled):
            left_out = [feature]
        others = np.array([j for j in range(len(scaled)) if j not in left_out], dtype=np.intp)
        return float(self.medians(self.distances(scaled, others), np.array([feature]))[0])

    def apart(self, feature: int, one: float, other: float) -> float:
        """How far two values are apart, as a share of the training range, scaled."""
        rows = np.full((2, len(self.rows)), np.nan)
        rows[:, feature] = one, other
        difference = np.ptp(self.scale(rows)[:, feature])
        return float(difference / self.scaler.span[feature])

    def share_near(self, feature: int, value: float) -> float:
        """The share of rows within a hundredth of the training range, scaled, of a value."""
        row = np.full((1, len(self.rows)), value)
        apart = np.abs(self.scale(row)[0, feature] / self.divisor[feature] - self.weighted[feature])
        near = apart * self.divisor[feature] <= _NEAR * self.scaler.span[feature]
        return float(near.mean())

    def largest_below(self, feature: int, value: float) -> float:
        """The largest value of any row that is below this one; −∞ if there is none."""
        values = self.rows[feature]
        return float(values[values < value].max(initial=-np.inf))

    def is_told(self, feature: int) -> bool:
        """Whether another feature by itself tells anything about this one."""
        return bool(self.alone[feature].any())

    def distances(self, scaled: Array, features: NDArray[np.intp]) -> Array:
        """Distances of a row from all rows by some features, without missing values. → (rows,)

        scaled: (features,) by `scale`
        """
        total = np.zeros(self.weighted.shape[1])
        add_differences(scaled / self.divisor, self.weighted, features, total)
        return total

    def medians(self, distance: Array, features: NDArray[np.intp]) -> Array:
        """Medians of features among the nearest rows; of categories, the value of most of them.

        distance: (rows,); features, result: (some,)
        """
        count = min(_N_NEAREST, max(len(distance) // 3, 1))
        near = np.argpartition(distance, count - 1)[:count]
        values = np.sort(self.rows[features[:, None], near], axis=1)  # missing ones last
        # A value that rows have: between two clusters there may be none.
        place = np.maximum((~np.isnan(values)).sum(axis=1) - 1, 0) // 2
        found = values[np.arange(len(features)), place]
        for i in np.flatnonzero(self.is_category[features]):
            found[i] = _most_frequent(values[i], found[i])
        return np.asarray(found)

    def _measured(
        self, value: float, feature: int, conditions: tuple[Condition, ...], rounding: float
    ) -> Reason | None:
        """The reason with these conditions by the second half; None if the value is inside."""
        values = self.measuring.meeting(conditions, feature)
        n = len(values)
        if n < _FEWEST_MEASURED * self._fewest(feature):
            return None
        for tail in dict.fromkeys(int(share * n) for share in _TAILS):
            lower, upper = float(values[tail]), float(values[n - 1 - tail])
            if value < lower - rounding or value > upper + rounding:
                break
        else:
            return None
        support = n + len(self.choosing.meeting(conditions, feature))
        ends = np.array([lower, upper])
        first_low, first_high = values.searchsorted(ends).tolist()
        after_low, after_high = values.searchsorted(ends, "right").tolist()
        below = _outside(first_low, after_low - first_low, n)
        above = _outside(n - after_high, after_high - first_high, n)
        return Reason(
            *(feature, Kind.RANGE, value, float(values[(n - 1) // 2]), lower, upper),
            *(1.0 - below - above, support, conditions),
        )

    def _sharpest(
        self, row: Array, scaled: Array, feature: int, doubted: list[int]
    ) -> Iterator[tuple[Condition, ...]]:
        """Conditions under which the value is farthest outside, the best first."""
        n, fewest = self.choosing.rows.shape[1], self._fewest(feature)
        sizes = np.array([max(int(share * n), fewest) for share in WINDOWS])
        tells = self.tells[feature]
        usable = ~np.isnan(row[tells]) & (tells[:, None] != doubted).all(axis=1)
        usable &= np.cumsum(usable) <= MOST_CANDIDATES
        gaps = np.full(_MOST_TRIED, -np.inf)
        places = np.zeros((_MOST_TRIED, 6), dtype=np.int64)
        search_conditions(
            scaled,
            feature,
            tells[usable],
            self.alone[feature, usable],
            self.is_category,
            self.ordered,
            self.choosing.order,
            self.rank,
            self.choosing.known,
            sizes,
            BASE,
            fewest,
            TAIL,
            int(TAIL * sizes[-1]),
            float(NARROWEST * self.scaler.span[feature]),
            SHARPER,
            gaps,
            places,
        )
        for gap, place in zip(gaps, places.tolist(), strict=True):
            if gap > 0:
                yield tuple(
                    self._condition(row, *one) for one in (place[:3], place[3:]) if one[0] >= 0
                )

    def _fewest(self, feature: int) -> int:
        """The fewest comparable rows in a half that have a value of the feature."""
        n, known = self.choosing.rows.shape[1], int(self.choosing.known[feature])
        return max(fewest_rows(known), min(_FEWEST_OF_MANY, fewest_rows(n)))

    def _condition(self, row: Array, c: int, first: int, last: int) -> Condition:
        low, high = self.choosing.rows[c, self.choosing.order[c, [first, last]]]
        return Condition(c, float(min(low, row[c])), float(max(high, row[c])))


def _spread(scaled: Array) -> Array:
    """Standard deviations of features, without missing values. (features, rows) → (features,)"""
    known = ~np.isnan(scaled)
    count = np.maximum(known.sum(axis=1), 1)
    values = np.where(known, scaled, 0.0)
    middle = values.sum(axis=1) / count
    return np.asarray(np.sqrt((known * (values - middle[:, None]) ** 2).sum(axis=1) / count))


def _telling(
    scaled: Array,
    order: NDArray[np.intp],
    known: NDArray[np.intp],
    varies: NDArray[np.bool_],
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """For each feature the others that vary, by how little it varies beside similar values of them.

    Also whether that is less than beside rows at random: few rows, rare values and missing cells
    make it vary less too.
    scaled, order: (features, rows); known, varies: (features,) → (features, some) each
    """
    spread = np.stack([_spread_in_parts(scaled, order[c, :n]) for c, n in enumerate(known)], axis=1)
    spread[:, ~varies] = np.inf
    np.fill_diagonal(spread, np.inf)
    # More than needed, in place of those in doubt.
    count = min(max(int(varies.sum()) - 1, 0), MOST_CANDIDATES + MOST_DOUBTED)
    tells = np.argsort(spread, axis=1, kind="stable")[:, :count]
    enough = spread <= _TELLS * _spread_at_random(scaled, known)
    return tells, np.take_along_axis(enough, tells, axis=1)


def _spread_at_random(scaled: Array, known: NDArray[np.intp]) -> Array:
    """How little features vary in parts at random of as many rows. → (features, features)

    scaled: (features, rows); known: (features,) the numbers of rows, the result's second axis
    """
    n_rows = scaled.shape[1]
    rng = np.random.default_rng(0)
    steps = np.ceil(np.log(np.maximum(known, 1) / n_rows) / np.log(_FEWER_KNOWN))
    found = np.empty((len(scaled), len(known)))
    for step in np.unique(steps):
        n = max(int(n_rows * _FEWER_KNOWN**step), 1)
        draws = [_spread_in_parts(scaled, rng.permutation(n_rows)[:n]) for _ in range(_N_DRAWS)]
        found[:, steps == step] = np.quantile(draws, _LEVEL, axis=0)[:, None]
    return found


def _spread_in_parts(scaled: Array, places: NDArray[np.intp]) -> Array:
    """Mean standard deviation of features within parts of rows, by their numbers of values.

    scaled: (features, rows); places: of rows, the first ones in the first part → (features,)
    """
    parts = [scaled[:, part] for part in np.array_split(places, _N_PARTS)]
    count = np.array([(~np.isnan(part)).sum(axis=1) for part in parts])
    spread = np.array([_spread(part) for part in parts])
    return np.asarray((count * spread).sum(axis=0) / np.maximum(count.sum(axis=0), 1))


def _most_frequent(values: Array, among_equals: float) -> float:
    """The value that most have, `among_equals` if it is one of them."""
    different, count = np.unique(values[~np.isnan(values)], return_counts=True)
    most = different[count == count.max(initial=0)]
    return among_equals if among_equals in most or not len(most) else float(most[0])


def _outside(n_outside: int, n_at_end: int, n: int) -> float:
    """The share of new values beyond the end of a range, by n values of which some are beyond it.

    Of n exchangeable values, a new one is beyond an end that one of them sets with probability
    (n_outside + 1) / (n + 1). An end that several have is a value that many rows have, and a new
    row that has it is inside; then it is less.
    """
    return (n_outside + (1.0 if n_at_end == 1 else 0.5)) / (n + 1)


def fewest_rows(n_rows: int) -> int:
    """The fewest comparable rows among so many."""
    return max(min(_FEWEST_ROWS, int(_FEWEST_SHARE * n_rows)), 5)
