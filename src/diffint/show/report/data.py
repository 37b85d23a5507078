"""`ScoredTable`, the input of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import InputError
from ...decide.drift import Drift


@dataclass(frozen=True, eq=False)
class ScoredTable:
    """The scores of a table, and the flagged rows that the report shows.

    source: name of the scored file.
    scores: (rows,) scores of all rows.
    rows: (shown, features) the flagged rows to show, highest score first, in original units.
    ids: (shown,) the id of each, or its row number counted from 1.
    kept: columns that are not features, such as a name, as texts (shown,) to show with each row.
    row_scores: (shown,) their scores, if these are not the ones that the detector gives them.
    new_texts: values of categories that the model does not list, by place among the shown rows and
        feature, where known.
    segments, row_segments: (rows,) and (shown,) the segments of all and of the shown rows, as
        places among those of the model; None if it has none.
    accepted: (rows,) whether each is like a row that was accepted; None if none were.
    found: what a search of the whole table has found, in a sentence, if there was one.
    drift: whether the rows are like the calibration rows, if it is known.
    labels: (rows,) 1 for an anomaly; used only to report how well the scores agree with them.
    """

    source: str
    scores: NDArray[np.float64]
    rows: NDArray[np.float64]
    ids: tuple[str, ...]
    labels: NDArray[Any] | None = None
    kept: Mapping[str, Sequence[str]] = field(default_factory=dict)
    row_scores: NDArray[np.float64] | None = None
    new_texts: Mapping[tuple[int, int], str] = field(default_factory=dict)
    segments: NDArray[np.int64] | None = None
    row_segments: NDArray[np.int64] | None = None
    accepted: NDArray[np.bool_] | None = None
    drift: Drift | None = None
    found: str = ""

    def __post_init__(self) -> None:
        if np.ndim(self.scores) != 1 or np.ndim(self.rows) != 2:
            raise InputError(
                "scores must have shape (rows,) and rows (shown, features); they have "
                f"{np.shape(self.scores)} and {np.shape(self.rows)}"
            )
        if len(self.ids) != len(self.rows):
            raise InputError(
                f"ids has length {len(self.ids)} and rows {len(self.rows)}; pass one id per row"
            )
        for name, cells in self.kept.items():
            if len(cells) != len(self.rows):
                raise InputError(
                    f"the kept column {name!r} has length {len(cells)} and rows {len(self.rows)}; "
                    "pass one text per row"
                )
        if len(self.rows) > len(self.scores):
            raise InputError(
                f"rows has length {len(self.rows)}, more than scores ({len(self.scores)}); pass "
                "the scores of all rows"
            )
        if self.labels is not None and np.shape(self.labels) != np.shape(self.scores):
            raise InputError(
                f"labels has shape {np.shape(self.labels)} and scores {np.shape(self.scores)}; "
                "pass one label per score"
            )
