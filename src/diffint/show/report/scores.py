"""Data of the report's histogram of scores."""

from __future__ import annotations

from dataclasses import dataclass

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
    """Bars of all rows; positions are percentages of the width.

    threshold: of the report; cuts: (positions of the slider) those of its thresholds.
    """

    bars: str
    threshold: float
    cuts: list[float]
    ticks: list[Tick]
    text: str
    notes: list[str]


def draw_scores(scores: Array, threshold: float, others: Array) -> ScoreDrawing:
    """Histogram of scores (rows,), at least one. others: thresholds that the line can move to"""
    axis = score_axis(np.append(scores, threshold), _INCHES)
    cut = float(axis.place(np.array([threshold]))[0])
    # Bins start at the threshold, so that no bar lies on both sides of it.
    width = 100 / _BINS
    edges = cut + width * np.arange(-np.ceil(cut / width), np.ceil((100 - cut) / width) + 1)
    places = axis.place(scores)
    places = np.where(scores > threshold, places, np.minimum(places, cut - width / 2**20))
    counts = np.histogram(places, edges)[0]
    tallest = max(int(counts.max()), 1)
    notes = []
    if axis.body is not None:
        notes.append(f"The axis is logarithmic beyond {number(axis.body, 2)}.")
    if 95 / tallest < _LEAST:
        notes.append("Very small bars are drawn larger, so that they are visible.")
    left, right = np.clip(edges[:-1], 0, 100), np.clip(edges[1:], 0, 100)
    heights = np.where(counts > 0, np.maximum(95 * counts / tallest, _LEAST), 0)
    return ScoreDrawing(
        bars=bar_path(left + 0.1, right - 0.1, heights),
        threshold=round(cut, 2),
        cuts=[round(place, 2) for place in axis.place(others).tolist()],
        ticks=axis.ticks,
        text=(
            f"{counted(len(scores), 'row')}: the median score is "
            f"{number(float(np.median(scores)))}, the largest {number(float(scores.max()))}, "
            f"the detector’s threshold {number(threshold)}."
        ),
        notes=notes,
    )
