"""How often the values of a category occur with the values of the other columns.

A category is a column with a fixed list of values; a row holds the code of its value, a whole number
from 0. Every other column is divided into *bins*: the values of a category, the quantiles of a
number. A value is surprising if hardly any training row in the same bin of another column has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .immutable import Immutable

N_EDGES = 15  # of the bins of a number
NO_BIN = -1  # a missing cell, or a value that was not there in training

Array = NDArray[np.float64]


class Clash(NamedTuple):
    """Why a value of a category is surprising: few of the rows in a bin of another column have it.

    other: the other column, −1 if there is none; n_rows: training rows in the row's bin of it;
    n_same: those of them with the same value.
    """

    other: int
    n_rows: int
    n_same: int


@dataclass(frozen=True, eq=False)
class Associations(Immutable):
    """Counts of the training rows of a member.

    categories: (n,) the columns that are categories, increasing.
    n_values: (n,) their numbers of values.
    edges: (features, N_EDGES) between the bins of the columns that are numbers, increasing, followed
        by NaN; all NaN for a category.
    counts: (total,) rows by value of a category and bin of another column, for every category and
        every column; `table` finds them.
    n_rows: the number of rows.
    weight: (n,) what one nat of surprise adds to the score, times the number of features.
    unseen: (n,) what a value that was not there in training adds, likewise.
    """

    categories: NDArray[np.int64]
    n_values: NDArray[np.int64]
    edges: Array
    counts: NDArray[np.int64]
    n_rows: int
    weight: Array
    unseen: Array

    @classmethod
    def of(cls, x: NDArray[Any], values: Mapping[int, int]) -> Associations:
        """Count rows x: (rows, features). values: the number of values of each category"""
        edges = np.full((x.shape[1], N_EDGES), np.nan)
        for j in range(x.shape[1]):
            if j not in values:
                found = _edges(x[:, j])
                edges[j, : len(found)] = found
        categories = np.array(sorted(values), dtype=np.int64)
        n_values = np.array([values[j] for j in categories.tolist()], dtype=np.int64)
        nothing = np.zeros(len(categories))
        empty = cls(
            categories, n_values, edges, np.empty(0, np.int64), len(x), nothing, nothing
        )
        bins, n_bins = empty.bins(x), empty.n_bins
        counts = []
        for c in categories:
            own, width = bins[:, c], int(n_bins[c])
            for other in range(x.shape[1]):
                both = (own != NO_BIN) & (bins[:, other] != NO_BIN)
                place = own[both] * n_bins[other] + bins[both, other]
                counts.append(np.bincount(place, minlength=width * int(n_bins[other])))
        flat = np.concatenate(counts) if counts else np.empty(0, np.int64)
        return cls(categories, n_values, edges, flat, len(x), nothing, nothing)

    @property
    def n_bins(self) -> NDArray[np.int64]:
        """(features,) the number of bins of every column; a number may leave some empty."""
        n_bins = np.full(len(self.edges), N_EDGES + 1, dtype=np.int64)
        n_bins[self.categories] = self.n_values
        return n_bins

    def table(self, category: int, other: int) -> NDArray[np.int64]:
        """Rows by value of the category at this position, and by bin of another column.

        → (values, bins)
        """
        n_bins = self.n_bins
        width = int(n_bins.sum())
        start = int((self.n_values[:category] * width).sum())
        rows = int(self.n_values[category])
        start += rows * int(n_bins[:other].sum())
        size = rows * int(n_bins[other])
        return self.counts[start : start + size].reshape(rows, int(n_bins[other]))

    def bins(self, x: NDArray[Any]) -> NDArray[np.int64]:
        """The bin of every cell; NO_BIN for a missing cell or a new value. → (rows, features)"""
        x = np.asarray(x, dtype=np.float64)
        bins = np.full(x.shape, NO_BIN, dtype=np.int64)
        values = dict(zip(self.categories.tolist(), self.n_values.tolist(), strict=True))
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

    def rarity(self, category: int) -> Array:
        """How much rarer each value is than values of the category usually are. → (values,)

        In nats: the value's surprise −log p minus the mean surprise, at least 0.
        """
        share = self._shares(category)
        surprise = -np.log(share)
        return np.maximum(surprise - (share * surprise).sum(), 0.0)

    def strength(self, category: int) -> float:
        """How closely the category goes together with the column to which it is closest.

        Cramér's V without what independent columns would show, from 0 to 1.
        """
        values = [0.0]
        for other in range(len(self.edges)):
            if other != self.categories[category]:
                values.append(_cramers_v(self.table(category, other)))
        return max(values)

    def _shares(self, category: int) -> Array:
        """The share of rows with each value, a little above 0 for one without rows. → (values,)"""
        own = self.table(category, int(self.categories[category])).diagonal()
        return np.asarray((own + 0.5) / (own.sum() + 0.5 * len(own)))

    def _excess(self, category: int, other: int) -> Array:
        """The surprise of each value in each bin of another column, beyond its own.

        log(p / q), where p is the share of the value among all rows and q that in the bin, counted
        with one more row of average values. → (values, bins)
        """
        table = self.table(category, other)
        share = self._shares(category)[:, None]
        return np.asarray(np.log(share * (table.sum(axis=0) + 1.0) / (table + share)))

    def surprise(self, x: NDArray[Any]) -> tuple[Array, NDArray[np.int64]]:
        """The surprise of the categories of rows, in nats, and the column that shows it most.

        A missing cell has none; a new value that of a value without rows. → (rows, categories) each;
        the column is −1 where no other column makes the value more surprising.
        """
        bins = self.bins(x)
        n_rows = len(bins)
        total = np.zeros((n_rows, len(self.categories)))
        shown_by = np.full((n_rows, len(self.categories)), -1, dtype=np.int64)
        for i, c in enumerate(self.categories.tolist()):
            rows = np.flatnonzero(bins[:, c] != NO_BIN)
            own = bins[rows, c]
            most, column = np.zeros(len(rows)), np.full(len(rows), -1, dtype=np.int64)
            for other in range(bins.shape[1]):
                if other == c:
                    continue
                there = bins[rows, other]
                excess = np.where(there == NO_BIN, 0.0, self._excess(i, other)[own, there])
                more = excess > most
                most[more], column[more] = excess[more], other
            total[rows, i] = np.maximum(self.rarity(i)[own], most)
            shown_by[rows, i] = column
        return total, shown_by

    def is_new(self, x: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether the categories of rows have values without training rows. → (rows, categories)"""
        x = np.asarray(x, dtype=np.float64)
        own = self.bins(x)[:, self.categories]
        seen = np.zeros(own.shape, dtype=bool)
        for i in range(len(self.categories)):
            there = self.table(i, int(self.categories[i])).diagonal() > 0
            known = own[:, i] != NO_BIN
            seen[known, i] = there[own[known, i]]
        return ~seen & ~np.isnan(x[:, self.categories])

    def parts(self, x: NDArray[Any]) -> Array:
        """What each cell adds to the score, times the number of features; 0 for numbers.

        x: (rows, features) → (rows, features)
        """
        result = np.zeros(np.shape(x))
        surprise, _ = self.surprise(x)
        added = np.where(self.is_new(x), self.unseen, self.weight * surprise)
        result[:, self.categories] = added
        return result

    def clash(self, row: NDArray[Any], category: int) -> Clash:
        """Why the category at this position is surprising in one row (features,)."""
        _, shown_by = self.surprise(row[None])
        other = int(shown_by[0, category])
        if other < 0:
            return Clash(-1, self.n_rows, 0)
        bins = self.bins(row[None])[0]
        column = self.table(category, other)[:, bins[other]]
        return Clash(other, int(column.sum()), int(column[bins[self.categories[category]]]))


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
    """At most N_EDGES ends of bins with about equally many values each."""
    column = np.asarray(column, dtype=np.float64)
    column = column[~np.isnan(column)]
    if not len(column):
        return np.empty(0)
    levels = np.linspace(0, 1, N_EDGES + 2)[1:-1]
    edges = np.unique(np.quantile(column, levels, method="higher"))
    return edges[edges > column.min()]
