"""Rows to scores, reconstructions, log box memberships and matching units; no torch."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from .compiled import forward, layout, robust
from .compiled.scale import scale_rows
from .intervals import cpu
from .model import FittedModel, Member
from .packed_members import packed_members
from .parameters import Parameters
from .scaling import Scaler

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


def anomaly_scores(model: FittedModel, x: NDArray[Any], n_jobs: int = 1) -> NDArray[np.float64]:
    """The mean of the members' scores. x: (rows, features) in original units → (rows,)"""
    return packed_members(model).scores(x, n_jobs)


def reconstructions(model: FittedModel, x: NDArray[Any], n_jobs: int = 1) -> NDArray[np.float64]:
    """The mean of the members' reconstructions, in original units. → (rows, features)"""
    total, known = np.zeros(x.shape), np.zeros(x.shape[1])
    every = packed_members(model).reconstructions(x, n_jobs)
    for member, scaled in zip(model.members, every, strict=True):
        original = member.scaler.to_original(scaled)
        # A member may have seen no value of a rare feature.
        knows = (member.scaler.divisor > 0) | ~np.isnan(member.scaler.constant)
        total += np.where(knows, original, 0.0)
        known += knows
    return np.where(known > 0, total / np.maximum(known, 1), np.nan)


def evaluate(
    model: FittedModel,
    member: Member,
    x: NDArray[Any],
    n_jobs: int = 1,
    *,
    units: bool = False,
    reconstruct: bool = False,
    memberships: bool = False,
) -> Evaluation:
    """One member on rows in original units, block by block. x: (rows, features)"""
    n_rows, n_features = x.shape
    result = Evaluation(
        scores=np.empty(n_rows),
        unit=np.empty(n_rows if units else 0, dtype=np.int64),
        reconstruction=np.empty((n_rows, n_features), np.float32) if reconstruct else _NOTHING,
        log_box=np.empty((n_rows, model.config.n_units), np.float32) if memberships else _NOTHING,
    )
    prepared = _prepare(model, member)
    unclipped_error = model.config.error == "unclipped"
    scratch = threading.local()

    def score_block(start: int) -> None:
        rows = slice(start, start + _BLOCK_ROWS)
        clipped, unclipped = scale(member.scaler, x[rows])
        if not hasattr(scratch, "work"):
            scratch.work = prepared.workspace()
        forward.evaluate(
            clipped,
            unclipped if unclipped_error else clipped,
            prepared.weights,
            prepared.shape,
            scratch.work,
            result.scores[rows],
            result.unit[rows],
            result.reconstruction[rows],
            result.log_box[rows],
        )

    run_blocks(score_block, range(0, n_rows, _BLOCK_ROWS), n_jobs)
    return result


def robust_reconstruction(
    model: FittedModel,
    member: Member,
    rows: NDArray[np.float32],
    membership_floor: float,
    n_jobs: int = 1,
) -> NDArray[np.float32]:
    """What one member makes of rows when no membership counts less than the floor.

    rows: (rows, features), scaled and clipped → the same shape, scaled
    """
    result = np.empty(rows.shape, dtype=np.float32)
    prepared = _prepare(model, member)
    scratch = threading.local()

    def reconstruct_block(start: int) -> None:
        block = slice(start, start + _BLOCK_ROWS)
        if not hasattr(scratch, "work"):
            scratch.work = prepared.workspace()
        robust.reconstruct(
            rows[block],
            prepared.weights,
            prepared.shape,
            scratch.work,
            1.0 / membership_floor,
            result[block],
        )

    run_blocks(reconstruct_block, range(0, len(rows), _BLOCK_ROWS), n_jobs)
    return result


def scale(scaler: Scaler, x: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """`Scaler.transform`, compiled where the map clips."""
    if not scaler.clips:
        return scaler.transform(x)
    clipped, unclipped = np.empty((2, *x.shape), dtype=np.float32)
    scale_rows(
        np.ascontiguousarray(x, dtype=np.float64),
        scaler.offset,
        scaler.divisor,
        scaler.constant,
        float(scaler.lower[0]),
        float(scaler.upper[0]),
        clipped,
        unclipped,
    )
    return clipped, unclipped


def run_blocks(work: Any, starts: range, n_jobs: int) -> None:
    """Call `work` on every start, on up to `n_jobs` threads."""
    if n_jobs == 1 or len(starts) <= 1:
        for start in starts:
            work(start)
        return
    with ThreadPoolExecutor(min(n_jobs, len(starts)), thread_name_prefix="diffint") as pool:
        for _ in pool.map(work, starts):
            pass


@dataclass(frozen=True)
class _Prepared:
    """A member in the compiled code's layout; shared by threads, never written to."""

    weights: layout.Weights
    shape: layout.Shape
    lower: NDArray[np.float32]
    upper: NDArray[np.float32]

    def workspace(self) -> layout.Workspace:
        """A thread's own scratch space, with bounds and decoder weights in force."""
        work = layout.workspace(self.shape, self.weights, _TILE_ROWS)
        work.lower[:], work.upper[:] = self.lower, self.upper
        count = self.shape.features
        cpu.unit_exponentials(
            self.lower,
            self.upper,
            self.shape.temperature,
            work.p[:count],
            work.q[:count],
            work.c[:count],
        )
        if self.shape.certified:  # stored as normalised
            work.hidden_weight[:] = self.weights.hidden_weight
            work.output_weight[:] = self.weights.output_weight
        return work


_PREPARED: WeakKeyDictionary[Member, _Prepared] = WeakKeyDictionary()


def _prepare(model: FittedModel, member: Member) -> _Prepared:
    prepared = _PREPARED.get(member)
    if prepared is None:
        prepared = _PREPARED[member] = _pack(model, member)
    return prepared


def _pack(model: FittedModel, member: Member) -> _Prepared:
    decoder = member.decoder
    parameters = Parameters(
        center=member.center,
        width_logit=np.zeros_like(member.center),  # the bounds are set directly
        hidden_weight=decoder.hidden_weight,
        hidden_bias=decoder.hidden_bias,
        norm_gain=decoder.norm_gain,
        norm_shift=decoder.norm_shift,
        output_weight=decoder.output_weight,
        output_bias=decoder.output_bias,
    )
    # Without clipping any value may come, so nothing can be said of the exponentials' range.
    largest = 1.0 if member.scaler.clips else np.inf
    certified = model.config.decoder == "certified"
    shape = layout.shape_of(parameters, model.config.temperature, certified, largest)
    bounds = np.zeros((2, shape.features, cpu.padded(shape.units)), dtype=np.float32)
    bounds[0, :, : shape.units] = member.lower.T
    bounds[1, :, : shape.units] = member.upper.T
    weights = layout.views(layout.pack(parameters, shape), shape)
    return _Prepared(weights, shape, bounds[0], bounds[1])
