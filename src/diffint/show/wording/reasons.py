"""Texts of a row's explanation: headline, reasons, and a one-line summary."""

from __future__ import annotations

import numpy as np

from ...core.constants import COMMONLY_MISSING
from ...core.formatting import (
    counted,
    distinct_numbers,
    exact_number,
    listed,
    number,
    percent,
    shown_name,
)
from ...core.kinds import value_text
from ...core.row_labels import row_name
from ...explain.local_explanation import LocalExplanation
from ...explain.reasons import Condition, Kind, Reason, better_value, wrong_instead
from .values import name_of, span_text, text_of, texts_beside

_MOST_NAMED = 3  # features in the sentence on a row without a reason, and parts of a score
_HARDLY_ANY = 0.01  # share of training rows
_ENOUGH_FOR_PERCENT = 100  # rows; a share of fewer is not known to the percent
_LIMIT_DIGITS = 4  # of the smallest or largest training value that are shown if they are all
_VALUE_DIGITS = 7  # of a value beside its multiple, if these are all
_MAIN_SHARE = 0.6  # of the score, that the features named have together, if so few have it
_PARTS = {-1: "a tenth", -2: "a hundredth", -3: "a thousandth"}


def explanation_text(why: LocalExplanation, row: int, n_reasons: int) -> str:
    """Headline, one line per reason, and the parts of the score."""
    lines = [headline(why, row)]
    reasons = sentences(why, row, n_reasons)
    lines += [f"  {i}. {text}" for i, text in enumerate(reasons, 1)]
    if reasons and (parts := parts_of_score(why, row)):
        lines.append(f"  {parts}")
    return "\n".join(lines)


def headline(why: LocalExplanation, row: int) -> str:
    """A row's score and the threshold in one sentence."""
    if np.isinf(why.threshold_of(row)):
        return (
            f"Row {row_name(row, why.index)}: score {number(why.score[row])}, like a row that was "
            "accepted as normal (p = 1)."
        )
    score, threshold = distinct_numbers(why.score[row], why.threshold_of(row))
    verdict = f"{'above' if why.flagged[row] else 'not above'} the threshold of {threshold}"
    if why.score[row] == why.threshold_of(row):
        verdict = "exactly at the threshold"
    p_value = f"p = {number(why.p_value[row], 2)}"
    if not why.held_out:
        p_value += ", optimistic: from the training rows"
    start = f"Row {row_name(row, why.index)}: score {score}, {verdict} ({p_value})."
    if np.isnan(why.value[row]).all():
        return f"{start} It has no value that could be compared."
    return start


def sentences(why: LocalExplanation, row: int, n_reasons: int) -> list[str]:
    """One sentence for each reason; for a flagged row without any, what its score comes from."""
    found = why.reasons_of(row, n_reasons)
    if not found and why.flagged[row]:
        return [_no_single_value(why, row)]
    return [_sentence(why, row, reason) for reason in found]


def parts_of_score(why: LocalExplanation, row: int) -> str:
    """``Parts of the score: a 40 %, b 20 %, c 10 %, 5 others 30 %.``; empty if there are none."""
    share = why.share[row]
    if not share.any() or len(share) == 1:
        return ""
    order = np.argsort(-share, kind="stable")
    largest = [j for j in order[:_MOST_NAMED].tolist() if share[j] > 0]
    shown = [f"{name_of(why, j)} {_share(why, row, j)}" for j in largest]
    if n_others := int((share > 0).sum()) - len(largest):
        rest = percent(1.0 - float(share[largest].sum()))
        shown.append(f"{counted(n_others, 'other')} {rest}")
    return f"Parts of the score: {', '.join(shown)}."


def reason(why: LocalExplanation, row: int, j: int) -> str:
    """One sentence about one feature of a row, whether or not it is a reason."""
    found = why.reason_of(row, j)
    if found is not None:
        return _sentence(why, row, found)
    name = name_of(why, j)
    if (date := why.beyond_text(row, j)) is not None:
        return f"{name} = {date}, beyond the training times, which is not taken as odd."
    if np.isnan(why.value[row, j]):
        return f"{name} is missing, {_others_missing(why, j)}."
    return f"{name} = {_value(why, row, j)}, {_ordinary(why, row, j)}."


def brief(why: LocalExplanation, row: int, n_reasons: int = 3) -> str:
    """A row's reasons on one line: ``a = 9, not 2–5 where b 3–4; c missing``"""
    found = why.reasons_of(row, n_reasons)
    if not found and why.flagged[row]:
        named = [f"{name_of(why, j)} ({_share(why, row, j)})" for j in _main(why, row)]
        return f"no single value stands out; the score comes from {listed(named)}"
    return "; ".join(brief_reason(why, row, r) for r in found)


def brief_reason(why: LocalExplanation, row: int, found: Reason) -> str:
    """A reason in a few words: ``a = 9, not 2–5 where b 3–4``"""
    j, name = found.feature, name_of(why, found.feature)
    shown, alike = f"{name} = {_value(why, row, j, found)}", conditions_text(why, row, found)
    if found.kind is Kind.MISSING:
        return f"{name} missing"
    if found.kind is Kind.BEYOND:
        limit, end = ("smallest", 0) if found.side < 0 else ("largest", 1)
        return f"{shown}, {limit} in training {_ends(why, found)[end]}"
    if found.kind is Kind.NEW:
        return f"{shown}, a new value"
    if found.kind is Kind.RARE:
        return f"{shown}, a rare value"
    if found.kind is Kind.CLASH:
        return f"{shown}, unusual where {alike}"
    where = f" where {alike}" if alike else ""
    return f"{shown}, not {_range(why, found)}{where}"


def conditions_text(why: LocalExplanation, row: int, found: Reason, with_own: bool = False) -> str:
    """The conditions of a reason: ``carat 2.5–3.1 and cut = Ideal``; empty if there are none.

    with_own: with the row's own values, ``carat 2.5–3.1 (here 2.8)``
    """
    return " and ".join(_condition(why, row, c, with_own) for c in found.conditions)


def _sentence(why: LocalExplanation, row: int, found: Reason) -> str:
    return f"{name_of(why, found.feature)} {claim(why, row, found)}."


def claim(why: LocalExplanation, row: int, found: Reason) -> str:
    """What is said of the value, after the name of its feature."""
    j, alike = found.feature, conditions_text(why, row, found, with_own=True)
    if found.kind is Kind.MISSING:
        return f"is missing, {_others_missing(why, j)}"
    shown = f"= {_value(why, row, j, found)}"
    if found.kind is Kind.CONSTANT:
        return f"{shown}, but was {_ends(why, found)[0]} in every training row"
    if found.kind is Kind.BEYOND:
        side, end = ("below", 0) if found.side < 0 else ("above", 1)
        return f"{shown}, but no training row is {side} {_ends(why, found)[end]}{_fits(why, found)}"
    if found.kind is Kind.NEW:
        return f"{shown}, a value that no training row has"
    if found.kind is Kind.RARE:
        few = f"{_few(found)} of {found.support:,} sampled training rows {_have(found)}"
        return f"{shown}, a value that {few}"
    if found.kind is Kind.CLASH:
        those = f"{_few(found)} of {found.support:,} sampled training rows with {alike}"
        what = "it"
        if found.near is not None:
            what = f"a value of {_near_values(why, found.near)}"
        return f"{shown}, but {those} {_have(found)} {what}{_instead(why, row, found)}"
    if found.kind is Kind.PATTERN:
        return _against_pattern(why, row, found)
    about = "about " * (found.support < _ENOUGH_FOR_PERCENT)
    those = f"{about}{percent(found.coverage)} of rows{f' with {alike}' if alike else ''}"
    by = f"{'estimated ' * bool(about)}from {counted(found.support, 'training row')}"
    return f"{shown}, but {those} have {_range(why, found)} ({by}){_instead(why, row, found)}"


def _against_pattern(why: LocalExplanation, row: int, found: Reason) -> str:
    """``= 9, but 95 % of the 120 training rows that otherwise fit its pattern have 2–5``"""
    j, shown = found.feature, f"= {_value(why, row, found.feature, found)}"
    if why.binds_below[row, j] != why.binds_above[row, j] and found.lower != found.upper:
        at = "at most" if found.side > 0 else "at least"
        have = f"{at} {_ends(why, found)[1 if found.side > 0 else 0]}"
    else:
        have = _range(why, found)
    if not found.support or not found.coverage > 0:
        return f"{shown}, but its pattern has {have}"
    sampled = "" if why.counted_rows == why.n_rows else "sampled "
    if found.support == 1:
        return (
            f"{shown}, but the one {sampled}training row that otherwise fits its pattern has {have}"
        )
    share = "all" if found.coverage == 1.0 else f"{percent(found.coverage)} of the"
    return (
        f"{shown}, but {share} {found.support:,} {sampled}training rows that otherwise fit its "
        f"pattern have {have}"
    )


def _few(found: Reason) -> str:
    return "none" if _others(found) == 0 else f"only {_others(found):,}"


def _have(found: Reason) -> str:
    return "have" if _others(found) > 1 else "has"


def _others(found: Reason) -> int:
    """Comparable training rows with the same value."""
    return round((1 - found.coverage) * found.support)


def _numbers(why: LocalExplanation, found: Reason) -> list[str]:
    """Texts of the ends of a range, the value, and what would fit."""
    exact = _LIMIT_DIGITS if found.kind is Kind.BEYOND else 3
    ends = found.lower, found.upper
    return texts_beside(why, found.feature, *ends, found.value, found.expected, exact=exact)


def _ends(why: LocalExplanation, found: Reason) -> tuple[str, str]:
    low, up, *_ = _numbers(why, found)
    return low, up


def _range(why: LocalExplanation, found: Reason) -> str:
    return span_text(why, found.feature, found.lower, found.upper, *_ends(why, found))


def _fits(why: LocalExplanation, found: Reason) -> str:
    """``; 5.6 would fit``, ``; 5.8 would fit (a tenth of it)``"""
    if np.isnan(found.expected):
        return ""
    if found.feature in why.categories:
        usual = value_text(why.categories[found.feature], found.expected)
        return f"; {shown_name(usual)} would fit"
    if power := found.power:
        fits = number(found.expected, _digits_of(found.value))
        times = f"{10**power:,} times as much" if power > 0 else f"{_PARTS[power]} of it"
        exact = np.isclose(found.expected, found.value * 10.0**power, rtol=1e-9, atol=0)
        return f"; {fits} would fit ({'' if exact else 'about '}{times})"
    if not np.isnan(found.lower):
        return f"; {_numbers(why, found)[3]} would fit"
    return f"; {text_of(why, found.feature, found.expected, found.value)} would fit"


def _instead(why: LocalExplanation, row: int, found: Reason) -> str:
    """``; 5.6 would fit``, ``; 5.6 would fit, unless carat is wrong``"""
    fits, also = _fits(why, found), wrong_instead(why, row, found)
    if also is None:
        return fits
    start = f"{fits}, unless" if fits else "; or"
    return f"{start} {name_of(why, also)} is wrong"


def _digits_of(value: float) -> int:
    """How many digits of a value are shown if a multiple of it is stated, which can be checked."""
    exact = exact_number(value)
    return next((d for d in range(3, _VALUE_DIGITS + 1) if number(value, d) == exact), 3)


def _value(why: LocalExplanation, row: int, j: int, found: Reason | None = None) -> str:
    """A value as text, distinct from the ends of the range beside it."""
    if j in why.categories:
        return shown_name(str(why.value_text(row, j)))
    if found is not None and found.power:
        return number(found.value, _digits_of(found.value))
    if found is not None and not np.isnan(found.lower):
        return _numbers(why, found)[2]
    ends = (why.lower[row, j], why.upper[row, j])
    if found is not None and found.near is not None:
        ends = found.near.lower, found.near.upper
    return texts_beside(why, j, *ends, why.value[row, j])[2]


def _condition(why: LocalExplanation, row: int, condition: Condition, with_own: bool) -> str:
    """``carat 2.5–3.1``, ``carat 2.5–3.1 (here 2.8)``, ``cut = Ideal``"""
    j, lower, upper = condition
    name = name_of(why, j)
    if j in why.categories:
        return f"{name} = {shown_name(str(why.value_text(row, j)))}"
    if lower == upper:
        return f"{name} = {text_of(why, j, lower)}"
    low, up, own = texts_beside(why, j, lower, upper, why.value[row, j])
    return f"{name} {span_text(why, j, lower, upper, low, up)}{f' (here {own})' * with_own}"


def _near_values(why: LocalExplanation, near: Condition) -> str:
    """``34–45``, ``34 or more`` if no training row has more than 45"""
    low, up = texts_beside(why, near.feature, near.lower, near.upper)
    to_smallest = near.lower <= why.smallest[near.feature]
    to_largest = near.upper >= why.largest[near.feature]
    if near.lower < near.upper and to_smallest != to_largest:
        return f"{up} or less" if to_smallest else f"{low} or more"
    return span_text(why, near.feature, near.lower, near.upper, low, up)


def _no_single_value(why: LocalExplanation, row: int) -> str:
    """What the score of a flagged row comes from in which no value is odd by itself."""
    if len(why.feature_names) == 1:
        return f"{_with_value(why, row, 0)} {_of_single_column(why, row)}."
    main = _main(why, row)
    named = listed([_with_value(why, row, j) for j in main])
    if len(main) == 1:
        start = f"{named} is unusual together with the rest of the row."
    elif why.share[row, main].sum() >= _MAIN_SHARE:
        start = f"most of the score comes from the combination of {named}."
    else:
        start = f"the largest parts of the score come from {named}."
    return f"No single value stands out; {start}{_most_doubted(why, row, main)}"


def _of_single_column(why: LocalExplanation, row: int) -> str:
    rows, value = why.comparable, float(why.value[row, 0])
    is_number = 0 not in why.categories
    if is_number and rows is not None and rows.share_near(0, value) < _HARDLY_ANY:
        return "is between values that training rows have, but hardly any is near it"
    return "does not stand out, but scores higher than most training rows"


def _most_doubted(why: LocalExplanation, row: int, named: list[int]) -> str:
    """`` Most in doubt is a = 9; 5 would fit the rest of the row better.``

    named: features whose values the text has already
    """
    j = int(why.order[row, 0])
    if np.isnan(why.value[row, j]):
        return ""
    shown = name_of(why, j) if j in named else _with_value(why, row, j)
    fits = _better(why, row, j)
    if not fits:
        return f" Most in doubt is {shown}."
    return f" Most in doubt is {shown}; {fits} would fit the rest of the row better."


def _better(why: LocalExplanation, row: int, j: int) -> str:
    """The value that would fit all the rest of a row; empty if its own does."""
    better = better_value(why, row, j)
    if np.isnan(better):
        return ""
    if j in why.categories:
        return shown_name(value_text(why.categories[j], better))
    return text_of(why, j, better, why.value[row, j])


def _with_value(why: LocalExplanation, row: int, j: int) -> str:
    """``a = 9``, or ``a missing``"""
    name = name_of(why, j)
    if (date := why.beyond_text(row, j)) is not None:
        return f"{name} = {date}"
    if np.isnan(why.value[row, j]):
        return f"{name} missing"
    return f"{name} = {_value(why, row, j)}"


def _main(why: LocalExplanation, row: int) -> list[int]:
    """The few features that most of a row's score comes from."""
    order = np.argsort(-why.share[row], kind="stable")[:_MOST_NAMED]
    shares = np.cumsum(why.share[row, order])
    return [int(j) for j in order[: int((shares < _MAIN_SHARE).sum()) + 1]]


def _ordinary(why: LocalExplanation, row: int, j: int) -> str:
    """A value that is no reason, and what is expected from the rest of the row."""
    if why.constant[j]:
        return "as in every training row"
    if np.isnan(why.lower[row, j]):
        return "but no training row has a value to compare it with"
    is_told = why.comparable is None or j in why.categories or why.comparable.is_told(j)
    fits = _better(why, row, j) if is_told else ""
    better = f", though {fits} would fit the rest of the row better" if fits else ""
    return f"an ordinary value{better}"


def _share(why: LocalExplanation, row: int, j: int) -> str:
    return percent(why.share[row, j])


def _others_missing(why: LocalExplanation, j: int) -> str:
    """How often training rows miss the value of a feature."""
    share = float(why.missing_share[j])
    if share == 0.0:
        return "but no training row misses it"
    often = f"{percent(share)} of the training rows"
    return f"as in {often}" if share >= COMMONLY_MISSING else f"but only in {often}"
