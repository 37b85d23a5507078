"""What the figures of the studies share, beside the style of all figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from ..show.plots.drawing import (
    ACCENT,
    ANOMALY,
    BOX,
    INK,
    NORMAL,
    QUIET,
    TEXT,
    left_title,
    plain,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Of lines and bars, in this order; with Okabe and Ito's purple and sky blue.
COLOURS = (NORMAL, ANOMALY, BOX, ACCENT, "#CC79A7", "#56B4E9", INK)
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def look_of(number: int) -> dict[str, Any]:
    """Colour and marker of the nth line of a figure."""
    marker = _MARKERS[number % len(_MARKERS)]
    return {"color": COLOURS[number % len(COLOURS)], "marker": marker, "markersize": 4.5}


def paper_look(number: int) -> dict[str, Any]:
    """The same for the paper's numbers: dashed, with empty markers."""
    return {**look_of(number), "linestyle": "--", "fillstyle": "none", "linewidth": 1.0}


def line_handles(names: Sequence[str], paper: bool = True) -> list[Any]:
    """Entries of the legend: one per line, and one for the paper's lines."""
    handles = [Line2D([], [], label=name, **look_of(i)) for i, name in enumerate(names)]
    if paper:
        dashed: dict[str, Any] = {"color": QUIET, "linestyle": "--", "linewidth": 1.0}
        handles.append(Line2D([], [], label="the paper", **dashed))
    return handles


def grouped_bars(ax: Axes, heights: Sequence[Sequence[float]]) -> list[NDArray[np.floating[Any]]]:
    """One group of bars per table. heights: (kinds, tables) → the places of the bars, likewise"""
    width = 0.8 / len(heights)
    places = []
    for number, values in enumerate(heights):
        place = np.arange(len(values)) + (number - (len(heights) - 1) / 2) * width
        ax.bar(place, values, 0.9 * width, color=COLOURS[number])
        places.append(place)
    return places


def paper_dashes(ax: Axes, values: Sequence[float]) -> None:
    """The paper's number of each group of bars as a dashed line."""
    for x, value in enumerate(values):
        ax.plot([x - 0.4, x + 0.4], [value] * 2, color=QUIET, linestyle="--")


def bar_handles(names: Sequence[str]) -> list[Any]:
    """Entries of the legend, one per kind of bar."""
    return [Patch(color=COLOURS[i], label=name) for i, name in enumerate(names)]


def named_axes(ax: Axes, x: str, y: str, title: str = "") -> None:
    """The common style, and the names of both axes."""
    plain(ax)
    ax.set_xlabel(x, size=TEXT, color=INK)
    ax.set_ylabel(y, size=TEXT, color=INK)
    if title:
        left_title(ax, title)


def ticks_at(ax: Axes, values: Sequence[float], short: bool = False) -> None:
    """A logarithmic x axis with one tick at each value; short: thousands are written as k."""
    ax.set_xscale("log")
    ax.set_xticks(values, [_short(value) if short else f"{value:g}" for value in values])
    ax.set_xticks([], minor=True)


def _short(value: float) -> str:
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"
