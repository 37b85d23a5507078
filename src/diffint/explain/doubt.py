"""Doubt: which values of a row are most likely the wrong ones.

A value is doubted if rows that agree with the *rest* of the row have other values. These are found
among the kept rows, without the feature itself, so that a wrong value does not choose its own
company. The deviation is the distance of the value from the middle of their values, in units of
their spread. The doubt is the product of the deviation, the value's responsibility and the root of
its share of the score, larger for values beyond all training values. Measured in
docs/results/explain_quality.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.model import FittedModel, Member
from ..engine.cpu.neighbour_kernel import find_deviations
from ..engine.threads import run_blocks
from ..score.prepared import PreparedModel
from .constraints import training_range

Array = NDArray[np.float64]

N_NEAREST = 10  # kept rows to compare with
N_COMPARED = 4  # features of a row that are compared
_MOST_ROWS = 256  # kept rows of a member among which the nearest are found
_MOST_OF_KEPT = 1 / 3  # of few kept rows, the nearest are at most this share
_FLOOR = 0.2  # added to the spread, in standard deviations of the kept rows
_LARGE_DEVIATION = 6.0  # larger ones count little more: their neighbours happen to agree closely
_LEAST_DEVIATION, _LEAST_SHARE = 0.1, 1e-3
_BEYOND_WEIGHT, _MOST_BEYOND = 20.0, 0.45  # of a value beyond training values, in training ranges
_BLOCK_ROWS = 256


def doubts(
    prepared: PreparedModel, x: Array, responsibility: Array, share: Array, n_jobs: int = 1
) -> Array:
    """How much each value is doubted; all arrays and the result: (rows, features).

    0 where the responsibility is 0. Of a model without kept rows, the responsibility itself.
    """
    if not len(prepared.model.members[0].kept_rows):
        return responsibility
    smallest, largest = training_range(prepared.model.features)
    span = np.where(largest > smallest, largest - smallest, 1.0)
    with np.errstate(invalid="ignore", over="ignore"):
        beyond = np.maximum(np.maximum(smallest - x, x - largest) / span, 0.0)
    beyond = np.nan_to_num(np.minimum(beyond, _MOST_BEYOND))
    found = responsibility * np.sqrt(share + _LEAST_SHARE)
    found *= 1 + _BEYOND_WEIGHT * beyond
    # Only the foremost are compared, which takes most of the time.
    n_compared = min(N_COMPARED, x.shape[1])
    each = np.arange(len(x))[:, None]
    wanted = np.argpartition(-found, n_compared - 1, axis=1)[:, :n_compared]
    deviation = np.zeros(x.shape)
    deviation[each, wanted] = deviations(prepared, x, wanted, n_jobs)
    deviation /= 1 + deviation / _LARGE_DEVIATION
    found *= deviation + _LEAST_DEVIATION
    return np.asarray(np.where(responsibility > 0, found, 0.0))


def deviations(
    prepared: PreparedModel, x: Array, wanted: NDArray[np.intp], n_jobs: int = 1
) -> Array:
    """How far values are from those of kept rows that agree with the rest of their row.

    The mean over the members of |value − median| / (mean distance from the median + floor), among
    the N_NEAREST kept rows found without the feature; 0 where missing.
    x: (rows, features); wanted: (rows, some) features → (rows, some)
    """
    total = np.zeros(wanted.shape)
    members = prepared.once(_kept_of)
    for kept in members:
        rows, found = kept.weighted(x), np.empty(wanted.shape)

        def compare(start: int, kept: _Kept = kept, rows: Any = rows, found: Any = found) -> None:
            block = slice(start, start + _BLOCK_ROWS)
            scratch = np.empty((2, kept.rows.shape[1]), dtype=np.float32)
            nearest = np.empty((2, kept.n_nearest), dtype=np.float32)
            find_deviations(
                *(rows[block], kept.rows, kept.floor, wanted[block]),
                *(found[block], scratch, nearest),
            )

        run_blocks(compare, range(0, len(x), _BLOCK_ROWS), n_jobs)
        total += found
    return total / len(members)


class _Kept:
    """The kept rows of a member, for the kernel.

    rows: (features, kept) float32; floor: (features,) float64, 0 for features that are not used.
    """

    def __init__(self, member: Member) -> None:
        # Neighbours stand near each other, so that every few of them still are everywhere.
        step = -(-len(member.kept_rows) // _MOST_ROWS)
        self._member, kept = member, member.kept_rows[::step]
        self.rows = np.ascontiguousarray(kept.T, dtype=np.float32)
        self.floor = _FLOOR * kept.astype(np.float64).std(axis=0)
        self.n_nearest = max(min(N_NEAREST, int(_MOST_OF_KEPT * len(kept))), 1)

    def weighted(self, x: Array) -> NDArray[np.float32]:
        """Rows in original units as the kept rows are. (rows, features)"""
        scaled = self._member.scaler.target(x, "unclipped")
        return np.ascontiguousarray(scaled * self._member.kept_weight, dtype=np.float32)


def _kept_of(model: FittedModel) -> list[_Kept]:
    return [_Kept(member) for member in model.members]
