"""Data of the groups of flagged rows that share a reason."""

from __future__ import annotations

from typing import Any

from ...core.formatting import printable
from ...explain.local_explanation import LocalExplanation


def group_data(why: LocalExplanation) -> list[list[Any]]:
    """The groups of at least two rows: name, shared reason, and the positions of its rows."""
    return [
        [printable(group.name), printable(group.text), group.rows.tolist()]
        for group in why.alert_groups()
        if len(group) > 1
    ]
