"""Shared parts of the figures: colours, text that fits, axes, titles and legends."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.textpath import text_to_path
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from ...core.formatting import distinct_numbers, number, printable, shown_name

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

Array = NDArray[np.float64]

# Okabe and Ito's colours, which colour-blind readers can distinguish.
NORMAL, ANOMALY, BOX, ACCENT = "#0072B2", "#D55E00", "#009E73", "#E69F00"
INK, QUIET, FAINT = "#333333", "#8C8C8C", "#BFBFBF"

WIDTH, HEIGHT = 7.0, 4.5  # inches
TEXT, SMALL = 9.0, 8.0  # points
MOST_POINTS = 5_000  # more points hide each other
_LONG_TAIL = 8.0  # if the maximum is more than this many medians, the axis is partly logarithmic


class Picture(Figure):
    """A figure that notebooks display without pyplot."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png")
        return buffer.getvalue()


def new_figure(height: float = HEIGHT, width: float = WIDTH) -> Figure:
    """An empty figure with automatic layout, not registered with pyplot. Sizes are in inches."""
    layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.06)
    return Picture(figsize=(width, height), dpi=100, layout=layout)


# --- Text ----------------------------------------------------------------------------------------


def text_width(text: str, size: float = TEXT) -> float:
    """Width of a text in inches."""
    font = FontProperties(size=size)
    width, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    return float(width) / 72.0


def fitted(text: str, inches: float, size: float = TEXT) -> str:
    """A name on one line, shortened in the middle if it is wider than `inches`.

    Both ends are kept because column names may differ at either. Dollar signs are escaped so that
    matplotlib does not read them as math.
    """
    text = " ".join(printable(text).split())
    if text_width(text, size) > inches:
        fewest, most = 2, len(text)
        while fewest < most:
            kept = (fewest + most + 1) // 2
            if text_width(_cut(text, kept), size) <= inches:
                fewest = kept
            else:
                most = kept - 1
        text = _cut(text, fewest)
    return literal(text)


def literal(text: str) -> str:
    """The text with dollar signs that matplotlib does not read as math."""
    return text.replace("$", r"\$")


def _cut(text: str, kept: int) -> str:
    head = (kept + 1) // 2
    return f"{text[:head].rstrip()}…{text[len(text) - (kept - head) :].lstrip()}"


# --- Axes ----------------------------------------------------------------------------------------


def plain(ax: Axes, *hidden: str) -> None:
    """Apply the common style to axes; `hidden` names further spines to hide."""
    ax.spines[["top", "right", *hidden]].set_visible(False)
    for spine in ax.spines.values():
        spine.set_color(QUIET)
    ax.tick_params(labelsize=SMALL, color=QUIET, labelcolor=INK, length=3)
    ax.set_axisbelow(True)


def padded(low: float, high: float, share: float = 0.05) -> tuple[float, float]:
    """Axis limits slightly beyond both ends, and distinct if these are equal."""
    # Computed with halves: the difference of two huge values may overflow.
    pad = 2 * share * (high / 2 - low / 2)
    if pad == 0 or not np.isfinite(low + pad):
        pad = max(abs(low), abs(high)) * share or 1.0
    return low - pad, high + pad


def number_ticks(
    low: float, high: float, inches: float, stacked: bool = False, whole: bool = False
) -> tuple[list[float], list[str]]:
    """Positions and labels of round ticks, as many as fit on an axis of this length.

    stacked: whether labels are above each other, as on a vertical axis.
    whole: whether ticks must be whole numbers.
    """
    for count in (6, 5, 4, 3, 2, 1):
        locator = MaxNLocator(count, steps=[1, 2, 2.5, 5, 10], integer=whole)
        places = np.asarray(locator.tick_values(low, high))
        places = np.where(np.abs(places) < 1e-9 * (high - low), 0.0, places)
        ticks = [float(place) for place in places if low <= place <= high]
        labels = exact_numbers(ticks)
        if labels_fit(labels, inches, stacked):
            break
    return ticks, labels


def name_ticks(
    names: Sequence[str], low: float, high: float, inches: float, stacked: bool = False
) -> tuple[list[float], list[str]]:
    """Positions and labels of the values of a category, at 0, 1, …: as many as fit."""
    places = [i for i in range(len(names)) if low <= i <= high]
    step, room = 1, inches if stacked else inches / max(min(len(places), 6), 1) - 0.15
    labels = [fitted(shown_name(names[i]), max(room, 0.5), SMALL) for i in places]
    while step < len(labels) and not labels_fit(labels[::step], inches, stacked):
        step += 1
    return [float(i) for i in places[::step]], labels[::step]


def exact_numbers(values: Sequence[float]) -> list[str]:
    """Labels of evenly spaced numbers, with as many digits as needed to be exact."""
    step = min(np.diff(values), default=0.0)
    for digits in range(3, 17):
        labels = [number(value, digits) for value in values]
        written = [float(text.replace(",", "").replace("−", "-")) for text in labels]
        if np.allclose(written, values, rtol=1e-12, atol=1e-3 * step):
            break
    return labels


def labels_fit(labels: Sequence[str], inches: float, stacked: bool) -> bool:
    """Whether tick labels fit along an axis of this length."""
    if stacked:
        return len(labels) * 2.2 * SMALL / 72.0 <= inches
    return sum(text_width(label, SMALL) + 0.15 for label in labels) <= inches


def number_axis(
    axis: Axis,
    low: float,
    high: float,
    inches: float,
    whole: bool = False,
    names: Sequence[str] = (),
) -> None:
    """Set limits and ticks of a linear axis of this length.

    names: the values of a category, whose positions are the numbers 0, 1, …
    """
    vertical = axis is axis.axes.yaxis
    _set_limits(axis, low, high)
    if names:
        axis.set_ticks(*name_ticks(names, low, high, inches, vertical))
    else:
        axis.set_ticks(*number_ticks(low, high, inches, vertical, whole))


def has_long_tail(values: Array) -> bool:
    """Whether the largest value is so large that a linear axis would hide the others."""
    sizes = np.abs(values[values != 0])
    return len(sizes) > 1 and float(sizes.max()) > _LONG_TAIL * float(np.median(sizes))


def tail_ticks(
    low: float, high: float, inches: float, body: float, stacked: bool = False
) -> tuple[list[float], list[str]]:
    """Positions and labels of round ticks on an axis that is logarithmic beyond `body`."""
    length = np.arcsinh(high / body) - np.arcsinh(low / body)
    ticks: list[float] = []
    powers = 10.0 ** np.arange(np.floor(np.log10(body)), np.ceil(np.log10(high)) + 1)
    for tick in [0.0, *np.outer(powers, [1, 2, 5]).ravel()]:
        far = not ticks or np.arcsinh(tick / body) - np.arcsinh(ticks[-1] / body) > length / 9
        if low <= tick <= high and far:
            ticks.append(float(tick))
    labels = distinct_numbers(*ticks)
    while len(ticks) > 2 and not labels_fit(labels, inches, stacked):
        ticks, labels = ticks[::2], labels[::2]
    return ticks, labels


def tail_axis(axis: Axis, low: float, high: float, inches: float, body: float) -> None:
    """Set limits and ticks of an axis that is linear up to `body` and logarithmic beyond."""
    vertical = axis is axis.axes.yaxis
    set_scale: Any = axis.axes.set_yscale if vertical else axis.axes.set_xscale
    set_scale("asinh", linear_width=body)
    _set_limits(axis, low, high)
    axis.set_ticks(*tail_ticks(low, high, inches, body, vertical))
    axis.set_ticks([], minor=True)


def _set_limits(axis: Axis, low: float, high: float) -> None:
    set_limits: Any = axis.axes.set_ylim if axis is axis.axes.yaxis else axis.axes.set_xlim
    set_limits(low, high)


# --- Titles and legends --------------------------------------------------------------------------


def top_title(figure: Figure, text: str) -> None:
    """Add a title above the whole figure, left-aligned."""
    figure.suptitle(text, size=TEXT + 1, x=0.01, ha="left")


def left_title(ax: Axes, text: str) -> None:
    """Add a title above the axes, left-aligned."""
    ax.set_title(text, size=TEXT + 1, loc="left")


def legend_below(figure: Figure, handles: Sequence[Artist], columns: int = 2) -> None:
    """Add a legend below the axes, where it hides nothing."""
    figure.legend(
        handles=list(handles),
        loc="outside lower left",
        ncols=columns,
        frameon=False,
        fontsize=SMALL,
        handlelength=1.6,
        columnspacing=1.5,
    )
