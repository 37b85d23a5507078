"""Reasons: why values of a row are in doubt, the most doubted first."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.constants import COMMONLY_MISSING

if TYPE_CHECKING:
    from .local_explanation import LocalExplanation

Array = NDArray[np.float64]

_MORE_TRIED = 1  # features that are looked at beyond the number of reasons
_FEWEST_TRIED = 2  # though they are doubted little beside the first
_MOST_DOUBTED = 3  # features that cannot tell which rows are comparable
_LEAST_DOUBT = 0.1  # beside the most doubted value, of a value that is in doubt too
_RARE = 0.05  # share of training rows that have a rare value


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

    value: NaN if missing. expected: what comparable rows have in the middle; NaN if unknown.
    lower, upper: the range; NaN if there is none. coverage: the share of new comparable rows that
    is expected inside the range, or to have another value. support: number of comparable training
    rows that were looked at. No conditions: all training rows are comparable.
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

    @property
    def side(self) -> int:
        """−1 below the range, 1 above, 0 if there is none."""
        return int(self.value > self.upper) - int(self.value < self.lower)


def find_reasons(why: LocalExplanation, row: int, most: int) -> tuple[Reason, ...]:
    """The reasons of a row, the most doubted first; at most `most`, none if nothing is odd.

    After the first one, only values that are doubted nearly as much.
    """
    order, doubt = why.order[row], why.doubt[row]
    least = _LEAST_DOUBT * doubt[order[0]]
    by = _Comparison.of(why, row)
    found: list[Reason] = []
    relied_on: set[int] = set()  # what a reason compares by is not in doubt
    for tried, j in enumerate(order[: most + _MORE_TRIED].tolist()):
        enough = len(found) == most or (doubt[j] < least and (found or tried >= _FEWEST_TRIED))
        if doubt[j] == 0 or enough:
            break
        reason = None if j in relied_on else _find_reason(why, row, j, by)
        if reason is not None:
            found.append(reason)
            relied_on.update(condition.feature for condition in reason.conditions)
            by = by._replace(doubted=[*by.doubted, j])
    return tuple(found)


def reason_of(why: LocalExplanation, row: int, j: int) -> Reason | None:
    """The reason to doubt one value, None if it is not odd."""
    return _find_reason(why, row, j, _Comparison.of(why, row))


class _Comparison(NamedTuple):
    """What finds comparable rows: a row's scaled values, and those in doubt, which cannot."""

    scaled: Array
    doubted: list[int]

    @classmethod
    def of(cls, why: LocalExplanation, row: int) -> _Comparison:
        doubt, order = why.doubt[row], why.order[row]
        first = order[: min(_MOST_DOUBTED, len(order) // 2)]
        doubted = [int(j) for j in first if doubt[j] > _LEAST_DOUBT * doubt[order[0]]]
        return cls(why.scaled[row], doubted)


def _find_reason(why: LocalExplanation, row: int, j: int, by: _Comparison) -> Reason | None:
    value = float(why.value[row, j])
    if np.isnan(value):
        often = float(why.missing_share[j])
        if often >= COMMONLY_MISSING:
            return None
        return Reason(j, Kind.MISSING, value, coverage=1 - often, support=why.n_rows)
    if j in why.categories:
        return _category_reason(why, row, j, by.doubted)
    if why.constant[j]:
        lower, upper = float(why.lower[row, j]), float(why.upper[row, j])
        if value == lower or np.isnan(lower):
            return None
        return Reason(j, Kind.CONSTANT, value, lower, lower, upper, 1.0, why.n_rows)
    found = _clash(why, row, j, by.doubted)
    if why.comparable is None:
        return found or _outside_pattern(why, row, j)
    return why.comparable.reason(why.value[row], by.scaled, by.doubted, j) or found


def _outside_pattern(why: LocalExplanation, row: int, j: int) -> Reason | None:
    """Outside the range of the nearest pattern."""
    if why.side[row, j] == 0:
        return None
    n_peers, n_inside = int(why.peers[row, j]), int(why.peers_inside[row, j])
    return Reason(
        j,
        Kind.PATTERN,
        float(why.value[row, j]),
        float(why.expected[row, j]),
        float(why.lower[row, j]),
        float(why.upper[row, j]),
        n_inside / n_peers if n_peers else np.nan,
        n_peers,
    )


def _category_reason(why: LocalExplanation, row: int, j: int, doubted: list[int]) -> Reason | None:
    """What is odd about the value of a category."""
    value = float(why.value[row, j])
    n_value, n_all = why.clashes[j][row, 3:].tolist()
    if not 0 <= value < len(why.categories[j]):
        return Reason(j, Kind.NEW, value, coverage=1.0, support=n_all)
    clash = _clash(why, row, j, doubted)
    if clash is not None:
        return clash
    if n_value < _RARE * n_all:
        return Reason(j, Kind.RARE, value, coverage=1 - n_value / n_all, support=n_all)
    return None if np.isnan(why.lower[row, j]) else _outside_pattern(why, row, j)


def _clash(why: LocalExplanation, row: int, j: int, doubted: list[int]) -> Reason | None:
    """Hardly any of the rows that are alike in another column has such a value.

    None if the value is not rarer beside the other one than by itself, beyond what chance explains.
    """
    if j not in why.clashes:
        return None
    other, n_rows, n_same, n_value, n_all = why.clashes[j][row].tolist()
    by_chance = n_rows * n_value / max(n_all, 1)
    if other < 0 or why.constant[other] or other in doubted:
        return None
    if by_chance - n_same <= 2 * np.sqrt(by_chance):
        return None
    beside = float(why.value[row, other])
    return Reason(
        j,
        Kind.CLASH,
        float(why.value[row, j]),
        coverage=1 - n_same / n_rows,
        support=n_rows,
        conditions=(Condition(other, beside, beside),),
    )
