"""Refuses models that no fit produces.

A checksum shows damage, but whoever forges a file computes it anew. A model that passes these
checks may be wrong about the world, but its scores are finite, its bounds hold, and it can be
explained.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.calibration import Calibration, group_sizes
from ..core.config import CALIBRATIONS, Config
from ..core.constants import LARGEST_TRAINING_VALUE, LARGEST_WEIGHT
from ..core.errors import ModelFileError
from ..core.model import (
    MOST_ANCESTORS,
    QUANTILE_LEVELS,
    FeatureSummary,
    FittedModel,
    Member,
    TrainingSummary,
)

_LARGEST_OUTPUT = 1e37  # bound on the outputs of a decoder; float32 ends at 3.4e38
_LARGEST_SCALED = 1e30  # ends of boxes, in scaled units
_LARGEST_DISTANCE_WEIGHT = 1e12
_LONGEST_TEXT = 200  # characters of a text in the summary of the training
_ROUNDING = 1e-3  # how far a mean of shares may exceed 1 by rounding in float32


def check_model(model: FittedModel) -> None:
    """Raise a `ModelFileError` that says what is impossible about a model."""
    names, n_rows = model.feature_names, model.training.n_rows
    if len(set(names)) != len(names):
        raise ModelFileError("two features have the same name")
    scores = model.calibration.scores
    if not _within(scores, 0.0, _LARGEST_OUTPUT) or (np.diff(scores) < 0).any():
        raise ModelFileError("the calibration scores are not ascending numbers of at least 0")
    if model.calibration.kind not in CALIBRATIONS:
        raise ModelFileError("the model has no usable calibration")
    sizes = model.calibration.group_sizes
    # The number of scores from groups of one size is a multiple of that size.
    if (
        not _within(sizes, 1, len(sizes))
        or (np.bincount(sizes)[1:] % np.arange(1, sizes.max() + 1)).any()
    ):
        raise ModelFileError("the calibration scores have impossible groups")
    _check_segments(model.calibration)
    if np.isinf(model.accepted.rows).any() or not model.accepted.wrong.any(axis=1).all():
        raise ModelFileError("the accepted rows are impossible")
    former = model.refreshed_from
    if len(former) > MOST_ANCESTORS or not all(map(_is_digest, former)):
        raise ModelFileError("the models before this one are impossible")
    check_training(model.training, model.config, bool(former))
    _check_features(model.features, n_rows)
    for i, member in enumerate(model.members):
        for possible, what in _member_checks(member, n_rows):
            if not possible:
                raise ModelFileError(f"member {i} has impossible {what}")
        if (member.scaler.seen & (model.features.missing_share == 1.0)).any():
            raise ModelFileError(f"member {i} has impossible scaling")


def _check_segments(calibration: Calibration) -> None:
    names, codes = calibration.segment_names, calibration.segments
    if len(set(names)) != len(names) or "" in names:
        raise ModelFileError("two segments have the same name, or one has none")
    if len(codes) != (len(calibration.scores) if names else 0) or (
        names and not _within(codes, 0, len(names) - 1)
    ):
        raise ModelFileError("the calibration scores have impossible segments")
    if names and not np.array_equal(group_sizes(calibration.groups), calibration.group_sizes):
        raise ModelFileError("the calibration scores have impossible groups")
    if not _within(calibration.sample_scores, 0.0, _LARGEST_OUTPUT):
        raise ModelFileError("the stored rows have impossible scores")
    if np.isinf(calibration.sample).any():
        raise ModelFileError("the stored rows have infinite values")


def check_training(training: TrainingSummary, config: Config, refreshed: bool = False) -> None:
    """Raise a `ModelFileError` if the summary of the training is impossible.

    refreshed: whether training went on from another model, with fewer epochs than a fit has
    """
    texts = (training.device, training.created, training.version)
    as_set = config.epochs in ("auto", training.epochs)
    fewer = refreshed and not isinstance(config.epochs, str) and training.epochs <= config.epochs
    if (
        training.n_rows < 2
        or min(training.n_known_anomalies, training.n_suspects, training.n_blank_rows) < 0
        or min(training.batch_size, training.epochs) < 1
        or not (as_set or fewer)
        or config.batch_size not in ("auto", "paper", training.batch_size)
        or not (math.isfinite(training.seconds) and training.seconds >= 0)
        or not all(len(text) <= _LONGEST_TEXT and text.isprintable() for text in texts)
        or not _is_digest(training.fingerprint)
    ):
        raise ModelFileError("the summary of the training is impossible")


def _is_digest(text: str) -> bool:
    return re.fullmatch("[0-9a-f]{64}", text) is not None


def _member_checks(member: Member, n_rows: int) -> Iterable[tuple[bool, str]]:
    """Whether each group of a member's values is possible, and what it is called."""
    yield bool(member.scaler.is_possible()), "scaling"
    largest = LARGEST_WEIGHT
    weights = vars(member.decoder).values()
    yield all(_within(weight, -largest, largest) for weight in weights), "weights"
    yield member.decoder.largest_output() <= _LARGEST_OUTPUT, "weights"
    intervals = _within(member.center, -largest, largest) and _within(
        member.half_width, 0.0, largest
    )
    yield intervals, "intervals"
    scale = member.box_scale
    # As computed in float32: the scale alone may overflow, or the product with a half-width.
    reach = float(np.float32(min(scale, 3e38))) * float(member.half_width.max())
    yield 0 < scale <= 3e38 and reach <= _LARGEST_SCALED, "boxes"
    yield bool(member.is_pattern.any()), "patterns"
    means = member.support, member.mean_membership, member.stability
    yield all(_within(mean, 0.0, 1.0 + _ROUNDING) for mean in means), "memberships"
    shares = member.training_coverage, member.coverage, member.joint_coverage
    yield all(_within(share, 0.0, 1.0) for share in shares), "coverage"
    counted = member.counted_rows
    yield 1 <= counted <= n_rows and 1 <= member.n_rows <= n_rows, "numbers of rows"
    yield (
        _within(member.box_rows, 0, counted)
        and _within(member.peers, 0, counted)
        and _within(member.peers_inside, 0, counted)
        and bool((member.peers_inside <= member.peers).all())
        and bool((member.peers_inside <= member.box_rows[:, None]).all()),
        "numbers of rows in boxes",
    )
    yield (
        _within(member.kept_rows, -_LARGEST_SCALED, _LARGEST_SCALED)
        and _within(member.kept_weight, 0.0, _LARGEST_DISTANCE_WEIGHT)
        and 0 <= member.distance_weight <= _LARGEST_DISTANCE_WEIGHT,
        "kept rows",
    )
    missing = member.missing_error, member.missing_surprise
    yield all(_within(part, 0.0, _LARGEST_OUTPUT) for part in missing), "errors of missing cells"
    yield member.associations.is_possible(n_rows), "counts of categories"
    yield 1 <= member.coverage_rows <= n_rows, "numbers of rows"
    yield _within(member.coverage_counts, 0, member.coverage_rows), "numbers of values"
    yield len(member.history) > 0 and _within(member.history, 0.0, np.inf), "training losses"
    moved = member.center_movement, member.half_width_movement
    yield all(0 <= distance < np.inf for distance in moved), "movements of intervals"


def _check_features(features: FeatureSummary, n_rows: int) -> None:
    seen = features.missing_share < 1.0
    largest = LARGEST_TRAINING_VALUE
    for array in (features.quantiles, features.bin_edges):
        missing = np.isnan(array)
        if not (missing == ~seen[:, None]).all() or not _within(array[seen], -largest, largest):
            raise ModelFileError("the summary of a feature has impossible values")
        # Quantiles are interpolated: two of them may be in the wrong order by a rounding error.
        tolerance = 1e-9 * np.abs(array[seen]).max(axis=1, initial=0.0, keepdims=True)
        if (np.diff(array[seen], axis=1) < -tolerance).any():
            raise ModelFileError("the summary of a feature is not in order")
    counts = features.bin_counts
    if (
        not np.array_equal(features.levels, QUANTILE_LEVELS)
        or not _within(features.missing_share, 0.0, 1.0)
        or not _within(counts, 0, n_rows)
        or not ((counts.sum(axis=1) > 0) == seen).all()
        or (counts.sum(axis=1) > n_rows).any()
    ):
        raise ModelFileError("the summary of a feature has impossible counts")


def _within(array: NDArray[Any], low: float, high: float) -> bool:
    """Whether all values are finite and within the limits; without a copy of the array."""
    if array.size == 0:
        return True
    smallest, largest = array.min(), array.max()  # NaN if any value is
    return bool(low <= smallest and largest <= high and np.isfinite(largest))
