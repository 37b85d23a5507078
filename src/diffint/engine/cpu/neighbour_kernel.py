"""How unusual each value of a row is among the rows that agree with the rest of it."""

from __future__ import annotations

import numpy as np

from ..kernel_cache import compiled

GROUP = 16  # rows that are passed over together if all of them are too far
BEYOND_MOST = np.float32(1 / 32)  # how much of a large difference counts, so that rows rarely tie
_FAR = 0x7FFFFFFF  # above the bits of every number


@compiled
def find_deviations(rows, known, missing, counts, floor, most, wanted, deviation, scratch, nearest):
    """For some cells, the distance from the middle of the nearest rows' values, over their spread.

    rows: (rows, features) float32, NaN where missing; known: (features, n) float32, the rows to
    compare with; missing: (features, n) whether they have a substitute there, which stands for the
    value in distances, and is never compared with one; counts: (features,) how many nearest rows
    are looked at; floor: (features,) added to the spread of their values, 0 for features that are
    not used; most: (features,) float32, a difference of two rows beyond which more counts little;
    wanted: (rows, some) the features to look at. deviation: (rows, some) |value − median| / (mean
    distance from the median + floor), 0 where missing; the nearest rows are found without the
    feature, by the sum of differences. scratch: (2, n) and nearest: (2, largest count) are scratch
    space.
    """
    n_features, n = known.shape
    total, distance = scratch[0], scratch[1]
    bits = distance.view(np.int32)
    for i in range(len(rows)):
        for k in range(n):
            total[k] = np.float32(0.0)
        for j in range(n_features):
            value = rows[i, j]
            if floor[j] == 0.0 or np.isnan(value):
                continue
            for k in range(n):
                total[k] += _apart(value, known[j, k], most[j])
        for place_of_j in range(wanted.shape[1]):
            j = wanted[i, place_of_j]
            deviation[i, place_of_j] = 0.0
            value = rows[i, j]
            if floor[j] == 0.0 or np.isnan(value):
                continue
            for k in range(n):
                # Not below 0, so that the order of the bits is that of the numbers.
                own = _apart(value, known[j, k], most[j])
                distance[k] = max(total[k] - own, np.float32(0.0))
            for k in range(n):
                if missing[j, k]:
                    bits[k] = _FAR
            count = counts[j]
            filled = 0
            farthest = np.int32(_FAR)
            for start in range(0, n, GROUP):
                if start + GROUP <= n:
                    least = np.int32(_FAR)
                    for k in range(GROUP):
                        least = min(least, bits[start + k])
                    if least >= farthest:
                        continue
                for k in range(start, min(start + GROUP, n)):
                    if bits[k] >= farthest:
                        continue
                    # Insert it, nearest first.
                    place = min(filled, count - 1)
                    while place > 0 and nearest[0, place - 1] > distance[k]:
                        nearest[0, place] = nearest[0, place - 1]
                        nearest[1, place] = nearest[1, place - 1]
                        place -= 1
                    nearest[0, place] = distance[k]
                    nearest[1, place] = known[j, k]
                    filled = min(filled + 1, count)
                    if filled == count:
                        farthest = nearest[0].view(np.int32)[count - 1]
            if filled == 0:
                continue
            _sort(nearest[1], filled)
            middle = 0.5 * (nearest[1, (filled - 1) // 2] + nearest[1, filled // 2])
            spread = 0.0
            for k in range(filled):
                spread += abs(nearest[1, k] - middle)
            deviation[i, place_of_j] = abs(value - middle) / (spread / filled + floor[j])


@compiled
def _apart(one, other, most):
    """How far two values separate their rows."""
    difference = abs(one - other)
    return min(difference, most + BEYOND_MOST * difference)


@compiled
def _sort(values, count):
    """Sort the first values in place; there are few."""
    for k in range(1, count):
        value = values[k]
        place = k
        while place > 0 and values[place - 1] > value:
            values[place] = values[place - 1]
            place -= 1
        values[place] = value
