"""Search for conditions under which rows keep the narrowest range beside a value."""

from __future__ import annotations

import numpy as np

from ..kernel_cache import compiled

N_FIRST = 3  # first conditions that are joined with a second one


@compiled
def search_conditions(
    row, feature, usable, categories, columns, order, sizes, parts, fewest, tail_share, narrowest,
    sharper, gaps, places, scratch,
):  # fmt: skip
    """The conditions under which the value of a feature lies farthest outside, the best first.

    A condition takes the rows that are nearest to the row in a feature: `sizes` of them, or more if
    the next are as near; of a category those with the same value. A second one takes a part of
    those. The gap is the distance of the value from the range of these rows, which leaves out
    `tail_share` of them on each side, over the width of the range, at least `narrowest`.

    row: (features,) scaled, NaN where missing; usable, categories: (features,) bool; columns:
    (features, n) scaled; order: (features, n) the rows sorted by each feature; sizes: (some,) whole
    numbers, growing; parts: (some,) growing; fewest: rows that a range needs; sharper: how much
    larger the gap of two conditions must be than that of one.
    gaps: (most,) −∞ to start with; places: (most, 6) for each condition the feature (−1: none) and
    the first and last place in the order of the feature. scratch: (2, a number above n · tail_share
    + 1) for the extreme values.
    """
    n_features, n = columns.shape
    value = row[feature]
    column = columns[feature]
    every = np.ones(n, dtype=np.bool_)
    taken = np.zeros(n, dtype=np.bool_)
    tail = int(tail_share * n)
    low, high = column[order[feature, tail]], column[order[feature, n - 1 - tail]]
    width = max(high - low, narrowest)
    _insert(max(low - value, value - high) / width, -1, 0, 0, -1, 0, 0, gaps, places)
    firsts = np.full((N_FIRST, 4), -1, dtype=np.int64)
    first_gaps = np.full(N_FIRST, -np.inf)
    found = np.empty((max(len(sizes), len(parts)), 4))
    for c in range(n_features):
        if not usable[c] or c == feature:
            continue
        n_found = _walk(
            row[c], c, categories[c], columns, order, every, sizes, fewest,
            value, column, tail_share, narrowest, found, scratch,
        )  # fmt: skip
        best = -1
        for k in range(n_found):
            first, last = int(found[k, 1]), int(found[k, 2])
            _insert(found[k, 0], c, first, last, -1, 0, 0, gaps, places)
            if best < 0 or found[k, 0] > found[best, 0]:
                best = k
        if best < 0:
            continue
        place = N_FIRST
        while place > 0 and first_gaps[place - 1] < found[best, 0]:
            place -= 1
        if place < N_FIRST:
            for k in range(N_FIRST - 1, place, -1):
                first_gaps[k] = first_gaps[k - 1]
                firsts[k] = firsts[k - 1]
            first_gaps[place] = found[best, 0]
            firsts[place, 0] = c
            for k in range(1, 4):
                firsts[place, k] = int(found[best, k])
    wanted = sharper * max(first_gaps[0], 0.0)
    limits = np.empty(len(parts), dtype=np.int64)
    for i in range(N_FIRST):
        first_feature = firsts[i, 0]
        if first_feature < 0:
            break
        for k in range(n):
            taken[k] = False
        for k in range(firsts[i, 1], firsts[i, 2] + 1):
            taken[order[first_feature, k]] = True
        for k in range(len(parts)):
            limits[k] = int(parts[k] * firsts[i, 3])
        for c in range(n_features):
            if not usable[c] or c in (feature, first_feature):
                continue
            n_found = _walk(
                row[c], c, categories[c], columns, order, taken, limits, fewest,
                value, column, tail_share, narrowest, found, scratch,
            )  # fmt: skip
            for k in range(n_found):
                if found[k, 0] > wanted:
                    _insert(
                        found[k, 0] / sharper, first_feature, firsts[i, 1], firsts[i, 2],
                        c, int(found[k, 1]), int(found[k, 2]), gaps, places,
                    )  # fmt: skip


@compiled
def _walk(
    own, c, category, columns, order, taken, sizes, fewest, value, column, tail_share, narrowest,
    found, scratch,
):  # fmt: skip
    """From a row's own value outwards; at each size the gap, first and last place, and count.

    Only rows that are taken count. Sizes below `fewest` are passed over, except that a category has
    one size: all rows with the same value. found: (len(sizes), 4); returns how many were found.
    """
    n = order.shape[1]
    right = 0
    stop = n
    while right < stop:  # the first place whose value is not below the row's own
        middle = (right + stop) // 2
        if columns[c, order[c, middle]] < own:
            right = middle + 1
        else:
            stop = middle
    left = right - 1
    first, last = n, -1
    count = 0
    n_found = 0
    size = 0
    n_low = 0
    most = scratch.shape[1]
    while size < len(sizes):
        below = own - columns[c, order[c, left]] if left >= 0 else np.inf
        above = columns[c, order[c, right]] - own if right < n else np.inf
        nearest = min(below, above)
        if nearest == np.inf or (category and nearest > 0):
            break
        if below <= above:
            place = left
            left -= 1
        else:
            place = right
            right += 1
        other = order[c, place]
        if not taken[other]:
            continue
        first, last = min(first, place), max(last, place)
        # The extreme values so far, the lowest and the highest first.
        count += 1
        number = column[other]
        k = min(n_low, most - 1)
        if n_low < most or number < scratch[0, most - 1]:
            while k > 0 and scratch[0, k - 1] > number:
                scratch[0, k] = scratch[0, k - 1]
                k -= 1
            scratch[0, k] = number
        k = min(n_low, most - 1)
        if n_low < most or number > scratch[1, most - 1]:
            while k > 0 and scratch[1, k - 1] < number:
                scratch[1, k] = scratch[1, k - 1]
                k -= 1
            scratch[1, k] = number
        n_low = min(n_low + 1, most)
        if category or count < sizes[size] or count < fewest:
            continue
        below = own - columns[c, order[c, left]] if left >= 0 else np.inf
        above = columns[c, order[c, right]] - own if right < n else np.inf
        distance = abs(own - columns[c, order[c, place]])
        if min(below, above) == distance:
            continue
        _note(found, n_found, count, first, last, value, tail_share, narrowest, scratch)
        n_found += 1
        while size < len(sizes) and sizes[size] <= count:
            size += 1
    if category and count >= fewest:
        _note(found, 0, count, first, last, value, tail_share, narrowest, scratch)
        n_found = 1
    return n_found


@compiled
def _note(found, place, count, first, last, value, tail_share, narrowest, scratch):
    """Note the gap of the value from the range of the rows so far."""
    tail = int(tail_share * count)
    low, high = scratch[0, tail], scratch[1, tail]
    width = max(high - low, narrowest)
    found[place, 0] = max(low - value, value - high) / width
    found[place, 1], found[place, 2], found[place, 3] = first, last, count


@compiled
def _insert(gap, c, first, last, other, other_first, other_last, gaps, places):
    """Keep a set of conditions if it is among the best; of equal ones the earlier."""
    place = len(gaps)
    while place > 0 and gaps[place - 1] < gap:
        place -= 1
    if place == len(gaps):
        return
    for k in range(len(gaps) - 1, place, -1):
        gaps[k] = gaps[k - 1]
        places[k] = places[k - 1]
    gaps[place] = gap
    places[place, 0], places[place, 1], places[place, 2] = c, first, last
    places[place, 3], places[place, 4], places[place, 5] = other, other_first, other_last
