"""Bounds on the distance from the nearest kept row, one part of a member's score.

The scorer compares float32 sums over the features and takes the row with the smallest. The distance
of that row is not below the smallest distance of any, and above it by the rounding of two sums at
most. Then it is summed again in float64.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from ..core.model import Member
from ..core.scaling import Range
from ..engine.reference.score import distances
from .float_error import SLIGHT, sum_error

Array = NDArray[np.float64]

_BLOCK_CELLS = 4_000_000  # of a (boxes, kept rows, features) array


class KeptDistances:
    """The distances of one member, times the weight that they have in the score.

    weight: (features,) what a change of a scaled value by 1 can change.
    """

    def __init__(self, member: Member) -> None:
        self._member = member
        self._kept = member.kept_rows.astype(np.float64)
        self._factor = member.distance_weight if len(self._kept) else 0.0
        self.weight: Array = self._factor * member.kept_weight.astype(np.float64)
        # A difference and a sum over the features, of the chosen row and of the nearest one.
        self._error = 2.01 * sum_error(self._kept.shape[1] + 1) + SLIGHT

    def least(self, target: NDArray[np.float32]) -> Array:
        """Lower bounds for rows. target: (rows, features) scaled, NaN where missing → (rows,)"""
        if self._factor == 0.0:
            return np.zeros(len(target))
        smallest = np.empty(len(target))
        complete = ~np.isnan(target).any(axis=1)
        weighted = (target[complete] * self._member.kept_weight).astype(np.float64)
        smallest[complete] = cdist(weighted, self._kept, "cityblock").min(axis=1, initial=np.inf)
        smallest[~complete] = distances(self._member, target[~complete]).sum(axis=1)
        return self._factor * smallest * (1.0 - SLIGHT)

    def bounds(self, target: Range) -> Range:
        """Bounds for boxes. target: (boxes, features) scaled, NaN where unknown → (boxes,)"""
        n_boxes, n_features = target.low.shape
        low, high = np.zeros(n_boxes), np.zeros(n_boxes)
        if self._factor == 0.0:
            return Range(low, high)
        # The same float32 product as in the scorer; rounding keeps the order.
        weight = self._member.kept_weight
        ends = [(end.astype(np.float32) * weight).astype(np.float64) for end in target]
        step = max(1, _BLOCK_CELLS // (len(self._kept) * n_features))
        for start in range(0, n_boxes, step):
            part = slice(start, start + step)
            below = np.nan_to_num(ends[0][part, None] - self._kept)
            above = np.nan_to_num(self._kept - ends[1][part, None])
            outside = np.maximum(np.maximum(below, above), 0.0)
            farthest = np.maximum(np.abs(below), np.abs(above))
            low[part] = outside.sum(axis=2).min(axis=1)
            high[part] = farthest.sum(axis=2).min(axis=1)
        return Range(self._factor * low * (1.0 - SLIGHT), self._factor * high * (1.0 + self._error))
