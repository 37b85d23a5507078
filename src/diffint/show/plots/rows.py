"""Waterfall figure of one row's score."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from ...core.checks import check_count, check_index
from ...core.formatting import counted, distinct_numbers, percent, shown_name
from ...core.row_labels import row_name
from ...explain.local_explanation import LocalExplanation
from ..wording.ranges import values_text
from ..wording.values import plain_name, span_text, texts_beside
from .drawing import (
    ANOMALY,
    INK,
    NORMAL,
    QUIET,
    SMALL,
    TEXT,
    fitted,
    legend_below,
    literal,
    new_figure,
    number_axis,
    plain,
    text_width,
    top_title,
)

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LONGEST_VALUE = 16  # characters of a value of a category
_LEAST_WIDTH = 2.0  # inches left for the bars beside long names and ranges


def waterfall(explanation: LocalExplanation, row: int, n_features: int = 10) -> Figure:
    """Waterfall of one row's score: the part of each feature, most responsible first.

    row: its position, counted from 0. n_features: number of features with a bar; the rest share
    one.
    """
    row = check_index(row, len(explanation), "row", "explained")
    order = explanation.order[row][: check_count(n_features, "features")]
    score, share = float(explanation.score[row]), explanation.share[row]
    parts = score * share[order]
    n_other = len(share) - len(order)
    names = [_cell_label(explanation, row, int(j)) for j in order]
    ranges = [literal(range_label(explanation, row, int(j))) for j in order]
    colours = [_cell_colour(explanation, row, int(j)) for j in order]
    if n_other:
        # The remainder instead of a separate sum, so that the bars end exactly at the score.
        parts = np.append(parts, max(score - float(parts.sum()), 0.0))
        names.append(counted(n_other, "other feature"))
        ranges.append("")
        colours.append(QUIET)
    starts = np.concatenate([[0.0], np.cumsum(parts)[:-1]])

    figure = new_figure(max(2.3, 1.3 + 0.29 * len(parts)))
    ax = figure.add_subplot()
    plain(ax, "left")
    places = np.arange(len(parts))
    ax.barh(places, parts, left=starts, height=min(0.62, 0.2 * len(parts)), color=colours)
    ends = starts + parts
    for place in places[:-1]:  # lines between consecutive bars
        ax.plot([ends[place]] * 2, [place, place + 1], color=QUIET, linewidth=0.8, zorder=0)
    threshold = explanation.threshold_of(row)
    high = max(score, threshold) * 1.06 or 1.0
    for place, part in enumerate(parts):
        carried = part / score if score > 0 else 0.0
        _beside(ax, place, starts[place], ends[place], high, percent(carried))
    shown_score, shown_threshold = distinct_numbers(score, threshold)
    ax.axvline(threshold, color="black", linestyle="--", linewidth=1.2)
    ax.set_yticks(places, names, size=SMALL)
    ax.set_ylim(len(parts) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    number_axis(ax.xaxis, 0.0, high, _LEAST_WIDTH)
    ax.set_xlabel("anomaly score, cumulative", size=TEXT)
    _right_labels(ax, places, ranges, colours, f"range of pattern {explanation.unit[row]}")
    verdict = "above" if explanation.flagged[row] else "not above"
    name = fitted(row_name(row, explanation.index), 3.0)
    top_title(
        figure, f"Row {name}: score {shown_score}, {verdict} the threshold of {shown_threshold}"
    )
    handles: list[Artist] = []
    if ANOMALY in colours:
        handles.append(Patch(color=ANOMALY, label="outside the range"))
    if NORMAL in colours:
        handles.append(Patch(color=NORMAL, label="inside the range"))
    handles.append(
        Line2D([], [], color="black", linestyle="--", label=f"threshold {shown_threshold}")
    )
    legend_below(figure, handles, columns=3)
    return figure


def _beside(ax: Axes, place: int, start: float, end: float, high: float, text: str) -> None:
    """Add a label after a bar, or before or inside it if there is no room."""
    room = (text_width(text, SMALL) + 0.12) / _LEAST_WIDTH * high
    after, before = high - end >= room, start >= room
    ax.annotate(
        text,
        (start if before and not after else end, place),
        xytext=(3 if after else -3, 0),
        textcoords="offset points",
        ha="left" if after else "right",
        va="center",
        size=SMALL,
        color=INK if after or before else "white",
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6} if after or before else None,
    )


def _right_labels(
    ax: Axes, places: NDArray[Any], labels: list[str], colours: list[str], heading: str
) -> None:
    """Add a column of texts right of the bars, coloured for values outside their range."""
    right = ax.secondary_yaxis("right")
    right.set_yticks(places, labels, size=SMALL)
    right.tick_params(length=0, labelcolor=INK)
    right.spines["right"].set_visible(False)
    for label, colour in zip(right.get_yticklabels(), colours, strict=True):
        label.set_color(ANOMALY if colour == ANOMALY else INK)
    right.set_ylabel(heading, size=SMALL, color=QUIET)


def _cell_colour(explanation: LocalExplanation, row: int, j: int) -> str:
    """Colour of a bar; grey for a missing value or an unknown range."""
    if explanation.side[row, j] != 0:
        return ANOMALY
    known = not np.isnan(explanation.value[row, j]) and not np.isnan(explanation.lower[row, j])
    return NORMAL if known else QUIET


def _cell_label(explanation: LocalExplanation, row: int, j: int) -> str:
    """``name = value``"""
    value = explanation.value[row, j]
    if (beyond := explanation.beyond_text(row, j)) is not None:
        text = f" = {beyond}"
    elif np.isnan(value):
        text = " missing"
    elif j in explanation.categories:
        text = f" = {shown_name(str(explanation.value_text(row, j)), _LONGEST_VALUE)}"
    else:
        bounds = (explanation.lower[row, j], explanation.upper[row, j])
        text = f" = {texts_beside(explanation, j, *bounds, value)[2]}"
    room = max(2.4 - text_width(text, SMALL), 0.8)
    return fitted(plain_name(explanation, j), room, SMALL) + literal(text)


def range_label(explanation: LocalExplanation, row: int, j: int) -> str:
    """A range such as ``≤ 0.0783`` or ``552–1210``.

    An end that does not bind is left out, unless the value lies beyond it.
    """
    lower, upper = explanation.lower[row, j], explanation.upper[row, j]
    if np.isnan(lower):
        return "unknown"
    if j in explanation.categories:
        if not (explanation.binds_below[row, j] or explanation.binds_above[row, j]):
            return "any known value"
        values = explanation.categories[j]
        text = values_text(values, lower, upper, most=3, longest=_LONGEST_VALUE)
        return text if text.startswith(("one of ", "any ")) else f"only {text}"
    low, up, _ = texts_beside(explanation, j, lower, upper, explanation.value[row, j])
    side = int(explanation.side[row, j])
    below = bool(explanation.binds_below[row, j]) or side < 0
    above = bool(explanation.binds_above[row, j]) or side > 0
    if explanation.constant[j] or lower == upper:
        return f"always {low}" if explanation.constant[j] else f"only {low}"
    if below and above:
        return span_text(explanation, j, lower, upper, low, up)
    return f"≥ {low}" if below else f"≤ {up}" if above else "any"
