"""Label-free importance: which constraints matter, without any label or query."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.model import FittedModel, Member
from ..core.scaling import Scaler

Array = NDArray[np.float64]

# Between the mean over the units (1) and the maximum (∞). The maximum of hundreds of units is the
# luck of one of them; this keeps the order of features from one training to the next
# (docs/results/explanations.md).
_SOFT_MAXIMUM = 3


def tightness(
    lower: NDArray[Any], upper: NDArray[Any], span_lower: Array, span_upper: Array
) -> Array:
    """The share of the training range that a constraint rules out, its ends cut to that range.

    lower, upper: (units, features); span_lower, span_upper: (features,) the range, same units
    """
    span = span_upper - span_lower
    width = np.minimum(upper, span_upper) - np.maximum(lower, span_lower)
    return np.clip(1.0 - width / np.where(span > 0, span, np.inf), 0.0, 1.0)


def label_free_importance(support: NDArray[Any], tight: Array, stability: NDArray[Any]) -> Array:
    """support · tightness · stability, each in [0, 1]; all (units, features)."""
    return np.asarray(support, dtype=np.float64) * tight * stability


def box_tightness(scaler: Scaler, lower: NDArray[Any], upper: NDArray[Any]) -> Array:
    """The tightness of every side of boxes in scaled units. lower, upper: (units, features)

    0 for a constant or a feature that was never seen: there is no range to rule a part of out.
    """
    tight = tightness(lower, upper, scaler.lower, scaler.upper)
    return np.where(scaler.varies, tight, 0.0)


def member_importance(member: Member) -> Array:
    """The importance of every side of every box of a member. → (units, features)

    Its support is the share of training rows for which it holds. The coverage that is shown with it
    is measured on other rows, so that choosing by importance does not flatter it.
    """
    tight = box_tightness(member.scaler, member.box_lower, member.box_upper)
    return label_free_importance(member.training_coverage, tight, member.stability)


def feature_importance(model: FittedModel) -> Array:
    """A soft maximum over the units, averaged over the members. → (features,) in [0, 1]

    Support is the mean membership of the training rows here, which ranks features more steadily
    than counting the rows inside. A constant counts like the nearly constant feature that it
    would be with a few more rows.
    """
    total = np.zeros(model.n_features)
    for member in model.members:
        scaler = member.scaler
        tight = tightness(member.box_lower, member.box_upper, scaler.lower, scaler.upper)
        tight = np.where(scaler.seen, tight, 0.0)
        importance = label_free_importance(member.mean_membership, tight, member.stability)
        total += (importance**_SOFT_MAXIMUM).mean(axis=0) ** (1.0 / _SOFT_MAXIMUM)
    return total / len(model.members)
