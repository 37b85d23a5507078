"""Whether boxes cover a region.

Rows consist of float64 numbers, so the numbers above a cut begin at the next one: a region is cut
into two without anything between them or in both.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_MOST_PIECES = 100  # for each box; boxes made by halving need 2


def find_gap(low: Array, high: Array, lower: Array, upper: Array) -> tuple[Array, Array] | None:
    """A part of the region from `low` to `high` that no box covers; None if they cover all of it.

    low, high: (features,); lower, upper: (boxes, features) ends of the boxes → (features,) each
    """
    gap = _find_gap(low, high, lower, upper, apart=True)
    return gap and _find_gap(low, high, lower, upper, apart=False)


def _find_gap(
    low: Array, high: Array, lower: Array, upper: Array, apart: bool
) -> tuple[Array, Array] | None:
    """A part that is not covered, or of which it takes too long to find out whether it is.

    The region is cut at an end of a box, where as few other boxes as possible are cut, until each
    piece is inside one box. Boxes that were made by halving need no other box to be cut.

    apart: do not use the single value that a box above a cut shares with the piece below, which is
    rarely needed and takes longer.
    """
    pieces, n_pieces = [(low, high, np.arange(len(lower)))], 0
    while pieces:
        low, high, boxes = pieces.pop()
        meets = (lower[boxes] <= high).all(axis=1) & (upper[boxes] >= low).all(axis=1)
        boxes, n_pieces = boxes[meets], n_pieces + 1
        if not len(boxes) or n_pieces > _MOST_PIECES * len(lower):
            return low, high
        if ((lower[boxes] <= low).all(axis=1) & (upper[boxes] >= high).all(axis=1)).any():
            continue
        feature, cut = _best_cut(low, high, lower[boxes], upper[boxes])
        below, above = high.copy(), low.copy()
        below[feature], above[feature] = cut, np.nextafter(cut, np.inf)
        starts_at_cut = (lower[boxes, feature] == cut) & (upper[boxes, feature] > cut)
        pieces.append((low, below, boxes[~(starts_at_cut & apart)]))
        pieces.append((above, high, boxes))
    return None


def _best_cut(low: Array, high: Array, lower: Array, upper: Array) -> tuple[int, float]:
    """The feature and the last value of the lower piece; some box begins after it or ends there."""
    best: tuple[tuple[int, int], int, float] | None = None
    for j in np.flatnonzero(low < high):
        start, end = lower[:, j], np.sort(upper[:, j])
        cuts = np.unique(np.concatenate([np.nextafter(start[start > low[j]], -np.inf), end]))
        cuts = cuts[(cuts >= low[j]) & (cuts < high[j])]
        if not len(cuts):
            continue
        # A box with a single value, at the cut, counts as below it.
        start = np.sort(np.where(start < upper[:, j], start, np.nextafter(start, -np.inf)))
        n_below = np.searchsorted(end, cuts, side="right")
        n_above = len(start) - np.searchsorted(start, cuts, side="left")
        crossed, uneven = len(start) - n_below - n_above, np.abs(n_below - n_above)
        i = int(np.lexsort((uneven, crossed))[0])
        found = (int(crossed[i]), int(uneven[i])), int(j), float(cuts[i])
        if best is None or found < best:
            best = found
    assert best is not None  # a box that meets the piece and does not cover it ends inside it
    return best[1], best[2]
