"""What to fit, and which rows each member is trained on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.kinds import ONLY_NUMBERS, Kinds
from ..core.model import FittedModel
from .sampling import Rows


@dataclass(frozen=True)
class Task:
    """What to fit.

    x: (rows, features); anomalies: (rows,) known anomalies, left out of training; seed: the only
    source of randomness; groups: (rows,) a number for the group of each row, None to find repeated
    rows; kinds: the columns that are not numbers; suspects: (rows,) rows left out because they may
    be anomalies, None for none; segments: (rows,) the segment of each row, as a place in
    segment_names, None for no segments; doubtful: (rows,) rows that no member is trained on, but
    that count in the calibration, None for none; every_row: whether each row is to be left out by
    at least one member (if there are several); start: a model with the same features and settings
    whose networks training goes on from, None to begin anew; more: (any number, features) values of
    further rows, each column for itself, such as quantiles: scalers and the summary of the features
    count them, None for none.
    """

    x: NDArray[Any]
    anomalies: NDArray[np.bool_]
    seed: np.random.SeedSequence
    groups: NDArray[np.intp] | None = None
    kinds: Kinds = ONLY_NUMBERS
    suspects: NDArray[np.bool_] | None = None
    doubtful: NDArray[np.bool_] | None = None
    every_row: bool = False
    segments: NDArray[np.int64] | None = None
    segment_names: tuple[str, ...] = ()
    start: FittedModel | None = None
    more: NDArray[Any] | None = None

    @property
    def left_out(self) -> NDArray[np.bool_]:
        """(rows,) known anomalies and suspects."""
        return self.anomalies if self.suspects is None else self.anomalies | self.suspects


@dataclass(frozen=True)
class Split:
    """Indices of the rows each member is trained on, and of those left out.

    kind: "members", "holdout" or "training". train, left_out: per member; what it left out is
    used to weigh the parts of its scores and to measure its patterns. held_out: rows that no
    member sees for any purpose, with kind "holdout". groups: (all rows,) the group of each row;
    rows of one group are never split. choosing: rows that say which values of a category with very
    many are common, None for all that are not held out. They have these values more often than new
    rows will, and are not stored to be compared with them.
    """

    kind: str
    train: list[Rows]
    left_out: list[Rows]
    groups: NDArray[np.intp]
    held_out: Rows
    choosing: Rows | None = None
