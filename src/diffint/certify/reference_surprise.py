"""Bounds on what the surprise of categories adds to scores, for `reference_bounds`."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..core.associations import Associations

Array = NDArray[np.float64]

_SLIGHT = 2e-12  # float64 error of logarithms and sums, as in `reference_bounds`


def surprise_bounds(found: Associations, lower: Array, upper: Array) -> tuple[float, float]:
    """Bounds on what the surprise of categories adds, times the number of features.

    A cell is in one of the bins between those of its ends; a category may also have a new value,
    which has no bin, so that it makes no other cell surprising.
    """
    if not len(found.categories):
        return 0.0, 0.0
    values = dict(zip(found.categories.tolist(), found.n_values.tolist(), strict=True))
    bins, may_be_new = [], []
    for j in range(len(lower)):
        if j in values:
            first, last = max(math.floor(max(lower[j], 0.0)), 0), values[j] - 1
            last = min(last, math.floor(min(upper[j], float(last))))
            bins.append(np.arange(first, last + 1))
            may_be_new.append(bool(lower[j] < 0 or upper[j] > values[j] - 1 or last < first))
        else:
            edges = found.edges[j][~np.isnan(found.edges[j])]
            ends = np.searchsorted(edges, [lower[j], upper[j]], side="right")
            bins.append(np.arange(ends[0], ends[1] + 1))
            may_be_new.append(False)
    low, high = 0.0, 0.0
    for i, c in enumerate(found.columns):
        own = found.table(i, c).diagonal()
        share = (own + 0.5) / (own.sum() + 0.5 * len(own))
        least = found.rarity(i)
        most = least.copy()
        for other in range(len(lower)):
            if other == c:
                continue
            table, prior = found.table(i, other), found.prior[i, other]
            with_prior = table + prior * share[:, None]
            excess = np.log(share[:, None] * (table.sum(axis=0) + prior) / with_prior)
            excess = excess[:, bins[other]]
            if may_be_new[other]:
                excess = np.hstack([excess, np.zeros((len(excess), 1))])
            least = np.maximum(least, excess.min(axis=1))
            most = np.maximum(most, excess.max(axis=1))
        ends = np.stack([least, most])[:, bins[c]] * found.weight[i]
        if c in values:
            ends[:, own[bins[c]] == 0] = found.unseen[i]
        if may_be_new[c]:
            ends = np.hstack([ends, np.full((2, 1), found.unseen[i])])
        low, high = low + float(ends[0].min()), high + float(ends[1].max())
    return low * (1 - _SLIGHT), high * (1 + _SLIGHT)
