"""Texts of counterfactuals: what would make a flagged row normal."""

from __future__ import annotations

import numpy as np

from ...core.formatting import counted, listed, shown_name
from ...core.row_labels import row_name
from ...explain.nearest_normal import N_CANDIDATES, Change, NearestNormal
from .values import exact_text, name_of, text_of


def all_changes_text(nearest: NearestNormal) -> str:
    """One line for each flagged row, and how many rows are not flagged."""
    lines = [changes_text(nearest, int(row)) for row in np.flatnonzero(nearest.flagged)]
    if n_others := len(nearest) - len(lines):
        are = "is" if n_others == 1 else "are"
        lines.append(f"{counted(n_others, 'row')} {are} not flagged: nothing needs to change.")
    return "\n".join(lines)


def changes_text(nearest: NearestNormal, row: int) -> str:
    """``Row 3 would be normal if amount were 12 instead of 900; the least change is …``"""
    name = row_name(row, nearest.index)
    if not nearest.flagged[row]:
        return f"Row {name} is not flagged: nothing needs to change."
    if not nearest.found[row]:
        among = ""
        if len(nearest.feature_names) > N_CANDIDATES:
            among = f" among its {N_CANDIDATES} most doubted ones"
        return (
            f"Row {name}: no change of up to {counted(nearest.max_changes, 'feature')}{among} was "
            "found that makes it normal."
        )
    changes = nearest.changes[row]
    would_be = listed([_change(nearest, row, change) for change in changes])
    # A change of a time is that of its place in the span of times, not of its hour or weekday: a
    # moment that is only just enough for that may not be.
    others = {*nearest.categories, *nearest.starts}
    numbers = [change for change in changes if change.feature not in others]
    nearer = [change for change in numbers if change.least != change.suggested]
    if not nearer:
        return f"Row {name} would be normal if {would_be}."
    least = listed([_least(nearest, change) for change in numbers])
    return f"Row {name} would be normal if {would_be}; the least change is {least}."


def _change(nearest: NearestNormal, row: int, change: Change) -> str:
    """``amount were 12 instead of 900``"""
    j, name = change.feature, name_of(nearest, change.feature)
    if change.feature in nearest.categories:
        before, after, _ = (shown_name(str(value)) for value in nearest.values_of(row, change))
        return f"{name} were {after} instead of {before}"
    after = exact_text(nearest, j, change.suggested)
    before = text_of(nearest, j, change.value, change.suggested, change.least)
    return f"{name} were {after} instead of {before}"


def _least(nearest: NearestNormal, change: Change) -> str:
    """``amount to 250``"""
    j = change.feature
    return f"{name_of(nearest, j)} to {exact_text(nearest, j, change.least)}"
