"""Data of the report's histogram of scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.formatting import counted, number
from .drawing import Tick, bar_path, score_axis

Array = NDArray[np.float64]

_BINS = 60
_INCHES = 2.8  # width of the axis on a phone
_LEAST = 1.5  # smallest bar, as a percentage of the height, so that single rows are visible


@dataclass(frozen=True)
class ScoreDrawing:
    """Bars of the rows below and above the threshold; positions are percentages of the width."""

    below: str
    above: str
    threshold: float
    ticks: list[Tick]
    text: str
    notes: list[str]


def draw_scores(scores: Array, threshold: float) -> ScoreDrawing:
    """Histogram of scores (rows,), at least one."""
    axis = score_axis(np.append(scores, threshold), _INCHES)
    cut = float(axis.place(np.array([threshold]))[0])
    # Bins start at the threshold, so that no bar lies on both sides of it.
    width = 100 / _BINS
    edges = cut + width * np.arange(-np.ceil(cut / width), np.ceil((100 - cut) / width) + 1)
    flagged = scores > threshold
    below = np.histogram(np.minimum(axis.place(scores[~flagged]), cut - width / 2**20), edges)[0]
    above = np.histogram(axis.place(scores[flagged]), edges)[0]
    tallest = max(int(below.max()), int(above.max()), 1)
    notes = []
    if axis.body is not None:
        notes.append(f"The axis is logarithmic beyond {number(axis.body, 2)}.")
    if 95 / tallest < _LEAST:
        notes.append("Very small bars are drawn larger, so that they are visible.")
    left, right = np.clip(edges[:-1], 0, 100), np.clip(edges[1:], 0, 100)

    def bars(counts: NDArray[Any]) -> str:
        heights = np.where(counts > 0, np.maximum(95 * counts / tallest, _LEAST), 0)
        return bar_path(left + 0.1, right - 0.1, heights)

    return ScoreDrawing(
        below=bars(below),
        above=bars(above),
        threshold=round(cut, 2),
        ticks=axis.ticks,
        text=(
            f"{counted(len(scores), 'row')}: the median score is "
            f"{number(float(np.median(scores)))}, the largest {number(float(scores.max()))}, "
            f"the threshold {number(threshold)}."
        ),
        notes=notes,
    )
