"""Data of the groups of flagged rows that share a reason."""

from __future__ import annotations

from typing import Any

from ...core.formatting import printable
from ...explain.alert_groups import AlertGroup
from ...explain.local_explanation import LocalExplanation
from ..wording.reasons import brief_reason


def group_data(why: LocalExplanation) -> list[list[Any]]:
    """The groups of at least two rows.

    Name, shared reason, the positions of its rows, and by position the reason of a row that it is
    in the group for, if that is not its first.
    """
    return [
        [printable(group.name), printable(group.text), group.rows.tolist(), _reasons(why, group)]
        for group in why.alert_groups()
        if len(group) > 1
    ]


def _reasons(why: LocalExplanation, group: AlertGroup) -> dict[int, str]:
    found = {}
    for row in group.rows.tolist():
        shared = [r for r in why.reasons_of(row) if r.feature in group.features]
        if shared and shared[0] != why.reasons_of(row)[0]:
            found[row] = printable(brief_reason(why, row, shared[0]))
    return found
