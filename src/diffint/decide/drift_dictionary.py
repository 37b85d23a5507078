"""The bounded functions of a row whose means tell new rows from those that were stored.

Every function is bounded, so that a few anomalies move no mean by much. All of them are made from
the pooled rows without asking which are new, so that the permutation test is exact; only "new
values" of a model whose stored rows were trained on ask (`_unseen`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Array32 = NDArray[np.float32]

MEAN, SPREAD, MISSING = "mean", "spread", "missing"
NEW_VALUES, VALUES, PAIR = "new values", "values", "pair"

_LARGEST_SCORE = 1.5  # of a normal score; 1 % of anomalies then move a mean by 0.015 at most
_MANY_EQUAL = 0.2  # share of the cells with the median, from which on the others get scores apart
_ALL_PAIRS = 40  # features, up to which all pairs are compared
_MOST_PAIRS = _ALL_PAIRS * (_ALL_PAIRS - 1) // 2
_MOST_PAIRED = 1_000  # features that pairs are chosen from
_FEWEST_OF_VALUE = 5  # rows with a value of a category, for a function of its own


@dataclass(frozen=True)
class Entry:
    """One function of the dictionary.

    kind: what a difference of its means says; features: the one or two it is made from; value: the
    code of the value of a category that it indicates.
    """

    kind: str
    features: tuple[int, ...]
    value: int = -1


@dataclass(frozen=True, eq=False)
class Dictionary:
    """entries: of each column; columns: (pooled rows, entries), stored rows first."""

    entries: tuple[Entry, ...]
    columns: Array32

    @property
    def is_pair(self) -> NDArray[np.bool_]:
        """(entries,) which are products of two features"""
        return np.array([entry.kind == PAIR for entry in self.entries], dtype=bool)


def build_dictionary(
    pooled: Array,
    n_stored: int,
    n_values: Mapping[int, int],
    unpaired: Collection[int],
    stored_were_trained_on: bool,
    rng: np.random.Generator,
) -> Dictionary:
    """The dictionary of pooled rows, stored ones first. pooled: (rows, features)

    n_values: the number of values of each feature that is a category; unpaired: numbers that are
    compared alone; stored_were_trained_on: whether the stored rows helped to list these values.
    """
    entries: list[Entry] = []
    columns: list[Array32] = []
    paired: list[int] = []
    scores: list[Array32] = []

    def add(kind: str, j: int, column: NDArray[np.generic], value: int = -1) -> None:
        entries.append(Entry(kind, (j,), value))
        columns.append(column.astype(np.float32))

    for j in range(pooled.shape[1]):
        x = pooled[:, j]
        missing = np.isnan(x)
        if j in n_values:
            for code, count in zip(*np.unique(x[~missing], return_counts=True), strict=True):
                if code < n_values[j] and count >= _FEWEST_OF_VALUE:
                    add(VALUES, j, x == code, int(code))
            add(NEW_VALUES, j, _unseen(x, n_stored, n_values[j], stored_were_trained_on))
        else:
            z = normal_scores(x)
            add(MEAN, j, z)
            add(SPREAD, j, z * z)
            if (distances := distance_scores(x)).any():
                add(SPREAD, j, distances)
            if j not in unpaired and z.any():
                paired.append(j)
                scores.append(z)
        if missing.any():
            add(MISSING, j, missing)
    z = np.column_stack(scores) if scores else np.empty((len(pooled), 0), dtype=np.float32)
    first, second = _pairs(z, rng)
    products = z[:, first] * z[:, second]
    entries += [Entry(PAIR, (paired[a], paired[b])) for a, b in zip(first, second, strict=True)]
    alone = np.column_stack(columns) if columns else products[:, :0]
    return Dictionary(tuple(entries), np.concatenate([alone, products], axis=1))


def normal_scores(x: Array) -> Array32:
    """Normal scores of the ranks of values (rows,), cut off at ±1.5; 0 where a value is missing."""
    from scipy.special import ndtri  # takes long to import

    known = ~np.isnan(x)
    scores = np.zeros(len(x), dtype=np.float32)
    if known.any():
        _, place, counts = np.unique(x[known], return_inverse=True, return_counts=True)
        middle = (np.cumsum(counts) - counts / 2.0) / counts.sum()
        found = np.clip(ndtri(middle), -_LARGEST_SCORE, _LARGEST_SCORE)
        scores[known] = found[place.ravel()]
    return scores


def distance_scores(x: Array) -> Array32:
    """How far values (rows,) are from a median that many of them have: ranks, from −1 to 1.

    The ranks of all values hardly change if those that are not the median move outwards. 0 for the
    median and missing values, and everywhere if fewer values are the median.
    """
    from scipy.stats import rankdata

    known = ~np.isnan(x)
    scores = np.zeros(len(x), dtype=np.float32)
    if known.any():
        distance = np.abs(x - np.median(x[known]))
        others = distance > 0  # not where a value is missing
        n = int(others.sum())
        if n and known.sum() - n >= _MANY_EQUAL * known.sum():
            scores[others] = (2.0 * rankdata(distance[others]) - (n + 1.0)) / n
    return scores


def _unseen(x: Array, n_stored: int, n_values: int, stored_were_trained_on: bool) -> Array:
    """Which codes (rows,) are of values that training rows do not have.

    If the stored rows were trained on, they have no such values. Theirs then count as unseen if no
    other stored row has them, and those of new rows if no stored row has: that is as likely.
    """
    unseen = x >= n_values
    if stored_were_trained_on:
        known = ~np.isnan(x) & ~unseen
        codes = np.where(known, x, 0).astype(np.intp)
        is_stored = np.arange(len(x)) < n_stored
        counts = np.bincount(codes[known & is_stored], minlength=n_values)
        unseen |= known & (counts[codes] <= is_stored)
    return np.asarray(unseen, dtype=np.float64)


def _pairs(z: Array32, rng: np.random.Generator) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Which pairs of columns to compare: all, or the most correlated ones and some at random.

    The strongest correlation of each column comes first, then the second strongest, and so on, so
    that a few columns with many strong ones do not displace all of the others.
    """
    width = z.shape[1]
    if width <= _ALL_PAIRS:
        return np.triu_indices(width, 1)
    chosen = np.sort(rng.permutation(width)[:_MOST_PAIRED])
    some = z[:, chosen]
    related = np.abs(some.T @ some) / np.sqrt(np.outer(*2 * [np.sum(some * some, axis=0)]))
    np.fill_diagonal(related, -1.0)
    place = np.argsort(np.argsort(-related, axis=1, kind="stable"), axis=1, kind="stable")
    first, second = np.triu_indices(len(chosen), 1)
    order = np.lexsort((-related[first, second], np.minimum(place, place.T)[first, second]))
    n_related = _MOST_PAIRS // 2
    others = rng.permutation(order[n_related:])[: _MOST_PAIRS - n_related]
    taken = np.sort(np.concatenate([order[:n_related], others]))
    return chosen[first[taken]], chosen[second[taken]]
