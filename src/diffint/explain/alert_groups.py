"""Groups of flagged rows that break the same thing in the same way.

What a row breaks is a set of *breaks*, one for each of its reasons: a feature that is too low, too
high, missing, or has a certain value. Rows with the same first break are a group. If many of them
have exactly the same breaks, these are a group of their own; and groups are joined if most rows of
each have the first break of the other too: then one cause breaks several features. Nothing depends
on the order of the rows.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.checks import check_count
from ..core.formatting import counted
from ..core.immutable import Immutable
from ..core.row_labels import index_for
from .reasons import Kind, Reason

if TYPE_CHECKING:
    import pandas

    from .local_explanation import LocalExplanation

N_REASONS = 3  # reasons of a row that are looked at
_SHARED_ROWS, _SHARED = 3, 0.5  # fewest rows with one value, and share of those with the break
_APART = 0.1  # distance from other values, as a share of the span of all
_FAR = 0.5  # training ranges beyond the training range
_TOGETHER = 0.5  # share of a group's rows that have the break of another group too
_FREQUENT_ROWS, _FREQUENT = 5, 0.25  # rows with exactly the same breaks, of those with the first
_NEARLY_ALL = 0.8  # share of a group's rows that have a break it is named by
_SMALL = 3  # groups below this size join a larger one that shares a break with them


class Break(NamedTuple):
    """What is wrong in a feature.

    kind: "missing", "value" (of a category), "contradicts" (another column), "beside" (outside the
    range of rows that are alike), "range" (that of all rows), or "far" beyond it. side: −1 too low,
    1 too high, 0 otherwise. value: NaN if rows differ. text: a value of a category that no training
    row has, if several rows have it.
    """

    feature: int
    kind: str
    side: int
    value: float
    text: str = ""

    def is_alike(self, other: Break) -> bool:
        """Whether both are too low, or both too high, in the same feature."""
        return self.side != 0 and (self.feature, self.side) == (other.feature, other.side)


@dataclass(frozen=True, eq=False)
class AlertGroup(Immutable):
    """Flagged rows with the same breaks.

    explanation: of these and other rows. rows: (n,) their positions in it, the highest score first.
    breaks: those of nearly all rows, the most frequent first; empty if no single value stands out.
    """

    explanation: LocalExplanation = field(repr=False)
    rows: NDArray[np.intp]
    breaks: tuple[Break, ...]

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def name(self) -> str:
        """The group in a few words: ``z = 0``"""
        from ..show.wording.groups import group_name

        return group_name(self.explanation, self.rows, self.breaks)

    @cached_property
    def text(self) -> str:
        """The reason of its row with the highest score, in a sentence."""
        from ..show.wording.groups import group_text

        return group_text(self.explanation, self.rows, self.breaks)

    @property
    def features(self) -> tuple[int, ...]:
        """The features that the rows break."""
        return tuple(dict.fromkeys(each.feature for each in self.breaks))

    @property
    def score_low(self) -> float:
        """The lowest score of its rows."""
        return float(self.explanation.score[self.rows[-1]])

    @property
    def score_high(self) -> float:
        """The highest score of its rows."""
        return float(self.explanation.score[self.rows[0]])


@dataclass(frozen=True, eq=False)
class AlertGroups(Immutable):
    """The groups of the flagged rows of an explanation, the largest first.

    groups: each flagged row is in one of them. group_of: (rows,) the number of each row's group, −1
    for rows that are not flagged.
    """

    explanation: LocalExplanation = field(repr=False)
    groups: tuple[AlertGroup, ...]
    group_of: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.groups)

    def __iter__(self) -> Iterator[AlertGroup]:
        return iter(self.groups)

    def __getitem__(self, place: int) -> AlertGroup:
        return self.groups[place]

    def __repr__(self) -> str:
        n_rows = sum(map(len, self.groups))
        return f"AlertGroups({counted(len(self), 'group')}, {counted(n_rows, 'row')})"

    def _repr_html_(self) -> str:
        from ..show.notebook import groups_html

        return groups_html(self)

    def to_frame(self) -> pandas.DataFrame:
        """One line per group: name, rows, features, score_low, score_high, example, text.

        `example` is the label (or position) of the row with the highest score.
        """
        import pandas

        why = self.explanation
        first = np.array([group.rows[0] for group in self.groups], dtype=np.intp)
        return pandas.DataFrame(
            {
                "name": [group.name for group in self.groups],
                "rows": [len(group) for group in self.groups],
                "features": [[why.feature_names[j] for j in g.features] for g in self.groups],
                "score_low": [group.score_low for group in self.groups],
                "score_high": [group.score_high for group in self.groups],
                "example": list(index_for(first, why.index, len(why))),
                "text": [group.text for group in self.groups],
            }
        )

    def text(self, most: int = 20) -> str:
        """The groups as text, at most so many."""
        from ..show.wording.groups import groups_text

        return groups_text(self, check_count(most, "groups"))


def group_alerts(why: LocalExplanation) -> AlertGroups:
    """The groups of the flagged rows of an explanation."""
    flagged = np.flatnonzero(why.flagged)
    breaks = _breaks(why, flagged)
    keys = _keys(breaks)
    members: dict[frozenset[Break], list[int]] = defaultdict(list)
    for row in flagged.tolist():
        members[keys.get(row, frozenset())].append(row)
    groups = []
    for key, rows in members.items():
        ordered = np.array(sorted(rows, key=partial(_place, why)), dtype=np.intp)
        counts = Counter(each for row in rows for each in breaks[row])
        often = {each for each, count in counts.items() if count >= _NEARLY_ALL * len(rows)}
        main = tuple(sorted(often or key, key=lambda each: (-counts[each], str(each))))
        groups.append(AlertGroup(why, ordered, main))
    groups.sort(key=lambda group: (-len(group), -group.score_high, str(group.breaks)))
    group_of = np.full(len(why), -1, dtype=np.intp)
    for place, group in enumerate(groups):
        group_of[group.rows] = place
    return AlertGroups(why, tuple(groups), group_of)


def _place(why: LocalExplanation, row: int) -> tuple[Any, ...]:
    """Orders rows by falling score, and rows with the same score by their values."""
    texts = [why.new_texts.get((row, j), "") for j in (*why.categories, *why.starts)]
    return -why.score[row], np.nan_to_num(why.value[row], nan=np.inf).tolist(), texts, row


def _breaks(why: LocalExplanation, flagged: NDArray[np.intp]) -> dict[int, list[Break]]:
    """The breaks of each flagged row, the most doubted first."""
    found = {
        row: [break_of(why, reason) for reason in why.reasons_of(row, N_REASONS)]
        for row in flagged.tolist()
    }
    found = _with_new_texts(why, found)
    # Values that many rows with the same first break share.
    values: dict[Break, Counter[float]] = defaultdict(Counter)
    for row, breaks in found.items():
        for each in breaks[:1]:
            if each.side != 0:
                values[each][float(why.value[row, each.feature])] += 1
    shared = {each: _shared(counts) for each, counts in values.items()}
    return {
        row: [
            each._replace(value=value)
            if (value := float(why.value[row, each.feature])) in shared.get(each, ())
            else each
            for each in breaks
        ]
        for row, breaks in found.items()
    }


def _with_new_texts(why: LocalExplanation, found: dict[int, list[Break]]) -> dict[int, list[Break]]:
    """The same, where breaks tell which new values of a category several rows have."""

    def text(row: int, each: Break) -> str:
        return why.new_texts.get((row, each.feature), "") if each.kind == "value" else ""

    counts = Counter(
        (each, text(row, each)) for row, breaks in found.items() for each in breaks[:1]
    )
    return {
        row: [
            each._replace(text=t)
            if (t := text(row, each)) and counts[each, t] >= _SHARED_ROWS
            else each
            for each in breaks
        ]
        for row, breaks in found.items()
    }


def break_of(why: LocalExplanation, reason: Reason) -> Break:
    """What a reason says is broken."""
    j = reason.feature
    if reason.kind is Kind.MISSING:
        return Break(j, "missing", 0, np.nan)
    if j in why.categories:
        return Break(j, "value", 0, reason.value)
    if reason.kind is Kind.CLASH:
        return Break(j, "contradicts", 0, np.nan)
    kind = "beside" if reason.conditions or reason.kind is Kind.PATTERN else "range"
    reach = _FAR * (reason.upper - reason.lower)
    if reason.kind is Kind.BEYOND and not (
        reason.lower - reach <= reason.value <= reason.upper + reach
    ):
        kind = "far"
    return Break(j, kind, reason.side, np.nan)


def _shared(counts: Counter[float]) -> set[float]:
    """The value of many rows, if it lies apart from the others, as a code for "unknown" does."""
    (value, count), *_ = counts.most_common(1)
    span = max(counts) - min(counts)
    apart = all(abs(other - value) >= _APART * span for other in counts if other != value)
    often = count >= max(_SHARED_ROWS, _SHARED * counts.total())
    return {value} if apart and often else set()


def _keys(breaks: dict[int, list[Break]]) -> dict[int, frozenset[Break]]:
    """The breaks that name each row's group, of rows that have any.

    All breaks of a row, if many rows that break the first of them break exactly these; otherwise
    the first, and those of groups that are joined with it.
    """
    rows_of: dict[Break, list[int]] = defaultdict(list)
    for row, found in breaks.items():
        if found:
            rows_of[found[0]].append(row)
    frequent: set[frozenset[Break]] = set()
    for rows in rows_of.values():
        for each, count in Counter(frozenset(breaks[row]) for row in rows).items():
            if len(each) > 1 and count >= max(_FREQUENT_ROWS, _FREQUENT * len(rows)):
                frequent.add(each)
    keys = {row: frozenset(found) for row, found in breaks.items() if frozenset(found) in frequent}
    rest = {one: [row for row in rows if row not in keys] for one, rows in rows_of.items()}
    joined = _joined({one: rows for one, rows in rest.items() if rows}, breaks)
    keys |= {row: joined[one] for one, rows in rest.items() for row in rows}
    return _without_small_groups(keys, breaks)


def _joined(
    rows_of: dict[Break, list[int]], breaks: dict[int, list[Break]]
) -> dict[Break, frozenset[Break]]:
    """For each first break the group that it belongs to. rows_of: the rows of each first break"""

    def share(one: Break, other: Break) -> float:
        """The share of rows that break `one` first, and `other` too."""
        return sum(other in breaks[row] for row in rows_of[one]) / len(rows_of[one])

    key = {each: frozenset([each]) for each in rows_of}
    for one, rows in rows_of.items():
        for other in {each for row in rows for each in breaks[row]} & rows_of.keys():
            if other != one and min(share(one, other), share(other, one)) >= _TOGETHER:
                both = key[one] | key[other]
                for each in both:
                    key[each] = both
    return key


def _without_small_groups(
    keys: dict[int, frozenset[Break]], breaks: dict[int, list[Break]]
) -> dict[int, frozenset[Break]]:
    """The same, where rows of small groups join the largest one that shares a break with them.

    Or else one whose rows are too low, or too high, in the same feature, in another way.
    """
    size = Counter(keys.values())
    large = [key for key in size if size[key] >= _SMALL]
    found = dict(keys)
    for row, own in keys.items():
        if size[own] < _SMALL:
            alike = [key for key in large if not key.isdisjoint(breaks[row])] or [
                key
                for key in large
                if any(first.is_alike(each) for first in breaks[row][:1] for each in key)
            ]
            found[row] = max(alike, key=lambda key: (size[key], str(sorted(key))), default=own)
    return found
