"""Measures trained networks and builds the model's members from them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.associations import Associations
from ..core.config import Config
from ..core.model import Member, box_centers
from ..core.scaling import Scaler
from ..engine.interface import TrainedMember, TrainingRun
from ..explain.importance import member_importance
from .boxes import coverages, find_boxes, joint_coverages, mean_memberships
from .sampling import Rows, at_most
from .score_parts import keep_rows, n_kept, weigh_parts
from .unit_matching import stabilities

_COUNTED_ROWS = 20_000  # largest sample in which rows inside boxes are counted, to find patterns
_MEASURED_ROWS = 10_000  # largest sample on which boxes and coverage are measured


def measure_members(
    x: NDArray[Any],
    config: Config,
    scalers: list[Scaler],
    train: list[Rows],
    left_out: list[Rows],
    runs: list[TrainingRun],
    trained: list[TrainedMember],
    missing_share: NDArray[np.float64],
    n_values: Mapping[int, int],
    n_jobs: int = 1,
    unrelated: Collection[tuple[int, int]] = (),
    positions: Collection[int] = (),
) -> tuple[Member, ...]:
    """Build one member for every trained network.

    x: (rows, features) in original units; train, left_out: per member the indices of the rows it
    was trained on, and of those left out; missing_share: (features,) of the training cells;
    n_values: of each category; unrelated: pairs of features that do not surprise beside each other;
    positions: features that are positions of times, which later rows do not have.
    """
    bounds = [
        scaler.in_units_of(scalers[0], t.parameters.center, t.parameters.half_width)
        for scaler, t in zip(scalers, trained, strict=True)
    ]
    stability = stabilities([b[0] for b in bounds], [b[1] for b in bounds], scalers[0].span)
    members, unknown = [], []
    count = n_kept(config, train, left_out)
    for i, (scaler, result, run) in enumerate(zip(scalers, trained, runs, strict=True)):
        rng = np.random.default_rng(i)
        everything = np.concatenate([train[i], left_out[i]])
        counted = x[at_most(everything, _COUNTED_ROWS, rng)]
        left_out_sample = x[at_most(left_out[i], _MEASURED_ROWS, rng)]
        train_sample = run.rows[at_most(np.arange(len(run.rows)), _MEASURED_ROWS, rng)]
        kept = keep_rows(x, train[i], run.rows, scaler, config, count, rng)
        unknown.append(left_out[i] if len(left_out[i]) else train[i])
        members.append(
            _measure_member(
                config,
                scaler,
                result,
                stability[i].astype(np.float32),
                kept,
                Associations.of(x[train[i]], n_values, unrelated),
                rows=run.rows,
                train_sample=train_sample,
                left_out_sample=left_out_sample,
                counted=counted,
            )
        )
    return weigh_parts(config, tuple(members), x, unknown, missing_share, n_jobs, positions)


def _measure_member(
    config: Config,
    scaler: Scaler,
    result: TrainedMember,
    stability: NDArray[np.float32],
    kept: tuple[NDArray[np.float32], NDArray[np.bool_]],
    associations: Associations,
    *,
    rows: NDArray[np.float32],
    train_sample: NDArray[np.float32],
    left_out_sample: NDArray[Any],
    counted: NDArray[Any],
) -> Member:
    """Measure boxes, coverage and counts of one network.

    rows: (rows, features) training rows, scaled; train_sample: a sample of them; left_out_sample:
    (rows, features) left-out rows in original units, empty if there are none; counted: (rows,
    features) a sample of both in original units, in which patterns need two rows.
    """
    center, half_width = result.parameters.center, result.parameters.half_width
    held_out = len(left_out_sample) > 0
    clipped, measured = (
        scaler.transform(left_out_sample) if held_out else (train_sample, train_sample)
    )
    boxes = find_boxes(
        scaler.transform(counted)[1],
        clipped,
        measured,
        center,
        half_width,
        box_centers(scaler, center),
        config.temperature,
        config.box_coverage,
    )
    member = Member(
        scaler=scaler,
        center=center,
        half_width=half_width,
        decoder=result.parameters.decoder,
        support=result.support,
        mean_membership=mean_memberships(
            rows, center - half_width, center + half_width, config.temperature
        ),
        stability=stability,
        is_pattern=boxes.is_pattern,
        box_scale=boxes.scale,
        counted_rows=len(counted),
        box_rows=boxes.counts.inside,
        peers=boxes.counts.peers,
        peers_inside=boxes.counts.peers_inside,
        training_coverage=coverages(train_sample, boxes.lower, boxes.upper),
        coverage=coverages(measured, boxes.lower, boxes.upper),
        coverage_counts=(~np.isnan(measured)).sum(axis=0),
        joint_coverage=np.empty((len(center), 0), dtype=np.float32),
        coverage_rows=len(measured),
        coverage_held_out=held_out,
        kept_rows=kept[0],
        kept_missing=kept[1],
        kept_weight=np.ones(rows.shape[1], dtype=np.float32),
        distance_weight=0.0,
        missing_error=np.zeros(rows.shape[1]),
        missing_surprise=np.zeros(rows.shape[1]),
        associations=associations,
        history=result.history,
        center_movement=float(np.abs(center - result.start.center).mean()),
        half_width_movement=float(np.abs(half_width - result.start.half_width).mean()),
        n_rows=len(rows),
    )
    importance = member_importance(config, member)
    together = joint_coverages(measured, boxes.lower, boxes.upper, importance)
    return replace(member, joint_coverage=together)
