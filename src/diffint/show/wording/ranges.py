"""Ranges, and the rows that they are known from, in words."""

from __future__ import annotations

from ...core.formatting import counted


def rows_inside(box_rows: int, counted_rows: int, n_rows: int) -> str:
    """How many training rows fit a pattern: ``3 of 214 training rows fit it``.

    counted_rows: the rows that were looked at, of n_rows; empty text where there were none.
    """
    if not counted_rows:
        return ""
    sample = "" if counted_rows == n_rows else "a sample of "
    of_all = f"{sample}{counted(counted_rows, 'training row')}"
    return f"{box_rows:,} of {of_all} {'fits' if box_rows == 1 else 'fit'} it"


def range_text(
    lower: float, upper: float, low: str, up: str, binds_below: bool, binds_above: bool
) -> str:
    """A range in words; an end that does not bind is not named.

    low, up: the ends as they are to be written. ``552–1,210``, ``the limit of 552``, ``0`` where
    there is only one value.
    """
    if lower == upper:
        return low
    if binds_below != binds_above:
        return f"the limit of {low if binds_below else up}"
    # A dash between numbers with signs is hard to read.
    return f"{low} to {up}" if lower < 0 else f"{low}–{up}"
