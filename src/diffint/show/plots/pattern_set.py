"""Picture of a compact set of patterns: the ranges of all of them on one page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.patches import Rectangle

from ...core.formatting import percent
from ...explain.constraints import training_range
from ...explain.pattern_set import PatternSet
from .drawing import (
    FAINT,
    INK,
    NORMAL,
    QUIET,
    SMALL,
    WIDTH,
    fitted,
    new_figure,
    plain,
    top_title,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_CELL = 0.34  # inches


def pattern_set_plot(patterns: PatternSet) -> Figure:
    """The ranges of all patterns: a column per pattern, a line per feature.

    A cell spans the training range of its feature from bottom to top, and the coloured part is the
    range of the pattern. Below: the share of normal rows inside the pattern.
    """
    n_patterns = len(patterns)
    used = np.flatnonzero(patterns.has_condition.any(axis=0))
    # Features of one pattern stand together.
    used = used[np.argsort(patterns.has_condition[:, used].argmax(axis=0), kind="stable")]
    width = max(WIDTH, 2.6 + _CELL * n_patterns)
    figure = new_figure(max(1.6 + _CELL * len(used), 2.2), width)
    ax = figure.subplots()
    plain(ax, "left", "bottom")
    ax.tick_params(length=0)
    top_title(figure, "Ranges of the patterns, from the smallest training value up to the largest")
    if not n_patterns:
        ax.set_axis_off()
        return figure
    smallest, largest = training_range(patterns.features)
    for line, j in enumerate(used):
        for k in np.flatnonzero(patterns.has_condition[:, j]):
            ends = patterns.lower[k, j], patterns.upper[k, j]
            values = patterns.categories.get(int(j))
            if values is not None:  # every value has a place of its own
                ends, span = (ends[0], ends[1] + 1.0), (0.0, float(len(values)))
            else:
                span = (float(smallest[j]), float(largest[j]))
            _draw_cell(ax, int(k), line, *_places(*ends, *span))
    ax.set_xlim(-0.5, n_patterns - 0.5)
    ax.set_ylim(len(used) - 0.5, -0.5)
    ax.set_yticks(
        np.arange(len(used)), [fitted(patterns.feature_names[j], 2.0, SMALL) for j in used]
    )
    labels = [
        f"{k + 1}\n{percent(share).replace(' ', chr(0xA0))}"
        for k, share in enumerate(patterns.coverage)
    ]
    ax.set_xticks(np.arange(n_patterns), _short(labels))
    ax.set_xlabel("pattern, and normal rows inside (%)", size=SMALL, color=INK)
    return figure


def _short(labels: list[str]) -> list[str]:
    """The shares as numbers only: the axis says that they are percent."""
    short = {"under\xa01": "<1", "over\xa099": ">99"}
    cleaned = []
    for label in labels:
        name, share = label.split("\n")
        share = share.replace("\xa0%", "")
        cleaned.append(f"{name}\n{short.get(share, share)}")
    return cleaned


def _places(lower: float, upper: float, smallest: float, largest: float) -> tuple[float, float]:
    """Where a range lies in the training range, from 0 to 1, and at least a line wide."""
    span = largest - smallest
    if not span > 0:
        return 0.0, 1.0
    low = float(np.clip((lower - smallest) / span, 0.0, 0.94))
    return low, float(np.clip((upper - smallest) / span, low + 0.06, 1.0))


def _draw_cell(ax: Axes, column: int, line: int, low: float, high: float) -> None:
    left, top, size = column - 0.4, line - 0.42, 0.84
    ax.add_patch(Rectangle((left, top), 0.8, size, color=FAINT, alpha=0.35, lw=0))
    start = top + (1.0 - high) * size
    ax.add_patch(Rectangle((left, start), 0.8, (high - low) * size, color=NORMAL, lw=0))
    ax.add_patch(Rectangle((left, top), 0.8, size, fill=False, ec=QUIET, lw=0.4))
