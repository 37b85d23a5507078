"""Importance of constraints and features, computed without labels.

Always support · tightness · stability. `Config.importance` says of what: "boxes" are the boxes that
are shown, cut to the training range; "paper" is the paper's LFI, of the trained intervals:

                 boxes (ours)                             paper
    support      share of training rows inside the side   running mean of memberships in training
    tightness    share of the range outside the box       max(0, 1 − half-width / range)
    of a feature cubic mean over units, with the mean     maximum over units
                 membership of training rows as support

docs/explanations.md has the measurements for which we depart.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.associations import Associations
from ..core.config import Config
from ..core.model import FittedModel, Member
from ..core.scaling import Scaler

Array = NDArray[np.float64]

# Exponent of the power mean over units: 1 is the mean, ∞ the maximum. The maximum over hundreds of
# units depends on a single one and changes between trainings; with 3 the order of features is
# stable (docs/results/explanations.md).
_SOFT_MAXIMUM = 3


def tightness(
    lower: NDArray[Any], upper: NDArray[Any], span_lower: Array, span_upper: Array
) -> Array:
    """Share of the training range that a constraint excludes. → (units, features), in [0, 1]

    lower, upper: (units, features), cut to the training range here; span_lower, span_upper:
    (features,) the training range, in the same units.
    """
    span = span_upper - span_lower
    width = np.minimum(upper, span_upper) - np.maximum(lower, span_lower)
    with np.errstate(over="ignore"):  # the span may be subnormal
        share = width / np.where(span > 0, span, np.inf)
    return np.asarray(np.clip(1.0 - share, 0.0, 1.0))


def label_free_importance(support: NDArray[Any], tight: Array, stability: NDArray[Any]) -> Array:
    """support · tightness · stability, each in [0, 1]; all (units, features)."""
    return np.asarray(np.asarray(support, dtype=np.float64) * tight * stability)


def box_tightness(
    scaler: Scaler, associations: Associations, lower: NDArray[Any], upper: NDArray[Any]
) -> Array:
    """Tightness of boxes in scaled units. lower, upper: (units, features) → the same shape

    0 for a constant feature and for one without training values, which have no range.
    """
    tight = tightness(lower, upper, *_training_range(scaler, associations))
    return np.where(scaler.varies, tight, 0.0)


def _training_range(scaler: Scaler, associations: Associations) -> tuple[Array, Array]:
    """The scaled training range; of a category, from its first to its last value. (features,)"""
    lower, upper = scaler.lower.copy(), scaler.upper.copy()
    for j in associations.categories.tolist():
        if j in scaler.curves:  # its ends are the positions of values that are not known
            lower[j], upper[j] = scaler.curves[j].scaled[[1, -2]]
    return lower, upper


def interval_tightness(scaler: Scaler, half_width: NDArray[Any]) -> Array:
    """The paper's tightness: max(0, 1 − half-width / range). half_width: (units, features)

    0 for a constant feature and for one without training values, which have no range.
    """
    share = half_width.astype(np.float64) / np.where(scaler.span > 0, scaler.span, np.inf)
    return np.where(scaler.varies, np.maximum(1.0 - share, 0.0), 0.0)


class Factors(NamedTuple):
    """What the importance of constraints is the product of; (units, features) each, in [0, 1]."""

    support: NDArray[Any]
    tightness: Array
    stability: NDArray[Any]


def importance_factors(config: Config, member: Member) -> Factors:
    """The factors of the importance of a member's constraints.

    The support is measured on training rows. The coverage shown beside it is measured on other
    rows, so that selecting by importance does not bias it.
    """
    if config.importance == "paper":
        tight = interval_tightness(member.scaler, member.half_width)
        return Factors(member.support, tight, member.stability)
    tight = box_tightness(member.scaler, member.associations, member.box_lower, member.box_upper)
    return Factors(member.training_coverage, tight, member.stability)


def member_importance(config: Config, member: Member) -> Array:
    """Importance of every constraint of a member. → (units, features)"""
    return label_free_importance(*importance_factors(config, member))


def feature_importance(model: FittedModel) -> Array:
    """Importance of every feature, averaged over members. → (features,) in [0, 1]"""
    if model.config.importance == "paper":
        members = [member_importance(model.config, m).max(axis=0) for m in model.members]
        return np.asarray(np.mean(members, axis=0))
    return _soft_maximum(model)


def _soft_maximum(model: FittedModel) -> Array:
    """Soft maximum of the importance over units, averaged over members. → (features,) in [0, 1]

    The support used here is the mean membership of the training rows: it ranks features more stably
    than the share of rows inside. A constant feature is treated like a nearly constant one.
    """
    total = np.zeros(model.n_features)
    for member in model.members:
        scaler = member.scaler
        span = _training_range(scaler, member.associations)
        tight = tightness(member.box_lower, member.box_upper, *span)
        tight = np.where(scaler.seen, tight, 0.0)
        importance = label_free_importance(member.mean_membership, tight, member.stability)
        total += (importance**_SOFT_MAXIMUM).mean(axis=0) ** (1.0 / _SOFT_MAXIMUM)
    return total / len(model.members)
