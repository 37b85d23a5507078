"""Calibration scores, and the formulas of the threshold and the p-values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .immutable import Immutable

# More scores would hardly change a threshold at any rate in practical use.
MAX_SCORES = 100_000


@dataclass(frozen=True, eq=False)
class Calibration(Immutable):
    """Scores of inliers, ascending, and how they were obtained.

    kind: `"members"` (each row scored by the members that left it out), `"holdout"` (rows that
        no member trained on) or `"training"` (training rows: optimistic).
    scores: (rows,) ascending.
    """

    kind: str
    scores: NDArray[np.float64]

    @property
    def held_out(self) -> bool:
        """Whether the rows were left out when the scaler and the scoring member were fitted."""
        return self.kind != "training"

    def p_values(self, scores: NDArray[Any]) -> NDArray[np.float64]:
        """Conformal p-values: (1 + number of calibration scores ≥ s) / (1 + their number)."""
        n = len(self.scores)
        at_least = n - np.searchsorted(self.scores, scores, side="left")
        return np.asarray((1.0 + at_least) / (1.0 + n), dtype=np.float64)

    def reaches(self, rate: float) -> bool:
        """Whether a p-value can be as small as `rate`."""
        return self._largest_flagged_rank(rate) >= 0

    def threshold(self, rate: float) -> float:
        """The score above which (strictly) p ≤ rate; the largest score if p is never so small."""
        rank = max(self._largest_flagged_rank(rate), 0)
        return float(self.scores[len(self.scores) - 1 - rank])

    def _largest_flagged_rank(self, rate: float) -> int:
        """The most calibration scores ≥ s for a flagged score s; −1 if nothing can be flagged.

        Uses the same division as `p_values`, so that both agree to the last bit.
        """
        n = len(self.scores)
        rank = min(int(rate * (1 + n)) + 1, n - 1)
        while rank >= 0 and (1.0 + rank) / (1.0 + n) > rate:
            rank -= 1
        return rank
