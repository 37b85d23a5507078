"""The definition of the evidence that rows have moved: bets on conformal p-values.

A statistic gives each row a bin, or none (−1). With n earlier rows, reference rows included, of
which `below` are in lower bins and `same` in the row's bin, its p-value is

    p = (below + u · (same + 1)) / (n + 1),   u uniform on [0, 1).

If the rows are exchangeable, these p-values are independent and uniform, for any n ≥ 0 and any
bins that were fixed before (Vovk, Nouretdinov and Gammerman 2003). A bet multiplies its money by
f(p), where f ≥ 0 has the integral 1 and may depend on earlier rows. Each bet begins at every row t
with a share π(t) of its money, so that it also finds changes that begin late; the rest is put
aside. So the money of a statistic is a martingale that begins with 1, and it ever reaches 1/α with
a probability of at most α (Ville).

Written for clarity; `engine/cpu/drift_evidence.py` computes the same in one pass.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FIRST_SHARE = 0.2  # of the money begins at the first row: rows may have moved before
HORIZON = 1_000.0  # rows over which about a tenth of the rest begins
SLOPES = np.array([-0.8, -0.3, 0.3, 0.8])
TAILS = np.array([[0.01, 8.0], [0.05, 2.5]])  # share of p-values at an end, and their factor
ODDS = np.array([1 / 4, 1 / 1.6, 1.6, 3.0, 12.0])


class Bets(NamedTuple):
    """The bets of all statistics.

    slopes: f(p) = 1 + slope · (2p − 1), of statistics with ordered bins, and tails: (tails, 2) a
    factor for p-values at the low end, or the high end. odds: of statistics with two bins, how many
    times as large the odds of the lower bin have become.
    """

    slopes: Array
    tails: Array
    odds: Array

    @property
    def most(self) -> int:
        """The largest number of bets of a statistic."""
        return max(len(self.slopes) + 2 * len(self.tails), len(self.odds))


BETS = Bets(SLOPES, TAILS, ODDS)


def uniforms(seed: int, counters: NDArray[np.uint64]) -> Array:
    """Numbers in [0, 1), the same for the same counter (SplitMix64). → the same shape"""
    z = np.uint64(seed) + (counters + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(((z ^ (z >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53)


def put_aside(n_rows: int) -> float:
    """The share of the money that has not been bet after so many rows."""
    return (1.0 - FIRST_SHARE) * math.log(HORIZON) / math.log(HORIZON + n_rows)


def p_value(counts: NDArray[np.int64], place: int, u: float) -> float:
    """The p-value of a row in the bin `place`. counts: (bins,) of earlier rows"""
    below, same, n = counts[:place].sum(), counts[place], counts.sum()
    return float((below + u * (same + 1)) / (n + 1))


def factors(p: float, counts: NDArray[np.int64], is_binary: bool, bets: Bets = BETS) -> Array:
    """What each bet is multiplied by. counts: (bins,) of earlier rows → (bets of this kind,)"""
    if is_binary:
        share = (counts[0] + 1) / (counts.sum() + 1)  # p is below it if the row is in bin 0
        return np.asarray(np.where(p < share, bets.odds, 1.0) / (1 - share + bets.odds * share))
    found = [1.0 + slope * (2.0 * p - 1.0) for slope in bets.slopes]
    for distance in (p, 1.0 - p):
        for share, factor in bets.tails:
            outside = (1.0 - share * factor) / (1.0 - share)
            found.append(factor if distance < share else outside)
    return np.array(found)


def log_evidence(
    bins: NDArray[np.int64], counts: NDArray[np.int64], is_binary: bool, u: Array
) -> Array:
    """The logarithm of a statistic's money after each row. → (rows,)

    bins: (rows,) the row's bin, −1 for none; counts: (bins,) of the reference rows; u: (rows,)
    uniform numbers to break ties.
    """
    counts = np.array(counts)
    n_bets = len(ODDS) if is_binary else len(SLOPES) + 2 * len(TAILS)
    starts = [math.log(FIRST_SHARE / n_bets)]  # of the money that begins at each row
    totals = [np.zeros(n_bets)]  # logarithms of what each of them has become
    evidence, seen = np.zeros(len(bins)), 0
    for i, place in enumerate(bins):
        if place >= 0:
            p = p_value(counts, place, u[i])
            starts.append(math.log((put_aside(seen) - put_aside(seen + 1)) / n_bets))
            totals.append(np.zeros(n_bets))
            grown = np.log(factors(p, counts, is_binary))
            totals = [total + grown for total in totals]
            counts[place] += 1
            seen += 1
        money = [start + total for start, total in zip(starts, totals, strict=True)]
        evidence[i] = np.logaddexp.reduce([math.log(put_aside(seen)), *np.concatenate(money)])
    return evidence
