"""Counterfactuals: the fewest feature changes that make a flagged row normal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.checks import check_index
from ..core.errors import InputError
from ..core.immutable import Immutable
from ..core.kinds import value_text
from ..core.model import FeatureSummary
from ..core.row_labels import index_for
from ..score.prepared import PreparedModel
from ..score.scoring import anomaly_scores, reconstructions
from .constraints import training_range
from .responsibility import responsibilities

if TYPE_CHECKING:
    import pandas

Array = NDArray[np.float64]
Subset = tuple[int, ...]

N_CANDIDATES = 8  # only the most responsible features of a row are changed
_DIGITS = 4  # suggested values are rounded to 10⁻⁴ of the training range or finer
_FAR = 10  # ranges of the inner 98 % of the cells beyond which training cells are extreme
_HALVINGS = 12  # bisection steps towards the row's own values
_SETS_PER_BLOCK = 20_000  # changed rows scored at a time


@dataclass(frozen=True)
class Change:
    """One feature of one row: its value and the suggested one."""

    feature: int
    value: float
    suggested: float


@dataclass(frozen=True, eq=False)
class NearestNormal(Immutable):
    """For each row the smallest set of changes found after which it is not flagged.

    feature_names: names of the features; threshold: the score above which a row is flagged.
    score, new_score: (rows,) before and after the changes; new_score is NaN if none were found.
    changes: the changes of each row; empty if it is not flagged or none were found.
    max_changes: largest number of features that may change.
    categories: the features that are categories, with their values; the values of changes are
        positions in this list.
    new_texts: values of categories that are not in `categories`, and the days of times beyond the
    training times, by row and feature, where known.
    index: the labels of the rows, None if they have positions only.
    """

    feature_names: tuple[str, ...]
    threshold: float
    score: Array
    new_score: Array
    changes: tuple[tuple[Change, ...], ...]
    max_changes: int
    categories: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    new_texts: Mapping[tuple[int, int], str] = field(default_factory=dict)
    index: pandas.Index | None = None

    def __len__(self) -> int:
        return len(self.score)

    @property
    def flagged(self) -> NDArray[np.bool_]:
        """(rows,) whether the unchanged row scores above the threshold."""
        return self.score > self.threshold

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
        """One line per change: row, feature, value, suggested, score, new_score.

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
        columns = ["row", "feature", "value", "suggested", "score", "new_score"]
        rows = np.array([line[0] for line in lines], dtype=np.intp)
        frame = pandas.DataFrame(lines, columns=columns)
        frame.index = index_for(rows, self.index, len(self))
        numbers = columns[4:] if self.categories else columns[2:]
        return frame.astype(dict.fromkeys(numbers, float) | {"row": int})

    def values_of(self, row: int, change: Change) -> tuple[float | str, float | str]:
        """The value and the suggested value of a change: numbers, or values of a category."""
        if change.feature not in self.categories:
            return change.value, change.suggested
        values = self.categories[change.feature]
        if np.isnan(change.value):
            return "missing", values[int(change.suggested)]
        own = self.new_texts.get((row, change.feature), value_text(values, change.value))
        return own, values[int(change.suggested)]

    def text(self, row: int | None = None) -> str:
        """The changes as text, of one row (given by its position, from 0) or of all rows."""
        from ..show.wording.changes import changes_text

        if row is None:
            return "\n".join(self.text(i) for i in range(len(self)))
        return changes_text(self, check_index(row, len(self), "row", "examined"))


def nearest_normal(
    prepared: PreparedModel,
    x: NDArray[Any],
    threshold: float,
    max_changes: int = 3,
    n_jobs: int = 1,
    index: pandas.Index | None = None,
    new_texts: Mapping[tuple[int, int], str] | None = None,
) -> NearestNormal:
    """Find the smallest change that makes each flagged row normal.

    x: (rows, features); index: their labels; new_texts: as in `NearestNormal`

    Tries all sets of one, then two, … of a row's most responsible features. They are changed to
    the values that the model reconstructs when they are missing, then moved back towards the row's
    own values by bisection as long as the row stays normal. Of the successful sets of the smallest
    size, the one with the smallest total change relative to the training ranges is kept. Every
    suggestion has been scored.
    """
    if isinstance(max_changes, bool) or not isinstance(max_changes, (int, np.integer)):
        raise InputError(f"max_changes={max_changes!r} must be a whole number of at least 1")
    if max_changes < 1:
        raise InputError(f"max_changes={max_changes!r} must be at least 1")
    x = np.asarray(x, dtype=np.float64)
    score = anomaly_scores(prepared, x, n_jobs)
    new_score = np.where(score > threshold, np.nan, score)
    changes: list[tuple[Change, ...]] = [()] * len(x)
    remaining = np.flatnonzero(score > threshold)
    suspects = np.zeros(x.shape)
    suspects[remaining] = responsibilities(prepared, x[remaining], n_jobs)
    candidates = np.argsort(-suspects, axis=1, kind="stable")[:, :N_CANDIDATES]
    search = _Search(prepared, threshold, n_jobs)
    for size in range(1, min(max_changes, x.shape[1], N_CANDIDATES) + 1):
        missed = []
        per_block = max(1, _SETS_PER_BLOCK // max(len(_subsets(x.shape[1], size)), 1))
        for start in range(0, len(remaining), per_block):
            rows = remaining[start : start + per_block]
            found, scores = search.smallest_changes(x[rows], candidates[rows], size)
            for i, row in enumerate(rows):
                changes[row], new_score[row] = found[i], scores[i]
                if not found[i]:
                    missed.append(row)
        remaining = np.array(missed, dtype=np.intp)
    return NearestNormal(
        prepared.model.feature_names,
        threshold,
        score,
        new_score,
        tuple(changes),
        int(max_changes),
        prepared.model.categories,
        dict(new_texts or {}),
        index,
    )


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
        self, x: Array, candidates: NDArray[np.intp], size: int
    ) -> tuple[list[tuple[Change, ...]], Array]:
        """For each flagged row the best set of this size, empty if there is none; new scores.

        x: (rows, features); candidates: (rows, n) the features that may change
        """
        n_rows, n_features = x.shape
        subsets = np.array(_subsets(n_features, size), dtype=np.intp)  # (sets, size)
        row = np.repeat(np.arange(n_rows), len(subsets))
        features = candidates[row[:, None], np.tile(subsets, (n_rows, 1))]
        each = np.arange(len(row))[:, None]
        own = x[row[:, None], features]
        usable = ~np.isnan(own).any(axis=1)

        masked = x[row]
        masked[each, features] = np.nan
        target = reconstructions(self._prepared, masked, self._n_jobs)[each, features]
        if self._is_category.any():
            self._set_likeliest(target, masked, features)
        usable &= np.isfinite(target).all(axis=1)
        row, features, own, target = row[usable], features[usable], own[usable], target[usable]

        # From far beyond all usual values, the steps of the bisection would be too wide.
        low, high, span = (a[features] for a in (self._low, self._high, self._span))
        with np.errstate(over="ignore"):
            start = np.clip(own, low - span, high + span)

        def moved(part: Array) -> tuple[Array, Array]:
            """Values at this fraction (sets,) of the way to the target, rounded; their scores."""
            way = part[:, None]  # the difference of both values may overflow
            values = (1.0 - way) * start + way * target
            values = np.where(self._is_category[features], target, values)  # nothing in between
            values = self._rounded(values, own, features)
            changed = x[row]
            changed[np.arange(len(row))[:, None], features] = values
            return values, anomaly_scores(self._prepared, changed, self._n_jobs)

        part = np.ones(len(row))
        values, scores = moved(part)
        normal = scores <= self._threshold
        row, features, own, target = row[normal], features[normal], own[normal], target[normal]
        start = start[normal]
        part, values, scores = part[normal], values[normal], scores[normal]
        low = np.zeros(len(row))
        for _ in range(_HALVINGS):
            middle = (low + part) / 2
            tried, tried_scores = moved(middle)
            stays = tried_scores <= self._threshold
            low = np.where(stays, low, middle)
            part = np.where(stays, middle, part)
            values[stays], scores[stays] = tried[stays], tried_scores[stays]

        with np.errstate(over="ignore"):
            effort = (np.abs(values - own) / self._span[features]).sum(axis=1)
        found: list[tuple[Change, ...]] = [()] * n_rows
        new_scores = np.full(n_rows, np.nan)
        for i in np.argsort(-effort, kind="stable"):  # the smallest comes last and overwrites
            found[row[i]] = tuple(
                Change(int(j), float(before), float(after))
                for j, before, after in zip(features[i], own[i], values[i], strict=True)
            )
            new_scores[row[i]] = scores[i]
        return found, new_scores

    def _set_likeliest(self, target: Array, masked: Array, features: NDArray[np.intp]) -> None:
        """Set targets of categories to the values that fit the rest of the row best.

        target, features: (sets, size); masked: (sets, features) without the values to change
        """
        associations = self._prepared.members[0].associations
        for j in associations.categories.tolist():
            rows, place = np.nonzero(features == j)
            target[rows, place] = associations.likeliest(masked[rows], j)

    def _rounded(self, values: Array, own: Array, features: NDArray[np.intp]) -> Array:
        """Values rounded for display, away from the row's own value.

        To whole numbers for features that had only those in training, otherwise to 10⁻⁴ of the
        training range or finer.
        """
        exponent = np.floor(np.log10(self._span[features])) - _DIGITS
        whole = self._features.whole[features]
        step = 10.0 ** np.clip(np.where(whole, 0.0, exponent), -300, 300)
        with np.errstate(over="ignore", invalid="ignore"):
            steps = values / step
            # A value that is already a multiple of the step must not move to the next one.
            nearest = np.round(steps)
            steps = np.where(np.abs(steps - nearest) < 1e-6, nearest, steps)
            rounded = np.where(values > own, np.ceil(steps), np.floor(steps)) * step
        decimals = np.clip(-np.where(whole, 0.0, exponent), 0, 15).astype(int)
        exact = np.array(
            [round(v, d) for v, d in zip(rounded.ravel(), decimals.ravel(), strict=True)]
        )
        return np.where(np.isfinite(rounded), exact.reshape(rounded.shape), values)


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
