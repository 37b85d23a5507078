"""Texts of a row's explanation: headline, reasons, and a one-line summary."""

from __future__ import annotations

import numpy as np

from ...core.constants import COMMONLY_MISSING
from ...core.formatting import distinct_numbers, number, percent, printable, shown_name
from ...core.row_labels import row_name
from ...explain.local_explanation import LocalExplanation
from ...explain.reasons import Condition, Reason
from .ranges import range_text, rows_inside, values_text

_RARE = 0.05  # share of training rows


def headline(why: LocalExplanation, row: int) -> str:
    """A row's score and nearest pattern in two sentences."""
    score, threshold = distinct_numbers(why.score[row], why.threshold)
    verdict = "above" if why.flagged[row] else "not above"
    p_value = f"p = {number(why.p_value[row], 2)}"
    if not why.held_out:
        p_value += ", optimistic: from the training rows"
    start = (
        f"Row {row_name(row, why.index)}: score {score}, {verdict} the threshold of {threshold} "
        f"({p_value})."
    )
    if np.isnan(why.value[row]).all():
        return f"{start} It has no value that could be compared with a pattern."
    outside, n_features = int((why.side[row] != 0).sum()), len(why.feature_names)
    if outside == 0:
        relation = "inside all its ranges"
    elif outside == n_features:
        relation = "outside its only range" if n_features == 1 else f"outside all {outside} ranges"
    else:
        relation = f"outside {outside} of its {n_features} ranges"
    inside = rows_inside(int(why.box_rows[row]), why.counted_rows, why.n_rows)
    return (
        f"{start} It is nearest to pattern {why.unit[row]}"
        f"{f' ({inside})' if inside else ''} and lies {relation}."
    )


def reason(why: LocalExplanation, row: int, j: int) -> str:
    """One sentence about one feature of a row."""
    name, value = shown_name(why.feature_names[j]), why.value[row, j]
    if np.isnan(value):
        return f"{name} is missing, {_others_missing(why, j)}; {_carries(why, row, j)}"
    share = _carries(why, row, j)
    if j in why.categories:
        return f"{name} {_category(why, row, j)}; {share}"
    found = why.conditional(row, j)
    if found is not None:
        return f"{name} = {_compared(why, row, found)}; {share}"
    lower, upper = why.lower[row, j], why.upper[row, j]
    shown, low, up = distinct_numbers(value, lower, upper)
    shown = _as_counted(why, row, j, shown)
    side = int(why.side[row, j])
    if np.isnan(lower):
        return f"{name} = {shown}, but the pattern has no range for this feature; {share}"
    if why.constant[j]:
        always = f"but was {low} in every" if value != lower else "as in every"
        return f"{name} = {shown}, {always} training row; {share}"
    binds_below = bool(why.binds_below[row, j]) or side < 0
    binds_above = bool(why.binds_above[row, j]) or side > 0
    ends = range_text(lower, upper, low, up, binds_below, binds_above)
    if side == 0:
        clash = _clash(why, row, j) if j in why.clashes else None
        if clash is not None:
            return f"{name} = {shown}, but {clash[0]} of the {clash[1]} is near it; {share}"
        return f"{name} = {shown} is {_within(why, row, j, low, up, ends)}; {share}"
    relation = "not" if lower == upper else "above" if side > 0 else "below"
    one_sided = binds_below != binds_above
    kind = "value" if lower == upper else "limit" if one_sided else "range"
    return f"{name} = {shown} is {relation} {ends}, the {kind} of {_peers(why, row, j)}; {share}"


def _compared(why: LocalExplanation, row: int, found: Reason) -> str:
    """``0, but 99 % of the 134 training rows with carat 2.5–3.1 have 5.2–6.1; 5.6 would fit``"""
    value, low, up = distinct_numbers(found.value, found.lower, found.upper)
    if not found.conditions and found.share == 1.0:
        side, end = ("below", low) if found.value < found.lower else ("above", up)
        return f"{value}, but no training row is {side} {end}"
    expected = np.round(found.expected) if why.whole[found.feature] else found.expected
    fits = distinct_numbers(expected, found.value)[0]
    sampled = "sampled " if why.comparable is not None and why.comparable.sampled else ""
    alike = " and ".join(_condition(why, row, c) for c in found.conditions)
    those = f"the {found.n_rows:,} {sampled}training rows{f' with {alike}' if alike else ''}"
    ends = (
        low
        if found.lower == found.upper
        else range_text(found.lower, found.upper, low, up, True, True)
    )
    return f"{value}, but {percent(found.share)} of {those} have {ends}; {fits} would fit"


def _condition(why: LocalExplanation, row: int, condition: Condition) -> str:
    """``carat 2.5–3.1``, or ``cut = Ideal``"""
    j, lower, upper = condition
    name = shown_name(why.feature_names[j])
    if j in why.categories:
        return f"{name} = {shown_name(str(why.value_text(row, j)))}"
    if lower == upper:
        return f"{name} = {number(lower)}"
    low, up = distinct_numbers(lower, upper)
    return f"{name} {range_text(lower, upper, low, up, True, True)}"


def _as_counted(why: LocalExplanation, row: int, j: int, shown: str) -> str:
    """A number, after the one in the table if that is a time beyond the training times."""
    beyond = why.new_texts.get((row, j))
    return shown if beyond is None else f"{beyond} (beyond the training times, counted as {shown})"


def _clash(why: LocalExplanation, row: int, j: int) -> tuple[str, str] | None:
    """``only 3`` and ``120 training rows with size near 9``: hardly any of them has such a value.

    None if the value is not rarer beside the other one than by itself, beyond what chance explains.
    """
    other, n_rows, n_same, n_value, n_all = why.clashes[j][row].tolist()
    by_chance = n_rows * n_value / max(n_all, 1)
    if other < 0 or why.constant[other] or by_chance - n_same <= 2 * np.sqrt(by_chance):
        return None
    have = "none" if n_same == 0 else f"only {n_same:,}"
    return have, f"{n_rows:,} training rows with {_alike(why, row, other)}"


def _category(why: LocalExplanation, row: int, j: int) -> str:
    """What is odd about the value of a category: ``= AS, which none of 240 training rows … has``"""
    values, code = why.categories[j], int(why.value[row, j])
    if not 0 <= code < len(values):
        new = why.new_texts.get((row, j))
        start = "has a value" if new is None else f"= {shown_name(new)}, a value"
        return f"{start} that no training row has"
    start = f"= {shown_name(str(why.value_text(row, j)))}"
    clash = _clash(why, row, j)
    if clash is not None:
        return f"{start}, as {clash[0]} of the {clash[1]}"
    n_value, n_all = why.clashes[j][row, 3:].tolist()
    if n_value < _RARE * n_all:
        return f"{start}, as only {n_value:,} of {n_all:,} training rows"
    lower, upper = why.lower[row, j], why.upper[row, j]
    if why.side[row, j] == 0 or np.isnan(lower):
        return f"{start}, which does not go with the rest of the row"
    return f"{start} is not {values_text(values, lower, upper)}, as {_peers(why, row, j)}"


def _alike(why: LocalExplanation, row: int, j: int) -> str:
    """The value of a feature that other rows share, or nearly share if it is a number."""
    name, value = shown_name(why.feature_names[j]), why.value[row, j]
    if j in why.categories:
        return f"{name} = {shown_name(str(why.value_text(row, j)))}"
    return f"{name} near {number(value)}"


def _carries(why: LocalExplanation, row: int, j: int) -> str:
    return f"it carries {percent(why.share[row, j])} of the score."


def _others_missing(why: LocalExplanation, j: int) -> str:
    """How often training rows miss the value of a feature."""
    share = float(why.missing_share[j])
    if share == 0.0:
        return "but no training row misses it"
    often = f"{percent(share)} of the training rows"
    return f"as in {often}" if share >= COMMONLY_MISSING else f"but only in {often}"


def brief(why: LocalExplanation, row: int, n_reasons: int = 3) -> str:
    """A row's most responsible features on one line: ``a = 9 above 2–5 (40 %); b = …``"""
    parts = []
    for j in why.order[row][:n_reasons]:
        if not why.responsibility[row, j] > 0:
            break
        share = percent(why.share[row, j])
        if np.isnan(why.value[row, j]):
            parts.append(f"{printable(why.feature_names[j])} missing ({share})")
            continue
        if j in why.categories:
            parts.append(f"{printable(why.feature_names[j])} {_category(why, row, j)} ({share})")
            continue
        lower, upper, side = why.lower[row, j], why.upper[row, j], why.side[row, j]
        value, low, up = distinct_numbers(why.value[row, j], lower, upper)
        value = _as_counted(why, row, j, value)
        ends = range_text(lower, upper, low, up, True, True)
        where = ("below", "within", "above")[side + 1] if lower != upper else "not"
        parts.append(f"{printable(why.feature_names[j])} = {value} {where} {ends} ({share})")
    return "; ".join(parts)


def _within(why: LocalExplanation, row: int, j: int, low: str, up: str, ends: str) -> str:
    """Where a value inside its range lies, and the value expected from the rest of the row."""
    binds_below, binds_above = why.binds_below[row, j], why.binds_above[row, j]
    if why.lower[row, j] == why.upper[row, j]:
        where = "the value of the pattern"
    elif not (binds_below or binds_above):
        where = "an ordinary value"
    elif binds_below != binds_above:
        where = f"within its range (at {f'least {low}' if binds_below else f'most {up}'})"
    else:
        where = f"within {ends}"
    value, expected = why.value[row, j], why.expected[row, j]
    expected = np.round(expected) if why.whole[j] else expected
    if np.isnan(expected) or expected == value:
        return where
    better = distinct_numbers(expected, value)[0]
    return f"{where}, but {better} would fit the rest of the row better"


def _peers(why: LocalExplanation, row: int, j: int) -> str:
    """The training rows that have the range: those that fit the pattern in all other features."""
    n_peers, n_inside = int(why.peers[row, j]), int(why.peers_inside[row, j])
    if n_inside == 0:
        return "the pattern"
    sampled = "" if why.counted_rows == why.n_rows else "sampled "
    if n_peers == 1:
        return f"the one {sampled}training row that otherwise fits the pattern"
    share = "all" if n_inside == n_peers else f"{percent(n_inside / n_peers)} of the"
    return f"{share} {n_peers:,} {sampled}training rows that otherwise fit the pattern"
