"""Where the values of a category stand: their order, and their scaled positions.

A pattern has an interval of codes for every category, as it has a range for every number. Values
that go together with the same values of another column get neighbouring codes, so that an interval
is a set of values that belong together. The positions of a category that hardly depends on the
other columns lie close together: patterns could not say much about it, and its error would only
hide others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from ..core.associations import MOST_VALUES
from ..core.scaling.curves import Curve, category_curve
from ..tables.categories import OTHER, code_of_others
from .sampling import Rows

Array = NDArray[np.float64]
Values = tuple[str, ...]
_SWEEPS = 3  # categories that depend on each other settle quickly


def with_ordered_values(
    x: NDArray[Any],
    categories: Mapping[int, Values],
    rows: Rows | None = None,
    former: Mapping[int, Values] | None = None,
) -> tuple[NDArray[Any], dict[int, Values]]:
    """The table with the codes of reordered values, and the values.

    x: (rows, features); rows: those that decide on the order, by default all; former: the values
    of an earlier model, which keep their order
    """
    deciding = x if rows is None else x[rows]
    orders = order_values(deciding, {j: len(values) for j, values in categories.items()})
    for j, values in categories.items():
        orders[j] = _as_before(orders[j], values, (former or {}).get(j, ()))
    x, ordered = x.copy(), {}
    for j, values in categories.items():
        ordered[j] = tuple(values[i] for i in orders[j])
        known = x[:, j] < len(values)
        x[known, j] = np.argsort(orders[j])[x[known, j].astype(np.intp)]
    return x, ordered


def _as_before(order: NDArray[np.intp], values: Values, former: Values) -> NDArray[np.intp]:
    """An order of values in which those of an earlier model have the order that they had there.

    order: (values,) codes in their order now. Each new value follows the one that it follows now.
    """
    place = {value: i for i, value in enumerate(former)}
    known = [place[values[i]] for i in order if values[i] in place]
    if len(known) < 2:
        return order
    if np.corrcoef(known, np.arange(len(known)))[0, 1] < 0:  # the same order from the other end
        order = order[::-1]
    after, keys = -1, []
    for i in order:
        after = place.get(values[i], after)
        keys.append((after, values[i] not in place))
    return np.asarray([order[i] for i in sorted(range(len(order)), key=keys.__getitem__)])


def are_listed(categories: Mapping[int, Values]) -> bool:
    """Whether no category has more values than are learned one by one."""
    return all(len(values) <= MOST_VALUES for values in categories.values())


def with_values_of(
    x: NDArray[Any],
    categories: Mapping[int, Values],
    rows: Rows,
    choosing: Rows | None = None,
    former: Mapping[int, Values] | None = None,
) -> tuple[NDArray[Any], dict[int, Values]]:
    """The table with the codes of the values that some rows have, in a new order; the values.

    Of a column with very many values the most common ones are listed, and all others count as one.
    The values of other rows are treated as those of later tables: as new ones, or as any other one.
    x: (rows, features); choosing: those of the rows that say which values are common, by default
    all; former: as in `with_ordered_values`
    """
    x, found = x.copy(), {}
    for j, values in categories.items():
        codes = np.where(np.isnan(x[:, j]), -1, x[:, j]).astype(np.intp)  # the last: missing
        # In the order of the texts, on which the other rows have no influence.
        there = sorted(np.flatnonzero(_counts(codes[rows], values)), key=values.__getitem__)
        others: Values = ()
        if len(there) > MOST_VALUES:
            counts = _counts(codes[rows if choosing is None else choosing], values)
            there.sort(key=lambda code: -counts[code])
            there, others = there[: MOST_VALUES - 1], (OTHER,)
        found[j] = (*(values[code] for code in there), *others)
        places = np.full(len(values) + 2, float(len(there)))  # of any other value, or a new one
        places[there], places[-1] = np.arange(len(there)), np.nan
        x[:, j] = places[codes]
    return with_ordered_values(x, found, rows, former)


def _counts(codes: NDArray[np.intp], values: Values) -> NDArray[np.intp]:
    """The rows with each value. codes: (rows,) −1 where missing → (values,)"""
    return np.bincount(codes[codes >= 0], minlength=len(values))[: len(values)]


def with_new_values(
    x: NDArray[Any], table: NDArray[Any], categories: Mapping[int, Values]
) -> NDArray[Any]:
    """Rows of a table in which values that no other row has count as those that are not listed.

    x, table: (rows, features). So many of the rows have such values as of the next ones will.
    """
    if not any(categories.values()):
        return x
    x = x.copy()
    for j, values in categories.items():
        codes, count = table[:, j], len(values)
        sizes = np.bincount(codes[codes < count].astype(np.intp), minlength=count)
        single = np.flatnonzero(sizes == 1)
        x[np.isin(x[:, j], single), j] = code_of_others(values)
    return x


def order_values(x: NDArray[Any], n_values: Mapping[int, int]) -> dict[int, NDArray[np.intp]]:
    """For each category the old codes in their new order.

    x: (rows, features) with codes in any order. The values of a category are ordered by the mean
    rank, among their rows, of the column that depends on the category most (by the correlation
    ratio). For another category, the ranks are those of its present order.
    """
    ranks = _all_ranks(x)
    orders = {j: np.arange(count) for j, count in n_values.items()}
    for _ in range(_SWEEPS if len(n_values) > 1 else 1):
        for j, count in n_values.items():
            if count < 2:
                continue
            means = _Dependence.of(x[:, j], count, np.delete(ranks, j, axis=1)).means
            orders[j] = np.argsort(means, kind="stable")
            place = np.argsort(orders[j])
            known = ~np.isnan(x[:, j]) & (x[:, j] < count)
            column = np.full(len(x), np.nan)
            column[known] = place[x[known, j].astype(np.intp)]
            ranks[:, j] = _centered_ranks(column)
    return orders


def category_curves(x: NDArray[Any], n_values: Mapping[int, int]) -> dict[int, Curve]:
    """The scaled positions of the values of each category. x: (rows, features) with final codes"""
    if not n_values:
        return {}
    ranks = _all_ranks(x)
    curves = {}
    for j, count in n_values.items():
        found = _Dependence.of(x[:, j], count, np.delete(ranks, j, axis=1))
        curve = category_curve(found.sizes / max(found.sizes.sum(), 1), found.strength)
        if curve is not None:
            curves[j] = curve
    return curves


class _Dependence(NamedTuple):
    """How the other columns depend on a category.

    sizes: (values,) rows with each value; means: (values,) mean rank of the column that depends on
    it most; strength: the root of its correlation ratio, from 0 to 1.
    """

    sizes: NDArray[np.int64]
    means: Array
    strength: float

    @classmethod
    def of(cls, codes: Array, count: int, others: Array) -> _Dependence:
        """others: (rows, other columns) centered ranks, 0 where missing"""
        known = ~np.isnan(codes) & (codes < count)
        own = codes[known].astype(np.intp)
        sizes = np.bincount(own, minlength=count)
        if not others.shape[1] or not len(own):
            return cls(sizes, -sizes.astype(float), 0.0)
        sums = np.stack([np.bincount(own, column, minlength=count) for column in others[known].T])
        means = sums / np.maximum(sizes, 1)
        total = (others[known] ** 2).sum(axis=0)
        between = (sizes * means**2).sum(axis=1)
        ratio = np.where(total > 0, between / np.where(total > 0, total, 1.0), 0.0)
        most = int(ratio.argmax())
        # What independent columns would show on average.
        by_chance = min((count - 1) / len(own), 1.0)
        return cls(sizes, means[most], float(np.sqrt(max(ratio[most] - by_chance, 0.0))))


def _all_ranks(x: NDArray[Any]) -> Array:
    return np.stack([_centered_ranks(x[:, j]) for j in range(x.shape[1])], axis=1)


def _centered_ranks(column: NDArray[Any]) -> Array:
    """Ranks from −1 to 1 around 0, 0 where missing."""
    column = np.asarray(column, dtype=np.float64)
    known = ~np.isnan(column)
    ranks = np.zeros(len(column))
    if known.sum() > 1:
        found = rankdata(column[known])
        ranks[known] = 2.0 * (found - 0.5) / known.sum() - 1.0
    return ranks
