"""Picture of a compact set of patterns: the ranges of all of them on one page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.patches import Rectangle

from ...core.formatting import percent
from ...core.model import FeatureSummary
from ...explain.pattern_set import PatternSet
from ..wording.values import plain_name
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

    A cell stands for the training rows, from the smallest value of its feature at the bottom to the
    largest, and the coloured part for those with a value in the range of the pattern; of a
    category, for its values. Below: the share of normal rows inside the pattern.
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
    top_title(figure, "Training rows inside each range, from the smallest value up")
    if not n_patterns:
        ax.set_axis_off()
        return figure
    for line, j in enumerate(used):
        for k in np.flatnonzero(patterns.has_condition[:, j]):
            lower, upper = float(patterns.lower[k, j]), float(patterns.upper[k, j])
            values = patterns.categories.get(int(j))
            if values is not None:  # every value has a place of its own
                places = lower / len(values), (upper + 1) / len(values)
            else:
                places = _shares(patterns.features, int(j), lower, upper)
            _draw_cell(ax, int(k), line, *_visible(*places))
    ax.set_xlim(-0.5, n_patterns - 0.5)
    ax.set_ylim(len(used) - 0.5, -0.5)
    ax.set_yticks(
        np.arange(len(used)), [fitted(plain_name(patterns, int(j)), 2.0, SMALL) for j in used]
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


def _shares(features: FeatureSummary, j: int, lower: float, upper: float) -> tuple[float, float]:
    """The shares of training rows below a range of a feature, and not above it."""
    quantiles, levels = features.quantiles[j], features.levels
    if features.whole[j]:  # rows below 3 are those up to 2
        lower, upper = lower - 0.5, upper + 0.5
    # Many rows may have the same value, an end of the range: they are inside.
    first, last = np.searchsorted(quantiles, lower), np.searchsorted(quantiles, upper, "right")
    below = np.interp(lower, quantiles[: first + 1], levels[: first + 1])
    reached = max(int(last) - 1, 0)
    not_above = np.interp(upper, quantiles[reached:], levels[reached:])
    return float(below), float(not_above)


def _visible(low: float, high: float) -> tuple[float, float]:
    """Two places from 0 to 1, at least a line apart."""
    low = float(np.clip(low, 0.0, 0.94))
    return low, float(np.clip(high, low + 0.06, 1.0))


def _draw_cell(ax: Axes, column: int, line: int, low: float, high: float) -> None:
    left, top, size = column - 0.4, line - 0.42, 0.84
    ax.add_patch(Rectangle((left, top), 0.8, size, color=FAINT, alpha=0.35, lw=0))
    start = top + (1.0 - high) * size
    ax.add_patch(Rectangle((left, start), 0.8, (high - low) * size, color=NORMAL, lw=0))
    ax.add_patch(Rectangle((left, top), 0.8, size, fill=False, ec=QUIET, lw=0.4))
