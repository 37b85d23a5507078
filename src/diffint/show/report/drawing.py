"""Bars and axis ticks of the report, as percentages, so that they fit any page width."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from ..plots.drawing import has_long_tail, name_ticks, number_ticks, padded, tail_ticks

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Tick:
    """A label below an axis; place: percentage from the left."""

    place: float
    label: str


@dataclass(frozen=True)
class Axis:
    """A horizontal axis: linear, or logarithmic beyond `body`.

    inches: its smallest width, for labels of 8 points. whole: whether ticks are whole numbers.
    names: the values of a category, whose positions are the numbers 0, 1, …
    """

    low: float
    high: float
    inches: float
    body: float | None = None
    whole: bool = False
    names: tuple[str, ...] = ()

    def stretched(self, values: Array) -> Array:
        """Values transformed so that the axis is linear in them."""
        # Halves: the difference of two huge values may overflow.
        return values / 2 if self.body is None else np.arcsinh(values / self.body)

    def place(self, values: Array) -> Array:
        """Positions of values as percentages from the left, of the same shape."""
        low, high = self.stretched(np.array([self.low, self.high]))
        return np.asarray(np.clip(100 * (self.stretched(values) - low) / (high - low), 0, 100))

    @property
    def ticks(self) -> list[Tick]:
        """Ticks at round numbers."""
        if self.names:
            places, labels = name_ticks(self.names, self.low, self.high, self.inches)
        elif self.body is None:
            places, labels = number_ticks(self.low, self.high, self.inches, whole=self.whole)
        else:
            places, labels = tail_ticks(self.low, self.high, self.inches, self.body)
        where = self.place(np.array(places))
        return [Tick(round(float(p), 2), label) for p, label in zip(where, labels, strict=True)]


class Places:
    """Positions and sizes of elements, each a class of the style sheet."""

    def __init__(self) -> None:
        self._classes: dict[str, str] = {}

    def __call__(self, **percentages: float) -> str:
        """The class for properties such as ``left=12.5``, in percent."""
        rule = ";".join(f"{name}:{value}%" for name, value in percentages.items())
        return self._classes.setdefault(rule, f"at-{len(self._classes)}")

    @property
    def css(self) -> Markup:
        """The rules of all classes."""
        return Markup("".join(f".{name}{{{rule}}}\n" for rule, name in self._classes.items()))


def score_axis(values: Array, inches: float) -> Axis:
    """An axis for scores: linear, or logarithmic beyond the median for very large scores."""
    smallest, largest = float(values.min()), float(values.max())
    low, high = padded(smallest, largest, 0.02)
    long = has_long_tail(values)
    if long or smallest < largest / 2:
        low = 0.0  # scores are errors; 0 is the natural start of the axis
    return Axis(low, high, inches, float(np.median(values[values > 0])) if long else None)


def bar_path(left: Array, right: Array, height: Array) -> str:
    """Bars (bars,) on the lower edge of a square of size 100, as one SVG path."""
    bars = zip(left.tolist(), right.tolist(), height.tolist(), strict=True)
    return "".join(
        f"M{_short(a)} 100V{_short(100 - h)}H{_short(b)}V100Z" for a, b, h in bars if h > 0
    )


def _short(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
