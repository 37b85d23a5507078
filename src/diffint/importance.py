"""Label-free importance: which constraints matter, without any label or query."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .model import FittedModel, Member

Array = NDArray[np.float64]

# Between the mean over the units (1) and the maximum (∞). The maximum of hundreds of units is the
# luck of one of them; this keeps the order of features from one training to the next
# (docs/results/explanations.md).
_SOFT_MAXIMUM = 4


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


def member_importance(member: Member) -> Array:
    """The importance of every side of every box of a member. → (units, features)

    Its support is the mean membership over the training rows: what the running mean of training
    tends to, without lagging behind the intervals.
    """
    scaler = member.scaler
    tight = tightness(member.box_lower, member.box_upper, scaler.lower, scaler.upper)
    known = (scaler.divisor > 0) | ~np.isnan(scaler.constant)
    # A constraint on a constant, or on what was never seen, rules nothing out.
    tight = np.where(known & np.isnan(scaler.constant), tight, 0.0)
    return label_free_importance(member.mean_membership, tight, member.stability)


def feature_importance(model: FittedModel) -> Array:
    """A soft maximum over the units, averaged over the members. → (features,) in [0, 1]"""
    powers = [(member_importance(m) ** _SOFT_MAXIMUM).mean(axis=0) for m in model.members]
    return np.mean([power ** (1.0 / _SOFT_MAXIMUM) for power in powers], axis=0)
