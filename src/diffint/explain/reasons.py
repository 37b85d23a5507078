"""Reasons: a value in doubt, and the range that comparable training rows keep.

Rows are comparable if they agree with the row in one or two features that are not themselves in
doubt. The kept rows are divided into two halves: one chooses the conditions that make the range
sharpest, the other measures the range, so that its stated share holds for new rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.immutable import Immutable
from ..core.model import FittedModel
from ..core.scaling import Scaler
from .constraints import training_range

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

_WINDOWS = (0.05, 0.1, 0.2, 0.4)  # shares of the rows that are near the row in a feature
_WITHIN = (0.3, 0.5)  # shares of comparable rows that are near it in a second feature
_FEWEST_ROWS, _FEWEST_SHARE = 30, 0.2  # comparable rows in a half, or this share of it
_TAIL = 0.01  # share of comparable rows on each side that a range leaves out
_NARROWEST = 0.02  # width of a range as a share of the feature's whole range, for comparisons
_SHARPER = 1.3  # how much sharper a range must be to be worth a second condition
_MOST_TRIED = 6  # sets of conditions that are measured


class Condition(NamedTuple):
    """A range of one feature; for a category both ends are the position of its value."""

    feature: int
    lower: float
    upper: float


@dataclass(frozen=True)
class Reason:
    """Why a value is in doubt: comparable training rows keep a range that it is outside of.

    expected: their median. share: of comparable new rows that are expected inside the range.
    n_rows: number of comparable rows that were looked at. No conditions: all training rows are
    comparable.
    """

    feature: int
    value: float
    expected: float
    lower: float
    upper: float
    share: float
    n_rows: int
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, eq=False)
class ComparableRows(Immutable):
    """Training rows that a row is compared with, in original units and in scaled ones.

    choosing, measuring: (rows, features) the halves; their scaled values: choosing_scaled. order:
    (features, rows) sorts each feature of the first half. smallest, largest: (features,) of all
    training rows. sampled: whether they are not all training rows.
    """

    choosing: Array
    measuring: Array
    choosing_scaled: Array
    order: NDArray[np.intp]
    smallest: Array
    largest: Array
    is_category: NDArray[np.bool_]
    scaler: Scaler
    n_training_rows: int
    sampled: bool

    @classmethod
    def of(cls, model: FittedModel) -> ComparableRows | None:
        """The kept rows of all members; None if there are too few."""
        parts = []
        for member in model.members:
            weight = np.where(member.kept_weight > 0, member.kept_weight, 1.0)
            parts.append(member.scaler.to_original(member.kept_rows / weight))
        rows = np.concatenate(parts)
        # Kept rows are stored with about seven digits.
        size = np.floor(np.log10(np.maximum(np.abs(rows), 1e-300)))
        step = 10.0 ** np.clip(size - 5, -300, 300)
        rows = np.round(rows / step) * step
        whole = model.features.whole
        rows[:, whole] = np.round(rows[:, whole])
        rows = np.unique(rows, axis=0)  # members keep the same rows of a small table
        if len(rows) < 2 * _fewest(len(rows) // 2):
            return None
        rows = rows[np.random.default_rng(0).permutation(len(rows))]
        first, second = rows[::2], rows[1::2]
        scaler = model.members[0].scaler
        smallest, largest = training_range(model.features)
        return cls(
            first,
            second,
            scaler.target(first, "unclipped").astype(np.float64),
            np.argsort(first, axis=0, kind="stable").T,
            smallest,
            largest,
            np.isin(np.arange(rows.shape[1]), list(model.categories)),
            scaler,
            model.training.n_rows,
            len(rows) < model.training.n_rows,
        )

    def reason(self, row: Array, feature: int, doubted: list[int]) -> Reason | None:
        """The reason to doubt a number, None if comparable rows have such values too.

        row: (features,) in original units; doubted: features that cannot tell which rows are
        comparable
        """
        value, scaled = float(row[feature]), self._scaled(row[None])[0]
        low, high = float(self.smallest[feature]), float(self.largest[feature])
        if value < low or value > high:
            middle = float(np.median(self.measuring[:, feature]))
            return Reason(feature, value, middle, low, high, 1.0, self.n_training_rows, ())
        for conditions in self._sharpest(row, scaled, feature, doubted):
            found = self._measured(value, feature, conditions)
            if found is not None:
                return found
        return None

    def _scaled(self, rows: Array) -> Array:
        return self.scaler.target(rows, "unclipped").astype(np.float64)

    def _measured(
        self, value: float, feature: int, conditions: tuple[Condition, ...]
    ) -> Reason | None:
        """The reason with these conditions by the second half; None if the value is inside."""
        inside = self._inside(self.measuring, conditions)
        values = np.sort(self.measuring[inside, feature])
        n, fewest = len(values), _fewest(len(self.measuring))
        if n < fewest / 2:
            return None
        tail = int(_TAIL * n)
        lower, upper = float(values[tail]), float(values[n - 1 - tail])
        if lower <= value <= upper:
            return None
        others = self._inside(self.choosing, conditions)
        everyone = np.concatenate([values, self.choosing[others, feature]])
        # Of n exchangeable values, a new one lies between two of them with this probability.
        share = (n - 2 * tail - 1) / (n + 1)
        middle = float(np.median(everyone))
        return Reason(feature, value, middle, lower, upper, share, len(everyone), conditions)

    def _sharpest(
        self, row: Array, scaled: Array, feature: int, doubted: list[int]
    ) -> Iterator[tuple[Condition, ...]]:
        """Conditions under which the value is farthest outside, the best first."""
        usable = [
            c
            for c in range(len(row))
            if c != feature
            and c not in doubted
            and not np.isnan(row[c])
            and self.smallest[c] < self.largest[c]
        ]
        everyone = np.arange(len(self.choosing))
        found: list[tuple[float, tuple[Condition, ...]]] = [
            (self._gap(everyone, scaled, feature), ())
        ]
        near = []
        for c in usable:
            for size in _WINDOWS:
                rows = self._near(row, c, size)
                if rows is None:
                    continue
                gap = self._gap(rows, scaled, feature)
                if gap > 0:
                    condition = self._condition(rows, row, c)
                    found.append((gap, (condition,)))
                    near.append((gap, rows, condition))
        near.sort(key=lambda item: -item[0])
        best = near[0][0] if near else 0.0
        for _, rows, condition in near[:3]:
            for c in usable:
                if c == condition.feature or self.is_category[c]:
                    continue
                distance = np.abs(self.choosing[rows, c] - row[c])
                for size in _WITHIN:
                    n = int(size * len(rows))
                    if n < _fewest(len(self.choosing)):
                        continue
                    fewer = rows[np.argpartition(distance, n - 1)[:n]]
                    gap = self._gap(fewer, scaled, feature)
                    if gap > _SHARPER * best:
                        both = (condition, self._condition(fewer, row, c))
                        found.append((gap / _SHARPER, both))
        found.sort(key=lambda item: -item[0])
        return (conditions for gap, conditions in found[:_MOST_TRIED] if gap > 0)

    def _near(self, row: Array, c: int, size: float) -> Rows | None:
        """The rows of the first half that are near a row in a feature; None if too few."""
        order, n = self.order[c], len(self.choosing)
        column, fewest = self.choosing[order, c], _fewest(len(self.choosing))
        if self.is_category[c]:
            first, last = np.searchsorted(column, [row[c], row[c] + 0.5])
            return np.asarray(order[first:last]) if last - first >= fewest else None
        count = max(int(size * n), fewest)
        if count > n:
            return None
        start = int(np.clip(np.searchsorted(column, row[c]) - count // 2, 0, n - count))
        return np.asarray(order[start : start + count])

    def _gap(self, rows: Rows, scaled: Array, feature: int) -> float:
        """How far outside the range of rows the value lies, as a multiple of the range's width."""
        values = np.sort(self.choosing_scaled[rows, feature])
        tail = int(_TAIL * len(values))
        low, high = values[tail], values[len(values) - 1 - tail]
        width = max(high - low, _NARROWEST * 2.0)
        return float(max(low - scaled[feature], scaled[feature] - high) / width)

    def _condition(self, rows: Rows, row: Array, c: int) -> Condition:
        column = self.choosing[rows, c]
        return Condition(c, float(min(column.min(), row[c])), float(max(column.max(), row[c])))

    @staticmethod
    def _inside(rows: Array, conditions: tuple[Condition, ...]) -> NDArray[np.bool_]:
        inside = np.ones(len(rows), dtype=bool)
        for c, lower, upper in conditions:
            inside &= (rows[:, c] >= lower) & (rows[:, c] <= upper)
        return inside


def _fewest(n_rows: int) -> int:
    """The fewest comparable rows among so many."""
    return max(min(_FEWEST_ROWS, int(_FEWEST_SHARE * n_rows)), 5)
