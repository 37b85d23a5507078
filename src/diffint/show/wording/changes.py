"""Texts of counterfactuals: what would make a flagged row normal."""

from __future__ import annotations

from ...core.formatting import counted, distinct_numbers, exact_number, listed, shown_name
from ...core.row_labels import row_name
from ...explain.nearest_normal import N_CANDIDATES, Change, NearestNormal


def changes_text(nearest: NearestNormal, row: int) -> str:
    """``Row 3 would be normal if amount decreased to 12 (from 900).``"""
    name = row_name(row, nearest.index)
    if not nearest.flagged[row]:
        return f"Row {name} is not flagged: nothing needs to change."
    if not nearest.found[row]:
        among = ""
        if len(nearest.feature_names) > N_CANDIDATES:
            among = f" among its {N_CANDIDATES} most responsible ones"
        return (
            f"Row {name}: no change of up to {counted(nearest.max_changes, 'feature')}{among} was "
            "found that makes it normal."
        )
    changes = [_change(nearest, row, change) for change in nearest.changes[row]]
    return f"Row {name} would be normal if {listed(changes)}."


def _change(nearest: NearestNormal, row: int, change: Change) -> str:
    if change.feature in nearest.categories:
        before, after = (shown_name(str(value)) for value in nearest.values_of(row, change))
        name = shown_name(nearest.feature_names[change.feature])
        return f"{name} were {after} (instead of {before})"
    way = "decreased" if change.suggested < change.value else "increased"
    name = shown_name(nearest.feature_names[change.feature])
    after = exact_number(change.suggested)
    before = distinct_numbers(change.value, change.suggested)[0]
    before = nearest.new_texts.get((row, change.feature), before)
    return f"{name} {way} to {after} (from {before})"
