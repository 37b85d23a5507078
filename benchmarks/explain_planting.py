"""Rows with features that were changed on purpose, for `explain_quality.py`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from diffint.bench.protocol import TABLES

Matrix = NDArray[np.float64]
Mask = NDArray[np.bool_]

OUT_OF_RANGE, IN_RANGE = "out of range", "in range"
BROKEN = {"1 broken": 1, "2 broken": 2, "3 broken": 3}  # features with a broken dependency
KINDS = (OUT_OF_RANGE, IN_RANGE, *BROKEN)
FITTING_TABLES = [
    name for name, table in TABLES.items() if 5 <= table.n_features <= 70 and table.n_rows >= 120
]
NEIGHBOURS = 20
_MOST_CHANGED = 3
_CANDIDATES = 200  # values among which one in range is chosen
_DRAWS, _ORDINARY = 100, 1.5  # values that may break a dependency; standard deviations


class Planted(NamedTuple):
    """Changed rows, the same rows before, and which features were changed: (rows, features) each.

    place: (rows,) positions of the rows among those that were to be changed
    """

    rows: Matrix
    before: Matrix
    changed: Mask
    place: NDArray[np.intp]


def plant(train: Matrix, rows: Matrix, kind: str, rng: np.random.Generator) -> Planted:
    """Rows changed in one of the ways of `KINDS`; rows where that is not possible are left out."""
    if kind in BROKEN:
        middle, deviation = train.mean(axis=0), train.std(axis=0)
        deviation = np.where(deviation > 0, deviation, 1.0)
        nearest = nearest_rows((train - middle) / deviation, (rows - middle) / deviation)
        return break_dependencies(train, rows, nearest, BROKEN[kind], rng)
    low, high = train.min(axis=0), train.max(axis=0)
    varying = np.flatnonzero(high > low)
    span = np.where(high > low, high - low, 1.0)
    medians = np.median(train[nearest_rows(train / span, rows / span)], axis=1)
    planted, changed = rows.copy(), np.zeros(rows.shape, dtype=bool)
    for i in range(len(rows)):
        count = min(int(rng.integers(1, _MOST_CHANGED + 1)), len(varying) - 1)
        changed[i, rng.choice(varying, count, replace=False)] = True
        for j in np.flatnonzero(changed[i]):
            if kind == OUT_OF_RANGE:
                beyond = rng.uniform(0.05, 0.5) * (high[j] - low[j])
                planted[i, j] = high[j] + beyond if rng.random() < 0.5 else low[j] - beyond
            else:
                values = rng.choice(train[:, j], _CANDIDATES)
                planted[i, j] = values[np.argmax(np.abs(values - medians[i, j]))]
    return Planted(planted, rows, changed, np.arange(len(rows)))


def break_dependencies(
    train: Matrix, rows: Matrix, nearest: NDArray[np.intp], count: int, rng: np.random.Generator
) -> Planted:
    """Rows with `count` values each that are ordinary by themselves but wrong for the row.

    A value is that of another training row, within 1.5 standard deviations of the mean: of a
    hundred, the one farthest from the median of the row's nearest training rows. Features without
    such a value other than the row's own, and missing cells, are not chosen.
    train: (training rows, features), NaN where missing; nearest: (rows, some) positions in it
    """
    middle, deviation = np.nanmean(train, axis=0), np.nanstd(train, axis=0)
    ordinary = np.abs(train - middle) <= _ORDINARY * deviation
    values = [column[fits] for column, fits in zip(train.T, ordinary.T, strict=True)]
    possible = [j for j, column in enumerate(values) if len(column) and deviation[j] > 0]
    planted, place = [], []
    for i, row in enumerate(rows):
        new, left = row.copy(), count
        for j in rng.permutation(possible).tolist():
            draws, around = rng.choice(values[j], _DRAWS), train[nearest[i], j]
            if left == 0 or np.isnan(row[j]) or np.isnan(around).all():
                continue
            new[j] = draws[np.argmax(np.abs(draws - np.nanmedian(around)))]
            left -= int(new[j] != row[j])
        if left == 0 and count < rows.shape[1]:
            planted.append(new)
            place.append(i)
    found = np.array(planted).reshape(-1, rows.shape[1])
    before = rows[place]
    return Planted(found, before, (found != before) & ~np.isnan(before), np.array(place, np.intp))


def nearest_rows(train: Matrix, rows: Matrix) -> NDArray[np.intp]:
    """Positions of each row's nearest training rows; both scaled. → (rows, NEIGHBOURS)"""
    index = NearestNeighbors(n_neighbors=min(NEIGHBOURS, len(train))).fit(train)
    return np.asarray(index.kneighbors(rows, return_distance=False))
