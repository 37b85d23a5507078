"""Trained networks to members: everything that is measured about them once, after training."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .alignment import stabilities
from .config import Config
from .importance import member_importance
from .measuring import (
    coverages,
    find_boxes,
    joint_coverages,
    mean_memberships,
    pattern_ranges,
)
from .model import Decoder, Member
from .sampling import Rows, at_most
from .scaling import Scaler
from .training import TrainedMember, TrainingRun

_JOINT_ROWS = 5_000  # several sides together are measured on at most this many
_MEASURED_ROWS = 20_000  # boxes, coverage and patterns are measured on at most this many


def describe(
    x: NDArray[Any],
    config: Config,
    scalers: list[Scaler],
    left_out: list[Rows],
    runs: list[TrainingRun],
    trained: list[TrainedMember],
) -> tuple[Member, ...]:
    """One member for every trained network.

    x: (rows, features) in original units, of which `left_out` are the rows that a member did not
    see.
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
        own_rows = run.rows[at_most(np.arange(len(run.rows)), _MEASURED_ROWS, rng)]
        unseen = x[at_most(left_out[i], _MEASURED_ROWS, rng)]
        members.append(
            _describe_member(config, scaler, result, run.rows, own_rows, unseen, stability[i])
        )
    return tuple(members)


def _describe_member(
    config: Config,
    scaler: Scaler,
    result: TrainedMember,
    rows: NDArray[np.float32],
    own_rows: NDArray[np.float32],
    unseen: NDArray[Any],
    stability: NDArray[np.float64],
) -> Member:
    """rows: (rows, features) trained on, scaled; own_rows: enough of them to measure on; unseen:
    (rows, features) left out, in original units, none of them where all were trained on.
    """
    p = result.parameters
    center, half_width = p.center, p.half_width
    held_out = len(unseen) > 0
    clipped, measured = scaler.transform(unseen) if held_out else (own_rows, own_rows)
    boxes = find_boxes(
        own_rows, clipped, measured, center, half_width, config.temperature, config.box_coverage
    )
    pattern_rows, pattern_lower, pattern_upper = pattern_ranges(
        own_rows, boxes.own_unit, config.n_units
    )
    lower, upper = center - half_width, center + half_width
    member = Member(
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
        stability=stability.astype(np.float32),
        pattern_rows=pattern_rows,
        pattern_lower=pattern_lower,
        pattern_upper=pattern_upper,
        box_scale=boxes.scale,
        box_rows=boxes.rows,
        peers=boxes.peers,
        training_coverage=coverages(own_rows, boxes.lower, boxes.upper),
        coverage=coverages(measured, boxes.lower, boxes.upper),
        joint_coverage=np.empty((0, 0), dtype=np.float32),  # needs the importance
        coverage_rows=len(measured),
        coverage_held_out=held_out,
        history=result.history,
        center_movement=float(np.abs(center - result.start.center).mean()),
        half_width_movement=float(np.abs(half_width - result.start.half_width).mean()),
        n_rows=len(rows),
    )
    joint = joint_coverages(
        measured[:_JOINT_ROWS], boxes.lower, boxes.upper, member_importance(member)
    )
    return replace(member, joint_coverage=joint)


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
