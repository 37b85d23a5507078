"""Texts about rows that have moved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.formatting import counted, listed, number, shown_name
from .drift import p_text

if TYPE_CHECKING:
    from ...decide.drift_state import Change, DriftState

_MOST_SHOWN = 5


def drift_text(state: DriftState) -> str:
    """``The rows have moved: alarm at row 412 of 1,000 rows (p < 0.001; …).``, and what has"""
    rate = f"{number(100 * state.false_alarm_rate)} %"
    rows = counted(state.n_rows, "row")
    if not state.drifted:
        return (
            f"No drift in {rows} (p = {number(state.p_value, 2)}; an alarm needs "
            f"{number(state.false_alarm_rate)})."
        )
    lines = [
        f"The rows have moved: alarm at row {state.alarm_row:,} of {rows} "
        f"({p_text(state.p_value)}; at most {rate} of streams without drift ever alarm)."
    ]
    lines += [f"  {_change_text(change)}" for change in state.changes[:_MOST_SHOWN]]
    if len(state.changes) > _MOST_SHOWN:
        lines.append(f"  and {counted(len(state.changes) - _MOST_SHOWN, 'more change')}")
    return "\n".join(lines)


def _change_text(change: Change) -> str:
    since = f"since about row {change.since:,}"
    return f"{subject_text(change)}, {since} ({p_text(change.p_value)})"


def subject_text(change: Change) -> str:
    """``the spread of price``"""
    names = listed([shown_name(name) for name in change.features])
    if change.what == "score":
        return "the anomaly scores"
    if change.what == "missing":
        return f"the share of missing values of {names}"
    if change.what == "new value":
        return f"the share of new values of {names}"
    if change.what == "value":
        return f"the share of {shown_name(change.value or '')} in {names}"
    return f"the {change.what} of {names}"
