"""Figures of scores: a histogram with the threshold, and proven bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from ...certify.rows import Certificate
from ...core.errors import InputError
from ...core.formatting import counted, number, percent
from .checks import check_threshold, row_mask, score_list
from .drawing import (
    ACCENT,
    ANOMALY,
    MOST_POINTS,
    NORMAL,
    QUIET,
    TEXT,
    has_long_tail,
    left_title,
    legend_below,
    new_figure,
    number_axis,
    padded,
    plain,
    tail_axis,
)

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

_BINS = 40


def score_histogram(
    scores: Any, threshold: float, labels: Any = None, calibration_scores: Any = None
) -> Figure:
    """Histogram of scores with the threshold; the bars of each group sum to 100 %.

    scores: (rows,). labels: (rows,) True/False or 0/1: which rows are anomalies.
    calibration_scores: the scores that the threshold is based on, drawn as an outline.
    The axis is linear, or logarithmic beyond the median if there are very large scores.
    """
    values, threshold = score_list(scores, "scores"), check_threshold(threshold)
    marked = row_mask(labels, len(values), "labels")
    groups = [(values, NORMAL, "rows")]
    if labels is not None:
        groups = [(values[~marked], NORMAL, "normal rows"), (values[marked], ANOMALY, "anomalies")]
    known = np.empty(0)
    if calibration_scores is not None:
        known = score_list(calibration_scores, "calibration_scores")
    everything = np.concatenate([values, known, [threshold]])
    figure = new_figure()
    ax = figure.add_subplot()
    plain(ax)
    edges = _score_axis(ax, everything)
    handles: list[Artist] = []
    for group, colour, name in groups:
        if not len(group):
            continue
        hatch = "////" if colour == ANOMALY else None  # distinguishable without colour
        heights = _shares(group, edges)
        ax.bar(
            edges[:-1], heights, np.diff(edges), align="edge", color=colour, alpha=0.6,
            edgecolor="white" if hatch else colour, linewidth=0, hatch=hatch,
        )  # fmt: skip
        ax.stairs(heights, edges, color=colour, linewidth=1)
        label = f"{name}: {_above(group, threshold)}"
        handles.append(
            Patch(facecolor=colour, alpha=0.7, hatch=hatch, edgecolor="white", label=label)
        )
    if len(known):
        ax.stairs(_shares(known, edges), edges, color="black", linewidth=1.1)
        label = f"calibration rows: {_above(known, threshold)}"
        handles.append(Line2D([], [], color="black", linewidth=1.1, label=label))
    ax.axvline(threshold, color="black", linestyle="--", linewidth=1.2)
    label = f"threshold {number(threshold)}"
    handles.append(Line2D([], [], color="black", linestyle="--", label=label))
    number_axis(ax.yaxis, 0.0, ax.get_ylim()[1], 3.0)
    ax.set_ylabel("share of the group, %", size=TEXT)
    left_title(ax, f"Scores of {counted(len(values), 'row')}")
    legend_below(figure, handles)
    return figure


def _score_axis(ax: Axes, values: Array) -> Array:
    """Set up a horizontal axis of scores. → (bins + 1,) edges of bins of equal width on it"""
    smallest, largest = float(values.min()), float(values.max())
    long = has_long_tail(values)
    low, high = padded(smallest, largest, 0.02)
    if long or 0 <= smallest < largest / 2:
        low = min(smallest, 0.0)  # scores are errors; 0 is the natural start of the axis
    body = float(np.median(np.abs(values[values != 0]))) if long else 1.0
    if long:
        tail_axis(ax.xaxis, low, high, 5.5, body)
        ax.set_xlabel(_tail_label("anomaly score", body), size=TEXT)
        places = np.linspace(np.arcsinh(low / body), np.arcsinh(high / body), _BINS + 1)
        return np.asarray(np.sinh(places) * body)
    number_axis(ax.xaxis, low, high, 5.5)
    ax.set_xlabel("anomaly score", size=TEXT)
    return np.linspace(low, high, _BINS + 1)


def _tail_label(name: str, body: float) -> str:
    return f"{name} (logarithmic beyond {number(body, 2)})"


def _shares(values: Array, edges: Array) -> Array:
    """Percentage of the values in each bin. → (bins,)"""
    return 100.0 * np.histogram(values, edges)[0] / len(values)


def _above(values: Array, threshold: float) -> str:
    return f"{int((values > threshold).sum()):,} of {len(values):,} above"


def bound_versus_error(certificate: Certificate, threshold: float | None = None) -> Figure:
    """Proven lower bounds on scores over the scores themselves.

    No point can lie above the diagonal. threshold: drawn as a line if given; rows with a bound
    above it are proven to be flagged.
    """
    if not len(certificate):
        raise InputError("the certificate has no rows; certify at least one row")
    threshold = None if threshold is None else check_threshold(threshold)
    score = certificate.score
    figure = new_figure(5.0)
    ax = figure.add_subplot()
    plain(ax)
    limit = max(float(score.max()), threshold or 0.0) * 1.05 or 1.0
    names = ["anomaly score", "proven lower bound"]
    if has_long_tail(score):
        body = float(np.median(score[score > 0]))
        tail_axis(ax.xaxis, 0.0, limit, 5.5, body)
        tail_axis(ax.yaxis, 0.0, limit, 3.2, body)
        names = [_tail_label(name, body) for name in names]
    else:
        number_axis(ax.xaxis, 0.0, limit, 5.5)
        number_axis(ax.yaxis, 0.0, limit, 3.2)
    ax.set_xlabel(names[0], size=TEXT)
    ax.set_ylabel(names[1], size=TEXT)
    ax.plot([0, limit], [0, limit], color=QUIET, linewidth=1)
    handles: list[Artist] = [Line2D([], [], color=QUIET, label="bound = score")]
    bounds = (
        (certificate.bound_at_row, ACCENT, "^", "bound using the row's code"),
        (certificate.bound, NORMAL, "o", "bound from the row's features alone"),
    )
    some = np.linspace(0, len(score) - 1, min(len(score), MOST_POINTS)).astype(np.intp)
    for bound, colour, marker, name in bounds:
        ax.scatter(
            score[some], bound[some], s=16, color=colour, marker=marker, alpha=0.6, linewidths=0,
            clip_on=False, zorder=3,
        )  # fmt: skip
        handles.append(
            Line2D(
                [], [], linestyle="", marker=marker, color=colour, label=_tight(name, bound, score)
            )
        )
    if threshold is not None:
        ax.axhline(threshold, color="black", linestyle="--", linewidth=1.2)
        n_proven = int((certificate.bound > threshold).sum())
        label = f"threshold {number(threshold)}; proven above: {n_proven:,} of {len(score):,} rows"
        handles.append(Line2D([], [], color="black", linestyle="--", label=label))
    left_title(ax, f"Proven lower bounds of {counted(len(score), 'row')}")
    legend_below(figure, handles, columns=1)
    return figure


def _tight(name: str, bound: Array, score: Array) -> str:
    """Legend entry with the median of bound / score."""
    scored = score > 0
    if not scored.any():
        return name
    share = percent(float(np.median(bound[scored] / score[scored])))
    return f"{name}: {share} of the score (median)"
