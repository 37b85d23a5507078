"""A few short patterns that describe the rows of a model: how they are found and chosen.

A compact pattern is a box in at most a few features. A set of them describes a row in nats, cell
by cell: a cell costs the logarithm of the width of the range that describes it, and more the
farther it lies outside; without a pattern, the width of the whole range. A pattern describes the
cells of a row if that makes them cheaper together. So the description length of normal rows is
what patterns are mined by (minimum description length, with a price for every pattern and
condition), and that of any row tells how far it is from what the patterns say.

Nothing here depends on chance: the places where patterns start are drawn, but always the same ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

Array = NDArray[np.float64]

_FEWEST_ROWS = 5  # that a pattern is mined from
_PRIOR_ROWS = 3.0  # rows of average spread that are added to those of a pattern
_WHOLE_WIDTH = 2.0  # of the range of all rows, in scaled units
_WHOLE_TAIL = 0.1  # how fast a cell costs more outside that range
_SEEDS = 40  # places where a pattern may start
_STEPS = 6  # of improving a pattern
_ROUNDS = 2  # of mining and pruning
_HARD_OUTSIDE, _HARD_TAIL = 0.01, 0.02  # of a range with hard ends
_SETS = 3  # of many patterns, of which one is chosen
_AGREES = 0.05  # difference of rank correlations that does not count
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


_FEW = Way(True, 0.1, 0.03, (0.3, 0.1, 0.05))
_MANY = Way(False, 0.2, 0.1, (0.1, 0.05))


class Box(NamedTuple):
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


def cell_costs(scaled: Array, boxes: list[Box]) -> Array:
    """The description length of every cell, in nats. scaled: (rows, features) → the same shape

    Patterns are tried in their order, and one that describes the cells of its features better than
    what came before takes them over. Close calls are shared, so that there are no jumps. A missing
    cell costs nothing and decides nothing.
    """
    costs = _whole_costs(scaled)
    for box in boxes:
        before = costs[:, box.features]
        after = _box_costs(scaled[:, box.features], box)
        better = np.nansum(before - after, axis=1)
        share = 0.5 * (1.0 + np.tanh(better / 2))[:, None]
        costs[:, box.features] = share * after + (1.0 - share) * before
    return np.asarray(np.nan_to_num(costs))


def _whole_costs(scaled: Array) -> Array:
    return np.asarray(np.log(_WHOLE_WIDTH) + np.maximum(np.abs(scaled) - 1.0, 0.0) / _WHOLE_TAIL)


def _box_costs(scaled: Array, box: Box) -> Array:
    """Cost of the cells (rows, conditions) in the ranges of a box."""
    outside = np.maximum(box.lower - scaled, 0.0) + np.maximum(scaled - box.upper, 0.0)
    return np.asarray(np.log(box.upper - box.lower + 2 * box.tail) + outside / box.tail)


def choose_boxes(
    rows: Rows,
    centers: Array,
    judged: Array,
    scores: Array,
    max_patterns: int,
    max_conditions: int,
) -> list[Box]:
    """The boxes of the few patterns that describe the rows, or of more of them if that says more.

    Several sets are mined. In the first the description tells which rows use a pattern, so it has
    as few patterns as possible; in the others it does not, so they have more patterns, which say
    more about each row. Of these, the one whose description lengths agree best with the order of
    the model's scores is chosen. The first is chosen if it has at most a quarter of the patterns
    that there may be and agrees nearly as well.

    centers: (centers, features) scaled places to start from; judged: (rows, features) scaled rows
    to describe; scores: (rows,) theirs.
    """
    limits = max_patterns, max_conditions
    few = _mined(rows, centers, *limits, _FEW)
    sets = [_mined(rows, centers, *limits, _MANY, seed) for seed in range(_SETS)]
    agreements = [_agreement(boxes, judged, scores) for boxes in sets]
    many = sets[int(np.argmax(agreements))]
    if len(few) <= max_patterns / 4 or not many:
        many = few if _agreement(few, judged, scores) >= max(agreements) - _AGREES else many
    if not many:  # nothing varies
        features = np.arange(min(max_conditions, rows.scaled.shape[1]))
        many = [_only(_box_of(rows, np.arange(len(rows.scaled)), _FEW), features)]
    return many


def _agreement(boxes: list[Box], judged: Array, scores: Array) -> float:
    """Rank correlation of description lengths with scores; −1 if there is none."""
    lengths = cell_costs(judged, boxes).sum(axis=1)
    if not boxes or np.ptp(lengths) == 0 or np.ptp(scores) == 0:
        return -1.0
    return float(spearmanr(lengths, scores)[0])


def _box_of(rows: Rows, members: NDArray[np.intp], way: Way) -> Box:
    """The box of some rows in every feature."""
    scaled, count = rows.scaled[members], len(members)
    lower, upper = np.quantile(scaled, [way.outside, 1.0 - way.outside], axis=0)
    spread = ((upper - lower) / 2 * count + rows.spread * _PRIOR_ROWS) / (count + _PRIOR_ROWS)
    return Box(np.arange(scaled.shape[1]), lower, upper, spread / 2 + way.softness)


def _only(box: Box, features: NDArray[np.intp]) -> Box:
    ends = (array[features] for array in (box.lower, box.upper, box.tail))
    return Box(box.features[features], *ends)


class Mined(NamedTuple):
    """A box that shortens the description of the rows.

    gain: by how much, in nats; odds: what a row must gain to use the box, if it uses no other, and
    if it does.
    """

    gain: float
    box: Box
    odds: Array


def _mined(
    rows: Rows,
    centers: Array,
    max_patterns: int,
    max_conditions: int,
    way: Way,
    seed: int = 0,
) -> list[Box]:
    """Patterns mined one after the other, each the one that shortens the description most.

    A pattern starts with the rows nearest to a center (a share of all rows), or, where it is told
    which rows use a pattern, with those that use none. When no other pattern gains anything, each
    is taken out in turn and put back only as far as it is still needed beside the others, and there
    may be room for more.
    """
    n_rows = len(rows.scaled)
    rng = np.random.default_rng(seed)
    mined: list[Mined] = []
    for _ in range(_ROUNDS if way.tells else 1):
        while len(mined) < max_patterns:
            now = _described(rows.scaled, mined)
            best: Mined | None = None
            chosen = rng.choice(len(centers), min(_SEEDS, len(centers)), replace=False)
            starts = [np.flatnonzero(~now.used)] if way.tells else []
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
    return [_with_long_tails(one.box, way.softness) for one in mined]


def _with_long_tails(box: Box, softness: float) -> Box:
    return box._replace(tail=np.maximum(box.tail, (box.upper - box.lower) / 4 + softness))


class Described(NamedTuple):
    """What the cells cost (rows, features), and whether rows use any pattern (rows,)."""

    costs: Array
    used: NDArray[np.bool_]


def _described(scaled: Array, mined: list[Mined]) -> Described:
    """The description of rows by patterns, each cell by one or none."""
    now = Described(_whole_costs(scaled), np.zeros(len(scaled), dtype=bool))
    for one in mined:
        uses, after = _uses(scaled, now, one)
        now.costs[np.ix_(uses, one.box.features)] = after[uses]
        now.used[uses] = True
    return now


def _uses(scaled: Array, now: Described, one: Mined) -> tuple[NDArray[np.bool_], Array]:
    """Which rows use a pattern (rows,), and what its cells then cost (rows, conditions)."""
    after = _box_costs(scaled[:, one.box.features], one.box)
    gain = (now.costs[:, one.box.features] - after).sum(axis=1)
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
        whole = _box_of(rows, members, way)
        if way.tells:
            whole = _with_hard_ends(rows, members, whole)
        gains = now.costs - _box_costs(rows.scaled, whole)
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


def _with_hard_ends(rows: Rows, members: NDArray[np.intp], soft: Box) -> Box:
    """The same box with ranges of nearly all rows and short tails, where that is a shorter code."""
    scaled = rows.scaled[members]
    lower, upper = np.quantile(scaled, [_HARD_OUTSIDE, 1.0 - _HARD_OUTSIDE], axis=0)
    hard = soft._replace(lower=lower, upper=upper, tail=np.full(len(lower), _HARD_TAIL))
    shorter = _box_costs(scaled, hard).sum(axis=0) < _box_costs(scaled, soft).sum(axis=0)
    lower, upper, tail = (np.where(shorter, *ends) for ends in zip(hard[1:], soft[1:], strict=True))
    return Box(soft.features, lower, upper, tail)
