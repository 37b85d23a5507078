"""Which rows each member is trained on, and which are left out for calibration."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..core.calibration import MAX_SCORES
from ..core.config import Config
from ..core.errors import CalibrationWarning, warn
from ..core.formatting import counted
from .sampling import Rows
from .task import Split

LEFT_OUT_SHARE = 0.2  # share of the rows that a member leaves out
_SMALL_LEFT_OUT_SHARE = 0.1  # the same, where all members leave out others as well
HELD_OUT_SHARE = 0.2  # share of the rows that all members leave out, for calibration="holdout"
_FEWEST_ROWS_TO_SPLIT = 5  # or groups of rows
_FEW_GROUPS = 0.9  # groups per row


def split_rows(
    usable: Rows,
    groups: NDArray[np.intp],
    config: Config,
    rng: np.random.Generator,
    every_row: bool = False,
) -> Split:
    """Choose the training rows of each member.

    usable: (rows,) indices; groups: (all rows,). Each member leaves out another window of a random
    order of the groups; the windows are spaced evenly. With a holdout, they are windows of the rows
    that are not held out.
    """
    n_rows, n_members = len(usable), int(config.n_members)
    names, group_of = np.unique(groups[usable], return_inverse=True)
    if config.calibration == "training" or len(names) < _FEWEST_ROWS_TO_SPLIT:
        if config.calibration != "training":
            kind = "row" if len(names) == n_rows else "group"
            warn(
                f"{counted(len(names), kind)} {'is' if len(names) == 1 else 'are'} too few to "
                "leave some out for calibration; the threshold is computed from the training rows "
                "and is optimistic",
                CalibrationWarning,
            )
        nothing = np.empty(0, dtype=np.intp)
        return Split("training", [usable] * n_members, [nothing] * n_members, groups, nothing)
    rank = np.argsort(rng.permutation(len(names)))[group_of.ravel()]  # of each row's group
    n_held = 0
    if config.calibration == "holdout":
        n_held = min(max(int(HELD_OUT_SHARE * len(names)), 1), MAX_SCORES)
    held_out = usable[np.argsort(rank, kind="stable")[: (rank < n_held).sum()]]
    usable, rank = usable[rank >= n_held], rank[rank >= n_held] - n_held
    n_groups = len(names) - n_held
    share = _SMALL_LEFT_OUT_SHARE if n_held else LEFT_OUT_SHARE
    n_left = max(int(share * n_groups), 1)
    covers = every_row or len(names) < _FEW_GROUPS * n_rows
    if covers and config.calibration == "members" and n_members > 1:
        # Groups are few, or asked for, so every one is left out by some member.
        n_left = max(n_left, math.ceil(n_groups / n_members))

    def leave_out(first: int) -> tuple[Rows, Rows]:
        rolled = (rank - first) % n_groups
        is_out = rolled < n_left
        return usable[~is_out], usable[np.argsort(rolled, kind="stable")[: is_out.sum()]]

    windows = [leave_out(member * n_groups // n_members) for member in range(n_members)]
    train, left_out = (list(part) for part in zip(*windows, strict=True))
    return Split(config.calibration, train, left_out, groups, held_out)
