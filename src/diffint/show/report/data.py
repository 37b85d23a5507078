"""What a report is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import InputError


@dataclass(frozen=True, eq=False)
class ScoredTable:
    """A table that was scored, and those of its rows that the report shows.

    source: the name of the file that was scored.
    scores: (rows,) of every row.
    rows: (shown, features) the flagged rows to show, highest score first, in original units.
    ids: (shown,) what to call each: its id, or its row number counted from 1.
    labels: (rows,) 1 marks an anomaly; only to say how well the scores agree with them.
    """

    source: str
    scores: NDArray[np.float64]
    rows: NDArray[np.float64]
    ids: tuple[str, ...]
    labels: NDArray[Any] | None = None

    def __post_init__(self) -> None:
        if np.ndim(self.scores) != 1 or np.ndim(self.rows) != 2:
            raise InputError("a scored table has scores (rows,) and rows (shown, features)")
        if len(self.ids) != len(self.rows):
            raise InputError(f"{len(self.rows)} rows are shown, but {len(self.ids)} ids are given")
        if len(self.rows) > len(self.scores):
            raise InputError(f"{len(self.rows)} rows are shown, but {len(self.scores)} were scored")
        if self.labels is not None and np.shape(self.labels) != np.shape(self.scores):
            raise InputError(
                f"{len(self.scores)} rows were scored, but labels are {np.shape(self.labels)}"
            )
