"""Texts of ranges and of the number of rows that fit a pattern."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.formatting import counted, listed, shown_name
from ...explain.constraints import values_between
from ...tables.times import MONTHS, WEEKDAYS

_FEW_OTHERS = 2  # values that are named instead of many that are allowed


def rows_inside(box_rows: int, counted_rows: int, n_rows: int) -> str:
    """How many training rows fit a pattern: ``3 of 214 training rows fit it``.

    counted_rows: number of rows that were counted, out of n_rows; if 0, the text is empty.
    """
    if not counted_rows:
        return ""
    sample = "" if counted_rows == n_rows else "a sample of "
    of_all = f"{sample}{counted(counted_rows, 'training row')}"
    return f"{box_rows:,} of {of_all} {'fits' if box_rows == 1 else 'fit'} it"


def values_text(
    values: Sequence[str], lower: float, upper: float, most: int = 6, longest: int = 40
) -> str:
    """The values of a category whose positions lie in a range: ``one of Ideal, Premium``.

    most: number of values to name; longest: characters of each
    """
    found = _in_usual_order(values_between(values, lower, upper))
    if not found:
        return "any known value"
    others = _in_usual_order([value for value in values if value not in found])
    if 0 < len(others) <= _FEW_OTHERS and len(others) < len(found) - 1:
        return f"any known value but {listed([shown_name(v, longest) for v in others])}"
    shown = [shown_name(value, longest) for value in found[:most]]
    if len(found) == 1:
        return shown[0]
    more = f" or {len(found) - most} more" if len(found) > most else ""
    return f"one of {', '.join(shown)}{more}"


def _in_usual_order(values: list[str]) -> list[str]:
    """Numbers, weekdays and months in their order; other values as they are."""
    for known in (WEEKDAYS, MONTHS):
        if set(values) <= set(known):
            return sorted(values, key=known.index)
    if all(value.isdecimal() for value in values):
        return sorted(values, key=int)
    return values


def range_text(
    lower: float, upper: float, low: str, up: str, binds_below: bool, binds_above: bool
) -> str:
    """A range such as ``552–1210``; only the end that binds if the other does not.

    low, up: texts of the ends.
    """
    if lower == upper:
        return low
    if binds_below != binds_above:
        return low if binds_below else up
    # A dash beside a minus sign is hard to read.
    return f"{low} to {up}" if lower < 0 else f"{low}–{up}"
