"""Warnings about a training table and a training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.associations import MOST_VALUES
from ..core.calibration import Calibration
from ..core.decoder import Decoder
from ..core.errors import CalibrationWarning, InputWarning, TrainingWarning, warn
from ..core.formatting import counted, listed, shown_name
from ..engine.interface import TrainedMember, TrainingRun
from ..tables.categories import OTHER
from .row_groups import RowGroups
from .sampling import Rows

_COPIES_SHARE = 0.05  # largest share of copied rows without a warning
_EQUAL_SHARE = 0.2  # largest share of rows that may be copies without a warning
_FORMER_SIZE = 2.0  # smallest ratio of the mean sizes of former and recent groups with a warning
_LEAST_FALL = 1e-6  # smallest relative decrease of the loss without a warning
_LEAST_MOVEMENT = 1e-3  # smallest mean movement of the centers, scaled, without a warning
# Of 15 tables, those three on which the spectral decoder lost more than 0.03 of ROC-AUC are above
# this, and no other; the certified decoder has at most 0.41.
_LARGEST_ERROR = 0.77
_LEAST_DISTANCE = 1e-3  # from the mean, of rows that differ; in scaled units


_REMEDY = "groups in Python, --group on the command line"


def warn_about_former_groups(found: RowGroups, former: Calibration) -> None:
    """Warn if the rows of the model that is refreshed came in groups, and these rows do not."""
    before = len(former.group_sizes) / max(former.n_groups, 1)
    now = len(found.codes) / max(len(np.unique(found.codes)), 1)
    if before >= _FORMER_SIZE * now:
        warn(
            f"the rows of the former model came in groups of about {before:.0f}, and these have no "
            "such groups. If rows still belong to one subject, machine or period, more new rows "
            f"will be flagged than the false-positive rate says: name the groups ({_REMEDY})",
            CalibrationWarning,
        )


def warn_about_groups(found: RowGroups) -> None:
    n_rows, remedy = len(found.codes), _REMEDY
    if found.n_copies > _COPIES_SHARE * n_rows:
        warn(
            f"{found.n_copies:,} of {counted(n_rows, 'training row')} repeat other rows exactly or "
            "nearly; copies are left out together and count once in the threshold. If they are "
            f"independent observations, give every row a group of its own ({remedy})",
            CalibrationWarning,
        )
    if found.n_equal > _EQUAL_SHARE * n_rows:
        warn(
            f"{found.n_equal:,} of {counted(n_rows, 'training row')} agree with other rows in "
            "several columns, on values that occur nowhere else. If they are copies, or belong to "
            "one subject, machine or period, more new rows will be flagged than the "
            f"false-positive rate says: name the groups ({remedy})",
            CalibrationWarning,
        )
    if found.close:
        warn(
            f"training rows come in groups of about {found.close} that are close to each other. If "
            "these are measurements of one subject, machine or period, more new rows will be "
            f"flagged than the false-positive rate says: name the groups ({remedy})",
            CalibrationWarning,
        )


def warn_about_values(
    names: list[str], values: Mapping[int, tuple[str, ...]], listed_values: Mapping[int, Any]
) -> None:
    """values: of each category in the table; listed_values: those that are learned"""
    crowded = [
        f"{shown_name(names[j])} ({len(values[j]):,})"
        for j, learned in listed_values.items()
        if OTHER in learned and OTHER not in values[j]
    ]
    if crowded:
        warn(
            f"only the {MOST_VALUES - 1} most common values are learned one by one of "
            f"{listed(crowded)}; all others, also new ones, count as one value",
            InputWarning,
        )


def warn_about_table(
    x: NDArray[Any], usable: Rows, names: list[str], n_blank: int, ignored: list[int]
) -> None:
    """ignored: the columns of which a warning has said so before"""
    if n_blank:
        warn(
            f"{counted(n_blank, 'row')} without any value {'was' if n_blank == 1 else 'were'} left "
            "out of training",
            InputWarning,
        )
    kept = x[usable]
    empty = np.setdiff1d(np.flatnonzero(np.isnan(kept).all(axis=0)), ignored)
    if len(empty):
        listed = ", ".join(repr(names[j]) for j in empty[:5]) + (", …" if len(empty) > 5 else "")
        verb = (
            "has no value in the training rows and is"
            if len(empty) == 1
            else ("have no value in the training rows and are")
        )
        warn(f"{counted(len(empty), 'column')} {verb} ignored: {listed}", InputWarning)
    with np.errstate(invalid="ignore"):
        varies = np.fmin.reduce(kept, axis=0) < np.fmax.reduce(kept, axis=0)
    if not varies.any():
        warn(
            "every column is constant; the detector can only find values that differ from the "
            "constants",
            InputWarning,
        )


def warn_about_training(trained: list[TrainedMember]) -> None:
    first = float(np.mean([t.history[0] for t in trained]))
    last = float(np.mean([t.history[-1] for t in trained]))
    if len(trained[0].history) > 1 and last > first * (1 - _LEAST_FALL):
        warn(
            f"the loss did not fall ({first:.4g} in the first epoch, {last:.4g} in the last); "
            "increase epochs or change learning_rate",
            TrainingWarning,
        )
    moved = float(np.mean([np.abs(t.parameters.center - t.start.center).mean() for t in trained]))
    if moved < _LEAST_MOVEMENT:
        warn(
            f"the intervals hardly moved during training (centers by {moved:.2g} on average, in "
            "scaled units), so explanations are not meaningful; increase epochs or learning_rate",
            TrainingWarning,
        )


def warn_about_decoder(
    decoder: type[Decoder], runs: list[TrainingRun], trained: list[TrainedMember]
) -> None:
    """Warn if a decoder with a bounded slope hardly follows the rows."""
    if not decoder.certified:
        return
    shares = []
    for run, member in zip(runs, trained, strict=True):
        rows = run.rows.astype(np.float64)
        present = ~np.isnan(rows)
        mean = np.nansum(rows, axis=0) / np.maximum(present.sum(axis=0), 1)
        squares = np.nansum((rows - mean) ** 2, axis=1) / np.maximum(present.sum(axis=1), 1)
        distance = float(np.sqrt(squares).mean())
        shares.append(member.history[-1] / distance if distance > _LEAST_DISTANCE else 0.0)
    share = float(np.mean(shares))
    if share > _LARGEST_ERROR:
        instead = "'certified' or 'free'" if decoder.normalised else "'free'"
        warn(
            f"the {decoder.name} decoder hardly follows the rows: its error is {share:.2f} of "
            "their distance from the mean, and scores may be much less accurate; use "
            f"decoder={instead}",
            TrainingWarning,
        )
