"""Texts about selected rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.formatting import counted, number, percent

if TYPE_CHECKING:
    from ...decide.selection import Selection


def selection_text(selection: Selection) -> str:
    """``12 of 1,000 rows are selected: on average at most 10 % of them are false alerts …``"""
    chosen, rows = selection.n_selected, counted(len(selection), "row")
    if chosen == 0:
        return f"None of {rows} is selected: {promise_text(selection)}."
    verb = "is" if chosen == 1 else "are"
    return f"{chosen:,} of {rows} {verb} selected: {promise_text(selection)}."


def promise_text(selection: Selection) -> str:
    """What is promised about the selected rows, without a full stop."""
    rate = f"{number(100 * selection.false_discovery_rate)} %"
    if selection.n_selected == 0:
        return f"no row stands out enough for a false discovery rate of {rate}"
    how = "proven for rows like the training rows" if selection.proven else "measured, not proven"
    sure = percent(selection.confidence)
    bound = f"at most {percent(selection.bound)}" if selection.bound < 1.0 else "possibly all"
    bound = "none" if selection.bound == 0.0 else bound
    return (
        f"at most {rate} of them are false alerts on average, and {bound} of these with a "
        f"confidence of {sure} ({how})"
    )
