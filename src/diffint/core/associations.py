"""How often the values of columns occur together, in a table with categories.

A category is a column with a fixed list of values; a row holds the code of its value, a whole
number from 0. Every column is divided into *bins*: the values of a category, the quantiles of a
number. A value is surprising if hardly any training row in the same bin of another column is in its
own bin.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .immutable import Immutable

N_EDGES = 15  # of the bins of a number
MOST_VALUES = 200  # of a category; more are not learned one by one
_FEWEST_BINS = 3  # of a number, in a small table
_MOST_BINS = 600  # of all columns together, up to which numbers can be surprising too
_PRIORS = 10.0 ** np.arange(-2, 6.5, 0.5)  # rows
NO_BIN = -1  # a missing cell, or a value that was not there in training

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Associations(Immutable):
    """Counts of the training rows of a member.

    categories: the columns that are categories, increasing.
    n_values: their numbers of values.
    edges: (features, N_EDGES) between the bins of the columns that are numbers, increasing,
        followed by NaN; all NaN for a category.
    counts: (total,) rows by bin of a column whose values can be surprising (`columns`) and bin of
        another column, for each pair; `table` finds them.
    n_rows: the number of rows.
    prior: (columns, features) how many rows of average values are counted with those in each bin:
        few where the other column tells much about the value, many where it tells nothing.
    weight: (columns,) what one nat of surprise adds to the score, times the number of features.
    unseen: (columns,) what a value that was not there in training adds, likewise; 0 for numbers.
    """

    categories: NDArray[np.int64]
    n_values: NDArray[np.int64]
    edges: Array
    counts: NDArray[np.int64]
    n_rows: int
    prior: Array
    weight: Array
    unseen: Array

    @classmethod
    def of(
        cls,
        x: NDArray[Any],
        values: Mapping[int, int],
        unrelated: Collection[tuple[int, int]] = (),
    ) -> Associations:
        """Count rows x: (rows, features).

        values: the number of values of each category; unrelated: pairs of columns that are not
        counted, so that neither makes a value of the other surprising
        """
        edges = np.full((x.shape[1], N_EDGES), np.nan)
        for j in range(x.shape[1]):
            if j not in values:
                found = _edges(x[:, j])
                edges[j, : len(found)] = found
        categories = np.array(sorted(values), dtype=np.int64)
        n_values = np.array([values[j] for j in categories.tolist()], dtype=np.int64)
        columns = surprising_columns(x.shape[1], values)
        nothing = np.zeros(len(columns))
        prior = np.ones((len(columns), x.shape[1]))
        none = np.empty(0, np.int64)
        empty = cls(categories, n_values, edges, none, len(x), prior, nothing, nothing)
        bins, n_bins = empty.bins(x), empty.n_bins
        counts = []
        for c in columns:
            own, width = bins[:, c], int(n_bins[c])
            for other in range(x.shape[1]):
                both = (own != NO_BIN) & (bins[:, other] != NO_BIN)
                both &= (c, other) not in unrelated and (other, c) not in unrelated
                place = own[both] * n_bins[other] + bins[both, other]
                counts.append(np.bincount(place, minlength=width * int(n_bins[other])))
        flat = np.concatenate(counts) if counts else np.empty(0, np.int64)
        counted = cls(categories, n_values, edges, flat, len(x), prior, nothing, nothing)
        return replace(counted, prior=counted._best_prior())

    @classmethod
    def none(cls, n_features: int) -> Associations:
        """Of a table without categories."""
        return cls.of(np.empty((0, n_features)), {})

    @cached_property
    def _values(self) -> dict[int, int]:
        return dict(zip(self.categories.tolist(), self.n_values.tolist(), strict=True))

    @cached_property
    def columns(self) -> list[int]:
        """The columns whose values can be surprising: categories, and numbers beside them."""
        return surprising_columns(len(self.edges), self._values)

    @cached_property
    def n_bins(self) -> NDArray[np.int64]:
        """(features,) the number of bins of every column; a number may leave some empty."""
        return bin_counts(len(self.edges), self._values)

    def table(self, i: int, other: int) -> NDArray[np.int64]:
        """Rows by bin of the i-th of `columns`, and by bin of another column. → (values, bins)"""
        n_bins, columns = self.n_bins, self.columns
        width = int(n_bins.sum())
        start = int((n_bins[columns[:i]] * width).sum())
        rows = int(n_bins[columns[i]])
        start += rows * int(n_bins[:other].sum())
        size = rows * int(n_bins[other])
        return self.counts[start : start + size].reshape(rows, int(n_bins[other]))

    def bins(self, x: NDArray[Any]) -> NDArray[np.int64]:
        """The bin of every cell; NO_BIN for a missing cell or a new value. → (rows, features)"""
        x = np.asarray(x, dtype=np.float64)
        bins = np.full(x.shape, NO_BIN, dtype=np.int64)
        values = self._values
        for j in range(x.shape[1]):
            column = x[:, j]
            if j in values:
                known = (column >= 0) & (column < values[j])
                bins[known, j] = column[known].astype(np.int64)
            else:
                edges = self.edges[j]
                inside = np.searchsorted(edges[~np.isnan(edges)], column, side="right")
                bins[:, j] = np.where(np.isnan(column), NO_BIN, inside)
        return bins

    def is_possible(self, n_rows: int) -> bool:
        """Whether `of` can count these from at most n_rows rows; checked for a model file."""
        weights = np.concatenate([self.weight, self.unseen])
        in_front = np.diff(np.isnan(self.edges).astype(int), axis=1) >= 0
        increasing = ~(np.diff(self.edges, axis=1) <= 0)
        return bool(
            0 <= self.n_rows <= n_rows
            and ((self.counts >= 0) & (self.counts <= self.n_rows)).all()
            and (np.isfinite(weights) & (weights >= 0)).all()
            and (np.isfinite(self.prior) & (self.prior > 0)).all()
            and in_front.all()
            and increasing.all()
            and not np.isinf(self.edges).any()
        )

    def rarity(self, i: int) -> Array:
        """How much rarer each value is than values of the category usually are. → (values,)

        In nats: the value's surprise −log p minus the mean surprise, at least 0. Bins of numbers
        are none of them rare.
        """
        share = self._shares(i)
        if self.columns[i] not in self._values:
            return np.zeros(len(share))
        surprise = -np.log(share)
        return np.asarray(np.maximum(surprise - (share * surprise).sum(), 0.0))

    def strength(self, i: int) -> float:
        """How closely a column goes together with the one to which it is closest.

        Cramér's V without what independent columns would show, from 0 to 1.
        """
        values = [0.0]
        for other in range(len(self.edges)):
            if other != self.columns[i]:
                values.append(_cramers_v(self.table(i, other)))
        return max(values)

    def _shares(self, i: int) -> Array:
        """The share of rows with each value, a little above 0 for one without rows. → (values,)"""
        own = self.table(i, self.columns[i]).diagonal()
        return np.asarray((own + 0.5) / (own.sum() + 0.5 * len(own)))

    def _best_prior(self) -> Array:
        """Those of _PRIORS that predict the value of each row best from all other rows."""
        best = np.ones(self.prior.shape)
        for i, c in enumerate(self.columns):
            share = self._shares(i)[:, None]
            for other in range(len(self.edges)):
                if other == c:
                    continue
                table = self.table(i, other)
                value, column = table.nonzero()
                count = table[value, column]
                expected, size = share[value, 0], table.sum(axis=0)[column]
                likelihood = [
                    (count * np.log((count - 1 + prior * expected) / (size - 1 + prior))).sum()
                    for prior in _PRIORS
                ]
                best[i, other] = _PRIORS[int(np.argmax(likelihood))]
        return best

    @cached_property
    def excess(self) -> list[list[Array]]:
        """The surprise of each value in each bin of another column, beyond its own.

        log(p / q), where p is the share of the value among all rows and q that in the bin, counted
        with `prior` more rows of average values. → by column and other column, (values, bins)
        """
        found: list[list[Array]] = []
        for i in range(len(self.columns)):
            share = self._shares(i)[:, None]
            tables = [self.table(i, other) for other in range(len(self.edges))]
            found.append(
                [
                    np.log(share * (table.sum(axis=0) + prior) / (table + prior * share))
                    for table, prior in zip(tables, self.prior[i], strict=True)
                ]
            )
        return found

    @property
    def single_share(self) -> Array:
        """The share of rows whose value of a category no other row has. → (columns,)

        As large as the expected share of new rows with a new value (Good and Turing).
        """
        own = [self.table(i, c).diagonal() for i, c in enumerate(self.columns)]
        return np.array([float((count == 1).sum()) / max(self.n_rows, 1) for count in own])

    @property
    def most_surprise(self) -> Array:
        """The largest surprise that a value of each column can have. → (columns,)"""
        most = []
        for i, c in enumerate(self.columns):
            others = (other for other in range(len(self.edges)) if other != c)
            excess = [float(self.excess[i][other].max(initial=0.0)) for other in others]
            most.append(max(float(self.rarity(i).max(initial=0.0)), *excess, 0.0))
        return np.array(most)

    def surprise(self, x: NDArray[Any], only: int | None = None) -> tuple[Array, NDArray[np.int64]]:
        """The surprise of the values of rows, in nats, and the column that shows it most.

        A missing cell and a new value have none. → (rows, columns) each; −1 where no other column
        makes the value more surprising. only: compute those of one column
        """
        bins, columns = self.bins(x), self.columns
        n_rows = len(bins)
        total = np.zeros((n_rows, len(columns)))
        shown_by = np.full((n_rows, len(columns)), -1, dtype=np.int64)
        for i, c in enumerate(columns):
            if only not in (None, i):
                continue
            rows = np.flatnonzero(bins[:, c] != NO_BIN)
            own = bins[rows, c]
            most, column = np.zeros(len(rows)), np.full(len(rows), -1, dtype=np.int64)
            for other in range(bins.shape[1]):
                if other == c:
                    continue
                there = bins[rows, other]
                excess = np.where(there == NO_BIN, 0.0, self.excess[i][other][own, there])
                more = excess > most
                most[more], column[more] = excess[more], other
            total[rows, i] = np.maximum(self.rarity(i)[own], most)
            shown_by[rows, i] = column
        return total, shown_by

    def likeliest(self, x: NDArray[Any], category: int) -> Array:
        """The value of a category that surprises least. → (rows,) codes

        x: (rows, features); the rows' own values of the category do not matter.
        """
        x, i = np.array(x, dtype=np.float64), self.columns.index(category)
        there = self.table(i, category).diagonal() > 0
        best, least = np.full(len(x), np.nan), np.full(len(x), np.inf)
        for code in np.flatnonzero(there):
            x[:, category] = code
            surprise = self.surprise(x, only=i)[0][:, i]
            less = surprise < least
            best[less], least[less] = code, surprise[less]
        return best

    def is_new(self, x: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether the categories of rows have values without training rows. → (rows, columns)"""
        x, columns = np.asarray(x, dtype=np.float64), self.columns
        bins = self.bins(x)
        new = np.zeros((len(x), len(columns)), dtype=bool)
        for i, c in enumerate(columns):
            if c in self._values:
                there = np.append(self.table(i, c).diagonal() > 0, False)  # the last: NO_BIN
                new[:, i] = ~there[bins[:, c]] & ~np.isnan(x[:, c])
        return new

    def parts(self, x: NDArray[Any]) -> Array:
        """What each cell adds to the score, times the number of features.

        x: (rows, features) → (rows, features)
        """
        result = np.zeros(np.shape(x))
        surprise, _ = self.surprise(x)
        result[:, self.columns] = np.where(self.is_new(x), self.unseen, self.weight * surprise)
        return result

    def bounds(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """The least and the largest sum of `parts` of the complete rows in boxes.

        lower, upper: (boxes, features) ends of the boxes → (boxes,) each
        """
        low, high = np.zeros(len(lower)), np.zeros(len(lower))
        first, last = self._bin_ends(lower), self._bin_ends(upper)
        for box in range(len(lower)):
            for i in range(len(self.columns)):
                smallest, largest = self._bounds_of_one(
                    i, lower[box], upper[box], first[box], last[box]
                )
                low[box] += smallest
                high[box] += largest
        return low, high

    def _bin_ends(self, x: Array) -> NDArray[np.int64]:
        """The bins of the ends of boxes; those of categories are cut to its values."""
        bins = self.bins(np.clip(x, np.finfo(float).min, np.finfo(float).max))
        for i, c in enumerate(self.categories.tolist()):
            codes = np.clip(x[:, c], 0, self.n_values[i] - 1)
            bins[:, c] = codes.astype(np.int64)
        return bins

    def _bounds_of_one(
        self,
        i: int,
        lower: Array,
        upper: Array,
        first: NDArray[np.int64],
        last: NDArray[np.int64],
    ) -> tuple[float, float]:
        """Bounds of one column in one box."""
        c = self.columns[i]
        is_category, n_values = c in self._values, int(self.n_bins[c])
        if is_category:
            codes = np.arange(max(np.ceil(lower[c]), 0), min(np.floor(upper[c]), n_values - 1) + 1)
            codes = codes.astype(np.int64)
            there = self.table(i, c).diagonal() > 0
        else:
            codes, there = np.arange(first[c], last[c] + 1), np.ones(n_values, dtype=bool)
        rarity = self.rarity(i)
        least, most = rarity.copy(), rarity.copy()
        for other in range(len(self.edges)):
            if other != c:
                excess = self.excess[i][other][:, first[other] : last[other] + 1]
                smallest = excess.min(axis=1)
                if other in self._values and not (
                    lower[other] >= 0 and upper[other] <= self.n_bins[other] - 1
                ):  # a new value of the other column makes no value surprising
                    smallest = np.minimum(smallest, 0.0)
                least, most = np.maximum(least, smallest), np.maximum(most, excess.max(axis=1))
        parts = [self.weight[i] * least[codes], self.weight[i] * most[codes]]
        for part in parts:
            part[~there[codes]] = self.unseen[i]
        ends = [part.tolist() for part in parts]
        outside = not (lower[c] >= 0 and upper[c] <= n_values - 1) or not len(codes)
        if is_category and outside:
            for end in ends:  # values that training rows do not have
                end.append(float(self.unseen[i]))
        return min(ends[0]), max(ends[1])

    def clashes(self, x: NDArray[Any], i: int) -> Clashes:
        """Why the values of the i-th of `columns` are surprising. x: (rows, features)"""
        c, bins = self.columns[i], self.bins(x)
        found = Clashes.none(len(bins))
        found.other[:] = self.surprise(x, only=i)[1][:, i]
        alone = np.append(self.table(i, c).diagonal(), 0)  # the last: NO_BIN
        found.n_value[:], found.n_all[:] = alone[bins[:, c]], alone.sum()
        order = np.sort(alone)
        up_to = np.concatenate([[0], np.cumsum(order)])
        found.n_as_rare[:] = up_to[np.searchsorted(order, found.n_value, side="right")]
        found.near_value[:] = self._ends_of_bins(c, bins[:, c])
        for other in np.unique(found.other[found.other >= 0]).tolist():
            rows = np.flatnonzero(found.other == other)
            beside = bins[rows, other]
            table = self.table(i, other)[:, beside]
            found.n_alike[rows] = table.sum(axis=0)
            found.n_same[rows] = table[bins[rows, c], np.arange(len(rows))]
            found.near_other[rows] = self._ends_of_bins(other, beside)
        return found

    def _ends_of_bins(self, j: int, bins: NDArray[np.int64]) -> Array:
        """The ends of bins of a number, NaN of a category. bins: (rows,) → (rows, 2)

        The first and the last bin have no end outside; a bin has its lower end, but not its upper.
        """
        edges = self.edges[j][~np.isnan(self.edges[j])]
        if not len(edges):
            return np.full((len(bins), 2), np.nan)
        ends = np.concatenate([[-np.inf], edges, [np.inf], [np.nan]])  # the last: NO_BIN
        lower = np.where(bins == NO_BIN, len(ends) - 1, bins)
        return np.stack([ends[lower], ends[np.minimum(lower + 1, len(ends) - 1)]], axis=1)


class Clashes(NamedTuple):
    """Why the values of a column are surprising; arrays of (rows,), or (rows, 2) for ends.

    other: the column that shows it most, −1 if none does. n_alike: the training rows in the row's
    bin of that column; n_same: those of them in the row's own bin of this column. n_value: all
    training rows in the row's bin; n_as_rare: those in bins with no more rows than it; n_all: those
    in any bin. near_other, near_value: the ends of both bins, NaN of categories.
    """

    other: NDArray[np.int64]
    n_alike: NDArray[np.int64]
    n_same: NDArray[np.int64]
    n_value: NDArray[np.int64]
    n_as_rare: NDArray[np.int64]
    n_all: NDArray[np.int64]
    near_other: Array
    near_value: Array

    @classmethod
    def none(cls, n_rows: int) -> Clashes:
        """No row is surprising."""
        alike, same, value, as_rare, everywhere = np.zeros((5, n_rows), dtype=np.int64)
        near_other, near_value = np.full((2, n_rows, 2), np.nan)
        other = np.full(n_rows, -1)
        return cls(other, alike, same, value, as_rare, everywhere, near_other, near_value)

    def put(self, rows: NDArray[np.intp], found: Clashes) -> None:
        """Take over what was found for these rows."""
        for into, values in zip(self, found, strict=True):
            into[rows] = values


def bin_counts(n_features: int, values: Mapping[int, int]) -> NDArray[np.int64]:
    """(features,) the number of bins of every column. values: of each category"""
    return np.array([values.get(j, N_EDGES + 1) for j in range(n_features)], dtype=np.int64)


def surprising_columns(n_features: int, values: Mapping[int, int]) -> list[int]:
    """The columns whose values can be surprising. values: of each category

    Numbers are among them if there are categories, and few enough bins to count all pairs of them.
    """
    if values and n_all_bins(n_features, values) <= _MOST_BINS:
        return list(range(n_features))
    return sorted(values)


def n_counts(n_features: int, values: Mapping[int, int]) -> int:
    """The number of `Associations.counts`. values: of each category

    Like all that a model file is asked for before its size is checked, it takes no time in
    proportion to the features, of which a file can claim any number.
    """
    own = sum(values.get(j, N_EDGES + 1) for j in surprising_columns(n_features, values))
    return own * n_all_bins(n_features, values)


def n_all_bins(n_features: int, values: Mapping[int, int]) -> int:
    """The sum of `bin_counts`."""
    return sum(values.values()) + (n_features - len(values)) * (N_EDGES + 1)


def _cramers_v(table: NDArray[np.int64]) -> float:
    """Association of two columns by their counts (values, bins), corrected for chance (Bergsma)."""
    counts = table[table.any(axis=1)][:, table.any(axis=0)].astype(np.float64)
    n, (rows, columns) = counts.sum(), counts.shape
    if n < 2 or rows < 2 or columns < 2:
        return 0.0
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / n
    squared = ((counts - expected) ** 2 / expected).sum() / n
    squared = max(squared - (rows - 1) * (columns - 1) / (n - 1), 0.0)
    smaller = min(rows - (rows - 1) ** 2 / (n - 1), columns - (columns - 1) ** 2 / (n - 1)) - 1
    return float(np.sqrt(squared / smaller)) if smaller > 0 else 0.0


def _edges(column: NDArray[Any]) -> Array:
    """At most N_EDGES ends of bins with about equally many values each, fewer for few values."""
    column = np.asarray(column, dtype=np.float64)
    column = column[~np.isnan(column)]
    if not len(column):
        return np.empty(0)
    n_bins = int(np.clip(np.sqrt(len(column)) / 2, _FEWEST_BINS, N_EDGES + 1))
    levels = np.linspace(0, 1, n_bins + 1)[1:-1]
    edges = np.unique(np.quantile(column, levels, method="higher"))
    return np.asarray(edges[edges > column.min()])
