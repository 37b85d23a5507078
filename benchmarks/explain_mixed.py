"""Explanations on real tables with text: broken dependencies, and the known errors of diamonds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import real_data
from diffint import DiffInt, find_anomalies
from explain_lines import Line
from explain_measures import MEASURES
from explain_planting import BROKEN, break_dependencies, nearest_rows
from explain_rivals import (
    LENIENT,
    ORDER,
    OUTLIER_TREE,
    SHOWN,
    WITHOUT,
    columns_named,
    deviations_without,
    features_shown,
    fit_outlier_tree,
    missing_package,
)

Matrix = NDArray[np.float64]

MOST_ROWS = 8_000  # to train on
NONE = -1  # no column is named
SHARE = "share of the score (ours)"
_FAR = 6.0  # standard deviations beyond which a value is wrong by itself
_LARGEST_SIZE = 12.0  # of a diamond, in mm
_TREES = {OUTLIER_TREE: {}, f"{OUTLIER_TREE}, lenient": LENIENT}


def diamonds_without_errors() -> pd.DataFrame:
    """The diamonds but for their known errors."""
    table = real_data.diamonds()
    return table[~real_data.diamond_errors(table)[0]]


MIXED: dict[str, Callable[[], pd.DataFrame]] = {
    "diamonds": diamonds_without_errors,
    "flights": real_data.flights,
    "weather": real_data.weather,
    "penguins": real_data.penguins,
}


def measure_mixed(name: str, seed: int, n_rows: int, settings: dict[str, Any]) -> Iterator[Line]:
    """Which changed numbers are found in a table with categories."""
    table, rng = MIXED[name](), np.random.default_rng(seed)
    chosen = rng.permutation(len(table))[: 2 * MOST_ROWS]
    train, test = (table.iloc[part] for part in np.array_split(chosen, 2))
    before = test.iloc[:n_rows].reset_index(drop=True)
    is_number = np.array([pd.api.types.is_numeric_dtype(table[c]) for c in table])
    numbers = list(table.columns[is_number])
    detector = DiffInt(random_state=seed, n_jobs=1, **settings).fit(train)
    trees = {
        method: fit_outlier_tree(train, **lenience)
        for method, lenience in _TREES.items()
        if missing_package(method) is None
    }
    nearest = nearest_rows(*real_data.one_hot(train, before))
    for kind, count in BROKEN.items():
        planted = break_dependencies(
            train[numbers].to_numpy(float), before[numbers].to_numpy(float), nearest, count, rng
        )
        rows = before.iloc[planted.place].reset_index(drop=True)
        rows[numbers] = planted.rows
        changed = np.zeros(rows.shape, dtype=bool)
        changed[:, is_number] = planted.changed
        why = detector.explain(rows)
        attributions = {ORDER: why.doubt, SHOWN: features_shown(why)}
        attributions |= {method: columns_named(tree, rows) for method, tree in trees.items()}
        attributions[WITHOUT] = _without_column(train, rows, is_number)
        for method, attribution in attributions.items():
            for figure, measure in MEASURES.items():
                value = measure(attribution, changed)
                yield Line("mixed", name, seed, kind, method, figure, value)


def _without_column(
    train: pd.DataFrame, rows: pd.DataFrame, is_number: NDArray[np.bool_]
) -> Matrix:
    """`deviations_without` with one column per value of a category. → (rows, columns)"""
    values = pd.concat([train, rows]).nunique()
    places = np.concatenate([np.flatnonzero(is_number), np.flatnonzero(~is_number)])
    groups, start = [], 0
    for place in places.tolist():  # numbers are first among the columns of `one_hot`
        width = 1 if is_number[place] else int(values.iloc[place])
        groups.append(range(start, start + width))
        start += width
    found = deviations_without(*real_data.one_hot(train, rows), [list(g) for g in groups])
    return found[:, np.argsort(places)]


def culprits(table: pd.DataFrame) -> dict[int, set[str]]:
    """The wrong columns of the diamonds with known errors, by position; without unclear ones.

    Of a gross error, the sizes that are impossible. Of another one, the columns that mend all
    physical rules if replaced by what the others say, and values that are far from the mean.
    """
    errors, gross = real_data.diamond_errors(table)
    names = ["x", "y", "z", "depth", "carat"]
    density = float(np.median((table["carat"] / (table["x"] * table["y"] * table["z"]))[~gross]))
    numbers = table.select_dtypes("number")
    ordinary = numbers[~errors]
    found = {}
    for i in np.flatnonzero(errors).tolist():
        row = numbers.iloc[i]
        if gross[i]:
            found[i] = {c for c in "xyz" if row[c] == 0 or row[c] > _LARGEST_SIZE}
            continue
        x, y, z, depth, carat = row[names].astype(float)
        mended = {
            "x": {"x": y},
            "y": {"y": x},
            "z": {"z": depth * (x + y) / 200},
            "depth": {"depth": 200 * z / (x + y)},
            "carat": {"carat": density * x * y * z},
        }
        own = dict(zip(names, (x, y, z, depth, carat), strict=True))
        wrong = {c for c, new in mended.items() if not _contradicts(density, **(own | new))}
        far = np.abs(row - ordinary.mean()) > _FAR * ordinary.std()
        found[i] = wrong | set(numbers.columns[far])
    return {i: wrong for i, wrong in found.items() if wrong}


def _contradicts(
    usual_density: float, x: float, y: float, z: float, depth: float, carat: float
) -> bool:
    """Whether a diamond breaks one of the rules of `real_data.diamond_errors`."""
    density = carat / (x * y * z)
    return bool(
        abs(200 * z / (x + y) - depth) > 5
        or abs(x / y - 1) > 0.08
        or abs(np.log(density / usual_density)) > np.log(1.25)
    )


def measure_diamonds(seed: int, settings: dict[str, Any]) -> Iterator[Line]:
    """How often the first reason of a known error is the wrong column."""
    table = real_data.diamonds()
    gross, known = real_data.diamond_errors(table)[1], culprits(table)
    rows = table.iloc[list(known)]
    columns = list(table.columns)
    wrong = np.array([[name in names for name in columns] for names in known.values()])
    detector = find_anomalies(table, random_state=seed, n_jobs=1, **settings).detector
    why = detector.explain(rows)
    first = {
        ORDER: why.order[:, 0],
        SHOWN: np.array([(why.doubted(i, 1) or [NONE])[0] for i in range(len(why))]),
        SHARE: why.share.argmax(axis=1),
    }
    for method, lenience in _TREES.items():
        if missing_package(method) is None:
            named = columns_named(fit_outlier_tree(table, **lenience), rows)
            first[method] = np.where(named.any(axis=1), named.argmax(axis=1), NONE)
    for kind, chosen in (("gross", gross[list(known)]), ("subtle", ~gross[list(known)])):
        for method, column in first.items():
            right = (column != NONE) & wrong[np.arange(len(wrong)), column]
            yield Line("diamonds", "diamonds", seed, kind, method, "right", right[chosen].sum())
            yield Line("diamonds", "diamonds", seed, kind, method, "rows", chosen.sum())
