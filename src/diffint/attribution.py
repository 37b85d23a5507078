"""Which features are responsible for a row's anomaly?

The plain reconstruction error of a feature answers badly where one wrong value changes the
reconstruction of all the others: a single distant coordinate rules out every unit that the row
otherwise belongs to. So the row is encoded again in a way that lets no feature do that: a
membership counts at least a floor, and beyond an interval's edge it makes no difference how far.
The units that match *most* of the row then win, and a feature is as responsible as its value is
far from what they reconstruct (docs/results/explain_quality.md has what that gains).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .compiled.score_kernel import BEYOND_WEIGHT
from .model import FittedModel
from .packed_members import MEMBERSHIP_FLOORS, packed_members

__all__ = ["BEYOND_WEIGHT", "MEMBERSHIP_FLOORS", "Attribution", "attribute", "responsibilities"]


@dataclass(frozen=True)
class Attribution:
    """What the rest of each row calls for, and how far its values are from that.

    expected: (rows, features) in original units, NaN for a feature that training never saw.
    responsibility: (rows, features) ≥ 0 in scaled units, 0 where a cell is missing.
    """

    expected: NDArray[np.float64]
    responsibility: NDArray[np.float64]


def attribute(model: FittedModel, x: NDArray[Any], n_jobs: int = 1) -> Attribution:
    """Compare each value with what its row as a whole calls for. x: (rows, features)

    The responsibility is the mean over members and floors of |value − robust reconstruction|, plus
    `BEYOND_WEIGHT` times the part of it beyond the training range. Values are unclipped, whatever
    error the score uses. One evaluation of the model per row and floor.
    """
    found = packed_members(model).explained(x, n_jobs)
    return Attribution(found.expected, found.responsibility)


def responsibilities(model: FittedModel, x: NDArray[Any], n_jobs: int = 1) -> NDArray[np.float64]:
    """How responsible each value is for its row's anomaly. x, result: (rows, features)"""
    return attribute(model, x, n_jobs).responsibility
