"""Positions of the report's threshold slider: how many rows each would flag."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...core.flag_rule import FlagRule
from ...core.formatting import counted, number, percent
from ...decide.selection import selection_bounds

Array = NDArray[np.float64]

CONFIDENCE = 0.95  # of the bounds on false alerts, at all thresholds together
# False-positive rates to choose from, the strictest first.
_RATES = np.outer([0.001, 0.01, 0.1], [1, 1.5, 2, 3, 5, 7]).ravel().round(4)
RATES = tuple(_RATES[_RATES <= 0.2].tolist())


@dataclass(frozen=True)
class Position:
    """One threshold, with the share of normal rows that it flags at most.

    n_flagged: number of rows above it, of n_rows; held_out: whether the rate holds for new rows;
    bound: the largest share of false alerts among the flagged rows, None if it is not known;
    proven: whether that is proven.
    """

    rate: float
    threshold: float
    n_flagged: int
    n_rows: int
    held_out: bool
    bound: float | None = None
    proven: bool = True

    @property
    def rate_text(self) -> str:
        """``1 %``"""
        return f"{number(100 * self.rate, 2)} %"

    @property
    def text(self) -> str:
        """``Of 1,000 rows, 32 are flagged; about 10 normal rows would be flagged by chance.``"""
        chance = rows_by_chance(self.rate, self.n_rows)
        if not self.held_out:
            is_few = chance.startswith("fewer")
            chance = "an unknown number of normal rows" if is_few else f"at least {chance}"
        verb = "is" if self.n_flagged == 1 else "are"
        return (
            f"Of {counted(self.n_rows, 'row')}, {self.n_flagged:,} {verb} flagged; {chance} would "
            f"be flagged by chance.{self._false_alerts}"
        )

    @property
    def _false_alerts(self) -> str:
        """`` With 95 % confidence, at most 12 % of the flagged rows are false alerts.``"""
        if self.bound is None or self.n_flagged == 0:
            return ""
        is_one = self.n_flagged == 1
        if self.bound >= 1.0:
            return f" {'It' if is_one else 'All flagged rows'} may be {_false(is_one)}."
        sure = f"With {percent(CONFIDENCE)} confidence"
        sure += "" if self.proven else " (measured, not proven)"
        if self.bound == 0.0:
            return (
                f" {sure}, {'it' if is_one else 'none of them'} is {'not ' * is_one}a false alert."
            )
        return f" {sure}, at most {percent(self.bound)} of the flagged rows are false alerts."


def rows_by_chance(rate: float, n_rows: int) -> str:
    """``about 10 normal rows``: how many of so many rows would be flagged if all were normal"""
    if rate * n_rows < 0.95:
        return "fewer than 1 normal row"
    return f"about {counted(round(rate * n_rows), 'normal row')}"


def _false(is_one: bool) -> str:
    return "a false alert" if is_one else "false alerts"


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


def slider(rule: FlagRule, scores: Array) -> Slider:
    """Thresholds at round rates that the calibration can tell apart, and the report's own.

    scores: (rows,) of all rows. A rate below the smallest possible p-value counts as that. With
    segments there is no other threshold than the report's own, relative to which rows are drawn.
    """
    calibration, threshold, sure = rule.calibration, rule.cut, rule.confidence
    counts = np.ones(len(scores), dtype=bool) if rule.accepted is None else ~rule.accepted
    p_values, bounds = rule.p_values(scores), _bounds(rule, scores)
    smallest = float(calibration.p_values(np.array([np.inf]), sure)[0])
    own = max(rule.rate, smallest)

    def position(cut: float, rate: float, flagged: NDArray[np.bool_]) -> Position:
        """bounds are equal where p-values are, and hold for all p-values up to theirs."""
        bound = None
        if bounds is not None and flagged.any():
            bound = float(bounds[flagged][np.argmax(p_values[flagged])])
        n_flagged, held_out = int(flagged.sum()), calibration.held_out
        return Position(rate, cut, n_flagged, len(scores), held_out, bound, rule.proven)

    if not isinstance(threshold, float):
        return Slider((position(1.0, own, rule.flagged(scores)),), 0)
    chosen: dict[float, float] = {}  # the smallest rate of each threshold
    for other in RATES:
        if other >= smallest:
            chosen.setdefault(calibration.threshold(other, sure), other)
    chosen = {cut: other for cut, other in chosen.items() if (cut < threshold) == (other > own)}
    chosen.pop(threshold, None)
    cuts = sorted([*chosen.items(), (threshold, own)], reverse=True)
    positions = [position(cut, rate, (scores > cut) & counts) for cut, rate in cuts]
    return Slider(tuple(positions), cuts.index((threshold, own)))


def _bounds(rule: FlagRule, scores: Array) -> Array | None:
    """The largest share of false alerts at every threshold; None if normal rows are not known."""
    if not rule.calibration.held_out or rule.calibration.grouped or not len(scores):
        return None
    return selection_bounds(rule, scores, CONFIDENCE)
