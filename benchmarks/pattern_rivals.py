"""Rivals of compact pattern sets: Mint, one isolation tree, and OutlierTree.

Each is fitted on rows (rows, features) and gives `boxes()`, a list of {feature: (lower, upper)},
`covers(x)`, and `distance(x)`, higher for anomalies.
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.special import gammaln
from sklearn.tree import ExtraTreeRegressor

Matrix = NDArray[np.float64]
Conditions = dict[int, tuple[float, float]]
COVERAGE = 0.92


class Mint:
    """Mint (Makhalova, Kuznetsov and Napoli), written from the paper.

    Every feature is cut into intervals of equal width. The first hyper-rectangles are the different
    rows. Two of them, of those that are near each other, are joined into their hull as long as this
    shortens the total description length: the intervals of all hyper-rectangles, the code of the
    hyper-rectangle of each row (prequential, with half a row added), and the cell of each row in
    it. At most `max_patterns` that contain most rows are shown; they may have a condition on every
    feature.
    """

    def __init__(self, n_bins: int = 5, neighbours: int = 5, max_patterns: int = 20) -> None:
        self.n_bins, self.neighbours, self.max_patterns = n_bins, neighbours, max_patterns

    def fit(self, x: Matrix) -> Mint:
        self.low, high = x.min(axis=0), x.max(axis=0)
        self.width = np.where(high > self.low, (high - self.low) / self.n_bins, 1.0)
        cells, usage = np.unique(self._cells(x), axis=0, return_counts=True)
        lower, upper = self._merge(cells, usage)
        self.lower, self.upper = lower, upper
        return self

    def _cells(self, x: Matrix) -> NDArray[np.int64]:
        cells = np.floor((x - self.low) / self.width)
        return np.asarray(np.clip(cells, 0, self.n_bins - 1).astype(np.int64))

    def _merge(self, cells: NDArray[np.int64], counts: NDArray[Any]) -> tuple[Any, Any]:
        n_features, n_rows = cells.shape[1], int(counts.sum())
        per_pattern = n_features * np.log2(self.n_bins * (self.n_bins + 1) / 2)
        lower = dict(enumerate(cells))
        upper = dict(lower)
        usage = {i: int(count) for i, count in enumerate(counts)}

        def size(low: Any, up: Any) -> float:
            return float(np.log2(up - low + 1.0).sum())

        def usage_code(n_patterns: int) -> float:
            nats = gammaln(n_rows + 0.5 * n_patterns) - gammaln(0.5 * n_patterns)
            return float(nats / np.log(2))

        def own_code(count: int) -> float:
            return float((gammaln(count + 0.5) - gammaln(0.5)) / np.log(2))

        def gain(a: int, b: int) -> float:
            """Without the part of the usage code that all pairs share."""
            low, up = np.minimum(lower[a], lower[b]), np.maximum(upper[a], upper[b])
            both = usage[a] + usage[b]
            before = usage[a] * size(lower[a], upper[a]) + usage[b] * size(lower[b], upper[b])
            codes = own_code(both) - own_code(usage[a]) - own_code(usage[b])
            return float(before - both * size(low, up) + codes + per_pattern)

        heap: list[tuple[float, int, int]] = []

        def near(i: int) -> list[int]:
            ids = [k for k in usage if k != i]
            if not ids:
                return []
            middles = np.array([lower[k] + upper[k] for k in ids])
            distance = ((middles - lower[i] - upper[i]) ** 2).sum(axis=1)
            return [ids[k] for k in np.argsort(distance, kind="stable")[: self.neighbours]]

        tree = cKDTree(cells)
        _, found = tree.query(cells, min(self.neighbours + 1, len(cells)))
        for a, others in enumerate(found.reshape(len(cells), -1)):
            for b in others:
                if a < b:
                    heapq.heappush(heap, (-gain(a, int(b)), a, int(b)))
        number = len(cells)
        while heap:
            negative, a, b = heapq.heappop(heap)
            if a not in usage or b not in usage:
                continue
            shared = usage_code(len(usage)) - usage_code(len(usage) - 1)
            if -negative + shared <= 0:
                break
            lower[number] = np.minimum(lower[a], lower[b])
            upper[number] = np.maximum(upper[a], upper[b])
            usage[number] = usage[a] + usage[b]
            for old in (a, b):
                del lower[old], upper[old], usage[old]
            for other in near(number):
                heapq.heappush(heap, (-gain(number, other), number, other))
            number += 1
        order = sorted(usage, key=lambda i: -usage[i])[: self.max_patterns]
        return np.array([lower[i] for i in order]), np.array([upper[i] for i in order])

    def boxes(self) -> list[Conditions]:
        ends = self.low + self.width * self.lower, self.low + self.width * (self.upper + 1)
        limited = (self.lower > 0) | (self.upper < self.n_bins - 1)
        return [
            {int(j): (ends[0][k, j], ends[1][k, j]) for j in np.flatnonzero(limited[k])}
            for k in range(len(limited))
        ]

    def covers(self, x: Matrix) -> NDArray[np.bool_]:
        return self.distance(x) <= 0

    def distance(self, x: Matrix) -> Matrix:
        place = (x - self.low) / self.width
        outside = np.full(len(x), np.inf)
        for low, up in zip(self.lower, self.upper, strict=True):
            away = np.maximum(low - place, 0) + np.maximum(place - up - 1, 0)
            outside = np.minimum(outside, away.sum(axis=1))
        return outside


class IsolationTree:
    """One tree with random splits, at most 20 leaves and 5 splits on a path.

    The densest leaves that contain 92 % of the rows are the patterns; the score is minus the
    logarithm of the density of the leaf.
    """

    def __init__(self, seed: int, max_leaves: int = 20, max_depth: int = 5) -> None:
        self.tree = ExtraTreeRegressor(
            max_depth=max_depth, max_leaf_nodes=max_leaves, max_features=1, random_state=seed
        )
        self.seed = seed

    def fit(self, x: Matrix) -> IsolationTree:
        self.low, self.high = x.min(axis=0), x.max(axis=0)
        self.tree.fit(x, np.random.default_rng(self.seed).random(len(x)))
        leaves, counts = np.unique(self.tree.apply(x), return_counts=True)
        self.conditions: dict[int, Conditions] = {}
        self._walk(0, {})
        span = np.where(self.high > self.low, self.high - self.low, 1.0)
        self.score = {}
        for leaf, count in zip(leaves.tolist(), counts.tolist(), strict=True):
            shares = [(up - low) / span[j] for j, (low, up) in self.conditions[leaf].items()]
            self.score[leaf] = float(np.log(np.maximum(shares, 1e-9)).sum() - np.log(count))
        order = sorted(self.score, key=self.score.__getitem__)
        inside = np.cumsum([counts[leaves == leaf][0] for leaf in order]) / len(x)
        self.chosen = order[: int(np.searchsorted(inside, COVERAGE)) + 1]
        return self

    def _walk(self, node: int, path: Conditions) -> None:
        tree = self.tree.tree_
        if tree.children_left[node] < 0:
            self.conditions[node] = path
            return
        j, cut = int(tree.feature[node]), float(tree.threshold[node])
        low, up = path.get(j, (self.low[j], self.high[j]))
        self._walk(tree.children_left[node], {**path, j: (low, min(up, cut))})
        self._walk(tree.children_right[node], {**path, j: (max(low, cut), up)})

    def boxes(self) -> list[Conditions]:
        return [self.conditions[leaf] for leaf in self.chosen]

    def covers(self, x: Matrix) -> NDArray[np.bool_]:
        return np.isin(self.tree.apply(x), self.chosen)

    def distance(self, x: Matrix) -> Matrix:
        return np.array([self.score[leaf] for leaf in self.tree.apply(x).tolist()])


class OutlierTrees:
    """OutlierTree with its defaults. It flags rows and gives no set of patterns."""

    def __init__(self, max_depth: int = 4) -> None:
        self.max_depth = max_depth

    def fit(self, x: Matrix) -> OutlierTrees:
        from outliertree import OutlierTree

        self.model = OutlierTree(max_depth=self.max_depth, nthreads=1)
        self.model.fit(self._frame(x), outliers_print=0, return_outliers=False)
        return self

    @staticmethod
    def _frame(x: Matrix) -> Any:
        import pandas

        return pandas.DataFrame(x, columns=[f"c{j}" for j in range(x.shape[1])])

    def covers(self, x: Matrix) -> NDArray[np.bool_]:
        return self.distance(x) <= 0

    def distance(self, x: Matrix) -> Matrix:
        """1 − the upper limit of the share of such values, for flagged rows; else 0."""
        found = self.model.predict(self._frame(x), outliers_print=0)
        score = np.array(found["outlier_score"], dtype=np.float64)
        return np.where(np.isnan(score), 0.0, 1.0 - np.nan_to_num(score))
