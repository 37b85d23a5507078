"""How many alerts may be false: upper bounds that hold for every threshold together.

Calibration rows and normal new rows are assumed to be exchangeable. The p-values of r normal rows
then follow a law that depends only on r and on the number n of calibration rows, a Pólya urn: for
ordered uniform numbers U_1 < … < U_n, the number of p-values of at most j / (n + 1) is the number
of r further uniform numbers below U_j. Equal scores only make p-values larger.

An *envelope* for r rows is a number of rows for every level j. With probability `confidence`, no
more normal rows than this have p-values of at most j / (n + 1), at all levels together. Its shape
is that of likelihood-ratio tests at all levels, with more error allowed at low levels, where the
alerts are; its width is simulated.

The number m0 of normal rows among the m new rows is unknown. Envelopes are made for m rows and for
several smaller numbers, none of them anywhere above an envelope for more rows. The envelope for
the next number from m0 upwards holds with probability `confidence`; let it hold. Then no envelope
for more rows is exceeded, and these can be ruled out: in r normal rows, at least r minus the
envelope at j are above level j, but there may not be as many rows. The envelope for the largest
number that is not ruled out is used. Since a single envelope has to hold, no confidence is lost.

Gazin, Blanchard and Roquain, "Transductive conformal inference with adaptive scores", 2024 (the
law); Blanchard, Neuvial and Roquain, "Post hoc confidence bounds on false positives using reference
families", 2020 (from envelopes to bounds); Song, Jin and Candès, "Everywhere valid bounds on false
discovery proportions in conformal inference", 2026 (simulated envelopes of conformal p-values).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InputError

Counts = NDArray[np.int64]

# One less than a round number, so that usual confidences times (draws + 1) are whole numbers.
_DRAWS = 3999
# The seed is fixed, and so is the error of the simulation: an envelope is wider by so many of its
# standard errors.
_CAUTION = 2.0
# The levels that are simulated differ by one, and from twice this number on by one part in so many.
# A finer grid gives no smaller bounds, as more levels need a wider envelope.
_LEVELS_PER_STEP = 12
# At level j, the probability to exceed the envelope is about proportional to j ** -_EMPHASIS.
# Bounds hardly change from 0.5 to 1; 0 treats all levels alike, and bounds are larger.
_EMPHASIS = 0.75
# Levels above this share of all are not simulated: nobody looks at rows with such p-values, and the
# bounds below are smaller without them. There, all further rows count as false alerts.
_HIGHEST_SHARE = 0.25
# More than the rounding errors of an excess.
_ROUNDING = 1e-7


def false_alert_bounds(
    p_values: NDArray[Any], n_calibration: int, confidence: float = 0.95
) -> NDArray[np.float64]:
    """For each row, a bound on the share of normal rows among those with p at most this row's.

    With probability `confidence` or more, over calibration rows and new rows, all these bounds
    hold together. So they hold for any threshold, also for one chosen after looking at the
    p-values and bounds. Normal new rows must be exchangeable with the calibration rows; anomalies
    may have any scores. Nothing is promised for rows in groups, or for scores of training rows.

    p_values: (rows,) conformal p-values (1 + number of calibration scores ≥ s) / (n + 1) of all
        rows that are judged together; some of these rows by themselves have other bounds.
    n_calibration: the number n of calibration scores.
    confidence: above 0 and below 1; above 0.999 every bound is 1.

    → (rows,) from 0 to 1. More rows may have a smaller bound, if those that are added are mostly
    anomalies. The envelope is simulated with a fixed seed, and made wider by two standard errors of
    the simulation.
    """
    p_values = np.asarray(p_values, dtype=np.float64)
    if p_values.ndim != 1 or not ((p_values >= 0) & (p_values <= 1)).all():
        raise InputError("p_values must be one-dimensional, with numbers from 0 to 1")
    _check(n_calibration, confidence)
    n_rows = len(p_values)
    if n_rows == 0:
        return np.empty(0)
    # A level above a p-value is safe, so that it is rounded up, less a rounding error of p itself.
    levels = np.ceil(p_values * (n_calibration + 1) - 1e-6).astype(np.int64)
    levels = np.clip(levels, 1, n_calibration + 1)
    alerts = np.cumsum(np.bincount(levels, minlength=n_calibration + 2))[1:]
    false_alerts = _most_false_alerts(alerts, n_calibration, confidence)
    return np.asarray((false_alerts / np.maximum(alerts, 1))[levels - 1])


def false_alert_envelope(
    n_calibration: int, n_normal: int, confidence: float = 0.95
) -> tuple[Counts, Counts]:
    """Levels j, and how many of `n_normal` normal rows may have p ≤ j / (n_calibration + 1).

    → levels, counts: (levels,) each, ascending; the last level is n_calibration + 1. With
    probability `confidence` or more no count is exceeded. What is true of a level is true of all
    between it and the one before.
    """
    _check(n_calibration, confidence)
    if n_normal < 1:
        raise InputError(f"n_normal={n_normal!r} must be at least 1")
    levels = np.append(_levels(n_calibration), n_calibration + 1)
    return levels, _envelope(n_calibration, (n_normal,), confidence)


def _check(n_calibration: int, confidence: float) -> None:
    if n_calibration < 1:
        raise InputError(f"n_calibration={n_calibration!r} must be at least 1")
    if not 0 < confidence < 1:
        raise InputError(f"confidence={confidence!r} must be above 0 and below 1")


def _most_false_alerts(alerts: Counts, n_calibration: int, confidence: float) -> Counts:
    """alerts: (n + 1,) number of rows at each level 1, …, n + 1 or below → as many bounds."""
    n_rows = int(alerts[-1])
    every_level = np.arange(1, n_calibration + 2)
    next_simulated = np.searchsorted(_levels(n_calibration), every_level)
    numbers = _numbers_of_normal_rows(n_rows)
    for k, fewer in enumerate((*numbers[1:], 0), start=1):
        envelope = _envelope(n_calibration, numbers[:k], confidence)[next_simulated]
        # From a level to a higher one, false alerts grow by no more than alerts do.
        bounds = alerts + np.minimum.accumulate(np.minimum(envelope - alerts, 0))
        if bounds[-1] > fewer:  # this many rows may be normal; lower envelopes may not hold
            break
    return np.asarray(bounds)


def _numbers_of_normal_rows(n_rows: int) -> tuple[int, ...]:
    """The numbers of rows that envelopes are made for, descending: tenths of all, but not zero."""
    tenths = sorted({n_rows * k // 10 for k in range(1, 11)} - {0}, reverse=True)
    return tuple(tenths)


def _levels(n_calibration: int) -> Counts:
    """The levels that are simulated, in steps that grow from one."""
    levels, last = [1], max(int(_HIGHEST_SHARE * (n_calibration + 1)), 1)
    while levels[-1] < last:
        step = max(1, levels[-1] // _LEVELS_PER_STEP)
        levels.append(min(levels[-1] + step, last))
    return np.array(levels, dtype=np.int64)


@lru_cache(maxsize=64)
def _envelope(n_calibration: int, numbers: tuple[int, ...], confidence: float) -> Counts:
    """The envelope for the last of descending `numbers` of rows, nowhere above that for the others.

    → (levels + 1,) the most rows at each of `_levels`, and at last all rows
    """
    n_rows = numbers[-1]
    levels = _levels(n_calibration)
    highest = np.full(len(levels), n_rows)
    if len(numbers) > 1:
        highest = np.minimum(_envelope(n_calibration, numbers[:-1], confidence)[:-1], n_rows)
    excess = np.sort(_simulated_excess(n_calibration, n_rows, levels, highest))
    # The true rows are like one more draw, whose rank among all is any with the same probability.
    error = math.sqrt(confidence * (1.0 - confidence) / (_DRAWS + 1))
    rank = min(math.ceil((confidence + _CAUTION * error) * (_DRAWS + 1)), _DRAWS + 1)
    allowed = np.append(excess, np.inf)[rank - 1] + _ROUNDING
    lowest = np.zeros_like(highest)
    while (lowest < highest).any():  # bisection, at all levels at once
        middle = (lowest + highest + 1) // 2
        inside = _excess(middle, levels, n_calibration, n_rows) <= allowed
        lowest, highest = np.where(inside, middle, lowest), np.where(inside, highest, middle - 1)
    envelope = np.append(lowest, n_rows)
    envelope = np.minimum.accumulate(envelope[::-1])[::-1]  # rows at a level are at all above it
    envelope.flags.writeable = False  # it is cached
    return envelope


def _simulated_excess(
    n_calibration: int, n_rows: int, levels: Counts, highest: Counts
) -> NDArray[np.float64]:
    """Draws of the largest excess of `n_rows` normal rows at any level. → (draws,)

    levels, highest: (levels,); more rows than `highest` at a level are an infinite excess.
    """
    rng = np.random.default_rng((n_calibration, n_rows))
    # Ordered uniform numbers at the levels are sums of gaps, divided by the sum of all gaps.
    steps = np.diff(levels, prepend=0, append=n_calibration + 1)
    gaps = rng.standard_gamma(steps[:, None], size=(len(steps), _DRAWS))
    gaps_from_here = np.cumsum(gaps[::-1], axis=0)[::-1]
    largest = np.full(_DRAWS, -np.inf)
    rows_above = np.full(_DRAWS, n_rows, dtype=np.int64)
    for level, limit, gap, rest in zip(levels, highest, gaps, gaps_from_here, strict=False):
        rows_above = rows_above - rng.binomial(rows_above, gap / rest)
        counts = n_rows - rows_above
        excess = _excess(counts, level, n_calibration, n_rows)
        largest = np.maximum(largest, np.where(counts > limit, np.inf, excess))
    return largest


def _excess(
    counts: Counts, levels: Counts | np.int64, n_calibration: int, n_rows: int
) -> NDArray[np.float64]:
    """By how much counts of rows at levels are larger than expected of normal rows, with weights.

    This is about -log of the probability of so large a count, plus the weight of the level. Take
    rows and calibration rows together, in order of p-value: the count is so large if the first
    `counts` + `levels` - 1 of all are at least `counts` rows. A likelihood ratio compares the first
    with the others; halves correct it for continuity. It grows with the count.
    """
    n_all = n_rows + n_calibration
    rows = np.maximum(counts, 1) - 0.5
    calibration = np.asarray(levels) - 0.5
    of_level = _x_log_x(calibration) + _x_log_x(n_calibration - calibration)
    of_sizes = _x_log_x(n_all) - _x_log_x(n_rows) - _x_log_x(n_calibration)
    of_counts = _x_log_x(rows) + _x_log_x(n_rows - rows)
    of_first = _x_log_x(rows + calibration) + _x_log_x(n_all - rows - calibration)
    log_ratio = of_counts - of_first + (of_level + of_sizes)
    more_than_expected = rows * n_calibration > calibration * n_rows
    weight = _EMPHASIS * np.log((n_calibration + 1) / np.asarray(levels))
    excess = np.where(more_than_expected, log_ratio, -log_ratio) + weight
    return np.where(counts > 0, excess, -np.inf)  # a count of zero is never too large


def _x_log_x(x: Any) -> Any:
    return x * np.log(x)
