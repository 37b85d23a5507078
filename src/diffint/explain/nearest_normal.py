"""Counterfactuals: the fewest feature changes that make a flagged row normal.

The suggested values are plausible ones: what training rows have that agree with the rest of the
row. The least change, at which the row is just not flagged, is stated beside them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.checks import check_index
from ..core.errors import InputError
from ..core.flag_rule import FlagRule
from ..core.immutable import Immutable
from ..core.kinds import value_text
from ..core.model import FeatureSummary
from ..core.row_labels import index_for
from ..score.prepared import PreparedModel
from ..score.scoring import anomaly_scores, reconstructions
from .comparable_rows import ComparableRows
from .constraints import training_range
from .explain_rows import explain_rows

if TYPE_CHECKING:
    import pandas

Array = NDArray[np.float64]
Subset = tuple[int, ...]

N_CANDIDATES = 8  # only the most doubted features of a row are changed
_DIGITS, _FINE_DIGITS = 2, 3  # digits of suggested values, and of the least change
_FAR = 10  # ranges of the inner 98 % of the cells beyond which training cells are extreme
_HALVINGS = 12  # bisection steps towards the row's own values
_SETS_PER_BLOCK = 20_000  # changed rows scored at a time


@dataclass(frozen=True)
class Change:
    """One feature of one row: its value, the suggested one, and the nearest that is enough.

    least: with the least values of all changes of the row, it is just not flagged; for a category
    the suggested value.
    """

    feature: int
    value: float
    suggested: float
    least: float


@dataclass(frozen=True, eq=False)
class NearestNormal(Immutable):
    """For each row the smallest set of changes found after which it is not flagged.

    feature_names: names of the features; threshold: the score above which a row is flagged, or
        (rows,) of them if the model has segments.
    score, new_score: (rows,) before and after the suggested changes; NaN if none were found.
    changes: the changes of each row; empty if it is not flagged or none were found.
    max_changes: largest number of features that may change.
    categories: the features that are categories, with their values; the values of changes are
        positions in this list.
    new_texts: values of categories that are not in `categories`, and the dates of times beyond the
    training times, by row and feature, where known.
    starts: the features that are days of times, with the day from which they are counted.
    index: the labels of the rows, None if they have positions only.
    """

    feature_names: tuple[str, ...]
    threshold: float | Array
    score: Array
    new_score: Array
    changes: tuple[tuple[Change, ...], ...]
    max_changes: int
    categories: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    new_texts: Mapping[tuple[int, int], str] = field(default_factory=dict)
    starts: Mapping[int, str] = field(default_factory=dict)
    index: pandas.Index | None = None

    def __len__(self) -> int:
        return len(self.score)

    @property
    def flagged(self) -> NDArray[np.bool_]:
        """(rows,) whether the unchanged row scores above the threshold."""
        return np.asarray(self.score > self.threshold)

    @property
    def found(self) -> NDArray[np.bool_]:
        """(rows,) whether the row is normal, unchanged or after the changes."""
        return ~np.isnan(self.new_score)

    def __repr__(self) -> str:
        n_changed = sum(map(bool, self.changes))
        return (
            f"NearestNormal({len(self)} rows, {int(self.flagged.sum())} flagged, "
            f"a change found for {n_changed})"
        )

    def _repr_html_(self) -> str:
        from ..show.notebook import changes_html

        return changes_html(self)

    def to_frame(self) -> pandas.DataFrame:
        """One line per change: row, feature, value, suggested, least, score, new_score.

        `row` is the position, counted from 0; the index has the label of the row, or again its
        position if the table had no index.
        """
        import pandas

        lines = [
            (i, self.feature_names[c.feature], *self.values_of(i, c), before, after)
            for i, (row, before, after) in enumerate(
                zip(self.changes, self.score, self.new_score, strict=True)
            )
            for c in row
        ]
        columns = ["row", "feature", "value", "suggested", "least", "score", "new_score"]
        rows = np.array([line[0] for line in lines], dtype=np.intp)
        frame = pandas.DataFrame(lines, columns=columns)
        frame.index = index_for(rows, self.index, len(self))
        numbers = columns[5:] if self.categories else columns[2:]
        return frame.astype(dict.fromkeys(numbers, float) | {"row": int})

    def values_of(self, row: int, change: Change) -> tuple[float | str, float | str, float | str]:
        """A change's value, suggested and least value: numbers, or values of a category."""
        if change.feature not in self.categories:
            return change.value, change.suggested, change.least
        values = self.categories[change.feature]
        suggested, least = values[int(change.suggested)], values[int(change.least)]
        if np.isnan(change.value):
            return "missing", suggested, least
        own = self.new_texts.get((row, change.feature), value_text(values, change.value))
        return own, suggested, least

    def text(self, row: int | None = None) -> str:
        """The changes as text, of one row (its position, from 0) or of all flagged rows."""
        from ..show.wording.changes import all_changes_text, changes_text

        if row is None:
            return all_changes_text(self)
        return changes_text(self, check_index(row, len(self), "row", "examined"))


def nearest_normal(
    prepared: PreparedModel,
    x: NDArray[Any],
    rule: FlagRule,
    max_changes: int = 3,
    n_jobs: int = 1,
    index: pandas.Index | None = None,
    new_texts: Mapping[tuple[int, int], str] | None = None,
) -> NearestNormal:
    """Find the smallest change that makes each flagged row normal.

    x: (rows, features); rule: which of them are flagged; index: their labels; new_texts: as in
    `NearestNormal`

    Tries all sets of one, then two, … of a row's most doubted features, with the values that
    training rows have which agree with the rest of the row, or that the model reconstructs. Of the
    sets of the smallest size that make the row normal, the most doubted one is kept. Every
    suggestion has been scored.
    """
    if isinstance(max_changes, bool) or not isinstance(max_changes, (int, np.integer)):
        raise InputError(f"max_changes={max_changes!r} must be a whole number of at least 1")
    if max_changes < 1:
        raise InputError(f"max_changes={max_changes!r} must be at least 1")
    x = np.asarray(x, dtype=np.float64)
    score = anomaly_scores(prepared, x, n_jobs)
    flagged = np.flatnonzero(rule.flagged(score))
    new_score = score.copy()
    new_score[flagged] = np.nan
    changes: list[tuple[Change, ...]] = [()] * len(x)
    doubt = np.zeros(x.shape)
    doubt[flagged] = explain_rows(prepared, x[flagged], rule.take(flagged), n_jobs).doubt
    candidates = np.argsort(-doubt, axis=1, kind="stable")[:, :N_CANDIDATES]
    cuts = np.broadcast_to(rule.threshold, len(x))[flagged]
    for cut in np.unique(cuts):  # one for each segment
        search, remaining = _Search(prepared, float(cut), n_jobs), flagged[cuts == cut]
        for size in range(1, min(max_changes, x.shape[1], N_CANDIDATES) + 1):
            missed = []
            per_block = max(1, _SETS_PER_BLOCK // max(len(_subsets(x.shape[1], size)), 1))
            for start in range(0, len(remaining), per_block):
                rows = remaining[start : start + per_block]
                found, scores = search.smallest_changes(
                    x[rows], doubt[rows], candidates[rows], size
                )
                for i, row in enumerate(rows):
                    changes[row], new_score[row] = found[i], scores[i]
                    if not found[i]:
                        missed.append(row)
            remaining = np.array(missed, dtype=np.intp)
    return NearestNormal(
        prepared.model.feature_names,
        rule.threshold,
        score,
        new_score,
        tuple(changes),
        int(max_changes),
        prepared.model.categories,
        dict(new_texts or {}),
        prepared.model.starts,
        index,
    )


def mended_by(
    prepared: PreparedModel,
    x: NDArray[Any],
    features: NDArray[np.intp],
    threshold: float,
    n_jobs: int = 1,
) -> NDArray[np.bool_]:
    """Whether rows (rows, features) are normal with plausible values in some features. → (rows,)"""
    x = np.asarray(x, dtype=np.float64)
    row, changed = np.arange(len(x)), np.tile(features, (len(x), 1))
    found = _Search(prepared, threshold, n_jobs)._most_doubted(x, row, changed, np.zeros(x.shape))
    return np.isin(row, [] if found is None else found[0])


def _subsets(n_features: int, size: int) -> list[Subset]:
    """All sets of `size` positions among a row's candidates."""
    return list(combinations(range(min(N_CANDIDATES, n_features)), size))


class _Search:
    """Searches sets of one size; all sets of all rows are scored together."""

    def __init__(self, prepared: PreparedModel, threshold: float, n_jobs: int) -> None:
        self._prepared, self._threshold, self._n_jobs = prepared, threshold, n_jobs
        self._features = prepared.model.features
        n_features = len(prepared.model.feature_names)
        self._is_category = np.isin(np.arange(n_features), list(prepared.model.categories))
        self._low, self._high = _usual_range(self._features)
        width = self._high - self._low
        self._span = np.where(width > 0, width, 1.0)  # beside huge values, 1 more is no more

    def smallest_changes(
        self, x: Array, doubt: Array, candidates: NDArray[np.intp], size: int
    ) -> tuple[list[tuple[Change, ...]], Array]:
        """For each flagged row the best set of this size, empty if there is none; new scores.

        x, doubt: (rows, features); candidates: (rows, n) the features that may change
        """
        n_rows, n_features = x.shape
        subsets = np.array(_subsets(n_features, size), dtype=np.intp)  # (sets, size)
        row = np.repeat(np.arange(n_rows), len(subsets))
        features = candidates[row[:, None], np.tile(subsets, (n_rows, 1))]
        usable = ~np.isnan(x[row[:, None], features]).any(axis=1)
        row, features = row[usable], features[usable]
        found: list[tuple[Change, ...]] = [()] * n_rows
        new_scores = np.full(n_rows, np.nan)
        chosen = self._most_doubted(x, row, features, doubt)
        if chosen is None:
            return found, new_scores
        row, features, target, scores = chosen
        least = self._least(x, row, features, target)
        own = x[row[:, None], features]
        for i, place in enumerate(row.tolist()):
            found[place] = tuple(
                Change(int(j), *map(float, values))
                for j, *values in zip(features[i], own[i], target[i], least[i], strict=True)
            )
            new_scores[place] = scores[i]
        return found, new_scores

    def _most_doubted(
        self, x: Array, row: NDArray[np.intp], features: NDArray[np.intp], doubt: Array
    ) -> tuple[NDArray[np.intp], NDArray[np.intp], Array, Array] | None:
        """For each row that some set makes normal the most doubted one: row, features, new values
        and score. row: (sets,); features: (sets, size)
        """
        own = x[row[:, None], features]
        targets, scores = np.full(own.shape, np.nan), np.full(len(row), np.inf)
        for values in self._plausible(x, row, features):
            for digits in (_DIGITS, _FINE_DIGITS):
                open_sets = np.flatnonzero(~(scores <= self._threshold))
                rounded = self._rounded(values[open_sets], features[open_sets], digits)
                fits = np.isfinite(rounded).all(axis=1) & (rounded != own[open_sets]).any(axis=1)
                open_sets, rounded = open_sets[fits], rounded[fits]
                targets[open_sets] = rounded
                scores[open_sets] = self._scores(x, row[open_sets], features[open_sets], rounded)
        doubted = doubt[row[:, None], features].sum(axis=1)
        normal = np.flatnonzero(scores <= self._threshold)
        if not len(normal):
            return None
        normal = normal[np.lexsort((-doubted[normal], row[normal]))]
        best = normal[np.unique(row[normal], return_index=True)[1]]
        return row[best], features[best], targets[best], scores[best]

    def _plausible(
        self, x: Array, row: NDArray[np.intp], features: NDArray[np.intp]
    ) -> Iterator[Array]:
        """Values for the features of each set, the most plausible first. → (sets, size) each"""
        masked = x[row]
        each = np.arange(len(row))[:, None]
        masked[each, features] = np.nan
        rows = self._prepared.once(ComparableRows.of)
        expected = reconstructions(self._prepared, masked, self._n_jobs)[each, features]
        tried = [expected]
        if rows is not None:
            tried.insert(0, _medians(rows, x, row, features))
        for values in tried:
            if self._is_category.any():
                self._set_likeliest(values, masked, features)
            yield values

    def _least(
        self, x: Array, row: NDArray[np.intp], features: NDArray[np.intp], target: Array
    ) -> Array:
        """Values between the row's own and the target at which the row is just not flagged.

        row: (sets,); features, target, result: (sets, size)
        """
        own = x[row[:, None], features]
        # From far beyond all usual values, the steps of the bisection would be too wide.
        low, high, span = (a[features] for a in (self._low, self._high, self._span))
        with np.errstate(over="ignore"):
            start = np.clip(own, low - span, high + span)
        category = self._is_category[features]
        part, below, least = np.ones(len(row)), np.zeros(len(row)), target.copy()
        for _ in range(_HALVINGS):
            middle = (below + part) / 2
            way = middle[:, None]  # the difference of both values may overflow
            tried = (1.0 - way) * start + way * target
            tried = np.where(category, target, tried)  # nothing in between
            tried = self._rounded(tried, features, _FINE_DIGITS, away_from=own)
            # Rounding must not carry a value beyond the target.
            tried = np.clip(tried, np.minimum(own, target), np.maximum(own, target))
            stays = self._scores(x, row, features, tried) <= self._threshold
            below, part = np.where(stays, below, middle), np.where(stays, middle, part)
            least[stays] = tried[stays]
        return least

    def _scores(
        self, x: Array, row: NDArray[np.intp], features: NDArray[np.intp], values: Array
    ) -> Array:
        """Scores of rows with these features changed. row: (sets,); features: (sets, size)"""
        changed = x[row]
        changed[np.arange(len(row))[:, None], features] = values
        return anomaly_scores(self._prepared, changed, self._n_jobs)

    def _set_likeliest(self, target: Array, masked: Array, features: NDArray[np.intp]) -> None:
        """Set targets of categories to the values that fit the rest of the row best.

        target, features: (sets, size); masked: (sets, features) without the values to change
        """
        associations = self._prepared.members[0].associations
        for j in associations.categories.tolist():
            rows, place = np.nonzero(features == j)
            target[rows, place] = associations.likeliest(masked[rows], j)

    def _rounded(
        self,
        values: Array,
        features: NDArray[np.intp],
        digits: int,
        away_from: Array | None = None,
    ) -> Array:
        """Values rounded for display, to the nearest or away from the row's own value.

        To so many digits of the training range, and of the value, or finer; at least to whole
        numbers for features that had only those in training.
        """
        exponent = np.floor(np.log10(self._span[features])) - digits
        size = np.floor(np.log10(np.maximum(np.abs(values), 1e-300)))
        exponent = np.where(values == 0, exponent, np.minimum(exponent, size + 1 - digits))
        whole = self._features.whole[features]
        exponent = np.where(
            whole, np.maximum(exponent if digits == _DIGITS else 0.0, 0.0), exponent
        )
        step = 10.0 ** np.clip(exponent, -300, 300)
        with np.errstate(over="ignore", invalid="ignore"):
            steps = values / step
            nearest = np.round(steps)
            if away_from is not None:
                # A value that is already a multiple of the step must not move to the next one.
                steps = np.where(np.abs(steps - nearest) < 1e-6, nearest, steps)
                nearest = np.where(values > away_from, np.ceil(steps), np.floor(steps))
            rounded = nearest * step
        decimals = np.clip(np.nan_to_num(-exponent), 0, 15).astype(int)  # missing values stay
        exact = np.array(
            [round(v, d) for v, d in zip(rounded.ravel(), decimals.ravel(), strict=True)]
        )
        return np.where(np.isfinite(rounded), exact.reshape(rounded.shape), values)


def _medians(
    rows: ComparableRows, x: Array, row: NDArray[np.intp], features: NDArray[np.intp]
) -> Array:
    """Medians of the kept rows that are nearest to each row without the features of a set.

    x: (rows, features); row: (sets,), ascending; features, result: (sets, size)
    """
    found = np.empty(features.shape)
    scaled = rows.scale(x)
    starts = np.flatnonzero(np.diff(row, prepend=-1))
    for start, stop in zip(starts, [*starts[1:], len(row)], strict=False):
        own = scaled[row[start]]
        distance = rows.distances(own, np.arange(len(own)))
        for place in range(start, stop):
            chosen = features[place]
            found[place] = rows.medians(distance - rows.distances(own, chosen), chosen)
    return found


def _usual_range(features: FeatureSummary) -> tuple[Array, Array]:
    """Smallest and largest training value of each feature, without extremes; (features,) each.

    A few extreme cells would make every other change look small. The range is widened to 1 where
    there is none.
    """
    smallest, largest = training_range(features)
    first, last = features.quantiles[:, 1], features.quantiles[:, -2]
    reach = np.where(last > first, _FAR * (last - first), np.inf)
    low, high = np.fmax(smallest, first - reach), np.fmin(largest, last + reach)
    varies = high > low
    low = np.where(np.isnan(low), 0.0, low)
    return low, np.where(varies, high, low + 1.0)
