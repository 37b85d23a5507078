"""Positions of the report's threshold slider: how many rows each would flag."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...core.calibration import Calibration
from ...core.formatting import counted, number

Array = NDArray[np.float64]

# False-positive rates to choose from, the strictest first.
_RATES = np.outer([0.001, 0.01, 0.1], [1, 1.5, 2, 3, 5, 7]).ravel().round(4)
RATES = tuple(_RATES[_RATES <= 0.2].tolist())


@dataclass(frozen=True)
class Position:
    """One threshold, with the share of normal rows that it flags at most.

    n_flagged: number of rows above it, of n_rows; held_out: whether the rate holds for new rows.
    """

    rate: float
    threshold: float
    n_flagged: int
    n_rows: int
    held_out: bool

    @property
    def rate_text(self) -> str:
        """``1 %``"""
        return f"{number(100 * self.rate, 2)} %"

    @property
    def text(self) -> str:
        """``Of 1,000 rows, 32 are flagged; about 10 normal rows would be flagged by chance.``"""
        by_chance = self.rate * self.n_rows
        chance = f"about {counted(round(by_chance), 'normal row')}"
        if by_chance < 0.95:
            chance = "fewer than 1 normal row"
        if not self.held_out:
            chance = f"at least {chance}"
        verb = "is" if self.n_flagged == 1 else "are"
        return (
            f"Of {counted(self.n_rows, 'row')}, {self.n_flagged:,} {verb} flagged; {chance} would "
            "be flagged by chance."
        )


@dataclass(frozen=True)
class Slider:
    """The positions, the strictest first. own: place of the threshold that the report is about."""

    positions: tuple[Position, ...]
    own: int

    def levels(self, scores: Array) -> list[int]:
        """For each row (rows,) the strictest position that shows it: one that flags it.

        At the report's own threshold all rows are shown.
        """
        thresholds = np.array([position.threshold for position in self.positions])
        n_stricter = (scores[:, None] <= thresholds).sum(axis=1)  # positions that do not flag it
        return [int(level) for level in np.minimum(n_stricter, self.own)]


def slider(calibration: Calibration, threshold: float, rate: float, scores: Array) -> Slider:
    """Thresholds at round rates that the calibration can tell apart, and the report's own.

    scores: (rows,) of all rows. A rate below the smallest possible p-value counts as that.
    """
    smallest = float(calibration.p_values(np.array([np.inf]))[0])
    own = max(rate, smallest)
    chosen: dict[float, float] = {}  # the smallest rate of each threshold
    for other in RATES:
        if other >= smallest:
            chosen.setdefault(calibration.threshold(other), other)
    chosen = {cut: other for cut, other in chosen.items() if (cut < threshold) == (other > own)}
    chosen.pop(threshold, None)
    cuts = sorted([*chosen.items(), (threshold, own)], reverse=True)
    positions = []
    for cut, each in cuts:
        n_flagged = int((scores > cut).sum())
        positions.append(Position(each, cut, n_flagged, len(scores), calibration.held_out))
    return Slider(tuple(positions), cuts.index((threshold, own)))
