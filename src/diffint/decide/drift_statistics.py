"""What a drift monitor looks at: a few statistics of each row, cut into bins.

Bins are fixed by some of the stored calibration rows, and the others are the reference rows that
new rows are compared with: rows that choose the bins are not exchangeable with later ones.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ..core.calibration import Calibration
from ..core.model import FittedModel
from ..engine.reference.drift_evidence import uniforms
from ..tables.categories import OTHER

Array = NDArray[np.float64]
Bins = NDArray[np.int16]

_DEFINING_SHARE, _MOST_DEFINING = 0.25, 500  # of the stored rows, to choose the bins
_MOST_EDGES = 64
_MOST_PAIRS = 190  # all pairs of 20 features
_MOST_VALUES = 10  # of a category that are watched one by one, the most common ones
_LARGEST_CORRELATION = 0.98
# Shares of the false alarms; those of features and pairs are split evenly among them.
_SCORE, _FEATURES, _PAIRS = 0.1, 0.6, 0.3
_LOCATION, _SPREAD, _MISSING = 0.5, 0.35, 0.15  # of a feature


class Statistic(NamedTuple):
    """One property of rows.

    what: ``score``, ``location``, ``spread``, ``missing``, ``value``, ``new value`` or
    ``correlation``; features: positions of those that it is about; value: the code of a category.
    is_binary: whether it is yes (bin 0) or no (bin 1), and not an order.
    weight: its share of the false alarms.
    """

    what: str
    features: tuple[int, ...]
    weight: float
    value: int = 0
    is_binary: bool = False


class _Order:
    """Bins of an ordered quantity: between some of its values, and at each of these values."""

    def __init__(self, values: Array) -> None:
        """values: (some,) that choose the bins, without missing ones"""
        n_edges = int(np.clip(len(values) // 4, 1, _MOST_EDGES))
        levels = np.arange(1, n_edges + 1) / (n_edges + 1)
        at = np.minimum((levels * len(values)).astype(np.intp), len(values) - 1)
        self.edges = np.unique(np.sort(values)[at])
        self.n_bins = 2 * len(self.edges) + 1
        count = np.bincount(self.bins(values), minlength=self.n_bins)
        middle = (np.cumsum(count) - 0.5 * count) / len(values)
        smallest = 0.5 / len(values)
        middle = np.clip(middle, smallest, 1.0 - smallest)
        self.normal_scores = np.asarray(ndtri(middle))
        # The same bins by distance from the middle, near ones first; equal distances are one bin.
        distance = np.round(np.abs(middle - 0.5), 9)
        self.spread_of = np.searchsorted(np.unique(distance), distance).astype(np.int16)

    def bins(self, values: NDArray[np.floating]) -> Bins:
        """The bin of each value, −1 if it is missing. (rows,) → (rows,)"""
        # Rows in single precision have rounded values, which equal rounded edges.
        edges = self.edges.astype(values.dtype)
        found = np.searchsorted(edges, values, "left") + np.searchsorted(edges, values, "right")
        return np.where(np.isnan(values), -1, found).astype(np.int16)


@dataclass(frozen=True)
class _Pair:
    """Whether two numbers still go together as before: the derivative by their correlation r of
    the logarithm of their joint normal density, without terms that are the same for all rows."""

    one: int
    other: int
    correlation: float

    def values(self, z: Array) -> Array:
        """z: (rows, features) normal scores, NaN where missing → (rows,)"""
        a, b, r = z[:, self.one], z[:, self.other], self.correlation
        return np.asarray((1 + r * r) * a * b - r * (a * a + b * b))


class DriftStatistics:
    """The statistics of a model's rows, and the reference rows.

    statistics: what is looked at; counts: (statistics, bins) reference rows in each bin.
    """

    def __init__(self, model: FittedModel) -> None:
        self._model, calibration = model, model.calibration
        defining, compared = _halves(calibration.sample)
        made_of_times = {
            name for time, kind in model.kinds.times.items() for name in kind.features(time)
        }
        watched = [j for j, name in enumerate(model.feature_names) if name not in made_of_times]
        self._n_values = {j: n for j, n in model.kinds.n_values.items() if j in watched}
        self._numbers = [
            j for j in watched if j not in model.categories and not np.isnan(defining[:, j]).all()
        ]
        self._orders = {j: _Order(_known(defining[:, j])) for j in self._numbers}
        self._pairs = self._find_pairs(defining)
        z = self._normal_scores(defining)
        self._pair_orders = [_Order(_known(pair.values(z))) for pair in self._pairs]
        # Rows come in the order of time, so that a score with times in it moves by itself.
        first, second = _halves(_rounded(calibration.scores))
        self._score_order = None if made_of_times else _Order(first)
        self.statistics = self._list(defining, watched)
        self.counts = self._count(compared, second)

    def __len__(self) -> int:
        return len(self.statistics)

    def bins(self, table: NDArray[np.floating], scores: Array | None) -> Bins:
        """The bin of every row in every statistic, −1 for none. → (rows, statistics)

        table: (rows, features); scores: (rows,), None for rows without
        """
        columns = {j: order.bins(table[:, j]) for j, order in self._orders.items()}
        z = self._normal_scores(table, columns)
        result = np.empty((len(table), len(self)), dtype=np.int16)
        for s, (what, features, _, value, _) in enumerate(self.statistics):
            if what == "score":
                assert self._score_order is not None
                result[:, s] = -1 if scores is None else self._score_order.bins(_rounded(scores))
            elif what == "correlation":
                result[:, s] = self._pair_orders[value].bins(self._pairs[value].values(z))
            elif what == "location":
                result[:, s] = columns[features[0]]
            elif what == "spread":
                order = self._orders[features[0]]
                result[:, s] = np.append(order.spread_of, -1)[columns[features[0]]]
            else:
                result[:, s] = self._binary(what, table[:, features[0]], features[0], value)
        if self._model.training.n_blank_rows:  # left out of the stored rows
            result[np.isnan(table).all(axis=1)] = -1
        return result

    def _binary(self, what: str, column: NDArray[np.floating], j: int, value: int) -> Bins:
        missing = np.isnan(column)
        if what == "missing":
            return np.where(missing, 0, 1).astype(np.int16)
        new = column >= self._n_values[j]
        if what == "new value":
            return np.where(missing, -1, np.where(new, 0, 1)).astype(np.int16)
        return np.where(missing | new, -1, np.where(column == value, 0, 1)).astype(np.int16)

    def _normal_scores(
        self, table: NDArray[np.floating], columns: dict[int, Bins] | None = None
    ) -> Array:
        z = np.full(table.shape, np.nan)
        for j in {j for pair in self._pairs for j in (pair.one, pair.other)}:
            order = self._orders[j]
            bins = order.bins(table[:, j]) if columns is None else columns[j]
            z[:, j] = np.append(order.normal_scores, np.nan)[bins]
        return z

    def _find_pairs(self, defining: Array) -> list[_Pair]:
        """All pairs of numbers that differ, or the most correlated ones if there are too many."""
        z = {
            j: np.append(order.normal_scores, np.nan)[order.bins(defining[:, j])]
            for j, order in self._orders.items()
            if len(order.edges) > 1
        }
        correlations = {}
        if len(z) > 1:
            filled = np.stack([np.nan_to_num(column) for column in z.values()])
            squares = np.maximum((filled**2).mean(axis=1), 1e-12)
            matrix = filled @ filled.T / filled.shape[1]
            matrix /= np.sqrt(np.outer(squares, squares))
            places = itertools.combinations(enumerate(z), 2)
            correlations = {(i, j): float(matrix[a, b]) for (a, i), (b, j) in places}
        strongest = sorted(correlations, key=lambda pair: -abs(correlations[pair]))[:_MOST_PAIRS]
        limit = _LARGEST_CORRELATION
        pairs = [
            _Pair(i, j, float(np.clip(correlations[i, j], -limit, limit)))
            for i, j in sorted(strongest)
        ]
        together = ~np.isnan(defining)
        return [p for p in pairs if (together[:, p.one] & together[:, p.other]).sum() > 1]

    def _list(self, defining: Array, watched: list[int]) -> list[Statistic]:
        found = [] if self._score_order is None else [Statistic("score", (), _SCORE)]
        used = [
            j
            for j in watched
            if j in self._orders or j in self._n_values or j not in self._model.categories
        ]
        for j in used:
            share = _FEATURES / len(used)
            if j in self._orders:
                found.append(Statistic("location", (j,), share * _LOCATION))
                found.append(Statistic("spread", (j,), share * _SPREAD))
            elif j in self._n_values:
                known = _known(defining[:, j])
                known = known[known < self._n_values[j]].astype(np.intp)
                counts = np.bincount(known, minlength=self._n_values[j])
                # Which values count as any other one was chosen with the reference rows.
                texts = self._model.categories[j]
                values = [v for v in np.argsort(-counts, kind="stable") if texts[v] != OTHER]
                # Of two values, one is the opposite of the other.
                values = values[: 1 if len(counts) == 2 else _MOST_VALUES]
                share *= 1.0 - _MISSING
                found.append(Statistic("new value", (j,), share / 2, 0, True))
                each = share / 2 / max(len(values), 1)
                found += [Statistic("value", (j,), each, int(v), True) for v in values]
                share /= 1.0 - _MISSING
            found.append(Statistic("missing", (j,), share * _MISSING, 0, True))
        each = _PAIRS / max(len(self._pairs), 1)
        found += [
            Statistic("correlation", (pair.one, pair.other), each, place)
            for place, pair in enumerate(self._pairs)
        ]
        total = sum(statistic.weight for statistic in found)
        return [s._replace(weight=s.weight / total) for s in found]

    def _count(self, compared: Array, scores: Array) -> NDArray[np.int64]:
        """The reference rows in every bin; none where they are not exchangeable with new rows."""
        calibration = self._model.calibration
        bins = self.bins(compared, None)
        n_bins = max([2, *(order.n_bins for order in (*self._orders.values(), *self._pair_orders))])
        if self._score_order is not None:
            n_bins = max(n_bins, self._score_order.n_bins)
        counts = np.zeros((len(self), n_bins), dtype=np.int64)
        if not has_reference(calibration):
            return counts
        for s, statistic in enumerate(self.statistics):
            column = bins[:, s]
            if statistic.what == "score":
                assert self._score_order is not None
                column = self._score_order.bins(scores)
            # Rows scored by some members only, and whose own values were known to all.
            if calibration.kind == "holdout" or statistic.what not in ("score", "new value"):
                counts[s] += np.bincount(column[column >= 0], minlength=n_bins)
        return counts


def has_reference(calibration: Calibration) -> bool:
    """Whether new rows can be compared with stored rows, and not only with each other.

    Rows of which suspects were left out are not like new rows, and rows in groups resemble each
    other.
    """
    return not (calibration.cleaned or calibration.grouped)


def _halves(rows: Array) -> tuple[Array, Array]:
    """The rows that choose bins and the reference rows. (rows, …) → two of them"""
    # Not a generator of NumPy's: other versions may draw other numbers, and files stay.
    order = np.argsort(uniforms(0, np.arange(len(rows), dtype=np.uint64)), kind="stable")
    n_defining = max(min(int(_DEFINING_SHARE * len(rows)), _MOST_DEFINING), 1)
    return rows[np.sort(order[:n_defining])], rows[np.sort(order[n_defining:])]


def _known(values: Array) -> Array:
    return values[~np.isnan(values)]


def _rounded(scores: Array) -> Array:
    """Scores with 13 bits: their last bits differ between processors. (rows,) → (rows,)"""
    mantissa, exponent = np.frexp(scores)
    return np.asarray(np.ldexp(np.round(mantissa * 2.0**13), exponent - 13))
