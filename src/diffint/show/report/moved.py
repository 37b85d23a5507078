"""Whether the rows of the report are like the calibration rows."""

from __future__ import annotations

from dataclasses import dataclass

from ...core.formatting import counted, shown_name
from ...decide.drift import SCORE, Drift
from ..wording.drift import flags_text, measure_text, p_text, values_text

_MOST_SHIFTS = 5


@dataclass(frozen=True)
class Moved:
    """The part about rows that have moved: texts, and lines of feature, what moved, was and now.

    many_flagged: whether more rows are flagged than of rows that have not moved.
    """

    texts: list[str]
    many_flagged: bool
    lines: list[tuple[str, str, str, str]]
    more: str


def drift_line(drift: Drift | None) -> str:
    """One sentence about rows that have not moved, or why that is not known; empty if they have."""
    if drift is None:
        return ""
    if drift.training_rows:
        return (
            "The model was trained on these rows, or on some of them, so that fewer are flagged "
            "than among new rows."
        )
    if drift.drifted:
        return ""
    return f"The rows are like the calibration rows: no sign of a drift ({p_text(drift.p_value)})."


def moved_part(drift: Drift | None) -> Moved | None:
    """What has moved, the most first; None if nothing has, or if it is not known."""
    if drift is None or drift.training_rows or not drift.drifted:
        return None
    # The score is named only if no feature is: it moves with each of them.
    moved = [shift for shift in drift.moved if shift.feature != SCORE] or list(drift.moved)
    shown = moved[:_MOST_SHIFTS]
    texts = [f"These rows are not like the calibration rows ({p_text(drift.p_value)})."]
    if drift.grouped:
        texts.append("Training rows come in groups, so that p may be too small.")
    texts.append(flags_text(drift))
    lines = [
        (
            "anomaly score" if shift.feature == SCORE else shown_name(shift.feature),
            measure_text(shift),
            *values_text(shift),
        )
        for shift in shown
    ]
    n_more = len(moved) - len(shown)
    more = f"{counted(n_more, 'more feature')} moved." if n_more else ""
    return Moved(texts, drift.flagged_share > drift.expected_share, lines, more)
