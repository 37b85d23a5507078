"""Finds the rows of a table that may be anomalies, so that a detector is not trained on them.

In a small table a row is suspicious if it is far from the nearest of a few other rows, drawn at
random. Few: a network, or the nearest of all rows, would know each of several similar anomalies by
the others, but among eight rows there is rarely another one of a rare kind, and often one of every
common kind. The search is repeated with rows drawn from the least suspicious only, so that
anomalies do not vouch for each other, and at last with more rows, which show smaller deviations. A
row is never compared with itself or with a row of its group.

In a large table rare kinds of ordinary rows would be suspicious in this way. There, members are
trained, and each row is scored by those that were not trained on it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.config import RECOMMENDED, SMALL_TABLE, Config
from ..core.errors import InputError
from ..core.formatting import counted
from ..core.kinds import Kinds
from ..core.scaling import fit_scaler
from ..decide.beyond_chance import scores_beyond_chance, stand_out
from ..score.prepared import PreparedModel
from .calibrate import unseen_scores
from .category_positions import are_listed, category_curves, with_values_of
from .pipeline import fit_and_split
from .row_groups import find_row_groups
from .sampling import Rows, at_most
from .task import Task

_FEWEST_ROWS = 10
_FEW_DRAWN, _DRAWN_SHARE, _MOST_DRAWN = 8, 0.2, 256  # rows to compare with
_COMPARISONS, _FEWEST_REPEATS, _MOST_REPEATS = 3200, 10, 400
_TRUSTED_SHARE = 0.7  # the least suspicious rows, from which others are drawn
_LEFT_OUT_SHARE = 0.3  # largest of suspects and doubtful rows, where the share is given
_ORDINARY_SHARE = 0.8  # rows from which the others may stand out
_CLOSE = 0.7  # distance of rows that belong together, as a share of that from ordinary rows
_TOGETHER, _ALONE = 0.8, 2.5  # caution with rows that belong together, and with single ones
_MOST_TOGETHER = 0.1  # share of suspects that belong together; more are kinds of ordinary rows
_LEAST_DEVIATION = 1e-6  # scaled
_BLOCK_CELLS = 4_000_000
_STREAM = 2**32 - 1  # of random numbers; none that a fit uses

Floats = NDArray[np.float64]


def without_suspects(
    task: Task,
    feature_names: list[str],
    config: Config,
    *,
    device: str = "cpu",
    n_jobs: int = 1,
    verbose: int = 0,
) -> Task:
    """The task with its suspects, and in a small table with doubtful rows.

    With a given share, doubtful are as many rows again, the next in order, at most _LEFT_OUT_SHARE
    of all rows together with the suspects; with "auto", the rows close to suspects. A few anomalies
    that remain among few rows hide all others like them, whereas a few ordinary rows are hardly
    missed.
    """
    suspects, doubtful = np.zeros((2, len(task.x)), dtype=bool)
    share = config.suspected_share
    if share == 0.0:
        return replace(task, suspects=suspects)
    usable = np.flatnonzero(~task.anomalies & ~np.isnan(task.x).all(axis=1))
    if len(usable) < _FEWEST_ROWS:
        raise InputError(
            f"{counted(len(usable), 'row')} are too few to find suspects among them, which takes "
            f"at least {_FEWEST_ROWS}; use suspected_share=0"
        )
    given = task
    if not are_listed(task.kinds.categories):
        x, values = with_values_of(task.x, task.kinds.categories, usable)
        task = replace(task, x=x, kinds=replace(task.kinds, categories=values))
    # Not spawned: the fit draws the same numbers with and without a search.
    seed = np.random.SeedSequence(task.seed.entropy, spawn_key=(*task.seed.spawn_key, _STREAM))
    if len(usable) <= SMALL_TABLE:
        x, groups = task.x[usable], task.groups
        codes = find_row_groups(x).codes if groups is None else groups[usable]
        rows = _comparable(x, task.kinds)
        scores = suspicion(rows, codes, np.random.default_rng(seed))
        if isinstance(share, str):
            found, near = _standing_out(scores, rows)
            suspects[usable[found]], doubtful[usable[near]] = True, True
            return replace(given, suspects=suspects, doubtful=doubtful)
        n_doubtful = min(round(share * len(usable)), int((_LEFT_OUT_SHARE - share) * len(usable)))
    else:
        trial = replace(task, seed=seed, every_row=True, start=None)
        shorter = _shorter(config, len(usable), task.x.shape[1])
        model, split = fit_and_split(
            trial, feature_names, shorter, device=device, n_jobs=n_jobs, verbose=verbose
        )
        scores = unseen_scores(PreparedModel(model), task.x, split, n_jobs)[usable]
        if isinstance(share, str):
            suspects[usable[scores_beyond_chance(scores)]] = True
            return replace(given, suspects=suspects)
        n_doubtful = 0
    order = usable[np.argsort(-scores, kind="stable")]
    n_suspects = round(share * len(usable))
    suspects[order[:n_suspects]] = True
    doubtful[order[n_suspects : n_suspects + max(n_doubtful, 0)]] = True
    return replace(given, suspects=suspects, doubtful=doubtful)


def _standing_out(scores: Floats, rows: Floats) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """The suspects, and the other rows close to them. scores: (rows,) → (rows,) each

    An isolated row at the edge of ordinary ones hides no other row, and is a suspect only if it
    stands out by far. Rows that are closer to each other than to ordinary rows are suspects if they
    stand out at all; as many other rows, closer to these than to ordinary rows, are doubtful. Where
    many rows would be suspects, the table has kinds of rows that are rare, not anomalies.
    """
    from scipy.spatial.distance import cdist

    order = np.argsort(scores, kind="stable")
    n_ordinary = int(_ORDINARY_SHARE * len(rows))
    ordinary, others = order[:n_ordinary], order[n_ordinary:]
    from_ordinary = cdist(rows[others], rows[ordinary], "cityblock").min(axis=1)
    apart = cdist(rows[others], rows[others], "cityblock")
    np.fill_diagonal(apart, np.inf)
    close = np.zeros(len(rows), dtype=bool)
    close[others] = apart.min(axis=1) < _CLOSE * from_ordinary
    alone = stand_out(scores, _ALONE)
    suspects = (stand_out(scores, _TOGETHER) & close) | alone
    if suspects.sum() > _MOST_TOGETHER * len(rows):
        return alone, np.zeros(len(rows), dtype=bool)
    around, most = suspects.copy(), 2 * int(suspects.sum())
    while around.sum() < most:
        with np.errstate(divide="ignore", invalid="ignore"):  # a row may equal an ordinary one
            nearest = apart[:, around[others]].min(axis=1, initial=np.inf) / from_ordinary
        nearest[around[others]] = np.inf
        added = np.argsort(nearest, kind="stable")[: (nearest < 1).sum()]
        if not len(added):
            break
        around[others[added[: most - around.sum()]]] = True
    return suspects, around & ~suspects


def _shorter(config: Config, n_rows: int, n_features: int) -> Config:
    """The recommended settings with half of the epochs, on the detector's scale of features."""
    search = replace(RECOMMENDED, scaling=config.scaling, missing=config.missing)
    epochs = int(search.resolved(n_rows, n_rows, n_features).epochs)
    return replace(search, epochs=max(epochs // 2, 1))


def suspicion(rows: Floats, groups: NDArray[np.intp], rng: np.random.Generator) -> Floats:
    """How suspicious rows are, high if much. rows: (rows, features) from `_comparable` → (rows,)"""
    trusted = np.arange(len(rows))
    n_trusted = max(int(_TRUSTED_SHARE * len(rows)), 2)
    for _ in range(2):
        distances = _mean_distances(rows, trusted, _FEW_DRAWN, groups, rng)
        trusted = np.argsort(distances, kind="stable")[:n_trusted]
    many = min(max(int(_DRAWN_SHARE * n_trusted), 2), _MOST_DRAWN)
    parts = [_mean_distances(rows, trusted, count, groups, rng) for count in (_FEW_DRAWN, many)]
    return np.asarray(sum(part / max(part.mean(), 1e-300) for part in parts))


def _comparable(x: NDArray[Any], kinds: Kinds) -> Floats:
    """Rows scaled and weighted as kept rows are; missing cells get the median. x: (rows, features)

    Features without any value are left out.
    """
    scaler = fit_scaler(x, "adaptive", category_curves(x, kinds.n_values))
    rows = scaler.target(x, "unclipped")[:, scaler.seen].astype(np.float64)
    rows = np.where(np.isnan(rows), np.nanmedian(rows, axis=0), rows)
    return np.asarray(rows / np.sqrt(np.maximum(rows.std(axis=0), _LEAST_DEVIATION)))


def _mean_distances(
    rows: Floats, pool: Rows, count: int, groups: NDArray[np.intp], rng: np.random.Generator
) -> Floats:
    """Mean L1 distance of each row to the nearest of `count` rows, drawn from a pool repeatedly."""
    count = min(count, max(len(pool) // 2, 1))
    n_repeats = min(max(_COMPARISONS // count, _FEWEST_REPEATS), _MOST_REPEATS)
    total, times = np.zeros(len(rows)), np.zeros(len(rows))
    for _ in range(n_repeats):
        drawn = at_most(pool, count, rng)
        others = ~np.isin(groups, groups[drawn])
        total[others] += _nearest(rows[others], rows[drawn])
        times[others] += 1
    return total / np.maximum(times, 1)


def _nearest(rows: Floats, drawn: Floats) -> Floats:
    """L1 distance of each row to the nearest drawn one. (rows,)"""
    from scipy.spatial.distance import cdist

    step = max(_BLOCK_CELLS // len(drawn), 1)
    blocks = (rows[start : start + step] for start in range(0, len(rows), step))
    nearest = [cdist(block, drawn, "cityblock").min(axis=1) for block in blocks]
    return np.concatenate(nearest) if nearest else np.empty(0)
