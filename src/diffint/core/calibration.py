"""Calibration scores, and the formulas of the threshold and the p-values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
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
    group_sizes: (rows,) how many of these scores come from the same group of rows as this one. A
        row counts as much as its share of its group, so that each group counts once: rows of one
        group resemble each other, and new rows come from new groups.
    """

    kind: str
    scores: NDArray[np.float64]
    group_sizes: NDArray[np.int64]

    @property
    def held_out(self) -> bool:
        """Whether the rows were left out when the scaler and the scoring member were fitted."""
        return self.kind != "training"

    @property
    def grouped(self) -> bool:
        """Whether any rows belong to one group."""
        return bool((self.group_sizes > 1).any())

    @cached_property
    def n_groups(self) -> int:
        """The number of groups; a row that belongs to no group is one of its own."""
        return round(float((1.0 / self.group_sizes).sum()))

    @property
    def unit(self) -> str:
        """What is counted: ``"row"`` or ``"group"``."""
        return "group" if self.grouped else "row"

    @cached_property
    def _p_values(self) -> NDArray[np.float64]:
        """(rows + 1,) the p-value of a score above exactly the first 0, 1, …, all scores."""
        from_above = np.cumsum((1.0 / self.group_sizes)[::-1])[::-1]
        at_least = np.minimum(np.append(from_above, 0.0), self.n_groups)
        return np.asarray((1.0 + at_least) / (1.0 + self.n_groups))

    def p_values(self, scores: NDArray[Any]) -> NDArray[np.float64]:
        """Conformal p-values: (1 + number of calibration scores ≥ s) / (1 + their number).

        In groups, each score counts as 1 / its group's size, and groups are counted instead of
        scores (hierarchical conformal prediction).
        """
        return np.asarray(self._p_values[np.searchsorted(self.scores, scores, side="left")])

    def reaches(self, rate: float) -> bool:
        """Whether a p-value can be as small as `rate`."""
        return bool(self._p_values[-1] <= rate)

    def threshold(self, rate: float) -> float:
        """The score above which (strictly) p ≤ rate; the largest score if p is never so small."""
        if not self.reaches(rate):
            return float(self.scores[-1])
        n_below = int(np.argmax(self._p_values <= rate))  # the first, as p-values descend
        return float(self.scores[max(n_below - 1, 0)])
