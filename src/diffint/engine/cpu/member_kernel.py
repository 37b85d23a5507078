"""One member packed for the compiled code, and what that code says of rows."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.config import Config
from ...core.model import Member
from ...core.scaling import RangeScaler, Scaler
from ..parameters import Parameters
from ..threads import run_blocks
from . import forward, intervals, layout, robust
from .scaling import scale_rows

_BLOCK_ROWS = 1_024  # scaled at a time, by one thread
_TILE_ROWS = 64  # encoded and decoded at a time, so that all of it stays in cache
_NOTHING = np.empty((0, 0), dtype=np.float32)


@dataclass(frozen=True)
class Evaluation:
    """What one member makes of rows.

    scores: (rows,) mean absolute error. Empty unless asked for: unit: (rows,) unit with the
    largest code; reconstruction: (rows, features) in the member's scaled units; log_box:
    (rows, units) log box memberships.
    """

    scores: NDArray[np.float64]
    unit: NDArray[np.int64]
    reconstruction: NDArray[np.float32]
    log_box: NDArray[np.float32]


class MemberKernel:
    """A member in the compiled code's layout; shared by threads, never written to."""

    def __init__(self, config: Config, member: Member) -> None:
        self._scaler, self._unclipped = member.scaler, config.error == "unclipped"
        parameters = Parameters(
            center=member.center,
            width_logit=np.zeros_like(member.center),  # the bounds are set directly
            decoder=member.decoder,
        )
        self._shape = layout.shape_of(parameters, config.temperature, member.scaler.largest_input)
        size = (2, self._shape.features, intervals.padded(self._shape.units))
        self._lower, self._upper = np.zeros(size, dtype=np.float32)
        self._lower[:, : self._shape.units] = member.lower.T
        self._upper[:, : self._shape.units] = member.upper.T
        self._weights = layout.views(layout.pack(parameters, self._shape), self._shape)

    def evaluate(
        self,
        x: NDArray[Any],
        n_jobs: int = 1,
        *,
        units: bool = False,
        reconstruct: bool = False,
        memberships: bool = False,
    ) -> Evaluation:
        """Rows in original units, block by block. x: (rows, features)"""
        n_rows, n_units = len(x), self._shape.units
        result = Evaluation(
            scores=np.empty(n_rows),
            unit=np.empty(n_rows if units else 0, dtype=np.int64),
            reconstruction=np.empty(x.shape, np.float32) if reconstruct else _NOTHING,
            log_box=np.empty((n_rows, n_units), np.float32) if memberships else _NOTHING,
        )
        scratch = threading.local()

        def score_block(start: int) -> None:
            rows = slice(start, start + _BLOCK_ROWS)
            clipped, unclipped = scale(self._scaler, x[rows])
            if not hasattr(scratch, "work"):
                scratch.work = self._workspace()
            forward.evaluate(
                clipped,
                unclipped if self._unclipped else clipped,
                self._weights,
                self._shape,
                scratch.work,
                result.scores[rows],
                result.unit[rows],
                result.reconstruction[rows],
                result.log_box[rows],
            )

        run_blocks(score_block, range(0, n_rows, _BLOCK_ROWS), n_jobs)
        return result

    def robust_reconstruction(
        self, rows: NDArray[np.float32], membership_floor: float, n_jobs: int = 1
    ) -> NDArray[np.float32]:
        """What the member makes of rows when no membership counts less than the floor.

        rows: (rows, features), scaled and clipped → the same shape, scaled
        """
        result = np.empty(rows.shape, dtype=np.float32)
        scratch = threading.local()

        def reconstruct_block(start: int) -> None:
            block = slice(start, start + _BLOCK_ROWS)
            if not hasattr(scratch, "work"):
                scratch.work = self._workspace()
            robust.reconstruct(
                rows[block],
                self._weights,
                self._shape,
                scratch.work,
                1.0 / membership_floor,
                result[block],
            )

        run_blocks(reconstruct_block, range(0, len(rows), _BLOCK_ROWS), n_jobs)
        return result

    def _workspace(self) -> layout.Workspace:
        """A thread's own scratch space, with bounds and decoder weights in force."""
        work = layout.workspace(self._shape, self._weights, _TILE_ROWS)
        work.lower[:], work.upper[:] = self._lower, self._upper
        count = self._shape.features
        intervals.unit_exponentials(
            self._lower,
            self._upper,
            self._shape.temperature,
            work.p[:count],
            work.q[:count],
            work.c[:count],
        )
        if self._shape.certified:  # stored as normalised
            work.hidden_weight[:] = self._weights.hidden_weight
            work.output_weight[:] = self._weights.output_weight
        return work


def scale(scaler: Scaler, x: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """`Scaler.transform`, compiled where the map clips."""
    if not isinstance(scaler, RangeScaler):
        return scaler.transform(x)
    clipped, unclipped = np.empty((2, *x.shape), dtype=np.float32)
    scale_rows(
        np.ascontiguousarray(x, dtype=np.float64),
        scaler.offset,
        scaler.divisor,
        scaler.constant,
        scaler.bottom,
        scaler.top,
        clipped,
        unclipped,
    )
    return clipped, unclipped
