"""Compact patterns mined from normal rows by minimum description length.

A set of patterns describes a row in nats, cell by cell: a cell costs the logarithm of the width of
the range that describes it, and more the farther it lies outside; without a pattern, the width of
the whole range. A pattern describes the cells of a row if that makes them cheaper together. Every
pattern and condition has a price, and those are mined that make the description of all rows
shortest.

Nothing here depends on chance: the places where patterns start are drawn, but always the same ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .compact import Box, beyond

Array = NDArray[np.float64]

_FEWEST_ROWS = 5  # that a pattern is mined from
_PRIOR_ROWS = 3.0  # rows of average spread that are added to those of a pattern
_WHOLE_WIDTH = 2.0  # of the range of all rows, in scaled units
_SEEDS = 40  # places where a pattern may start, of each kind
_CROWDED_SHARES = (0.5, 0.3, 0.15)  # of rows that use no pattern, which are close in one feature
_STEPS = 6  # of improving a pattern
_ROUNDS = 2  # of mining and pruning
_HARD_OUTSIDE, _HARD_TAIL = 0.01, 0.02  # of a range with hard ends
_SPREAD_LIMIT = 0.02  # smallest spread of a feature


class Way(NamedTuple):
    """A way of mining.

    tells: whether the description tells which rows use a pattern. outside: share of rows at either
    side of a range; softness: what the tail of a range has besides its spread; shares: of all rows,
    that a pattern starts with.
    """

    tells: bool
    outside: float
    softness: float
    shares: tuple[float, ...]


FEW = Way(True, 0.1, 0.03, (0.3, 0.1, 0.05))  # as few patterns as possible
MANY = Way(False, 0.2, 0.1, (0.1, 0.05))  # more of them, which say more about each row


class Ranges(NamedTuple):
    """Ranges of a few features, in scaled units; all arrays have the shape (conditions,).

    tail: distance outside the range that costs one nat.
    """

    features: NDArray[np.intp]
    lower: Array
    upper: Array
    tail: Array


class Rows(NamedTuple):
    """Scaled rows (rows, features) to mine, and what is known of all of them.

    spread: (features,) mean distance from the median; weight: (features,) of differences between
    rows; varies: (features,) whether a feature has several values.
    """

    scaled: Array
    spread: Array
    weight: Array
    varies: NDArray[np.bool_]

    @classmethod
    def of(cls, scaled: Array, weight: Array) -> Rows:
        spread = np.abs(scaled - np.median(scaled, axis=0)).mean(axis=0) + _SPREAD_LIMIT
        return cls(scaled, spread, weight, np.ptp(scaled, axis=0) > 0)


def _whole_costs(scaled: Array) -> Array:
    return np.asarray(np.log(_WHOLE_WIDTH) + beyond(scaled))


def _range_costs(scaled: Array, box: Ranges) -> Array:
    """Cost of the cells (rows, conditions) in ranges."""
    outside = np.maximum(box.lower - scaled, 0.0) + np.maximum(scaled - box.upper, 0.0)
    return np.asarray(np.log(box.upper - box.lower + 2 * box.tail) + outside / box.tail)


def _ranges_of(rows: Rows, members: NDArray[np.intp], way: Way) -> Ranges:
    """The ranges of some rows in every feature."""
    scaled, count = rows.scaled[members], len(members)
    lower, upper = np.quantile(scaled, [way.outside, 1.0 - way.outside], axis=0)
    spread = ((upper - lower) / 2 * count + rows.spread * _PRIOR_ROWS) / (count + _PRIOR_ROWS)
    return Ranges(np.arange(scaled.shape[1]), lower, upper, spread / 2 + way.softness)


def _only(ranges: Ranges, features: NDArray[np.intp]) -> Ranges:
    ends = (array[features] for array in (ranges.lower, ranges.upper, ranges.tail))
    return Ranges(ranges.features[features], *ends)


class Mined(NamedTuple):
    """Ranges that shorten the description of the rows.

    gain: by how much, in nats; odds: what a row must gain to use them, if it uses no others, and if
    it does.
    """

    gain: float
    ranges: Ranges
    odds: Array


def mine(
    rows: Rows,
    centers: Array,
    max_patterns: int,
    max_conditions: int,
    way: Way,
) -> list[Box]:
    """Patterns mined one after the other, each the one that shortens the description most.

    A pattern starts with the rows nearest to a center (a share of all rows). Where it is told which
    rows use a pattern, it may also start with those that use none, or with the most crowded of
    them in one feature: if few features matter, a center's nearest rows are any rows. When no other
    pattern gains anything, each is taken out in turn and put back only as far as it is still needed
    beside the others, and there may be room for more.
    """
    n_rows = len(rows.scaled)
    rng = np.random.default_rng(0)
    mined: list[Mined] = []
    for _ in range(_ROUNDS if way.tells else 1):
        while len(mined) < max_patterns:
            now = _described(rows.scaled, mined)
            best: Mined | None = None
            chosen = rng.choice(len(centers), min(_SEEDS, len(centers)), replace=False)
            free = np.flatnonzero(~now.used)
            starts = [free, *_crowded(rows, free)] if way.tells else []
            for place, center in enumerate(centers[chosen]):
                distance = np.abs(rows.scaled - center) @ rows.weight
                share = way.shares[place % len(way.shares)]
                count = min(max(int(n_rows * share), _FEWEST_ROWS), n_rows)
                starts.append(np.argpartition(distance, count - 1)[:count])
            for members in starts:
                grown = _grown(rows, now, members, max_conditions, way)
                if grown and (best is None or grown.gain > best.gain):
                    best = grown
            if best is None:
                break
            mined.append(best)
        if not way.tells:
            break
        for one in list(mined):
            mined = [other for other in mined if other is not one]
            now = _described(rows.scaled, mined)
            members = np.flatnonzero(_uses(rows.scaled, now, one)[0])
            grown = _grown(rows, now, members, max_conditions, way)
            if grown:
                mined.append(grown)
    # Short tails tell rows apart that belong to a pattern; long ones, how far others are from it.
    return [_as_box(one.ranges, way.softness) for one in mined]


def _crowded(rows: Rows, free: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """For each feature the rows in its shortest ranges with certain shares of some rows.

    Only those that are shortest for their shares, relative to the whole range of these rows.
    free: (n,) numbers of the rows
    """
    found: list[tuple[float, NDArray[np.intp]]] = []
    for j in np.flatnonzero(rows.varies).tolist():
        order = free[np.argsort(rows.scaled[free, j], kind="stable")]
        values = rows.scaled[order, j]
        for share in _CROWDED_SHARES:
            count = int(share * len(free))
            if count < _FEWEST_ROWS:
                continue
            widths = values[count - 1 :] - values[: len(free) - count + 1]
            first = int(widths.argmin())
            crowding = np.ptp(values) * share / max(widths[first], _SPREAD_LIMIT)
            found.append((count * np.log(max(crowding, 1.0)), order[first : first + count]))
    found.sort(key=lambda one: -one[0])
    return [members for _, members in found[:_SEEDS]]


def box_of_all(rows: Rows, max_conditions: int) -> Box:
    """A pattern of all rows; for rows in which nothing varies."""
    ranges = _ranges_of(rows, np.arange(len(rows.scaled)), FEW)
    return _as_box(_only(ranges, np.arange(min(max_conditions, rows.scaled.shape[1]))), 0.0)


def _as_box(ranges: Ranges, softness: float) -> Box:
    tail = np.maximum(ranges.tail, (ranges.upper - ranges.lower) / 4 + softness)
    worth = np.log(_WHOLE_WIDTH / (ranges.upper - ranges.lower + 2 * tail)).sum()
    return Box(ranges.features, ranges.lower, ranges.upper, tail, float(worth))


class Described(NamedTuple):
    """What the cells cost (rows, features), and whether rows use any pattern (rows,)."""

    costs: Array
    used: NDArray[np.bool_]


def _described(scaled: Array, mined: list[Mined]) -> Described:
    """The description of rows by patterns, each cell by one or none."""
    now = Described(_whole_costs(scaled), np.zeros(len(scaled), dtype=bool))
    for one in mined:
        uses, after = _uses(scaled, now, one)
        now.costs[np.ix_(uses, one.ranges.features)] = after[uses]
        now.used[uses] = True
    return now


def _uses(scaled: Array, now: Described, one: Mined) -> tuple[NDArray[np.bool_], Array]:
    """Which rows use a pattern (rows,), and what its cells then cost (rows, conditions)."""
    after = _range_costs(scaled[:, one.ranges.features], one.ranges)
    gain = (now.costs[:, one.ranges.features] - after).sum(axis=1)
    return gain > one.odds[now.used.astype(np.intp)], after


def _grown(
    rows: Rows,
    now: Described,
    members: NDArray[np.intp],
    max_conditions: int,
    way: Way,
) -> Mined | None:
    """A pattern that starts with some rows; None if there is none that shortens the description.

    The conditions that gain most are chosen for these rows, then the rows for which the conditions
    gain, in turn. Every condition costs log(rows) nats, and so does the pattern: about the price of
    two ends.
    """
    n_rows = len(rows.scaled)
    price = np.log(n_rows)
    best: Mined | None = None
    for _ in range(_STEPS):
        if len(members) < _FEWEST_ROWS:
            break
        whole = _ranges_of(rows, members, way)
        if way.tells:
            whole = _with_hard_ends(rows, members, whole)
        gains = now.costs - _range_costs(rows.scaled, whole)
        by_feature = np.where(rows.varies, gains[members].sum(axis=0) - price, 0.0)
        features = np.argsort(-by_feature, kind="stable")[:max_conditions]
        features = np.sort(features[by_feature[features] > 0])
        by_row = gains[:, features].sum(axis=1)
        odds = _odds(now.used, members) if way.tells else np.zeros(2)
        members = np.flatnonzero(by_row > odds[now.used.astype(np.intp)])
        told = _told(now.used, members) if way.tells else 0.0
        gain = float(by_row[members].sum() - told - price * (len(features) + 1))
        if gain <= (best.gain if best else 0.0):
            break
        best = Mined(gain, _only(whole, features), odds)
    return best


def _shares(used: NDArray[np.bool_], members: NDArray[np.intp]) -> list[tuple[int, float]]:
    """Of rows that use no other pattern, and of rows that do: their number, and members' share."""
    return [
        (int(kind.sum()), float(kind[members].sum() / max(kind.sum(), 1))) for kind in (~used, used)
    ]


def _told(used: NDArray[np.bool_], members: NDArray[np.intp]) -> float:
    """Nats to tell which rows use a pattern."""
    return float(
        -sum(
            count * p * np.log(p)
            for count, share in _shares(used, members)
            for p in (share, 1.0 - share)
            if p > 0
        )
    )


def _odds(used: NDArray[np.bool_], members: NDArray[np.intp]) -> Array:
    """How many nats a row must gain to use a pattern that the members use. → (2,)"""
    shares = np.clip([share for _, share in _shares(used, members)], 1e-3, 1.0 - 1e-3)
    return np.asarray(np.maximum(np.log(1.0 - shares) - np.log(shares), 0.0))


def _with_hard_ends(rows: Rows, members: NDArray[np.intp], soft: Ranges) -> Ranges:
    """The same with ranges of nearly all rows and short tails, where that is a shorter code."""
    scaled = rows.scaled[members]
    lower, upper = np.quantile(scaled, [_HARD_OUTSIDE, 1.0 - _HARD_OUTSIDE], axis=0)
    hard = soft._replace(lower=lower, upper=upper, tail=np.full(len(lower), _HARD_TAIL))
    shorter = _range_costs(scaled, hard).sum(axis=0) < _range_costs(scaled, soft).sum(axis=0)
    lower, upper, tail = (np.where(shorter, *ends) for ends in zip(hard[1:], soft[1:], strict=True))
    return Ranges(soft.features, lower, upper, tail)
