"""Why these rows: for each the pattern it comes nearest to, where it leaves it, and what counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .asked import asked_count, asked_index
from .attribution import attribute
from .constraints import box_ends, range_text, readable, training_range
from .contributions import feature_contributions
from .formatting import counted, distinct_numbers, number, percent
from .model import FittedModel
from .patterns import Matches, match_rows
from .scoring import anomaly_scores

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

SIDES = ("below", "inside", "above")


@dataclass(frozen=True, eq=False)
class LocalExplanation:
    """Why rows score as they do: plain arrays, from which texts and frames are made.

    Arrays are (rows,) or (rows, features), in the order of the rows that were explained.

    feature_names: of the features.
    score, p_value: the anomaly score, and how rare so high a score is among normal rows.
    threshold: the score above which a row is flagged.
    unit: the pattern that the row comes nearest to; units are numbered through all members.
    box_rows: how many training rows lie wholly inside its box; 0 where not counted.
    nearest: (rows, members) the nearest pattern of every member.
    value: the row itself, in original units, NaN where missing.
    lower, upper: where the pattern's box lies, in original units, cut to the training range.
    binds_below, binds_above: whether that end lies inside the training range.
    peers: how many training rows lie inside the box in all other features; `box_rows` of them
        also lie between the two.
    side: −1 below, 0 inside, 1 above.
    distance: how far outside, in original units, 0 inside.
    expected: what the model makes of the cell, in original units.
    share: of the score, that the feature carries; a row's shares sum to 1, unless its score is 0.
    responsibility: what the features are ranked by, most responsible first.
    constant: (features,) whether training knew a single value.
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
    side: NDArray[np.int8]
    distance: Array
    expected: Array
    share: Array
    responsibility: Array
    constant: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.score)

    @property
    def flagged(self) -> NDArray[np.bool_]:
        """(rows,) whether the score is above the threshold."""
        return self.score > self.threshold

    @property
    def order(self) -> NDArray[np.intp]:
        """(rows, features) the features of each row, most responsible first."""
        return np.argsort(-self.responsibility, axis=1, kind="stable")

    def features_for(self, part: float = 0.8) -> NDArray[np.int64]:
        """(rows,) how many features it takes, largest first, to make up that part of the score."""
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

    def headline(self, row: int) -> str:
        """A row's score and pattern in a sentence or two."""
        score, threshold = distinct_numbers(self.score[row], self.threshold)
        verdict = "above" if self.flagged[row] else "not above"
        n_rows = int(self.box_rows[row])
        follow = f" (which {counted(n_rows, 'training row')} fit{'s' * (n_rows == 1)})"
        outside = int((self.side[row] != 0).sum())
        of_all = counted(len(self.feature_names), "range")
        return (
            f"Row {row}: score {score}, {verdict} the threshold of {threshold} "
            f"(p = {number(self.p_value[row], 2)}). It comes nearest to pattern {self.unit[row]}"
            f"{follow if n_rows else ''} and "
            + (f"leaves {outside} of its {of_all}." if outside else "lies inside all its ranges.")
        )

    def reasons(self, row: int, n_reasons: int = 3) -> list[str]:
        """A row's most responsible features, a sentence each; at most `n_reasons`.

        Features that carry nothing are not named.
        """
        order = self.order[row][: asked_count(n_reasons, "reasons")]
        return [self.reason(row, j) for j in order if self.responsibility[row, j] > 0]

    def reason(self, row: int, feature: int) -> str:
        """What there is to say about one cell."""
        j = feature
        name, value = self.feature_names[j], self.value[row, j]
        if np.isnan(value):
            return f"{name} is missing; it carries nothing."
        share = f"it carries {percent(self.share[row, j])} of the score."
        lower, upper = self.lower[row, j], self.upper[row, j]
        shown, expected, low, up = distinct_numbers(value, self.expected[row, j], lower, upper)
        if self.constant[j]:
            return f"{name} = {shown}, and was {low} in every training row; {share}"
        if np.isnan(lower):
            return f"{name} = {shown}, of which the pattern knows nothing; {share}"
        side = int(self.side[row, j])
        binds_below = bool(self.binds_below[row, j]) or side < 0
        binds_above = bool(self.binds_above[row, j]) or side > 0
        ends = range_text(lower, upper, low, up, binds_below, binds_above)
        if side == 0:
            if lower != upper and binds_below != binds_above:
                ends = f"its range (at {f'least {low}' if binds_below else f'most {up}'})"
            within = f"within {ends}" if binds_below or binds_above else "an ordinary value"
            return f"{name} = {shown} is {within}, but {expected} would fit the rest; {share}"
        relation = "not" if lower == upper else "above" if side > 0 else "below"
        one_sided = lower != upper and binds_below != binds_above
        known = self._known_from(row, j, "which {} keep" if one_sided else "where {} lie")
        return f"{name} = {shown} is {relation} {ends}, {known}; {share}"

    def plot(self, row: int, n_features: int = 10) -> Figure:
        """The features' parts of one row's score (counted from 0), as a waterfall."""
        from .plots import waterfall

        return waterfall(self, row, n_features)

    def _known_from(self, row: int, j: int, phrase: str) -> str:
        """Which training rows the range is known from: those that are like this row otherwise."""
        n_peers, n_inside = int(self.peers[row, j]), int(self.box_rows[row])
        if n_peers == 0:
            return "the range of the pattern"
        share = "all" if n_inside == n_peers else f"{percent(n_inside / n_peers)} of the"
        rows = f"{n_peers:,} training rows that otherwise fit the pattern"
        if n_peers == 1:
            share, rows = ("", "the one training row that otherwise fits the pattern")
            phrase = phrase.replace("keep", "keeps").replace("lie", "lies")
            if not n_inside:
                return "the range of the pattern"
        return phrase.format(f"{share} {rows}".strip())


def explain_rows(
    model: FittedModel, x: NDArray[Any], threshold: float, n_jobs: int = 1
) -> LocalExplanation:
    """Explain rows in original units. x: (rows, features)"""
    x = np.asarray(x, dtype=np.float64)
    score = anomaly_scores(model, x, n_jobs)
    parts = feature_contributions(model, x, n_jobs)
    found = attribute(model, x, n_jobs)
    matches = match_rows(model, x, n_jobs)
    lower, upper, peers, box_rows = _own_ranges(model, matches)
    side = np.sign(matches.excess).astype(np.int8)
    ends = readable(lower, upper, model.features, x)
    # The side was decided in scaled float32; the ends may not say otherwise in the last digit.
    inside = (side == 0) & ~np.isnan(x)
    low, up = ends.lower.copy(), ends.upper.copy()
    low[inside], up[inside] = np.fmin(low, x)[inside], np.fmax(up, x)[inside]
    low[side < 0], up[side > 0] = np.fmax(low, x)[side < 0], np.fmin(up, x)[side > 0]
    distance = np.where(side > 0, x - up, np.where(side < 0, low - x, 0.0))
    smallest, largest = training_range(model.features)
    total = parts.sum(axis=1, keepdims=True)
    n_units = model.config.n_units
    return LocalExplanation(
        feature_names=model.feature_names,
        score=score,
        p_value=model.calibration.p_values(score),
        threshold=threshold,
        unit=matches.member * n_units + matches.unit,
        box_rows=box_rows,
        nearest=matches.units + np.arange(len(model.members)) * n_units,
        value=x,
        lower=low,
        upper=up,
        binds_below=ends.binds_below,
        binds_above=ends.binds_above,
        peers=peers,
        side=side,
        distance=distance,
        expected=found.expected,
        share=parts / np.where(total > 0, total, 1.0),
        responsibility=found.responsibility,
        constant=smallest == largest,
    )


def _own_ranges(
    model: FittedModel, matches: Matches
) -> tuple[Array, Array, NDArray[np.int64], NDArray[np.int64]]:
    """Each row's own box in original units, and the training rows that it is known from.

    → lower, upper and peers (rows, features), box rows (rows,)
    """
    lower, upper = np.empty((2, *matches.excess.shape))
    peers = np.empty(lower.shape, dtype=np.int64)
    box_rows = np.empty(len(lower), dtype=np.int64)
    for i, member in enumerate(model.members):
        own = np.flatnonzero(matches.member == i)
        unit = matches.unit[own]
        low, up = box_ends(member)
        lower[own], upper[own] = low[unit], up[unit]
        peers[own], box_rows[own] = member.peers[unit], member.box_rows[unit]
    return lower, upper, peers, box_rows
