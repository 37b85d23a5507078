"""The order in which the values of a category stand.

A pattern has an interval of codes for every category, as it has a range for every number. Values that
go together with the same values of another column get neighbouring codes, so that an interval is a set
of values that belong together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

Array = NDArray[np.float64]
Values = tuple[str, ...]
_SWEEPS = 3  # categories that depend on each other settle quickly


def with_ordered_values(
    x: NDArray[Any], categories: Mapping[int, Values]
) -> tuple[NDArray[Any], dict[int, Values]]:
    """The table with the codes of reordered values, and the values. x: (rows, features)"""
    orders = order_values(x, {j: len(values) for j, values in categories.items()})
    x, ordered = x.copy(), {}
    for j, values in categories.items():
        ordered[j] = tuple(values[i] for i in orders[j])
        known = x[:, j] < len(values)
        x[known, j] = np.argsort(orders[j])[x[known, j].astype(np.intp)]
    return x, ordered


def order_values(x: NDArray[Any], n_values: Mapping[int, int]) -> dict[int, NDArray[np.intp]]:
    """For each category the old codes in their new order.

    x: (rows, features) with codes in any order. The values of a category are ordered by the mean rank,
    among their rows, of the column that depends on the category most (by the correlation ratio). For
    another category, the ranks are those of its present order.
    """
    ranks = np.stack([_centered_ranks(x[:, j]) for j in range(x.shape[1])], axis=1)
    orders = {j: np.arange(count) for j, count in n_values.items()}
    for _ in range(_SWEEPS if len(n_values) > 1 else 1):
        for j, count in n_values.items():
            if count < 2:
                continue
            orders[j] = _order_of_one(x[:, j], count, np.delete(ranks, j, axis=1))
            place = np.argsort(orders[j])
            known = ~np.isnan(x[:, j]) & (x[:, j] < count)
            column = np.full(len(x), np.nan)
            column[known] = place[x[known, j].astype(np.intp)]
            ranks[:, j] = _centered_ranks(column)
    return orders


def _order_of_one(codes: Array, count: int, others: Array) -> NDArray[np.intp]:
    """others: (rows, other columns) centered ranks, 0 where missing."""
    known = ~np.isnan(codes) & (codes < count)
    own = codes[known].astype(np.intp)
    sizes = np.bincount(own, minlength=count)
    if not others.shape[1] or not len(own):
        return np.argsort(-sizes, kind="stable")
    sums = np.stack([np.bincount(own, column, minlength=count) for column in others[known].T])
    means = sums / np.maximum(sizes, 1)
    between = (sizes * means**2).sum(axis=1)
    within = np.maximum((others[known] ** 2).sum(axis=0), np.finfo(float).tiny)
    return np.argsort(means[int((between / within).argmax())], kind="stable")


def _centered_ranks(column: NDArray[Any]) -> Array:
    """Ranks from −1 to 1 around 0, 0 where missing."""
    column = np.asarray(column, dtype=np.float64)
    known = ~np.isnan(column)
    ranks = np.zeros(len(column))
    if known.sum() > 1:
        found = rankdata(column[known])
        ranks[known] = 2.0 * (found - 0.5) / known.sum() - 1.0
    return ranks
