"""Texts of groups of flagged rows."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from ...core.formatting import counted, distinct_numbers, listed, shown_name
from ...core.row_labels import row_name
from ...explain.alert_groups import AlertGroup, AlertGroups, Break, break_of
from ...explain.local_explanation import LocalExplanation
from .ranges import range_text
from .reasons import claim
from .values import name_of, span_text, text_of

_NONE = "no single value stands out"
_MOST_NAMED = 3  # breaks in a name, and new values


def groups_text(groups: AlertGroups, most: int) -> str:
    """One line per group, the largest first."""
    lines = [_line(groups, group) for group in groups.groups[:most]]
    n_more = len(groups) - most
    if n_more > 0:
        rows = sum(map(len, groups.groups[most:]))
        lines.append(f"{counted(n_more, 'more group')} with {counted(rows, 'row')}.")
    return "\n".join(lines) or "No row is flagged."


def _line(groups: AlertGroups, group: AlertGroup) -> str:
    """``z = 0: 20 rows, scores 1.2–3.4. For example row 7: z = 0, but …``"""
    low, high = distinct_numbers(group.score_low, group.score_high)
    scores = (
        f"score {low}" if len(group) == 1 else f"scores {range_text(0, 1, low, high, True, True)}"
    )
    example = row_name(int(group.rows[0]), groups.explanation.index)
    return f"{group.name}: {counted(len(group), 'row')}, {scores}. Row {example}: {group.text}"


def group_name(why: LocalExplanation, rows: NDArray[np.intp], breaks: tuple[Break, ...]) -> str:
    """A group in a few words: ``z = 0``, ``z too low (2.06–3.19)``, ``color = Q``"""
    if not breaks:
        return _NONE
    named = [_break_name(why, rows, each) for each in breaks[:_MOST_NAMED]]
    return listed(list(dict.fromkeys(named)))


def group_text(why: LocalExplanation, rows: NDArray[np.intp], breaks: tuple[Break, ...]) -> str:
    """The reason of the row with the highest score, in a sentence."""
    row = int(rows[0])
    wanted = {each.feature for each in breaks}
    for found in why.reasons_of(row):
        if found.feature in wanted:
            return f"{name_of(why, found.feature)} {claim(why, row, found)}."
    return next(iter(why.reasons(row)), f"{_NONE}.")


def _new_values(why: LocalExplanation, rows: NDArray[np.intp], j: int) -> str:
    """``Q``, ``a new value (Q, R, …)``: values that no training row has, the most frequent first"""
    counts = Counter(t for r in rows.tolist() if (t := why.new_texts.get((r, j))))
    texts = sorted(counts, key=lambda text: (-counts[text], text))
    if len(texts) == 1:
        return shown_name(texts[0])
    named = [shown_name(text) for text in texts[:_MOST_NAMED]]
    named += ["…"] if len(texts) > _MOST_NAMED else []
    return f"a new value ({', '.join(named)})" if named else "a new value"


def _break_name(why: LocalExplanation, rows: NDArray[np.intp], each: Break) -> str:
    name, j = name_of(why, each.feature), each.feature
    if each.kind == "missing":
        return f"{name} missing"
    if each.kind == "value":
        values = why.categories[j]
        if 0 <= each.value < len(values):
            return f"{name} = {shown_name(values[int(each.value)])}"
        return f"{name} = {shown_name(each.text) if each.text else _new_values(why, rows, j)}"
    if not np.isnan(each.value):
        return f"{name} = {text_of(why, j, each.value)}"
    low_end, high_end = ("early", "late") if j in why.starts else ("low", "high")
    way = {-1: f"too {low_end}", 1: f"too {high_end}", 0: "unusual"}[each.side]
    way = {"far": f"far {way}", "beside": f"{way} for its row"}.get(each.kind, way)
    found = [r for row in rows.tolist() for r in why.reasons_of(row) if r.feature == j]
    own = [r.value for r in found if break_of(why, r).kind == each.kind and r.side == each.side]
    if not own:
        return f"{name} {way}"
    low, high = min(own), max(own)
    if low == high and len(own) > 1:
        return f"{name} = {text_of(why, j, low)}"
    texts = text_of(why, j, low, high), text_of(why, j, high, low)
    return f"{name} {way} ({span_text(why, j, low, high, *texts)})"
