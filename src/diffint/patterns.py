"""Which pattern a row belongs to, and where it leaves that pattern's box.

A pattern is a unit that is the own unit of some training row; its box is its intervals, with the
half-widths scaled so that a known share of left-out rows lies inside (`Config.box_coverage`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .model import FittedModel
from .packed_members import Explained, packed_members


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
    def of(cls, found: Explained) -> Matches:
        """What the packed members say of the rows."""
        unit = found.units[np.arange(len(found.member)), found.member]
        return cls(found.member, unit, found.units, found.excess)

    @property
    def inside(self) -> NDArray[np.bool_]:
        """(rows,) whether the row lies wholly inside the box."""
        return np.asarray(self.violations == 0)

    @property
    def violations(self) -> NDArray[np.int64]:
        """(rows,) how many features lie outside."""
        return np.count_nonzero(self.excess, axis=1)


def match_rows(model: FittedModel, x: NDArray[Any], n_jobs: int = 1) -> Matches:
    """The patterns of rows in original units. x: (rows, features)

    Every member has its own pattern for a row. The one that is reported is that of the member in
    the middle when they are ordered by how far the row reaches out of its box: a row is inside
    exactly when most members say so, and one member's odd unit has no say.
    """
    return Matches.of(packed_members(model).explained(x, n_jobs, attribute=False))
