"""The HTML report: a single file without external resources.

Jinja and matplotlib (for axis ticks) are imported only when a report is built.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from .data import ScoredTable

if TYPE_CHECKING:
    from ...estimator import DiffInt

__all__ = ["ScoredTable", "build_report"]


def build_report(detector: DiffInt, scored: ScoredTable, *, created: datetime | None = None) -> str:
    """The report on a scored table as HTML. The same inputs give the same text.

    created: time shown in the report, by default now.
    """
    from sklearn.utils.validation import check_is_fitted

    from ...core.checks import resolve_jobs
    from .page import render

    check_is_fitted(detector, "model_")
    rule = detector.rule.for_rows(scored.segments)
    return render(
        detector.prepared,
        scored,
        rule if scored.accepted is None else rule.with_accepted(scored.accepted),
        created or datetime.now().astimezone(),
        resolve_jobs(detector.n_jobs),
    )
