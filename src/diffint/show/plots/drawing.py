"""What the figures share: colours, text that fits, and axes in numbers as people write them."""

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

from ...core.formatting import distinct_numbers, number

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

Array = NDArray[np.float64]

# Okabe and Ito's colours, which colour-blind readers can tell apart.
NORMAL, ANOMALY, BOX, ACCENT = "#0072B2", "#D55E00", "#009E73", "#E69F00"
INK, QUIET, FAINT = "#333333", "#8C8C8C", "#BFBFBF"

WIDTH, HEIGHT = 7.0, 4.5  # inches
TEXT, SMALL = 9.0, 8.0  # points
MOST_POINTS = 5_000  # more of them hide each other
_LONG_TAIL = 8.0  # the largest value, in medians, from which on a plain axis hides the rest


class Picture(Figure):
    """A figure that notebooks show without the help of pyplot."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png")
        return buffer.getvalue()


def new_figure(height: float = HEIGHT, width: float = WIDTH) -> Figure:
    """An empty figure that makes room for its labels and that pyplot knows nothing of; inches."""
    layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.06)
    return Picture(figsize=(width, height), dpi=100, layout=layout)


# --- Text ----------------------------------------------------------------------------------------


def text_width(text: str, size: float = TEXT) -> float:
    """In inches."""
    font = FontProperties(size=size)
    width, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    return float(width) / 72.0


def fitted(text: str, inches: float, size: float = TEXT) -> str:
    """A name on one line, shortened in the middle where it is wider than that.

    Both ends are kept because names in tables differ at either. Dollar signs are escaped, so that
    they are not read as mathematics.
    """
    text = " ".join(text.split())
    if text_width(text, size) > inches:
        fewest, most = 2, len(text)
        while fewest < most:
            kept = (fewest + most + 1) // 2
            if text_width(_cut(text, kept), size) <= inches:
                fewest = kept
            else:
                most = kept - 1
        text = _cut(text, fewest)
    return text.replace("$", r"\$")


def _cut(text: str, kept: int) -> str:
    head = (kept + 1) // 2
    return f"{text[:head].rstrip()}…{text[len(text) - (kept - head) :].lstrip()}"


# --- Axes ----------------------------------------------------------------------------------------


def plain(ax: Axes, *hidden: str) -> None:
    """The quiet look of all axes; `hidden` names further spines to leave out."""
    ax.spines[["top", "right", *hidden]].set_visible(False)
    for spine in ax.spines.values():
        spine.set_color(QUIET)
    ax.tick_params(labelsize=SMALL, color=QUIET, labelcolor=INK, length=3)
    ax.set_axisbelow(True)


def padded(low: float, high: float, share: float = 0.05) -> tuple[float, float]:
    """Limits a little beyond both ends, and apart where these are one."""
    # Half of each first: the difference of two huge values may overflow.
    pad = 2 * share * (high / 2 - low / 2)
    if pad == 0 or not np.isfinite(low + pad):
        pad = max(abs(low), abs(high)) * share or 1.0
    return low - pad, high + pad


def number_ticks(
    low: float, high: float, inches: float, stacked: bool = False, whole: bool = False
) -> tuple[list[float], list[str]]:
    """Round places between two limits, with as many labels as an axis of that length has room for.

    stacked: whether labels stand above each other, as on a vertical axis.
    whole: whether only whole numbers are places.
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


def exact_numbers(values: Sequence[float]) -> list[str]:
    """Evenly spaced numbers as people write them, with all the digits that it takes."""
    step = min(np.diff(values), default=0.0)
    for digits in range(3, 17):
        labels = [number(value, digits) for value in values]
        written = [float(text.replace(",", "").replace("−", "-")) for text in labels]
        if np.allclose(written, values, rtol=1e-12, atol=1e-3 * step):
            break
    return labels


def labels_fit(labels: Sequence[str], inches: float, stacked: bool) -> bool:
    """Whether tick labels have room along an axis of that length."""
    if stacked:
        return len(labels) * 2.2 * SMALL / 72.0 <= inches
    return sum(text_width(label, SMALL) + 0.15 for label in labels) <= inches


def number_axis(axis: Axis, low: float, high: float, inches: float, whole: bool = False) -> None:
    """Limits and labels of a plain axis of that length."""
    vertical = axis is axis.axes.yaxis
    _set_limits(axis, low, high)
    axis.set_ticks(*number_ticks(low, high, inches, vertical, whole))


def has_long_tail(values: Array) -> bool:
    """Whether a plain axis would hide most of these values in its first part."""
    sizes = np.abs(values[values != 0])
    return len(sizes) > 1 and float(sizes.max()) > _LONG_TAIL * float(np.median(sizes))


def tail_ticks(
    low: float, high: float, inches: float, body: float, stacked: bool = False
) -> tuple[list[float], list[str]]:
    """Round places on an axis that is plain up to `body` and logarithmic beyond."""
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
    """Limits and labels of an axis that is plain up to `body` and logarithmic beyond."""
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
    """Above everything, from the left edge."""
    figure.suptitle(text, size=TEXT + 1, x=0.01, ha="left")


def left_title(ax: Axes, text: str) -> None:
    """Above the axes, from their left end."""
    ax.set_title(text, size=TEXT + 1, loc="left")


def legend_below(figure: Figure, handles: list[Artist], columns: int = 2) -> None:
    """Below everything, where it hides nothing."""
    figure.legend(
        handles=handles,
        loc="outside lower left",
        ncols=columns,
        frameon=False,
        fontsize=SMALL,
        handlelength=1.6,
        columnspacing=1.5,
    )
