"""Rows against hard boxes: who lies wholly inside, and who leaves on one side only."""

from __future__ import annotations

import numpy as np

from ..compiling import compiled


@compiled
def count_inside(rows, lower, upper, inside, leaving):
    """Fill inside (units,) and leaving (units, features) with counts of rows.

    inside: rows between all bounds; leaving: rows that miss those of this feature and no other.
    rows: (rows, features); lower, upper: (units, features). A missing value leaves no box.
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
            elif missed == 1:
                leaving[k, where] += 1
    return np.int64(0)
