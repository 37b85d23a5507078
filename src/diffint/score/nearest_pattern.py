"""The nearest pattern of a row, and the features in which the row is outside its box.

A pattern is a unit that rows are matched to: one with at least two training rows in its box, or
any unit if there is none such (`fit.boxes.find_boxes`). The box consists of the unit's intervals,
with half-widths scaled so that a known share of held-out rows is inside (`Config.box_coverage`).
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
    """The nearest pattern of every row.

    member, unit: (rows,) the reported pattern; units: (rows, members) each member's nearest unit.
    excess: (rows, features) distance of the value from the box, in scaled units of that member:
        positive above, negative below, 0 inside or where the value is missing.
    """

    member: NDArray[np.intp]
    unit: NDArray[np.intp]
    units: NDArray[np.intp]
    excess: NDArray[np.float32]

    @classmethod
    def of(cls, explained: Explained) -> Matches:
        """The matches from the result of `PackedMembers.explained`."""
        unit = explained.units[np.arange(len(explained.member)), explained.member]
        return cls(explained.member, unit, explained.units, explained.excess)

    @property
    def inside(self) -> NDArray[np.bool_]:
        """(rows,) whether the row is inside the box in every feature."""
        return np.asarray(self.violations == 0)

    @property
    def violations(self) -> NDArray[np.int64]:
        """(rows,) number of features outside the box."""
        return np.asarray(np.count_nonzero(self.excess, axis=1))


def match_rows(prepared: PreparedMembers, x: NDArray[Any], n_jobs: int = 1) -> Matches:
    """The nearest patterns of rows in original units. x: (rows, features)

    Each member has a nearest pattern for a row. The reported one is that of the median member, when
    members are ordered by `center_distances`: a row is inside exactly when it is inside for most
    members, and one unusual member does not matter.
    """
    return Matches.of(prepared.packed.explained(x, n_jobs, attribute=False))


def nearest_units(
    rows: Array32,
    lower: Array32,
    upper: Array32,
    temperature: float,
    allowed: NDArray[np.bool_] | None = None,
) -> NDArray[np.intp]:
    """The nearest unit of each row: the one that matches most of its features. → (rows,)

    It has the largest box membership if memberships below `MEMBERSHIP_FLOOR` are raised to it: one
    wrong value does not change the unit of a row.

    rows: (rows, features) scaled and clipped; lower, upper: (units, features) interval bounds;
    allowed: (units,) whether a unit may be chosen; by default all may.
    """
    log_box = bounded_log_box_memberships(rows, lower, upper, temperature, MEMBERSHIP_FLOOR)
    if allowed is not None:
        log_box[:, ~allowed] = -np.inf
    return np.asarray(log_box.argmax(axis=1))


def center_distances(
    rows: Array32, unit: NDArray[np.intp], center: Array32, half_width: Array32
) -> NDArray[np.float64]:
    """Largest distance of each row from the center of its unit over features, in half-widths.

    rows: (rows, features) scaled, not clipped; unit: (rows,); center, half_width: (units,
    features) → (rows,)
    """
    distance = np.abs(rows.astype(np.float64) - center[unit])
    ratio = distance / np.maximum(half_width[unit], np.finfo(np.float32).tiny)
    return np.asarray(np.nan_to_num(ratio, nan=0.0).max(axis=1))
