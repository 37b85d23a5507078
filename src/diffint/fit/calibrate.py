"""Scores of rows that members were not trained on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.calibration import MAX_SCORES, Calibration, group_sizes
from ..score.prepared import PreparedMembers
from ..score.scoring import anomaly_scores
from .category_positions import with_new_values
from .sampling import at_most
from .task import Split, Task

Array = NDArray[np.float64]

_SAMPLE_ROWS, _SAMPLE_CELLS = 2_000, 100_000  # most calibration rows that a model stores
_HIGHEST_RATE = 0.3  # up to which calibration scores are raised
_FEWEST_ABOVE = 2.5  # scores of each member above its quantile, which is the third highest or lower


def calibrate(
    prepared: PreparedMembers, task: Task, split: Split, n_jobs: int, rng: np.random.Generator
) -> Calibration:
    """Calibration scores: left-out rows, scored by the members that were not trained on them."""
    x = task.x
    if split.kind == "members":
        total, count = np.zeros(len(x)), np.zeros(len(x), dtype=np.int64)
        left_out, by_member = [], []
        as_new = with_new_values(x, x[~task.left_out], task.kinds.categories)
        for i, rows in enumerate(split.left_out):
            rows = at_most(rows, MAX_SCORES, rng)
            left_out.append(rows)
            by_member.append(prepared.packed.member_scores(as_new[rows], i, n_jobs))
            total[rows] += by_member[-1]
            count[rows] += 1
        rows = rng.permutation(np.flatnonzero(count))[:MAX_SCORES]
        scores = total[rows] / count[rows]
        segments = np.zeros(len(x), dtype=np.int64) if task.segments is None else task.segments
        for segment in np.unique(segments[rows]):
            pairs = zip(left_out, by_member, strict=True)
            own = [known[segments[of] == segment] for of, known in pairs]
            own_rows = segments[rows] == segment
            scores[own_rows] = _as_by_all(scores[own_rows], own)
    else:
        source = split.held_out if split.kind == "holdout" else split.train[0]
        rows = at_most(source, MAX_SCORES, rng)
        scores = anomaly_scores(prepared, x[rows], n_jobs)
    order = np.argsort(scores, kind="stable")
    groups, none = split.groups[rows], np.empty(0, dtype=np.int64)
    some = np.empty(0, dtype=np.intp)
    if len(prepared.members[0].kept_rows):  # a model that may store rows
        limit = min(_SAMPLE_ROWS, max(_SAMPLE_CELLS // x.shape[1], 1))
        unbiased = np.arange(len(rows))
        if split.choosing is not None:
            unbiased = np.flatnonzero(~np.isin(rows, split.choosing))
        some = np.sort(at_most(unbiased, limit, rng))
    return Calibration(
        split.kind,
        scores[order],
        group_sizes(groups)[order],
        none if task.segments is None else task.segments[rows][order],
        none if task.segments is None else np.asarray(groups[order], dtype=np.int64),
        task.segment_names,
        bool((task.left_out & ~task.anomalies).any()),
        x[rows[some]].astype(np.float64),
        scores[some],
    )


def _as_by_all(scores: Array, by_member: list[Array]) -> Array:
    """Scores of left-out rows, raised to those that the mean of all members may reach. → (rows,)

    A left-out row is scored by one member, a new row by the mean of all. Where the members score
    a row alike, that makes no difference. Where they do not, more new rows than left-out rows may
    be above a score. The highest scores, sorted, are therefore at least those of two extreme cases:

    - Each high score is that of one member alone, as of a row that repeats one that only this
      member left out: more rows have one, as many times as there are members, and by as many
      times less is their mean above the usual score.
    - The members agree on the order of rows, but not on the size of scores. A quantile of the mean
      is then the mean of the members' quantiles. Their root mean square is used: the mean follows
      the largest, which are large because few rows that these members left out have high scores.
      It is not used for the very highest scores, of which each member has too few.
    Lower scores stay, so that the order of usual rows is told as before.

    scores: (rows,) of one segment; by_member: for each member, its scores of the rows that it left
    out, which are none if the segment is small
    """
    n_members, order = len(by_member), np.argsort(scores, kind="stable")
    by_member = [own for own in by_member if len(own)]
    above = 1.0 - (np.arange(len(scores)) + 0.5) / len(scores)  # share of the rows

    def exceeded_by(share: Array, own: Array) -> Array:
        return np.asarray(np.quantile(own, 1.0 - share, method="hazen"))

    usual = np.mean([np.median(own) for own in by_member])
    alone = exceeded_by(above / n_members, np.concatenate(by_member))
    alone = usual + (alone - usual) / n_members
    agreed = np.sqrt(np.mean([exceeded_by(above, own) ** 2 for own in by_member], axis=0))
    agreed[above * min(map(len, by_member)) < _FEWEST_ABOVE] = 0.0
    least = np.where(above <= _HIGHEST_RATE, np.maximum(alone, agreed), 0.0)
    raised = np.empty_like(scores)
    raised[order] = np.maximum.accumulate(np.maximum(scores[order], least))
    return raised


def unseen_scores(prepared: PreparedMembers, x: NDArray[Any], split: Split, n_jobs: int) -> Array:
    """The score of each row by the members that were not trained on it; NaN if there is none."""
    total, count = np.zeros(len(x)), np.zeros(len(x))
    for i, train in enumerate(split.train):
        rows = np.delete(np.arange(len(x)), train)
        total[rows] += prepared.packed.member_scores(x[rows], i, n_jobs)
        count[rows] += 1
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
