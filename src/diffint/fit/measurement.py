"""Trained networks to members: everything that is measured about them once, after training."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.config import Config
from ..core.model import Decoder, Member
from ..core.scaling import Scaler
from ..engine.training import TrainedMember, TrainingRun
from ..explain.importance import member_importance
from .boxes import coverages, find_boxes, joint_coverages, mean_memberships
from .sampling import Rows, at_most
from .unit_matching import stabilities

_COUNTED_ROWS = 20_000  # rows inside boxes are counted among at most this many
_MEASURED_ROWS = 10_000  # boxes and coverage are measured on at most this many


def describe(
    x: NDArray[Any],
    config: Config,
    scalers: list[Scaler],
    train: list[Rows],
    left_out: list[Rows],
    runs: list[TrainingRun],
    trained: list[TrainedMember],
) -> tuple[Member, ...]:
    """One member for every trained network.

    x: (rows, features) in original units; train, left_out: the rows that a member trained on, and
    those that it did not see.
    """
    common = scalers[0]
    bounds = [
        _in_units_of(common, scaler, t.parameters.center, t.parameters.half_width)
        for scaler, t in zip(scalers, trained, strict=True)
    ]
    stability = stabilities([b[0] for b in bounds], [b[1] for b in bounds], common.span)
    members = []
    for i, (scaler, result, run) in enumerate(zip(scalers, trained, runs, strict=True)):
        rng = np.random.default_rng(i)
        everything = np.concatenate([train[i], left_out[i]])
        counted = x[at_most(everything, _COUNTED_ROWS, rng)]
        unseen = x[at_most(left_out[i], _MEASURED_ROWS, rng)]
        seen = run.rows[at_most(np.arange(len(run.rows)), _MEASURED_ROWS, rng)]
        member = _describe_member(config, scaler, result, run.rows, seen, unseen, counted)
        member = replace(member, stability=stability[i].astype(np.float32))
        joint = joint_coverages(
            scaler.transform(unseen)[1] if len(unseen) else seen,
            member.box_lower,
            member.box_upper,
            member_importance(member),
        )
        members.append(replace(member, joint_coverage=joint))
    return tuple(members)


def _describe_member(
    config: Config,
    scaler: Scaler,
    result: TrainedMember,
    rows: NDArray[np.float32],
    seen: NDArray[np.float32],
    unseen: NDArray[Any],
    counted: NDArray[Any],
) -> Member:
    """A member but for its stability, which needs the others, and what rests on it.

    rows: (rows, features) trained on, scaled; seen: enough of them to measure on; unseen: (rows,
    features) left out, in original units, none of them where all were trained on; counted: (rows,
    features) of both, in original units.
    """
    p = result.parameters
    center, half_width = p.center, p.half_width
    lower, upper = center - half_width, center + half_width
    held_out = len(unseen) > 0
    clipped, measured = scaler.transform(unseen) if held_out else (seen, seen)
    boxes = find_boxes(
        scaler.transform(counted)[1],
        clipped,
        measured,
        center,
        half_width,
        config.temperature,
        config.box_coverage,
    )
    return Member(
        scaler=scaler,
        center=center,
        half_width=half_width,
        decoder=Decoder(
            p.hidden_weight,
            p.hidden_bias,
            p.norm_gain,
            p.norm_shift,
            p.output_weight,
            p.output_bias,
        ),
        support=result.support,
        mean_membership=mean_memberships(rows, lower, upper, config.temperature),
        stability=np.ones_like(center),
        is_pattern=boxes.is_pattern,
        box_scale=boxes.scale,
        counted_rows=len(counted),
        box_rows=boxes.counts.inside,
        peers=boxes.counts.peers,
        peers_inside=boxes.counts.peers_inside,
        training_coverage=coverages(seen, boxes.lower, boxes.upper),
        coverage=coverages(measured, boxes.lower, boxes.upper),
        coverage_counts=(~np.isnan(measured)).sum(axis=0),
        joint_coverage=np.empty((0, 0), dtype=np.float32),
        coverage_rows=len(measured),
        coverage_held_out=held_out,
        history=result.history,
        center_movement=float(np.abs(center - result.start.center).mean()),
        half_width_movement=float(np.abs(half_width - result.start.half_width).mean()),
        n_rows=len(rows),
    )


def _in_units_of(
    common: Scaler, own: Scaler, center: NDArray[Any], half_width: NDArray[Any]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A member's bounds in the scaled units of another member's scaler."""
    same = (common.divisor > 0) & (own.divisor > 0)
    divisor = np.where(same, common.divisor, 1.0)
    # Members may have seen ranges that differ beyond what floats can hold; that far apart is
    # far apart.
    far = 1e6
    with np.errstate(over="ignore", invalid="ignore"):
        stretch = np.where(same, np.minimum(own.divisor / divisor, far), 1.0)
        shift = np.where(same, own.offset / divisor - common.offset / divisor, 0.0)
    shift = np.clip(np.nan_to_num(shift), -far, far)
    middle, half = center * stretch + shift, half_width * stretch
    return middle - half, middle + half
