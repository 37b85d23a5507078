"""New rows in which a feature is as it was in training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .drift_dictionary import normal_scores

Array = NDArray[np.float64]


def with_former_numbers(new: Array, stored: Array, rng: np.random.Generator) -> Array:
    """Numbers (rows,) with the distribution of the stored ones: each keeps its rank.

    Equal values are ordered at random. Of the missing cells, as many get a value as are too many.
    """
    found = new.copy()
    known, former = np.flatnonzero(~np.isnan(new)), np.sort(stored[~np.isnan(stored)])
    if not len(former):
        return np.full(len(new), np.nan)
    known = rng.permutation(known)
    order = known[np.argsort(new[known], kind="stable")]
    level = (np.arange(len(order)) + 0.5) / max(len(order), 1)
    found[order] = former[(level * len(former)).astype(np.intp)]
    missing = rng.permutation(np.flatnonzero(np.isnan(new)))
    n_missing = int(np.isnan(stored).mean() * len(new))
    filled = missing[n_missing:]
    found[filled] = rng.choice(former, len(filled))
    return found


def with_former_values(new: Array, stored: Array, rng: np.random.Generator) -> Array:
    """Codes of a category (rows,) with the former shares of values; as few change as possible."""
    found = new.copy()
    # NaN becomes a code as well, so that missing cells are restored like values.
    is_new, was = np.nan_to_num(new, nan=-1.0), np.nan_to_num(stored, nan=-1.0)
    codes = np.unique(np.concatenate([is_new, was]))
    now_at, was_at = np.searchsorted(codes, is_new), np.searchsorted(codes, was)
    wanted = np.bincount(was_at, minlength=len(codes)) / len(was) * len(new)
    counts = np.bincount(now_at, minlength=len(codes))
    too_few = np.maximum(wanted - counts, 0.0)
    surplus = np.ceil(np.maximum(counts - wanted, 0.0) - 0.5).astype(np.intp)
    changed = [
        rng.choice(np.flatnonzero(now_at == k), surplus[k], replace=False)
        for k in np.flatnonzero(surplus)
    ]
    if changed and too_few.any():
        rows = np.concatenate(changed)
        drawn = codes[rng.choice(len(codes), len(rows), p=too_few / too_few.sum())]
        found[rows] = np.where(drawn < 0, np.nan, drawn)
    return found


def as_in_similar_rows(
    new: Array, stored: Array, features: Sequence[int], categories: set[int]
) -> Array:
    """Values of features in the stored rows that are most like the new ones in all others.

    new, stored: (rows, features); → (rows, n). Numbers are compared by their normal scores.
    """
    pooled = np.concatenate([stored, new])
    columns = []
    for j in range(pooled.shape[1]):
        x = pooled[:, j]
        if j in features or np.isnan(x).all():
            continue
        if j in categories:
            codes = np.unique(x[~np.isnan(x)])
            columns.append((x[:, None] == codes).astype(np.float32))
        else:
            columns.append(normal_scores(x)[:, None])
    if not columns:
        return new[:, features].copy()
    z = np.concatenate(columns, axis=1)
    then, now = z[: len(stored)], z[len(stored) :]
    distance = (then * then).sum(axis=1) - 2.0 * now @ then.T
    return np.asarray(stored[np.argmin(distance, axis=1)][:, features])
