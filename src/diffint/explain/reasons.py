"""Reasons: why values of a row are in doubt, the most doubted first."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.constants import COMMONLY_MISSING
from ..tables.categories import OTHER

if TYPE_CHECKING:
    from .local_explanation import LocalExplanation

Array = NDArray[np.float64]

MOST_DOUBTED = 3  # features that cannot tell which rows are comparable
_MORE_TRIED = 1  # features that are looked at beyond the number of reasons
_LEAST_DOUBT = 0.1  # beside the most doubted value, of a value that is in doubt too
_CLEAR_DOUBT = 0.3  # the same of a value that is next to its range
_ALSO_DOUBTED = 0.2  # the same of a condition that may be what is wrong instead
_WEAK, _MUCH_SHARPER = 0.5, 2.0  # gap of a weak reason, and ratio of the gap of a better one
_NEXT_TO = 0.2  # gap below which a value is next to its range
_DIFFERENT = 0.05  # training ranges between a value and one that would fit better
_BARELY = 0.01  # training ranges beyond all training values, below which a value is not a new one
_RARE = 0.01  # share of training rows that have a rare value
_ALL_RARE = 0.02  # the same of all values that are as rare: of many values, some always are
_SELDOM = 0.25  # how often a value occurs beside another one, relative to what is usual for it
_POWERS = (-3, -2, -1, 1, 2, 3)  # of ten, by which a value in another unit may be off
# Factors by which what would fit may differ from such a power times the value: one that training
# rows could have, and one beyond all of theirs.
_OTHER_UNIT, _OTHER_UNIT_BEYOND = 1.3, 2.0


class Kind(Enum):
    """What is wrong with a value."""

    MISSING = "missing"  # though training rows have one
    CONSTANT = "constant"  # another than the single value of all training rows
    BEYOND = "beyond"  # below or above all training values
    RANGE = "range"  # outside the range of comparable training rows
    PATTERN = "pattern"  # outside the range of the nearest pattern
    NEW = "new"  # a value of a category that no training row has
    RARE = "rare"  # a value of a category that few training rows have
    CLASH = "clash"  # hardly any training row has it beside the value of another column


class Condition(NamedTuple):
    """A range of one feature; for a category both ends are the position of its value."""

    feature: int
    lower: float
    upper: float


@dataclass(frozen=True)
class Reason:
    """Why a value is in doubt: comparable training rows keep a range that it is outside of.

    value: NaN if missing. expected: what comparable rows have in the middle, of a category most of
    them; NaN if unknown.
    power: what is expected is this power of ten times the value, which may be in another unit, or
    have its decimal point elsewhere; 0 if not. (Of whole numbers, about that times the value.)
    lower, upper: the range; NaN if there is none. coverage: the share of new comparable rows that
    is expected inside the range, or to have another value. support: number of comparable training
    rows that were looked at. No conditions: all training rows are comparable. near: of a number
    that hardly any comparable row is near, which values are near it.
    """

    feature: int
    kind: Kind
    value: float
    expected: float = np.nan
    lower: float = np.nan
    upper: float = np.nan
    coverage: float = np.nan
    support: int = 0
    conditions: tuple[Condition, ...] = ()
    near: Condition | None = None
    power: int = 0

    @property
    def side(self) -> int:
        """−1 below the range, 1 above, 0 if there is none."""
        return int(self.value > self.upper) - int(self.value < self.lower)

    @property
    def gap(self) -> float:
        """How far the value is outside the range, in widths of the range."""
        outside = max(self.lower - self.value, self.value - self.upper)
        width = self.upper - self.lower
        return outside / width if width > 0 else np.inf

    @property
    def weak(self) -> bool:
        """Whether the value is only a little outside the range of comparable rows."""
        return self.kind is Kind.RANGE and self.gap < _WEAK

    @property
    def next_to_range(self) -> bool:
        """Whether the value is only just outside the range of comparable rows."""
        return self.kind is Kind.RANGE and self.gap < _NEXT_TO


def find_reasons(why: LocalExplanation, row: int, most: int) -> tuple[Reason, ...]:
    """The reasons of a row, the most doubted first; at most `most`, none if nothing is odd.

    most: MOST_DOUBTED or more; fewer than that are the first of these.
    These are values that no training row has, and values in doubt that comparable rows do not have.
    The first value that is compared may also be compared by others in doubt, if its reason is weak
    otherwise: two values may contradict only each other. Values next to their range are reasons
    only if they are clearly in doubt. A rare value is a reason if there is no other.
    """
    order, doubt = why.order[row], why.doubt[row]
    by = _Comparison.of(why, row)
    by_doubted = by._replace(doubted=_beyond_training(why, row))
    found: list[Reason] = []
    relied_on: set[int] = set()  # what a reason compares by is not in doubt
    tried = [j for j in order[: most + _MORE_TRIED].tolist() if doubt[j] > 0]
    # Whether a row has a reason does not depend on how many are asked for.
    first_tried = tried[: MOST_DOUBTED + _MORE_TRIED]
    in_doubt = [j for j in tried if doubt[j] >= _LEAST_DOUBT * doubt[order[0]]]
    is_first = True
    for j in tried:
        if j not in first_tried and not found:
            break
        reason = _never_seen(why, row, j, by)
        if reason is None and j in in_doubt and j not in relied_on:
            reason = _compared(why, row, j, by)
            if is_first and (reason is None or reason.weak):
                reason = _sharper(reason, _compared(why, row, j, by_doubted))
            # A category that has no reason leaves this to the next value: it has no range.
            is_first = is_first and reason is None and j in why.categories
            # The text of a flagged row without a reason names the most doubted value, which is
            # wrong more often than another one next to its range.
            instead = not found and j != order[0] and why.flagged[row]
            clear = not instead and doubt[j] >= _CLEAR_DOUBT * doubt[order[0]]
            if reason and reason.next_to_range and not clear:
                continue
        if reason is not None:
            found.append(reason)
            relied_on.update(condition.feature for condition in reason.conditions)
            by = by._replace(doubted=[*by.doubted, j])
    if not found:
        rare = (_rare(why, row, j) for j in first_tried if j in why.categories)
        found = list(islice(filter(None, rare), 1))
    return tuple(found[:most])


def reason_of(why: LocalExplanation, row: int, j: int) -> Reason | None:
    """The reason to doubt one value, None if it is not odd."""
    known = next((reason for reason in why.reasons_of(row) if reason.feature == j), None)
    by = _Comparison.of(why, row)
    return known or _never_seen(why, row, j, by) or _compared(why, row, j, by)


def wrong_instead(why: LocalExplanation, row: int, reason: Reason) -> int | None:
    """The feature of a condition that is in doubt too: the two values contradict each other."""
    doubt, least = why.doubt[row], _ALSO_DOUBTED * why.doubt[row].max()
    also = [c.feature for c in reason.conditions if doubt[c.feature] >= least > 0]
    return max(also, key=lambda j: doubt[j], default=None)


def better_value(why: LocalExplanation, row: int, j: int) -> float:
    """What would fit all the rest of a row, of a category its position; NaN if its own does.

    Also NaN if there is no rest, or if it is not a value with a name.
    """
    if len(why.feature_names) == 1:
        return np.nan
    by = _Comparison(why.scaled[row], [])
    if j not in why.categories:
        return _fitting_if_other(why, row, j, by)
    return _named_if_other(why, row, j, by)


def _named_if_other(why: LocalExplanation, row: int, j: int, by: _Comparison) -> float:
    """`_fitting` of a category; NaN if that is not a value with a name, or the row's own."""
    better, values = _fitting(why, row, j, by), why.categories[j]
    named = 0 <= better < len(values) and better % 1 == 0 and values[int(better)] != OTHER
    return better if named and better != why.value[row, j] else np.nan


def _sharper(one: Reason | None, other: Reason | None) -> Reason | None:
    """The first reason, or the other one if the first is weak and the other much sharper."""
    if one is None or other is None:
        return one or other
    sharper = other.kind is Kind.RANGE and other.gap > _MUCH_SHARPER * one.gap
    return other if one.weak and sharper else one


class _Comparison(NamedTuple):
    """What finds comparable rows: a row's scaled values, and those that cannot, being in doubt."""

    scaled: Array
    doubted: list[int]

    @classmethod
    def of(cls, why: LocalExplanation, row: int) -> _Comparison:
        doubt, order = why.doubt[row], why.order[row]
        first = order[: min(MOST_DOUBTED, len(order) // 2)]
        doubted = [int(j) for j in first if doubt[j] > _LEAST_DOUBT * doubt[order[0]]]
        return cls(why.scaled[row], list({*doubted, *_beyond_training(why, row)}))


def _beyond_training(why: LocalExplanation, row: int) -> list[int]:
    """The features with a value below or above all training values, of categories not all."""
    value, reach = why.value[row], _BARELY * (why.largest - why.smallest)
    beyond = (value < why.smallest - reach) | (value > why.largest + reach)
    return np.flatnonzero(beyond).tolist()


def _fitting(why: LocalExplanation, row: int, j: int, by: _Comparison) -> float:
    """What comparable rows have, or else what the model expects."""
    fitting = float(why.expected[row, j])
    if why.comparable is not None:
        fitting = why.comparable.fitting(by.scaled, by.doubted, j)
    return float(np.round(fitting)) if why.whole[j] else fitting


def _fitting_if_other(why: LocalExplanation, row: int, j: int, by: _Comparison) -> float:
    """`_fitting`; NaN if the row has nearly that."""
    fitting, value = _fitting(why, row, j, by), float(why.value[row, j])
    span = float(why.largest[j] - why.smallest[j])
    if why.comparable is None:
        apart = abs(fitting - value) / span if span > 0 else 0.0
    else:
        apart = why.comparable.apart(j, fitting, value)
    return fitting if apart > _DIFFERENT else np.nan


def _never_seen(why: LocalExplanation, row: int, j: int, by: _Comparison) -> Reason | None:
    """The reason to doubt a value that no training row has, or a missing one that they have."""
    value = float(why.value[row, j])
    if np.isnan(value):
        often = float(why.missing_share[j])
        if often >= COMMONLY_MISSING or (row, j) in why.new_texts:  # a time beyond training times
            return None
        return Reason(j, Kind.MISSING, value, coverage=1 - often, support=why.n_rows)
    if j in why.categories:
        if 0 <= value < len(why.categories[j]):
            return None
        return Reason(j, Kind.NEW, value, coverage=1.0, support=int(why.clashes[j].n_all[row]))
    lower, upper = float(why.lower[row, j]), float(why.upper[row, j])
    if why.constant[j] and value != lower:
        return Reason(j, Kind.CONSTANT, value, lower, lower, upper, 1.0, why.n_rows)
    if why.constant[j] or j not in _beyond_training(why, row):
        return None
    low, high = float(why.smallest[j]), float(why.largest[j])
    expected = float(np.clip(_fitting(why, row, j, by), low, high))  # it may be rounded
    found = Reason(j, Kind.BEYOND, value, expected, low, high, 1.0, why.n_rows)
    return _with_power(why, row, found, by)


def _compared(why: LocalExplanation, row: int, j: int, by: _Comparison) -> Reason | None:
    """The reason to doubt a value that training rows have, but comparable ones do not."""
    if np.isnan(why.value[row, j]) or why.constant[j]:
        return None
    clash = _clash(why, row, j, by)
    if j in why.categories:
        return clash
    if why.comparable is None:
        return clash or _outside_pattern(why, row, j, by)
    found = why.comparable.reason(why.value[row], by.scaled, by.doubted, j)
    return clash if found is None else _with_power(why, row, found, by)


def _with_power(why: LocalExplanation, row: int, reason: Reason, by: _Comparison) -> Reason:
    """The reason with a power of ten times the value as what would fit, where that does.

    It must be near what is expected, and no power but this one may lead into the range, or it may
    be by chance; and the row must have no clear reason to doubt that value.
    """
    value, j = reason.value, reason.feature
    if j in why.starts:  # days have no decimal point in another place
        return reason
    with np.errstate(over="ignore"):
        moved = value * 10.0 ** np.array(_POWERS)
    (inside,) = np.nonzero((reason.lower <= moved) & (moved <= reason.upper))
    if len(inside) != 1 or not value * reason.expected > 0:
        return reason
    fits, power = float(moved[inside[0]]), _POWERS[inside[0]]
    most = _OTHER_UNIT_BEYOND if reason.kind is Kind.BEYOND else _OTHER_UNIT
    if not 1 / most <= reason.expected / fits <= most:
        return reason
    if why.comparable is not None:
        changed = why.value[row].copy()
        changed[j] = fits
        scaled = why.comparable.scale(changed[None])[0]
        doubted = why.comparable.reason(changed, scaled, by.doubted, j)
        if doubted is not None and not doubted.weak:
            return reason
    if why.whole[j]:
        if not np.isclose(fits, np.round(fits), rtol=1e-9, atol=0):
            # Times ten, a rounded value in another unit; a part of a whole number would be whole.
            return replace(reason, power=power) if power > 0 else reason
        fits = float(np.round(fits))
    return replace(reason, expected=fits, power=power)


def _outside_pattern(why: LocalExplanation, row: int, j: int, by: _Comparison) -> Reason | None:
    """Outside the range of the nearest pattern."""
    if why.side[row, j] == 0 or np.isnan(why.lower[row, j]):
        return None
    n_peers, n_inside = int(why.peers[row, j]), int(why.peers_inside[row, j])
    return Reason(
        j,
        Kind.PATTERN,
        float(why.value[row, j]),
        _fitting(why, row, j, by),
        float(why.lower[row, j]),
        float(why.upper[row, j]),
        n_inside / n_peers if n_peers else np.nan,
        n_peers,
    )


def _rare(why: LocalExplanation, row: int, j: int) -> Reason | None:
    """A value of a category that few training rows have."""
    n_value, n_all = int(why.clashes[j].n_value[row]), int(why.clashes[j].n_all[row])
    n_as_rare, value = int(why.clashes[j].n_as_rare[row]), float(why.value[row, j])
    if n_value >= _RARE * n_all or n_as_rare >= _ALL_RARE * n_all or np.isnan(value):
        return None
    return Reason(j, Kind.RARE, value, coverage=1 - n_value / n_all, support=n_all)


def _clash(why: LocalExplanation, row: int, j: int, by: _Comparison) -> Reason | None:
    """Hardly any of the rows that are alike in another column has such a value.

    None if the value is not much rarer beside the other one than by itself, beyond chance.
    """
    if j not in why.clashes:
        return None
    found = why.clashes[j]
    other, n_alike, n_same = int(found.other[row]), int(found.n_alike[row]), int(found.n_same[row])
    by_chance = n_alike * int(found.n_value[row]) / max(int(found.n_all[row]), 1)
    if other < 0 or why.constant[other] or other in by.doubted:
        return None
    if by_chance - n_same <= 2 * np.sqrt(by_chance) or n_same > _SELDOM * by_chance:
        return None
    near = None
    if j in why.categories:
        expected = _named_if_other(why, row, j, by)
    else:
        # Others with nearly this value may only happen to be beyond the end of a bin.
        expected = _fitting_if_other(why, row, j, by)
        near = _near(why, row, j, found.near_value[row])
        if np.isnan(expected) or near.lower <= expected <= near.upper:
            return None
    return Reason(
        j,
        Kind.CLASH,
        float(why.value[row, j]),
        expected,
        coverage=1 - n_same / n_alike,
        support=n_alike,
        conditions=(_near(why, row, other, found.near_other[row]),),
        near=near,
    )


def _near(why: LocalExplanation, row: int, j: int, ends: Array) -> Condition:
    """The values that count as near a row's: those between the ends, without the upper one.

    Up to the largest value below it that is known: many columns have values in steps.
    """
    value = float(why.value[row, j])
    if np.isnan(ends).any():
        return Condition(j, value, value)
    lower, upper = (float(end) for end in ends)
    if why.whole[j]:
        upper = np.ceil(upper) - 1
    elif why.comparable is None:
        upper = np.nextafter(upper, -np.inf)
    else:
        upper = why.comparable.largest_below(j, upper)
    lower, upper = max(lower, float(why.smallest[j])), min(upper, float(why.largest[j]))
    return Condition(j, min(lower, value), max(upper, value))
