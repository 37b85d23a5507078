"""Which of many means differ between two samples of rows, with an error rate for all together.

Westfall and Young's maxT: the rows are pooled and divided at random many times. If the rows are
exchangeable, the largest statistic of the true division is one of equals, which makes its p-value
exact; and the same comparison gives every single mean a p-value that counts all others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_PERMUTATIONS, _MOST_PERMUTATIONS = 999, 9_999
_AT_ONCE = 333
_FEW = 0.01  # share of rows that may be anomalies
_ROUNDING = 1e-4  # relative error of a sum in float32


@dataclass(frozen=True, eq=False)
class MaxTest:
    """statistics: (columns,) weighted differences of means in standard errors, with their signs.

    largest: (permutations,) the largest absolute statistic of each, ascending; bounds: (columns,)
    bounds on the p-values of all columns together, that need no permutations.
    """

    statistics: Array
    largest: Array
    bounds: Array

    def p_values(self, statistics: Array, bounds: Array) -> Array:
        """p-values of absolute statistics, counting all columns. (k,), (k,) → (k,)"""
        limit = statistics * (1.0 - _ROUNDING)
        n_above = len(self.largest) - np.searchsorted(self.largest, limit, side="left")
        p = (1.0 + n_above) / (1.0 + len(self.largest))
        # Only where no permutation is as extreme: an event of which permutations say no more.
        return np.where(n_above == 0, np.minimum(p, bounds), p)

    def critical(self, level: float) -> float:
        """The statistic from which on p ≤ level by the permutations; infinite if there is none."""
        n_above = int(level * (1.0 + len(self.largest)) * (1.0 + 1e-12)) - 1
        if n_above < 0:
            return np.inf
        return float(self.largest[len(self.largest) - 1 - n_above])


def compare_means(
    columns: NDArray[np.float32],
    n_first: int,
    weights: Array,
    level: float,
    rng: np.random.Generator,
) -> MaxTest:
    """Compare the first rows with the others. columns: (rows, columns)

    weights: (columns,) factors of the statistics, such that many columns of one kind do not hide
    those of another; level: the p-value that matters. Permutations end when the smallest p-value
    must be above it.
    """
    n_rows, width = columns.shape
    n_second = n_rows - n_first
    fewer = min(n_first, n_second)
    centred = columns - columns.mean(axis=0, dtype=np.float64).astype(np.float32)
    variance = (centred**2).mean(axis=0, dtype=np.float64)
    furthest = np.abs(centred).max(axis=0, initial=0.0).astype(np.float64)
    # With the second term no single row of the smaller sample makes a statistic above 1, and a few
    # rows with a value that no other row has do not make a large one.
    deviation = np.sqrt(variance + furthest**2 * max(1.0 / fewer, _FEW))
    varies = variance > 1e-12
    error = deviation / np.sqrt(1.0 / n_first + 1.0 / n_second)
    factor = weights / np.where(varies, error, np.inf)
    scaled = centred * factor.astype(np.float32)
    statistics = scaled[n_first:].sum(axis=0, dtype=np.float64)
    observed = float(np.abs(statistics).max(initial=0.0)) * (1.0 - _ROUNDING)
    n_permutations = int(np.clip(np.ceil(2.0 / level), _PERMUTATIONS, _MOST_PERMUTATIONS))
    largest: list[Array] = []
    n_above = done = 0
    most_above = max(level * (n_permutations + 1) * (1 + 1e-12) - 1, 0)
    while done < n_permutations and n_above <= most_above:
        count = min(_AT_ONCE, n_permutations - done)
        sums = _random_subsets(count, n_rows, fewer, rng) @ scaled
        found = np.abs(sums).max(axis=1, initial=0.0).astype(np.float64)
        largest.append(found)
        n_above += int((found >= observed).sum())
        done += count
    of_fewer = centred[:n_first] if n_first == fewer else centred[n_first:]
    gap = np.abs(of_fewer.mean(axis=0, dtype=np.float64))
    bounds = _bernstein(gap, variance, furthest, fewer, width)
    return MaxTest(statistics, np.sort(np.concatenate(largest)), np.where(varies, bounds, 1.0))


def equal_chances(families: NDArray[np.bool_], level: float) -> Array:
    """Weights of columns such that two families have about the same chance of a false discovery.

    families: (columns,) which of the two each column belongs to
    """
    from scipy.special import ndtri

    n_second = int(families.sum())
    if n_second in (0, len(families)):
        return np.ones(len(families))
    # Where a normal variable would have to be for a level of half, with a union bound.
    ends = [-ndtri(level / (4.0 * n)) for n in (len(families) - n_second, n_second)]
    return np.asarray(min(ends) / np.where(families, ends[1], ends[0]))


def _random_subsets(
    count: int, n_rows: int, size: int, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Subsets of this size, as rows of zeros and ones. → (count, rows)"""
    keys = rng.random((count, n_rows), dtype=np.float32)
    chosen = np.argpartition(keys, size - 1, axis=1)[:, :size]
    subsets = np.zeros((count, n_rows), dtype=np.float32)
    np.put_along_axis(subsets, chosen, 1.0, axis=1)
    return subsets


def _bernstein(gap: Array, variance: Array, furthest: Array, size: int, width: int) -> Array:
    """Bounds on the probability that any of `width` means is as far from that of all rows.

    Bernstein's inequality; drawing without replacement concentrates no less (Hoeffding 1963).
    gap, variance, furthest: (columns,)
    """
    scale = 2.0 * variance + 2.0 / 3.0 * furthest * gap
    exponent = size * gap**2 / np.where(scale > 0, scale, 1.0)
    return np.asarray(np.minimum(2.0 * width * np.exp(-np.minimum(exponent, 700.0)), 1.0))
