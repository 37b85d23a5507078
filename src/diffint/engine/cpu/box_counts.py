"""Rows against hard boxes: who lies wholly inside, and who leaves on one side only."""

from __future__ import annotations

import numpy as np

from ..kernel_cache import compiled


@compiled
def count_inside(rows, lower, upper, inside, kept, left):
    """Add to inside (units,), kept and left (units, features) how many rows there are of each.

    inside: rows between all bounds; kept, left: rows with a value of this feature that are between
    the bounds of all others, and between its own or not. rows: (rows, features); lower, upper:
    (units, features). A missing value leaves no box.
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
