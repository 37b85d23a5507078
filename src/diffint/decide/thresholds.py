"""The threshold and p-values of core/calibration.py, with warnings if scores are too few."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.calibration import Calibration
from ..core.errors import CalibrationWarning, warn
from ..core.formatting import counted


def threshold(calibration: Calibration, rate: float) -> float:
    """The score above which a row is flagged, so that at most `rate` of normal rows are flagged."""
    warn_if_out_of_reach(calibration, rate)
    return calibration.threshold(rate)


def p_values(calibration: Calibration, scores: NDArray[Any]) -> NDArray[np.float64]:
    """Conformal p-values of scores (rows,): how rare a score this high is among normal rows."""
    if not calibration.held_out:
        warn(
            "the p-values are based on scores of training rows and are optimistic; for valid ones, "
            "fit a DiffInt with calibration='members' or 'holdout' on at least 5 rows or groups",
            CalibrationWarning,
        )
    return calibration.p_values(scores)


def warn_if_out_of_reach(calibration: Calibration, rate: float) -> None:
    """Warn if there are too few calibration scores for any p-value as small as `rate`."""
    if not calibration.reaches(rate):
        found = counted(calibration.n_groups, f"calibration {calibration.unit}")
        few = rate > 1e-15
        needed = f"{math.ceil(1 / rate) - 1:,}" if few else f"{1 / Decimal(rate):.2g}"
        are = "is" if calibration.n_groups == 1 else "are"
        warn(
            f"{found} {are} too few for a false-positive rate of {rate:g}, which needs at least "
            f"{needed}: the threshold is the largest score; fit on more {calibration.unit}s or "
            "raise false_positive_rate",
            CalibrationWarning,
        )
