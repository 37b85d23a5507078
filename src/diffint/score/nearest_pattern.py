"""Which pattern a row belongs to, and where it leaves that pattern's box.

A pattern is a unit that is the own unit of some training row; its box is its intervals, with the
half-widths scaled so that a known share of left-out rows lies inside (`Config.box_coverage`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.constants import MEMBERSHIP_FLOOR
from ..engine.cpu.interval_layer import bounded_log_box_memberships
from ..engine.cpu.packed_members import Explained
from .prepared import PreparedMembers

Array32 = NDArray[np.float32]


@dataclass(frozen=True)
class Matches:
    """The own pattern of every row, in the units of the member that it is taken from.

    member, unit: (rows,) whose pattern it is; units: (rows, members) every member's own.
    excess: (rows, features) how far the value is beyond the box, in scaled units: positive above,
        negative below, 0 inside or where it is missing.
    """

    member: NDArray[np.intp]
    unit: NDArray[np.intp]
    units: NDArray[np.intp]
    excess: NDArray[np.float32]

    @classmethod
    def of(cls, explained: Explained) -> Matches:
        """The matches among what the members say of rows."""
        unit = explained.units[np.arange(len(explained.member)), explained.member]
        return cls(explained.member, unit, explained.units, explained.excess)

    @property
    def inside(self) -> NDArray[np.bool_]:
        """(rows,) whether the row lies wholly inside the box."""
        return np.asarray(self.violations == 0)

    @property
    def violations(self) -> NDArray[np.int64]:
        """(rows,) how many features lie outside."""
        return np.asarray(np.count_nonzero(self.excess, axis=1))


def match_rows(prepared: PreparedMembers, x: NDArray[Any], n_jobs: int = 1) -> Matches:
    """The patterns of rows in original units. x: (rows, features)

    Every member has its own pattern for a row. The one that is reported is that of the member in
    the middle when they are ordered by how far the row reaches out of its box: a row is inside
    exactly when most members say so, and one member's odd unit has no say.
    """
    return Matches.of(prepared.packed.explained(x, n_jobs, attribute=False))


def own_units(
    rows: Array32,
    lower: Array32,
    upper: Array32,
    temperature: float,
    allowed: NDArray[np.bool_] | None = None,
) -> NDArray[np.intp]:
    """The unit whose pattern each row follows: that which matches most of it. → (rows,)

    It has the largest box membership when no single one counts less than `MEMBERSHIP_FLOOR`: a row
    with one wrong value still belongs where the rest of it does.

    rows: (rows, features) scaled and clipped; lower, upper: (units, features) of the intervals;
    allowed: (units,) the units to choose from, all of them by default.
    """
    log_box = bounded_log_box_memberships(rows, lower, upper, temperature, MEMBERSHIP_FLOOR)
    if allowed is not None:
        log_box[:, ~allowed] = -np.inf
    return np.asarray(log_box.argmax(axis=1))


def reaches(
    rows: Array32, unit: NDArray[np.intp], center: Array32, half_width: Array32
) -> NDArray[np.float64]:
    """How far each row is from the center of its unit, in half-widths, where it is farthest.

    rows: (rows, features) scaled, not clipped; unit: (rows,); center, half_width: (units,
    features) → (rows,)
    """
    distance = np.abs(rows.astype(np.float64) - center[unit])
    ratio = distance / np.maximum(half_width[unit], np.finfo(np.float32).tiny)
    return np.asarray(np.nan_to_num(ratio, nan=0.0).max(axis=1))
