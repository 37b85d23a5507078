"""The rule that flags rows, with warnings if calibration scores are too few or optimistic."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.calibration import Calibration
from ..core.errors import CalibrationWarning, InputWarning, warn
from ..core.flag_rule import FlagRule
from ..core.formatting import counted, listed, shown_name

_MOST_NAMED = 5


def p_values(rule: FlagRule, scores: NDArray[Any]) -> NDArray[np.float64]:
    """p-values of scores (rows,): how rare a score this high is among normal rows."""
    warn_if_optimistic(rule)
    return rule.p_values(scores)


def warn_if_optimistic(rule: FlagRule) -> None:
    """Warn if the calibration scores are those of training rows."""
    if not rule.calibration.held_out:
        warn(
            "thresholds and p-values are based on scores of training rows and are optimistic, so "
            "that more normal rows are flagged than the false-positive rate says; for valid ones, "
            "fit a DiffInt with calibration='auto' on at least 5 rows or groups",
            CalibrationWarning,
        )


def warn_if_out_of_reach(rule: FlagRule) -> None:
    """Warn if there are too few calibration scores for any p-value as small as the rate."""
    calibration = rule.calibration
    if not calibration.reaches(rule.rate, rule.confidence):
        found = counted(calibration.n_groups, f"calibration {calibration.unit}")
        are = "is" if calibration.n_groups == 1 else "are"
        warn(
            f"{found} {are} too few for a false-positive rate of {rule.rate:g}"
            f"{_with_confidence(rule)}, which needs at least {_needed(rule)}: the threshold is "
            f"the largest score; fit on more {calibration.unit}s or raise false_positive_rate",
            CalibrationWarning,
        )


def warn_of_pooled_segments(rule: FlagRule) -> None:
    """Name the segments that have too few calibration scores for a threshold of their own."""
    names = rule.calibration.segment_names
    pooled = sorted(set(range(len(names))) - set(rule.own_segments))
    if not pooled:
        return
    every_size = rule.calibration.by_segment()
    shown = [
        f"{shown_name(names[code])} ({every_size[code].n_groups:,})"
        for code in pooled[:_MOST_NAMED]
    ]
    shown += [f"{len(pooled) - _MOST_NAMED:,} more"] if len(pooled) > _MOST_NAMED else []
    every, single = rule.part(pooled[0]) is rule.calibration, len(pooled) == 1
    use = ("uses" if single else "use") + " the threshold of all rows"
    warn(
        f"{len(pooled):,} of {counted(len(names), 'segment')} "
        f"{'has' if single else 'have'} fewer than the {_needed(rule)} calibration "
        f"{rule.calibration.unit}s that a false-positive rate of {rule.rate:g}"
        f"{_with_confidence(rule)} needs, and "
        f"{use if every else 'share a threshold'}: {listed(shown)}",
        CalibrationWarning,
    )


def warn_of_accepted_rows(n_unflagged: int) -> None:
    """Say that some of the rows to accept are not flagged."""
    if n_unflagged:
        are = "is" if n_unflagged == 1 else "are"
        warn(
            f"{counted(n_unflagged, 'row')} {are} not flagged and need not be accepted",
            InputWarning,
        )


def _needed(rule: FlagRule) -> str:
    """How many calibration scores are enough for the rate."""
    if rule.rate <= 1e-15:
        return f"{1 / Decimal(rule.rate):.2g}"
    if rule.confidence is None:
        return f"{math.ceil(1 / rule.rate) - 1:,}"
    # No score is higher than all of n with a probability of (1 − rate) ** n.
    return f"{math.ceil(math.log1p(-rule.confidence) / math.log1p(-rule.rate)):,}"


def _with_confidence(rule: FlagRule) -> str:
    return "" if rule.confidence is None else f" with a confidence of {rule.confidence:g}"


def guarantee(calibration: Calibration, confidence: float | None) -> str:
    """What is promised about the false-positive rate, as the end of a sentence."""
    if not calibration.held_out:
        return "not promised: the threshold is based on training rows"
    if not calibration.proven:
        return "measured, not proven"
    like = f"for new {calibration.unit}s like the training {calibration.unit}s"
    if confidence is None:
        return f"proven {like}, on average over fits"
    return f"proven {like}, for this fit with a probability of {confidence:g}"
