"""Count rows inside of boxes, and rows that are outside in one feature only."""

from __future__ import annotations

import numpy as np

from ..kernel_cache import compiled


@compiled
def count_inside(rows, lower, upper, inside, kept, left):
    """Add counts of rows to inside (units,), kept and left (units, features).

    inside: rows within all bounds of a unit; kept, left: rows within the bounds of all other
    features whose value of this feature is within its bounds (kept) or outside (left).
    rows: (rows, features); lower, upper: (units, features). A missing value counts as within.
    """
    units, features = lower.shape
    for b in range(rows.shape[0]):
        row = rows[b]
        for k in range(units):
            low, up = lower[k], upper[k]
            missed, where = 0, 0
            for j in range(features):
                if row[j] < low[j] or row[j] > up[j]:
                    missed += 1
                    where = j
                    if missed > 1:
                        break
            if missed == 0:
                inside[k] += 1
                for j in range(features):
                    kept[k, j] += row[j] == row[j]
            elif missed == 1:
                left[k, where] += 1
    return np.int64(0)
