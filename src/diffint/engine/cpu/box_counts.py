"""Count rows inside of boxes, and rows that are outside in one feature only."""

from __future__ import annotations

import numpy as np

from ..kernel_cache import compiled

_BLOCK = 512  # rows that are counted together; their numbers stay in the cache


@compiled
def count_inside(columns, lower, upper, inside, kept, left):
    """Add counts of rows to inside (units,), kept and left (units, features).

    inside: rows within all bounds of a unit; kept, left: rows within the bounds of all other
    features whose value of this feature is within its bounds (kept) or outside (left).
    columns: (features, rows), so that several rows are compared at once; lower, upper: (units,
    features). A missing value counts as within.
    """
    units, features = lower.shape
    n_rows = columns.shape[1]
    missed = np.zeros(_BLOCK, dtype=np.int32)
    where = np.zeros(_BLOCK, dtype=np.int32)  # sum of the features missed: the feature, if one
    for start in range(0, n_rows, _BLOCK):
        size = min(_BLOCK, n_rows - start)
        for k in range(units):
            for b in range(size):
                missed[b] = 0
                where[b] = 0
            for j in range(features):
                low, up = lower[k, j], upper[k, j]
                column = columns[j, start : start + size]
                feature = np.int32(j)
                for b in range(size):
                    outside = np.int32((column[b] < low) | (column[b] > up))
                    missed[b] += outside
                    where[b] += outside * feature
            for b in range(size):
                if missed[b] == 0:
                    inside[k] += 1
                    for j in range(features):
                        kept[k, j] += columns[j, start + b] == columns[j, start + b]
                elif missed[b] == 1:
                    left[k, where[b]] += 1
    return np.int64(0)
