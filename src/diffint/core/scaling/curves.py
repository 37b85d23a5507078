"""Curves: piecewise linear maps of one feature, for distributions with long tails.

A linear map gives most of the scaled range of such a feature to its few extreme values. The curve
goes through the feature's quantiles instead: between the ends of the range, a scaled value is
proportional to the normal quantile of the value's rank.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

N_KNOTS = 32  # between the ends of the range
MOST_KNOTS = N_KNOTS + 4  # with one beyond each end, and one on each side of a dominating value
LIMIT = 3.0  # the largest scaled value: one width of the range beyond its end

# A feature is curved if its range is more than this many times as wide as that of the inner cells.
_LONG_TAIL = 1.3
_INNER_TAIL = 0.01  # share of the cells at each end that are not inner ones
# The range ends at this share of the cells, or up to its own width farther out if cells lie there.
# At least one cell is left out at each end, so that no single cell decides how wide the range is.
_END_TAIL = 0.001
_FEWEST_CELLS = 20
_LEAST_STRENGTH, _SMALLEST_SHARE = 0.1, 1e-4  # of categories
_NARROWEST = 1e-290  # distance of two knots; the map would overflow between closer ones


class Curve(NamedTuple):
    """Knots of one feature, (knots,) each, strictly increasing.

    values: in original units; scaled: from −LIMIT to LIMIT.
    """

    values: Vector
    scaled: Vector

    def scale(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values of any shape in scaled units, between ±LIMIT; NaN stays NaN.

        Never decreasing, also in floating point: within a segment every operation keeps the order,
        and the result does not leave the segment.
        """
        i = np.clip(np.searchsorted(self.values, x, side="right") - 1, 0, len(self.values) - 2)
        low, high = self.scaled[i], self.scaled[i + 1]
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(np.clip(low + (x - self.values[i]) / self.runs[i], low, high))

    def to_original(self, scaled: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scaled values of any shape in original units; beyond ±LIMIT along the last segments."""
        i = np.clip(np.searchsorted(self.scaled, scaled, side="right") - 1, 0, len(self.scaled) - 2)
        return np.asarray(self.values[i] + (scaled - self.scaled[i]) * self.runs[i])

    @property
    def runs(self) -> Vector:
        """(knots − 1,) original units per scaled unit, after each knot but the last."""
        return np.asarray(np.diff(self.values) / np.diff(self.scaled))

    def is_possible(self, largest: float) -> bool:
        """Whether `fit_curve` can produce these knots for values up to `largest`."""
        return bool(
            3 <= len(self.values) == len(self.scaled) <= MOST_KNOTS
            and (np.abs(self.values) <= 10 * largest).all()
            and (np.diff(self.values) >= _NARROWEST).all()
            and (np.diff(self.scaled) > 0).all()
            and self.scaled[0] == -LIMIT
            and self.scaled[-1] == LIMIT
        )


def has_long_tails(column: Vector) -> bool:
    """Whether a feature is curved. column: (rows,), no NaN"""
    n = len(column)
    if n < _FEWEST_CELLS:
        return False
    tail = max(1, int(_INNER_TAIL * n))
    ends = (0, tail, n - 1 - tail, n - 1)
    lowest, low, high, highest = np.partition(column, ends)[list(ends)]
    return bool(highest - lowest > _LONG_TAIL * (high - low))


def fit_curve(column: Vector) -> Curve | None:
    """The curve of a feature, None if there is none. column: (rows,), no NaN, not all equal"""
    from scipy.special import ndtri  # not needed to read a configuration, and slow to import

    cells, n = np.sort(column), len(column)
    if n < _FEWEST_CELLS:
        return None
    tail = max(1, int(_END_TAIL * n))
    low, high = cells[tail], cells[n - 1 - tail]
    one_value = low == high  # but for the tails
    reach = np.inf if one_value else high - low
    cells = np.clip(cells, max(cells[0], low - reach), min(cells[-1], high + reach))

    values, counts = np.unique(cells, return_counts=True)
    quantiles = ndtri((np.cumsum(counts) - counts / 2) / n)
    if len(values) > N_KNOTS:
        wanted = np.linspace(quantiles[0], quantiles[-1], N_KNOTS)
        kept = np.unique(np.searchsorted(quantiles, wanted).clip(0, len(values) - 1))
        values, quantiles = values[kept], quantiles[kept]
    half = (quantiles[-1] - quantiles[0]) / 2
    scaled = (quantiles - quantiles[0]) / half - 1.0
    scaled[-1] = 1.0
    if one_value:
        values, scaled = _apart(values, scaled, low)

    # Beyond the range, one standard deviation of the cells counts as much as one of the normal
    # distribution.
    unit = np.abs(cells).max()
    beyond = (LIMIT - 1.0) * half * np.std(cells / unit) * unit
    first = min(values[0] - beyond, np.nextafter(values[0], -np.inf))
    last = max(values[-1] + beyond, np.nextafter(values[-1], np.inf))
    curve = Curve(np.hstack([first, values, last]), np.hstack([-LIMIT, scaled, LIMIT]))
    return curve if (np.diff(curve.values) >= _NARROWEST).all() else None


def category_curve(share: Vector, strength: float) -> Curve | None:
    """The positions of the codes 0, 1, … of a category; None for fewer than two values.

    share: (values,) of the rows; strength: how much the other columns depend on the category, from
    0 to 1. Every value takes as much of the range from −strength to strength as it has rows. The
    code after the last, of a value that training rows do not have, is as far away as possible.
    """
    if len(share) < 2:
        return None
    share = np.maximum(share, _SMALLEST_SHARE)
    share = share / share.sum()
    middle = np.cumsum(share) - share / 2
    scaled = np.clip(strength, _LEAST_STRENGTH, 1.0) * (2 * middle - 1.0)
    codes = np.unique(np.linspace(0, len(share) - 1, min(len(share), N_KNOTS)).round().astype(int))
    values = np.hstack([-1, codes, len(share)]).astype(np.float64)
    return Curve(values, np.hstack([-LIMIT, scaled[codes], LIMIT]))


def _apart(values: Vector, scaled: Vector, value: float) -> tuple[Vector, Vector]:
    """Knots that separate a value that nearly all cells have: others are at least half way away.

    How far apart the few other cells are says little about how far apart others would be.
    """
    gap = max(abs(value) * 2.0**-50, 2 * _NARROWEST)
    for side in (-1, 1):
        place = int(np.searchsorted(values, value))
        near = place + side
        if 0 <= near < len(values) and abs(values[near] - value) > 2 * gap:
            middle = (scaled[place] + scaled[near]) / 2
            at = place if side < 0 else place + 1
            values = np.insert(values, at, value + side * gap)
            scaled = np.insert(scaled, at, middle)
    return values, scaled
