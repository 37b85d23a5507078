"""Rows that a person has called normal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .immutable import Immutable


@dataclass(frozen=True, eq=False)
class Accepted(Immutable):
    """Rows that were flagged and called normal; rows like them are not flagged any more.

    rows: (accepted, features) in original units.
    wrong: (accepted, features) the features for which each was flagged: with plausible values in
        these it would not have been. Only there must other rows be like it.
    when: (accepted,) the time of each, as text.
    """

    rows: NDArray[np.float64]
    wrong: NDArray[np.bool_]
    when: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def none(cls, n_features: int) -> Accepted:
        """No rows."""
        return cls(np.empty((0, n_features)), np.empty((0, n_features), dtype=bool), ())

    def and_also(self, other: Accepted) -> Accepted:
        """Both together."""
        return Accepted(
            np.concatenate([self.rows, other.rows]),
            np.concatenate([self.wrong, other.wrong]),
            (*self.when, *other.when),
        )

    def without(self, places: NDArray[Any]) -> Accepted:
        """All but those at some places."""
        kept = np.setdiff1d(np.arange(len(self)), places)
        return Accepted(self.rows[kept], self.wrong[kept], tuple(self.when[i] for i in kept))
