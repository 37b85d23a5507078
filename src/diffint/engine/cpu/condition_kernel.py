"""Search for conditions under which rows keep the narrowest range beside a value."""

from __future__ import annotations

import numpy as np

from ..kernel_cache import compiled

N_FIRST = 2  # first conditions that are joined with a second one
DEEP_INSIDE = -0.25  # gap of a value that a second condition hardly brings outside


@compiled
def search_conditions(
    row, feature, candidates, alone, categories, ordered, order, rank, known, sizes, base, fewest,
    tail_share, most_left_out, narrowest, sharper, gaps, places,
):  # fmt: skip
    """The conditions under which the value of a feature lies farthest outside, the best first.

    A condition takes the rows that are nearest to the row in a feature: `sizes` of them, or more if
    the next are as near; of a category those with the same value. Two conditions take the rows that
    meet both, with the size at `base`, the second also with larger ones; the first is on one of the
    features with the largest gaps. The gap is the distance of the value from the range of these
    rows, which leaves out `tail_share` of them on each side, at most `most_left_out`, over the
    width of the range, at least `narrowest`; below 0 inside. Deep inside the ranges of all single
    conditions, two are not tried.

    row: (features,) scaled; candidates: (some,) features that may be in a condition; alone: (some,)
    bool, whether also in a single one; categories: (features,) bool; ordered: (features, n) the
    scaled values of the rows, sorted, NaN where missing; order: (features, n) the rows in this
    order; rank: (features, n) the place of each row in it; known: (features,) how many rows have a
    value; sizes: (some,) growing; fewest: rows that a range needs; sharper: how much larger a gap
    must be to be worth one more condition; that of two than that of every single one, also of those
    that may not be alone, which are larger by chance now and then. gaps: (most,) −∞ to start with,
    divided by `sharper` once for each condition; places: (most, 6) for each condition the feature
    (−1: none) and the first and last place in its order.
    """
    n = known[feature]
    n_sizes, n_candidates = len(sizes), len(candidates)
    value = row[feature]
    # Rows in the order of their values: those that meet conditions are in order, too.
    values, rows = ordered[feature, :n], order[feature, :n]
    if n >= fewest:
        gap = _gap(value, values, n, tail_share, n, narrowest)
        _insert(gap, -1, 0, 0, -1, 0, 0, gaps, places)
    windows = np.empty((n_candidates, n_sizes, 2), dtype=np.int64)
    n_windows = np.zeros(n_candidates, dtype=np.int64)
    firsts = np.full(N_FIRST, -1, dtype=np.int64)
    first_gaps = np.full(N_FIRST, -np.inf)
    meeting_values, meeting_rows = np.empty(n), np.empty(n, dtype=np.int64)
    first_values, first_rows = np.empty(n), np.empty(n, dtype=np.int64)
    counts, gap_of = np.empty(n_sizes, dtype=np.int64), np.empty(n_sizes)
    for i in range(n_candidates):
        c = candidates[i]
        own = ordered[c, : known[c]]
        n_windows[i] = _windows(row[c], own, categories[c], sizes, fewest, windows[i])
        _gaps_of_windows(
            value, values, rows, n, rank[c], windows[i], 0, n_windows[i], fewest, tail_share,
            most_left_out, narrowest, meeting_values, meeting_rows, counts, gap_of,
        )  # fmt: skip
        best = -np.inf
        for k in range(n_windows[i]):
            if counts[k] < fewest:
                continue
            first, last = windows[i, k, 0], windows[i, k, 1]
            if alone[i]:
                _insert(gap_of[k] / sharper, c, first, last, -1, 0, 0, gaps, places)
            best = max(best, gap_of[k])
        place = N_FIRST
        while place > 0 and first_gaps[place - 1] < best:
            place -= 1
        if place < N_FIRST:
            for k in range(N_FIRST - 1, place, -1):
                first_gaps[k], firsts[k] = first_gaps[k - 1], firsts[k - 1]
            first_gaps[place], firsts[place] = best, i
    if first_gaps[0] < DEEP_INSIDE:
        return
    wanted = sharper * max(first_gaps[0], 0.0)
    for i in firsts:
        if i < 0:
            break
        c = candidates[i]
        k = min(base, n_windows[i] - 1)
        first, last = windows[i, k, 0], windows[i, k, 1]
        n_first = _meeting(values, rows, n, rank[c], first, last, first_values, first_rows)
        for other in range(n_candidates):
            if other == i or n_windows[other] == 0:
                continue
            other_c = candidates[other]
            start = min(base, n_windows[other] - 1)
            _gaps_of_windows(
                value, first_values, first_rows, n_first, rank[other_c], windows[other], start,
                n_windows[other], fewest, tail_share, most_left_out, narrowest, meeting_values,
                meeting_rows, counts, gap_of,
            )  # fmt: skip
            for k in range(start, n_windows[other]):
                if counts[k] >= fewest and gap_of[k] > wanted:
                    _insert(
                        gap_of[k] / sharper**2, c, first, last, other_c, windows[other, k, 0],
                        windows[other, k, 1], gaps, places,
                    )  # fmt: skip


@compiled
def _gaps_of_windows(
    value, values, rows, n, rank, windows, start, stop, fewest, tail_share, most_left_out,
    narrowest, meeting_values, meeting_rows, counts, gap_of,
):  # fmt: skip
    """For windows from `start` to `stop`, how many rows are inside, and the gap by these rows.

    values, rows: the first n, sorted by value; rank: (all rows,); windows: (some, 2) first and last
    place, each inside the next; meeting_values, meeting_rows: scratch; counts, gap_of: (some,)
    """
    for k in range(stop - 1, start - 1, -1):  # each is looked for among those in the next larger
        first, last = windows[k, 0], windows[k, 1]
        if k == stop - 1:
            count = _meeting(values, rows, n, rank, first, last, meeting_values, meeting_rows)
        else:
            count = _meeting(
                meeting_values, meeting_rows, count, rank, first, last, meeting_values, meeting_rows
            )
        counts[k] = count
        if count >= fewest:
            gap_of[k] = _gap(value, meeting_values, count, tail_share, most_left_out, narrowest)


@compiled
def _meeting(values, rows, n, rank, first, last, meeting_values, meeting_rows):
    """Copy those of the first n rows that are in a window, in order; returns how many they are.

    The copies may take the place of the rows.
    """
    count = 0
    for k in range(n):
        one = rows[k]
        meeting_values[count] = values[k]
        meeting_rows[count] = one
        count += (rank[one] >= first) & (rank[one] <= last)
    return count


@compiled
def _windows(own, ordered, category, sizes, fewest, windows):
    """First and last places of the nearest values; returns how many windows there are.

    ordered: (n,) sorted; windows: (len(sizes), 2). A category has one: all rows with its value.
    """
    n = len(ordered)
    first = 0
    stop = n
    while first < stop:  # the first place whose value is not below the row's own
        middle = (first + stop) // 2
        if ordered[middle] < own:
            first = middle + 1
        else:
            stop = middle
    last = first - 1
    found = 0
    for size in sizes:
        if category or last - first + 1 >= size:
            continue
        nearest = 0.0
        while True:
            below = own - ordered[first - 1] if first > 0 else np.inf
            above = ordered[last + 1] - own if last < n - 1 else np.inf
            if last - first + 1 >= size and min(below, above) > nearest:
                break
            if below == np.inf and above == np.inf:
                break
            nearest = min(below, above)
            if below <= above:
                first -= 1
            else:
                last += 1
        if last - first + 1 >= fewest:
            windows[found, 0], windows[found, 1] = first, last
            found += 1
    if category:
        while last < n - 1 and ordered[last + 1] == own:
            last += 1
        if last - first + 1 >= fewest:
            windows[0, 0], windows[0, 1] = first, last
            found = 1
    return found


@compiled
def _gap(value, values, count, tail_share, most_left_out, narrowest):
    """The distance of a value from the range of the first values, which are sorted, over its width.

    The range leaves out `tail_share` of them on each side, at most `most_left_out`.
    """
    tail = min(int(tail_share * count), most_left_out)
    low, high = values[tail], values[count - 1 - tail]
    return max(low - value, value - high) / max(high - low, narrowest)


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
