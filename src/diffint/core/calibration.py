"""Thresholds and p-values from the scores of inliers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .immutable import Immutable

# More scores than this do not sharpen any threshold that people use.
MAX_SCORES = 100_000


@dataclass(frozen=True, eq=False)
class Calibration(Immutable):
    """Scores of inliers, ascending, and how they were obtained.

    kind: `"members"` (each row scored by the members that left it out), `"holdout"` (rows no
        member saw) or `"training"` (rows that were trained on: optimistic).
    scores: (rows,) ascending.
    """

    kind: str
    scores: NDArray[np.float64]

    @property
    def held_out(self) -> bool:
        """Whether neither the scaler nor the scoring member saw the rows."""
        return self.kind != "training"

    def p_values(self, scores: NDArray[Any]) -> NDArray[np.float64]:
        """Conformal p-values: (1 + number of calibration scores ≥ s) / (1 + their number)."""
        n = len(self.scores)
        at_least = n - np.searchsorted(self.scores, scores, side="left")
        return np.asarray((1.0 + at_least) / (1.0 + n), dtype=np.float64)

    def reaches(self, rate: float) -> bool:
        """Whether some p-value can be as small as `rate`."""
        return self._largest_flagged_rank(rate) >= 0

    def threshold(self, rate: float) -> float:
        """The score above which (strictly) p ≤ rate; the largest score where none can be."""
        rank = max(self._largest_flagged_rank(rate), 0)
        return float(self.scores[len(self.scores) - 1 - rank])

    def _largest_flagged_rank(self, rate: float) -> int:
        """The most calibration scores that a flagged row may have at or above it; −1: none can.

        Found with the very division that `p_values` makes, so that both agree to the last bit.
        """
        n = len(self.scores)
        rank = min(int(rate * (1 + n)) + 1, n - 1)
        while rank >= 0 and (1.0 + rank) / (1.0 + n) > rate:
            rank -= 1
        return rank
