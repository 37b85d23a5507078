"""Why these rows: for each the pattern it comes nearest to, where it leaves it, and what counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .asked import asked_count, asked_index
from .constraints import box_ends, range_text, readable, training_range, who_fits
from .errors import InputError
from .formatting import counted, distinct_numbers, number, percent, shown_name
from .frozen import Frozen
from .model import FittedModel, Member
from .packed_members import packed_members
from .patterns import Matches
from .scoring import run_blocks

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

SIDES = ("below", "inside", "above")
_BLOCK_ROWS = 512


@dataclass(frozen=True, eq=False)
class LocalExplanation(Frozen):
    """Why rows score as they do: plain arrays, from which texts and frames are made.

    Arrays are (rows,) or (rows, features), in the order of the rows that were explained.

    feature_names: of the features.
    score, p_value: the anomaly score, and how rare so high a score is among normal rows.
    threshold: the score above which a row is flagged.
    unit: the pattern that the row comes nearest to; units are numbered through all members.
    box_rows: how many of `counted_rows` training rows lie wholly inside its box; 0 where none were
        counted.
    nearest: (rows, members) the nearest pattern of every member.
    value: the row itself, in original units, NaN where missing.
    lower, upper: where the pattern's box lies, in original units, cut to the training range.
    binds_below, binds_above: whether that end lies inside the training range.
    peers: how many of those rows with a value lie inside the box in all other features;
        peers_inside: how many of these also lie between the two.
    side: −1 below, 0 inside, 1 above.
    distance: how far outside, in original units, 0 inside.
    expected: what the model makes of the cell, in original units.
    share: of the score, that the feature carries; a row's shares sum to 1, unless its score is 0.
    responsibility: what the features are ranked by, most responsible first.
    constant, whole: (features,) whether training knew a single value, only whole numbers.
    counted_rows, n_rows: training rows that were counted, and all of them.
    held_out: whether the p-values rest on rows that training had not seen.
    """

    feature_names: tuple[str, ...]
    score: Array
    p_value: Array
    threshold: float
    unit: NDArray[np.intp]
    box_rows: NDArray[np.int64]
    nearest: NDArray[np.intp]
    value: Array
    lower: Array
    upper: Array
    binds_below: NDArray[np.bool_]
    binds_above: NDArray[np.bool_]
    peers: NDArray[np.int64]
    peers_inside: NDArray[np.int64]
    side: NDArray[np.int8]
    distance: Array
    expected: Array
    share: Array
    responsibility: Array
    constant: NDArray[np.bool_]
    whole: NDArray[np.bool_]
    counted_rows: int
    n_rows: int
    held_out: bool

    def __len__(self) -> int:
        return len(self.score)

    def __repr__(self) -> str:
        return f"LocalExplanation({counted(len(self), 'row')}, {self.flagged.sum()} flagged)"

    @property
    def flagged(self) -> NDArray[np.bool_]:
        """(rows,) whether the score is above the threshold."""
        return self.score > self.threshold

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """(rows, features) the features of each row, most responsible first."""
        return np.argsort(-self.responsibility, axis=1, kind="stable")

    def features_for(self, part: float = 0.8) -> NDArray[np.int64]:
        """(rows,) how many features it takes, largest first, to make up that part of the score."""
        if not 0 < part <= 1:
            raise InputError(f"part={part!r} must be above 0 and at most 1")
        cumulated = np.cumsum(-np.sort(-self.share, axis=1), axis=1)
        return 1 + (cumulated < part * cumulated[:, -1:] * (1 - 1e-12)).sum(axis=1)

    def to_frame(self, n_features: int | None = None) -> pandas.DataFrame:
        """One line per (row, feature), each row's most responsible feature first.

        Columns: row, feature, value, lower, upper, side, distance, share, unit.
        n_features: how many of each row's features, all by default.
        """
        import pandas

        order = self.order
        if n_features is not None:
            order = order[:, : asked_count(n_features, "features")]
        each = np.arange(len(self))[:, None]
        missing = np.isnan(self.value)
        sides = np.array([*SIDES, "missing"], dtype=object)
        kind = np.where(missing, 3, self.side + 1)

        def ranked(array: NDArray[Any]) -> NDArray[Any]:
            return array[each, order].ravel()

        return pandas.DataFrame(
            {
                "row": np.repeat(np.arange(len(self)), order.shape[1]),
                "feature": np.array(self.feature_names, dtype=object)[order].ravel(),
                "value": ranked(self.value),
                "lower": ranked(self.lower),
                "upper": ranked(self.upper),
                "side": sides[ranked(kind)],
                "distance": ranked(self.distance),
                "share": ranked(self.share),
                "unit": np.repeat(self.unit, order.shape[1]),
            }
        )

    def text(self, row: int | None = None, n_reasons: int = 3) -> str:
        """The reasons in words: of one row (counted from 0), or of all of them.

        n_reasons: how many features to name at most.
        """
        if row is None:
            return "\n\n".join(self.text(i, n_reasons) for i in range(len(self)))
        row = asked_index(row, len(self), "row", "explained")
        lines = [self.headline(row)]
        lines += [f"  {i}. {reason}" for i, reason in enumerate(self.reasons(row, n_reasons), 1)]
        return "\n".join(lines)

    def plot(self, row: int, n_features: int = 10) -> Figure:
        """A waterfall of a row's score, feature by feature."""
        from .plots import waterfall

        return waterfall(self, row, n_features)

    def headline(self, row: int) -> str:
        """A row's score and pattern in a sentence or two."""
        row = asked_index(row, len(self), "row", "explained")
        score, threshold = distinct_numbers(self.score[row], self.threshold)
        verdict = "above" if self.flagged[row] else "not above"
        p_value = f"p = {number(self.p_value[row], 2)}"
        if not self.held_out:
            p_value += ", optimistic: from the training rows"
        outside, n_features = int((self.side[row] != 0).sum()), len(self.feature_names)
        if outside == 0:
            left = "lies inside all its ranges"
        elif outside == n_features:
            left = "leaves its only range" if n_features == 1 else f"leaves all {outside} ranges"
        else:
            left = f"leaves {outside} of its {n_features} ranges"
        fits = who_fits(int(self.box_rows[row]), self.counted_rows, self.n_rows)
        return (
            f"Row {row}: score {score}, {verdict} the threshold of {threshold} ({p_value}). It "
            f"comes nearest to pattern {self.unit[row]}{f' ({fits})' if fits else ''} and {left}."
        )

    def reasons(self, row: int, n_reasons: int = 3) -> list[str]:
        """A row's most responsible features, a sentence each; at most `n_reasons`.

        Features that carry nothing are not named.
        """
        row = asked_index(row, len(self), "row", "explained")
        order = self.order[row][: asked_count(n_reasons, "reasons")]
        return [self.reason(row, int(j)) for j in order if self.responsibility[row, j] > 0]

    def brief(self, row: int, n_reasons: int = 3) -> str:
        """A row's most responsible features in one line: ``a = 9 above 2–5 (40 %); b = …``"""
        parts = []
        for j in self.order[row][:n_reasons]:
            if not self.responsibility[row, j] > 0:
                break
            lower, upper, side = self.lower[row, j], self.upper[row, j], self.side[row, j]
            value, low, up = distinct_numbers(self.value[row, j], lower, upper)
            ends = range_text(lower, upper, low, up, True, True)
            where = ("below", "within", "above")[side + 1] if lower != upper else "not"
            share = percent(self.share[row, j])
            parts.append(f"{self.feature_names[j]} = {value} {where} {ends} ({share})")
        return "; ".join(parts)

    def reason(self, row: int, feature: int) -> str:
        """What there is to say about one cell."""
        row = asked_index(row, len(self), "row", "explained")
        j = asked_index(feature, len(self.feature_names), "feature", "explained")
        name, value = shown_name(self.feature_names[j]), self.value[row, j]
        if np.isnan(value):
            return f"{name} is missing; it carries nothing."
        share = f"it carries {percent(self.share[row, j])} of the score."
        lower, upper = self.lower[row, j], self.upper[row, j]
        shown, low, up = distinct_numbers(value, lower, upper)
        side = int(self.side[row, j])
        if np.isnan(lower):
            return f"{name} = {shown}, of which the pattern knows nothing; {share}"
        if self.constant[j]:
            always = f"but was {low} in every" if side else "as in every"
            return f"{name} = {shown}, {always} training row; {share}"
        binds_below = bool(self.binds_below[row, j]) or side < 0
        binds_above = bool(self.binds_above[row, j]) or side > 0
        ends = range_text(lower, upper, low, up, binds_below, binds_above)
        if side == 0:
            return f"{name} = {shown} is {self._within(row, j, low, up, ends)}; {share}"
        relation = "not" if lower == upper else "above" if side > 0 else "below"
        one_sided = lower != upper and binds_below != binds_above
        known = self._known_from(row, j, "which {} keep" if one_sided else "where {} lie")
        return f"{name} = {shown} is {relation} {ends}, {known}; {share}"

    def _within(self, row: int, j: int, low: str, up: str, ends: str) -> str:
        """Where an ordinary value lies, and what would fit the rest of the row better."""
        binds_below, binds_above = self.binds_below[row, j], self.binds_above[row, j]
        if self.lower[row, j] == self.upper[row, j]:
            where = "as in the pattern"
        elif not (binds_below or binds_above):
            where = "an ordinary value"
        elif binds_below != binds_above:
            where = f"within its range (at {f'least {low}' if binds_below else f'most {up}'})"
        else:
            where = f"within {ends}"
        value, expected = self.value[row, j], self.expected[row, j]
        expected = np.round(expected) if self.whole[j] else expected
        if np.isnan(expected) or expected == value:
            return where
        return f"{where}, while {distinct_numbers(expected, value)[0]} would fit the rest better"

    def _known_from(self, row: int, j: int, phrase: str) -> str:
        """Which training rows the range is known from: those that are like this row otherwise."""
        n_peers, n_inside = int(self.peers[row, j]), int(self.peers_inside[row, j])
        if n_inside == 0:
            return "the range of the pattern"
        sampled = "" if self.counted_rows == self.n_rows else "sampled "
        if n_peers == 1:
            phrase = phrase.replace("keep", "keeps").replace("lie", "lies")
            return phrase.format(f"the one {sampled}training row that otherwise fits the pattern")
        share = "all" if n_inside == n_peers else f"{percent(n_inside / n_peers)} of the"
        rows = f"{n_peers:,} {sampled}training rows that otherwise fit the pattern"
        return phrase.format(f"{share} {rows}")


def explain_rows(
    model: FittedModel, x: NDArray[Any], threshold: float, n_jobs: int = 1
) -> LocalExplanation:
    """Explain rows in original units. x: (rows, features)"""
    x = np.array(x, dtype=np.float64)  # a copy: the explanation is to outlive the caller's rows
    packed = packed_members(model)
    score, parts = packed.parts(x, n_jobs)
    found = packed.explained(x, n_jobs)
    matches = Matches.of(found)
    ends = [box_ends(member) for member in model.members]
    box_lower, box_upper = (np.stack([end[side] for end in ends]) for side in (0, 1))
    side = np.empty(x.shape, dtype=np.int8)
    low, up, distance, share = np.empty((4, *x.shape))
    binds_below, binds_above = np.empty((2, *x.shape), dtype=bool)

    def explain_block(start: int) -> None:
        """What is made of single cells; of few rows at a time, so that all of it stays in cache."""
        rows = slice(start, start + _BLOCK_ROWS)
        of = matches.member[rows], matches.unit[rows]
        value, sides = x[rows], np.sign(matches.excess[rows]).astype(np.int8)
        ends = readable(box_lower[of], box_upper[of], model.features, value)
        # The side was decided in scaled float32; the ends may not say otherwise in the last digit.
        inside = (sides == 0) & ~np.isnan(value) & ~np.isnan(ends.lower)
        lower, upper = ends.lower.copy(), ends.upper.copy()
        np.copyto(lower, np.fmin(lower, value), where=inside)
        np.copyto(upper, np.fmax(upper, value), where=inside)
        np.copyto(lower, np.fmax(lower, value), where=sides < 0)
        np.copyto(upper, np.fmin(upper, value), where=sides > 0)
        outside = np.where(sides > 0, value - upper, np.where(sides < 0, lower - value, 0.0))
        total = parts[rows].sum(axis=1, keepdims=True)
        side[rows], low[rows], up[rows], distance[rows] = sides, lower, upper, outside
        binds_below[rows], binds_above[rows] = ends.binds_below, ends.binds_above
        share[rows] = parts[rows] / np.where(total > 0, total, 1.0)

    run_blocks(explain_block, range(0, len(x), _BLOCK_ROWS), n_jobs)
    smallest, largest = training_range(model.features)
    n_units = model.config.n_units

    def own(what: Callable[[Member], NDArray[Any]]) -> NDArray[Any]:
        """Something of each row's own unit."""
        return np.stack([what(member) for member in model.members])[matches.member, matches.unit]

    return LocalExplanation(
        feature_names=model.feature_names,
        score=score,
        p_value=model.calibration.p_values(score),
        threshold=threshold,
        unit=matches.member * n_units + matches.unit,
        box_rows=own(lambda member: member.box_rows),
        nearest=matches.units + np.arange(len(model.members)) * n_units,
        value=x,
        lower=low,
        upper=up,
        binds_below=binds_below,
        binds_above=binds_above,
        peers=own(lambda member: member.peers),
        peers_inside=own(lambda member: member.peers_inside),
        side=side,
        distance=distance,
        expected=found.expected,
        share=share,
        responsibility=found.responsibility,
        constant=smallest == largest,
        whole=model.features.whole,
        counted_rows=min(member.counted_rows for member in model.members),
        n_rows=model.training.n_rows,
        held_out=model.calibration.held_out,
    )
