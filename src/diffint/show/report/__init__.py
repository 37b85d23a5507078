"""The HTML report: one file that opens from disk and needs nothing else.

Jinja and matplotlib's tick places are imported when a report is built, not before.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from .data import ScoredTable

if TYPE_CHECKING:
    from ...estimator import DiffInt

__all__ = ["ScoredTable", "build_report"]


def build_report(detector: DiffInt, scored: ScoredTable, *, created: datetime | None = None) -> str:
    """The report on a scored table as HTML; the same inputs give the same text.

    created: when the table was scored, now by default.
    """
    from sklearn.utils.validation import check_is_fitted

    from ...core.checks import resolve_jobs
    from ...core.config import check_false_positive_rate
    from .page import render

    check_is_fitted(detector, "model_")
    return render(
        detector.prepared,
        scored,
        check_false_positive_rate(detector.false_positive_rate),
        created or datetime.now().astimezone(),
        resolve_jobs(detector.n_jobs),
    )
