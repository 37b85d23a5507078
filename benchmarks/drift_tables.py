"""Rows of the drift benchmarks: ten synthetic tables, ten real ones, and changes of a feature.

Rows of real tables (ADBench, inliers only) are a smoothed bootstrap: rows drawn again from the
inliers, with normal noise of 2 % of the standard deviation in columns of more than 20 values. So
rows of a stream of any length are independent draws of one fixed distribution, the same for
training rows and streams. Columns with two to five values become categories.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

CHANGES = ("mean", "spread", "correlation", "missing", "new category")
MEAN, SPREAD, MISSING, NEW = 0.5, 1.5, 0.1, 0.05  # standard deviations, factor, shares of the cells
REAL = (
    *("1_ALOI", "10_cover", "11_donors", "19_landsat", "22_magic.gamma", "28_pendigits"),
    *("30_satellite", "32_shuttle", "33_skin", "38_thyroid"),
)
_NOISE, _FEWEST_VALUES = 0.02, 20  # of a column with noise
_CATEGORY_VALUES = (2, 5)
# A change of the spread is one if it moves enough cells by enough: a column with mostly one value
# stays as it is. A correlation that is lost is a change if there was one, of columns in which
# enough cells are not the most common value.
_MOVED_CELLS, _MOVED_BY = 0.2, 0.1  # share of cells, standard deviations
_FEWEST_CORRELATED = 0.5

# --- Synthetic tables ----------------------------------------------------------------------------


def _frame(x: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(x, columns=[f"x{j}" for j in range(x.shape[1])])


def _correlated(rng: np.random.Generator, n: int, d: int, r: float) -> np.ndarray:
    own, common = rng.normal(size=(n, d)), rng.normal(size=(n, 1))
    return np.asarray(np.sqrt(1 - r) * own + np.sqrt(r) * common)


def _factors(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    loadings = np.random.default_rng(d).normal(size=(3, d))
    return rng.normal(size=(n, 3)) @ loadings + rng.normal(size=(n, d))


def _clusters(rng: np.random.Generator, n: int) -> np.ndarray:
    centres = 3 * np.random.default_rng(7).normal(size=(5, 6))
    return np.asarray(centres[rng.integers(5, size=n)] + _correlated(rng, n, 6, 0.5))


def _missing(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    x = _correlated(rng, n, d, 0.5)
    x[rng.random((n, d)) < 0.05] = np.nan
    return x


def _mixed(rng: np.random.Generator, n: int) -> pd.DataFrame:
    frame = _frame(_correlated(rng, n, 6, 0.4))
    frame["few"] = np.array(list("abcde"))[np.minimum(rng.geometric(0.4, n), 5) - 1]
    frame["some"] = [f"v{k}" for k in rng.integers(12, size=n)]
    frame["many"] = [f"w{k}" for k in np.minimum(rng.zipf(1.6, n), 3_000)]  # new ones ever after
    return frame


SYNTHETIC: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "independent": lambda rng, n: rng.normal(size=(n, 10)),
    "correlated": lambda rng, n: _correlated(rng, n, 10, 0.6),
    "factors": lambda rng, n: _factors(rng, n, 15),
    "heavy tails": lambda rng, n: (
        _correlated(rng, n, 8, 0.5) / np.sqrt(rng.gamma(1.5, size=(n, 1)))
    ),
    "log-normal": lambda rng, n: np.exp(_correlated(rng, n, 8, 0.5)),
    "counts": lambda rng, n: rng.poisson(3 * np.exp(0.5 * _correlated(rng, n, 8, 0.7))) * 1.0,
    "clusters": _clusters,
    "missing": lambda rng, n: _missing(rng, n, 10),
    "mixed": _mixed,
    "wide": lambda rng, n: _factors(rng, n, 40),
}
TABLES = (*SYNTHETIC, *REAL)

# --- Real tables ---------------------------------------------------------------------------------


@cache
def inliers(path: Path) -> tuple[np.ndarray, np.ndarray, list[list[str] | None]]:
    """Inliers (rows, columns), noise of each column, and the texts of those with few values."""
    with np.load(path) as data:
        x = data["X"][data["y"] == 0].astype(np.float64)
    texts: list[list[str] | None] = []
    noise = _NOISE * x.std(axis=0)
    for j, column in enumerate(x.T):
        values = np.unique(column)
        is_category = _CATEGORY_VALUES[0] <= len(values) <= _CATEGORY_VALUES[1]
        texts.append([f"v{k}" for k in range(len(values))] if is_category else None)
        if is_category:
            x[:, j] = np.searchsorted(values, column)
        if len(values) <= _FEWEST_VALUES:
            noise[j] = 0.0
    return x, noise, texts


def as_frame(x: np.ndarray, texts: Sequence[list[str] | None]) -> pd.DataFrame:
    """Rows with the texts of categories instead of their codes."""
    frame = _frame(x)
    for j, names in enumerate(texts):
        if names is not None:
            frame[f"x{j}"] = np.array(names)[x[:, j].astype(np.intp)]
    return frame


def draw(table: str, rng: np.random.Generator, n: int, folder: Path | None) -> pd.DataFrame:
    """Fresh rows of a table; folder: that of the ADBench tables."""
    if table in SYNTHETIC:
        rows = SYNTHETIC[table](rng, n)
        return rows if isinstance(rows, pd.DataFrame) else _frame(rows)
    assert folder is not None
    known, noise, texts = inliers(folder / f"{table}.npz")
    x = known[rng.integers(len(known), size=n)]
    return as_frame(x + noise * rng.normal(size=x.shape), texts)


# --- Changes -------------------------------------------------------------------------------------


def size(values: Any) -> Any:
    """The standard deviation of a column, or of each, with the outermost 2 % of its values cut off.

    Extreme values make the plain one so large that a shift by half of it is a huge one.
    """
    low, high = values.quantile(0.01), values.quantile(0.99)
    cut = values.clip(low, high, axis=1) if values.ndim == 2 else values.clip(low, high)
    return cut.std()


def changeable(change: str, rows: pd.DataFrame) -> list[str]:
    """The features in which a change is one."""
    numbers = rows.select_dtypes("number")
    if change == "new category":  # "many" has new values without drift
        return [str(name) for name in rows.columns if name not in numbers and name != "many"]
    if change == "missing":
        return [str(name) for name in rows.columns]
    if change == "spread":
        away = (numbers - numbers.median()).abs()
        share = ((SPREAD - 1) * away > _MOVED_BY * size(numbers)).mean()
        return [str(name) for name in numbers if share[name] >= _MOVED_CELLS]
    if change == "correlation":
        varied = [
            name
            for name in numbers
            if (numbers[name] != numbers[name].mode().iloc[0]).mean() >= _MOVED_CELLS
        ]
        related = np.abs(numbers[varied].corr("spearman").to_numpy()) - np.eye(len(varied))
        strong = related.max(axis=0, initial=0.0) > _FEWEST_CORRELATED
        return [str(name) for name, is_strong in zip(varied, strong, strict=True) if is_strong]
    return [str(name) for name in numbers if numbers[name].nunique() > 1]


def changed(frame: pd.DataFrame, change: str, feature: str, rng: np.random.Generator,
            before: pd.DataFrame, amount: float | None = None) -> pd.DataFrame:  # fmt: skip
    """Rows after a change of one feature. before: rows without it; amount: if not the usual one"""
    frame = frame.copy()
    column, known = frame[feature], before[feature]
    if change == "mean":
        frame[feature] = column + (amount or MEAN) * size(known)
    elif change == "spread":
        middle = known.median()
        frame[feature] = middle + (amount or SPREAD) * (column - middle)
    elif change == "correlation":  # the same values, of other rows
        frame[feature] = rng.permutation(column.to_numpy())
    elif change == "missing":
        frame[feature] = column.where(rng.random(len(frame)) >= (amount or MISSING))
    else:
        frame[feature] = column.where(rng.random(len(frame)) >= (amount or NEW), "new")
    return frame
