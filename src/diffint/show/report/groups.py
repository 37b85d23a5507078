"""Data of the groups of flagged rows that share a reason."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

from ...core.formatting import printable
from ...explain.local_explanation import LocalExplanation


class _Group(Protocol):
    """What the report needs of a group: rows are positions, highest score first."""

    @property
    def rows(self) -> Iterable[int]: ...
    @property
    def name(self) -> str: ...
    @property
    def text(self) -> str: ...


def group_data(why: LocalExplanation) -> list[list[Any]]:
    """The groups of at least two rows: name, shared reason, and the positions of its rows."""
    find = getattr(why, "alert_groups", None)
    groups: Iterable[_Group] = _by_first_reason(why) if find is None else find()
    found = [
        [printable(group.name), printable(group.text), [int(row) for row in group.rows]]
        for group in groups
    ]
    return [group for group in found if len(group[2]) > 1]


class _SameReason(NamedTuple):
    """Rows whose first reason is the same feature with the same value, or on the same side."""

    name: str
    text: str
    rows: list[int]


def _by_first_reason(why: LocalExplanation) -> list[_SameReason]:
    """Stands in for `LocalExplanation.alert_groups` until explanations have it."""
    from ...core.formatting import number, shown_name

    found: dict[tuple[int, str], list[int]] = {}
    for row in sorted(range(len(why)), key=lambda i: -why.score[i]):
        first = why.doubted(row, 1)
        if not first:
            continue
        j = first[0]
        value = why.value[row, j]
        if j in why.categories:
            key = f"= {why.value_text(row, j)}"
        elif value != value:
            key = "is missing"
        elif value == 0:
            key = f"= {number(value)}"
        else:
            key = "too low" if value < why.expected[row, j] else "too high"
        found.setdefault((j, key), []).append(row)
    groups = [
        _SameReason(f"{shown_name(why.feature_names[j])} {key}", why.reason(rows[0], j), rows)
        for (j, key), rows in found.items()
    ]
    return sorted(groups, key=lambda group: (-len(group.rows), group.rows))
