"""Figures of the report: critical-difference diagrams, and accuracy against time."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import matplotlib
import numpy as np
import pandas
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter
from matplotlib.transforms import Bbox

from ..core.formatting import number
from ..show.plots.drawing import (
    ANOMALY,
    BOX,
    FAINT,
    INK,
    NORMAL,
    QUIET,
    SMALL,
    TEXT,
    fitted,
    legend_below,
    new_figure,
    number_ticks,
    plain,
    text_width,
    top_title,
)
from .baselines import DIFFINT_METHODS
from .ranking import undecided_groups
from .results import is_plugin

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

_WIDTH = 9.0  # inches: 900 pixels, the width of a page on GitHub
_EDGE, _MARGIN = 0.15, 2.4  # inches: around the figure; for the names on each side
_ROW, _LEVEL = 0.215, 0.085  # inches: between names; between the bars of groups
_AXIS = 0.95  # inches from the top to the axis


def method_colour(method: str) -> str:
    """The colour of a method; DiffInt and plugins are highlighted."""
    if is_plugin(method):
        return BOX
    return {"DiffInt": ANOMALY, "DiffInt-paper": NORMAL}.get(method, INK)


def _weight(method: str) -> str:
    return "bold" if method in DIFFINT_METHODS or is_plugin(method) else "normal"


def _widening(method: str) -> float:
    """The width of its name relative to normal weight, which `text_width` measures."""
    return 1.13 if _weight(method) == "bold" else 1.0


def svg_bytes(figure: Figure) -> bytes:
    """A figure as SVG; the same figure gives the same bytes.

    Text is stored as text, which keeps files small and their differences readable. If DejaVu is not
    installed, Verdana is as wide; other fonts are narrower.
    """
    buffer = io.BytesIO()
    settings: Any = {
        "svg.hashsalt": "diffint",
        "svg.fonttype": "none",
        "font.sans-serif": ["DejaVu Sans", "Verdana", "sans-serif"],
    }
    with matplotlib.rc_context(settings):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


# --- Critical differences ------------------------------------------------------------------------


def critical_difference_diagram(ranks: pandas.Series, difference: float, title: str) -> Figure:
    """Mean ranks on an axis, with bars under ranks that do not differ by Nemenyi's test.

    ranks: (methods,) mean ranks by name. difference: the critical difference; NaN draws no bars.
    """
    ranks = ranks.sort_values(kind="stable")
    methods, places = [str(name) for name in ranks.index], ranks.to_numpy(dtype=np.float64)
    groups = undecided_groups(places.tolist(), difference)
    n_left = (len(methods) + 1) // 2
    bars_end = _AXIS + 0.17 + _LEVEL * len(groups)
    height = bars_end + 0.12 + _ROW * n_left + _EDGE

    figure = Figure(figsize=(_WIDTH, height), dpi=100)
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set_xlim(0, _WIDTH)
    ax.set_ylim(height, 0)  # inches from the upper left corner
    ax.set_axis_off()
    ax.text(_EDGE, 0.24, title, size=TEXT + 1.5, color=INK, va="center", ha="left")

    low, high = _whole_limits(places)
    inch = (_WIDTH - 2 * _MARGIN) / (high - low)
    x = _MARGIN + (places - low) * inch
    _draw_axis(ax, low, high, inch)
    _draw_difference(ax, difference, inch)
    for level, (first, last) in enumerate(groups):
        y = _AXIS + 0.17 + _LEVEL * level
        ends = [x[first] - 0.03, x[last] + 0.03]
        ax.plot(ends, [y, y], color=INK, linewidth=3.0, solid_capstyle="round", zorder=3)
    for i, (method, rank) in enumerate(zip(methods, places, strict=True)):
        left = i < n_left
        row = i if left else len(methods) - 1 - i  # the best and the worst are on top
        y = bars_end + 0.12 + _ROW * row
        name_end = _MARGIN - 0.25 if left else _WIDTH - _MARGIN + 0.25
        colour, bold = method_colour(method), _weight(method)
        line: dict[str, Any] = {"color": colour, "linewidth": 1.6 if bold == "bold" else 0.8}
        ax.plot([x[i], x[i], name_end], [_AXIS, y, y], zorder=2, **line)
        name = fitted(method, (_MARGIN - _EDGE - 0.9) / _widening(method), TEXT)
        parts = [name, f"{rank:.2f}"]
        text = "\u2002".join(parts if left else parts[::-1])  # SVG collapses ordinary spaces
        across, side = (-0.06, "right") if left else (0.06, "left")
        style: dict[str, Any] = {"color": colour, "weight": bold, "size": TEXT, "ha": side}
        ax.text(name_end + across, y + 0.04, text, va="baseline", **style)
    return figure


def _whole_limits(places: np.ndarray) -> tuple[int, int]:
    low, high = int(np.floor(places.min())), int(np.ceil(places.max()))
    return (low, high) if high > low else (low, low + 1)


def _draw_axis(ax: Axes, low: int, high: int, inch: float) -> None:
    right = _WIDTH - _MARGIN
    ax.plot([_MARGIN, right], [_AXIS, _AXIS], color=INK, linewidth=1.2, zorder=3)
    step = max(1, int(np.ceil(0.3 / inch)))
    for rank in range(low, high + 1):
        labelled = (rank - low) % step == 0
        place, length = _MARGIN + (rank - low) * inch, 0.09 if labelled else 0.05
        ax.plot([place, place], [_AXIS - length, _AXIS], color=INK, linewidth=1.0)
        if labelled:
            ax.text(place, _AXIS - 0.13, str(rank), size=TEXT, color=INK, ha="center", va="bottom")
    for place, side, text in ((_MARGIN, "right", "better"), (right, "left", "worse")):
        away = -0.2 if side == "right" else 0.2
        ax.text(place + away, _AXIS, text, size=SMALL, color=QUIET, ha=side, va="center")


def _draw_difference(ax: Axes, difference: float, inch: float) -> None:
    """The critical difference as a length above the axis, unless it is longer than the axis."""
    if np.isnan(difference):
        return
    length, y = difference * inch, 0.55
    shown = length <= _WIDTH - 2 * _MARGIN
    label = f"critical difference {difference:.2f}"
    start = _MARGIN
    if shown:
        ends = [start, start + length]
        ax.plot(ends, [y, y], color=INK, linewidth=1.2)
        for end in ends:
            ax.plot([end, end], [y - 0.05, y + 0.05], color=INK, linewidth=1.2)
        ax.text(start + length + 0.1, y, label, size=TEXT, color=INK, va="center", ha="left")
    else:
        label += ": longer than the axis"
        ax.text(start, y, label, size=TEXT, color=INK, va="center", ha="left")


# --- Accuracy against time -----------------------------------------------------------------------


class TimedMethod(NamedTuple):
    """A point of the figure.

    seconds: on one core. at_least: some runs were stopped. estimated: some runs were on a GPU.
    """

    method: str
    seconds: float
    rank: float
    at_least: bool
    estimated: bool


def accuracy_against_time(methods: Sequence[TimedMethod], title: str, rank_name: str) -> Figure:
    """Mean rank, best on top, against the seconds of fit and score, on a log axis."""
    figure = new_figure(5.6, _WIDTH)
    ax = figure.add_subplot()
    plain(ax)
    ax.set_xscale("log")
    seconds = np.array([one.seconds for one in methods])
    ranks = np.array([one.rank for one in methods])
    shortest, longest = float(seconds.min()) / 2.0, float(seconds.max()) * 2.5
    ax.set_xlim(shortest, longest)
    ax.set_xticks(*_second_ticks(shortest, longest))
    ax.xaxis.set_minor_formatter(NullFormatter())
    pad = max(0.06 * float(np.ptp(ranks)), 0.3)
    best, worst = float(ranks.min()) - pad, float(ranks.max()) + pad
    ax.set_ylim(worst, best)
    ax.set_yticks(*number_ticks(best, worst, 4.0, stacked=True, whole=True))
    ax.grid(color=FAINT, linewidth=0.4, alpha=0.6)
    ax.set_xlabel("fit and score on one core, geometric mean over the tables", size=TEXT)
    ax.set_ylabel(f"mean rank by {rank_name}, best on top", size=TEXT)
    for one in methods:
        colour = method_colour(one.method)
        ax.plot(
            one.seconds, one.rank, marker=_marker(one), color=colour, markersize=7, linestyle="",
            markerfacecolor="white" if one.estimated else colour, zorder=4,
        )  # fmt: skip
    legend_below(figure, _legend(methods), columns=3)
    top_title(figure, title)
    _label_points(figure, ax, methods)
    return figure


def _marker(one: TimedMethod) -> str:
    return ">" if one.at_least else "o"


def _second_ticks(low: float, high: float) -> tuple[list[float], list[str]]:
    """Powers of ten between two limits, and, if these are few, 2 and 5 times them."""
    powers = 10.0 ** np.arange(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = [1.0] if high / low > 1e3 else [1.0, 2.0, 5.0]
    ticks = [float(tick) for tick in np.outer(powers, steps).ravel() if low <= tick <= high]
    return ticks, [f"{number(1000 * t)} ms" if t < 1 else f"{number(t)} s" for t in ticks]


def _legend(methods: Sequence[TimedMethod]) -> list[Artist]:
    style: dict[str, Any] = {"linestyle": "", "color": INK, "markersize": 6}
    handles: list[Artist] = []
    if any(one.at_least for one in methods):
        label = "at least: some runs were stopped at the time limit"
        handles.append(Line2D([], [], marker=">", label=label, **style))
    if any(one.estimated for one in methods):
        label = "one-core time partly estimated: ran on a GPU"
        handles.append(Line2D([], [], marker="o", markerfacecolor="white", label=label, **style))
    return handles


def _label_points(figure: Figure, ax: Axes, methods: Sequence[TimedMethod]) -> None:
    """Write every point's name beside it, without overlap of names and points."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()  # type: ignore[no-untyped-call]  # computes the layout, and so the positions of the points
    figure.set_layout_engine("none")
    points = ax.transData.transform([(one.seconds, one.rank) for one in methods])
    taken = [Bbox.from_bounds(x - 6, y - 6, 12, 12) for x, y in points]
    inside = ax.get_window_extent()
    to_data = ax.transData.inverted()
    # DiffInt and plugins first: their names get the positions next to their points.
    for i in sorted(range(len(methods)), key=lambda i: _weight(methods[i].method) != "bold"):
        one, (x, y) = methods[i], points[i]
        name, bold = fitted(one.method, 1.6, SMALL), _weight(one.method)
        width = text_width(name, SMALL) * figure.dpi * _widening(one.method) + 2
        others = taken[:i] + taken[i + 1 :]
        box = _free_place(x, y, width, 12.0, others, inside)
        taken.append(box)
        start, end = to_data.transform([(box.x0, box.y0), (box.x1, box.y1)])
        place = to_data.transform(((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2))
        colour = method_colour(one.method)
        near = min(abs(box.x0 - x), abs(box.x1 - x)) < 16 and box.y0 - 8 < y < box.y1 + 8
        if not near and not (box.x0 <= x <= box.x1 and min(abs(box.y0 - y), abs(box.y1 - y)) < 14):
            tip = (np.clip(one.seconds, start[0], end[0]), end[1] if box.y1 < y else start[1])
            ax.plot([one.seconds, tip[0]], [one.rank, tip[1]], color=QUIET, linewidth=0.6, zorder=3)
        style: dict[str, Any] = {"size": SMALL, "color": colour, "weight": bold, "zorder": 5}
        ax.text(place[0], place[1], name, ha="center", va="center", **style)


def _free_place(
    x: float, y: float, width: float, height: float, taken: Sequence[Bbox], inside: Bbox
) -> Bbox:
    """The nearest box around a point that overlaps nothing, in pixels."""
    fallback = Bbox.from_bounds(x + 8, y - height / 2, width, height)
    for away in (8.0, 14.0, 22.0, 32.0, 44.0, 58.0):
        for across, up in (
            (1, 0), (-1, 0), (0, 1), (0, -1), (1, 0.7), (1, -0.7), (-1, 0.7), (-1, -0.7),
        ):  # fmt: skip
            left = x + across * away - (width / 2 if across == 0 else width if across < 0 else 0)
            bottom = y + up * (away + height / 2) - height / 2
            box = Bbox.from_bounds(left, bottom, width, height)
            fits = box.x0 >= inside.x0 and box.x1 <= inside.x1
            fits = fits and box.y0 >= inside.y0 and box.y1 <= inside.y1
            if fits and not any(box.overlaps(other) for other in taken):
                return box
    return fallback
