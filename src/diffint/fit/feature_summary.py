"""Statistics of the training columns, kept so that the training rows need not be."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.model import N_BINS, QUANTILE_LEVELS, FeatureSummary


def summarise_features(x: NDArray[Any], more: NDArray[Any] | None = None) -> FeatureSummary:
    """Summarise every column: quantiles, histogram, missing share, whether all values are whole.

    x: (rows, features); more: (any number, features) values of further rows, which count in the
    range, the quantiles and whether all are whole
    """
    n_rows, n_features = x.shape
    quantiles = np.full((n_features, len(QUANTILE_LEVELS)), np.nan)
    edges = np.full((n_features, N_BINS + 1), np.nan)
    counts = np.zeros((n_features, N_BINS), dtype=np.int64)
    whole = np.zeros(n_features, dtype=bool)
    missing = np.ones(n_features)
    for j in range(n_features):
        column = np.asarray(x[:, j], dtype=np.float64)
        column = column[~np.isnan(column)]
        missing[j] = 1.0 - len(column) / n_rows
        if not len(column):
            continue
        every = column
        if more is not None:
            every = np.concatenate([column, more[~np.isnan(more[:, j]), j]])
        quantiles[j] = np.quantile(every, QUANTILE_LEVELS)
        whole[j] = bool(np.all(every == np.floor(every)))
        edges[j], counts[j] = _histogram(column, every.min(), every.max())
    return FeatureSummary(np.array(QUANTILE_LEVELS), quantiles, edges, counts, missing, whole)


def _histogram(
    column: NDArray[np.float64], smallest: float, largest: float
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    # Computed with halves: the difference of two huge values may overflow.
    edges = (np.linspace(smallest / 2, largest / 2, N_BINS + 1)) * 2
    edges[0], edges[-1] = smallest, largest
    position = np.searchsorted(edges, column, side="right") - 1
    return edges, np.bincount(np.clip(position, 0, N_BINS - 1), minlength=N_BINS)
