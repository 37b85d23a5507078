"""The rule that decides which rows are flagged."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .calibration import Array, Calibration


@dataclass(frozen=True, eq=False)
class FlagRule:
    """A row is flagged if its p-value is at most the rate, that is, above a threshold.

    In a model with segments, the p-value of a row compares it with the calibration rows of its own
    segment. Segments that have too few of them for the rate are pooled; where all of these
    together have too few, and for a segment that is new, all calibration rows are used.

    codes: (rows,) the segment of each row, −1 if it is new; None if the model has no segments, or
    for the rule of all rows. accepted: (rows,) whether each is like a row that a person has called
    normal; those have a p-value of 1 and an infinite threshold. limit: largest p-value of flagged
    rows, instead of the rate. fixed: a threshold that is not from the calibration.
    """

    calibration: Calibration
    rate: float
    confidence: float | None = None
    codes: NDArray[np.int64] | None = None
    accepted: NDArray[np.bool_] | None = None
    limit: float | None = None
    fixed: float | None = None

    @cached_property
    def threshold(self) -> float | Array:
        """The score above which a row is flagged: one for all rows, or (rows,)."""
        found = self.cut
        return found if self.accepted is None else np.where(self.accepted, np.inf, found)

    @cached_property
    def cut(self) -> float | Array:
        """The threshold without regard to accepted rows: one for all rows, or (rows,)."""
        if self.codes is None:
            return self._threshold_of(self.calibration)
        found = np.empty(len(self.codes))
        for code in np.unique(self.codes):
            found[self.codes == code] = self._threshold_of(self.part(int(code)))
        return found

    def _threshold_of(self, part: Calibration) -> float:
        if self.fixed is not None:
            return self.fixed
        if self.limit is None:
            return part.threshold(self.rate, self.confidence)
        if not part.reaches(self.limit, self.confidence):
            return np.inf
        return part.threshold(self.limit, self.confidence)

    def flagged(self, scores: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether rows with these scores are flagged. (rows,) → (rows,)"""
        return np.asarray(scores > self.threshold)

    def p_values(self, scores: NDArray[Any]) -> Array:
        """(rows,) → (rows,)"""
        found = self._p_values(scores)
        return found if self.accepted is None else np.where(self.accepted, 1.0, found)

    def _p_values(self, scores: NDArray[Any]) -> Array:
        if self.codes is None:
            return self.calibration.p_values(scores, self.confidence)
        found = np.empty(len(scores))
        for code in np.unique(self.codes):
            rows = self.codes == code
            found[rows] = self.part(int(code)).p_values(scores[rows], self.confidence)
        return found

    def part(self, code: int) -> Calibration:
        """The calibration scores that rows of a segment are compared with."""
        return self._parts.get(code, self.calibration)

    @property
    def proven(self) -> bool:
        """Whether theorems apply to the rows: each is compared with rows of its own segment."""
        own = self.codes is None or bool(np.isin(self.codes, self.own_segments).all())
        return self.calibration.proven and own

    @property
    def own_segments(self) -> list[int]:
        """The segments that have a threshold of their own."""
        return [code for code, part in self._parts.items() if part is not self._pooled]

    @cached_property
    def _each(self) -> dict[int, Calibration]:
        return dict(enumerate(self.calibration.by_segment()))

    @cached_property
    def _pooled(self) -> Calibration:
        small = [code for code, part in self._each.items() if not self._enough(part)]
        together = self.calibration.within(np.array(small, dtype=np.int64))
        return together if self._enough(together) else self.calibration

    @cached_property
    def _parts(self) -> dict[int, Calibration]:
        return {
            code: part if self._enough(part) else self._pooled for code, part in self._each.items()
        }

    def _enough(self, part: Calibration) -> bool:
        return len(part.scores) > 0 and part.reaches(self.rate, self.confidence)

    def for_rows(self, codes: NDArray[np.int64] | None) -> FlagRule:
        """The rule for rows of these segments."""
        return self._with(codes=codes)

    def with_accepted(self, accepted: NDArray[np.bool_]) -> FlagRule:
        """The rule for the same rows, of which some are like rows called normal."""
        return self._with(accepted=accepted) if accepted.any() else self

    def _with(self, **changes: Any) -> FlagRule:
        rule = replace(self, **changes)
        if rule.codes is not None:  # found once for all batches of a stream
            rule.__dict__.update(_parts=self._parts, _pooled=self._pooled)
        return rule

    def take(self, rows: Any) -> FlagRule:
        """The rule for some of the rows."""
        codes = None if self.codes is None else self.codes[rows]
        accepted = None if self.accepted is None else self.accepted[rows]
        return self._with(codes=codes, accepted=accepted)
