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

_SAMPLE_ROWS, _SAMPLE_CELLS = 2_000, 100_000  # most calibration rows that a model stores


def calibrate(
    prepared: PreparedMembers, task: Task, split: Split, n_jobs: int, rng: np.random.Generator
) -> Calibration:
    """Calibration scores: left-out rows, scored by the members that were not trained on them."""
    x = task.x
    if split.kind == "members":
        total, count = np.zeros(len(x)), np.zeros(len(x), dtype=np.int64)
        as_new = with_new_values(x, x[~task.left_out], task.kinds.categories)
        for i, rows in enumerate(split.left_out):
            rows = at_most(rows, MAX_SCORES, rng)
            total[rows] += prepared.packed.member_scores(as_new[rows], i, n_jobs)
            count[rows] += 1
        rows = rng.permutation(np.flatnonzero(count))[:MAX_SCORES]
        scores = total[rows] / count[rows]
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


def unseen_scores(
    prepared: PreparedMembers, x: NDArray[Any], split: Split, n_jobs: int
) -> NDArray[np.float64]:
    """The score of each row by the members that were not trained on it; NaN if there is none."""
    total, count = np.zeros(len(x)), np.zeros(len(x))
    for i, train in enumerate(split.train):
        rows = np.delete(np.arange(len(x)), train)
        total[rows] += prepared.packed.member_scores(x[rows], i, n_jobs)
        count[rows] += 1
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
