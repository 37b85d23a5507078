"""P-values that hold given the calibration rows, for decisions about many new rows."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainccinv

_DRAWS = 10_000
_SEED = 20_230_131
# Ranks are checked one by one up to the first number, then in steps of this share.
_EACH_RANK, _STEP = 64, 0.04

# Of larger confidences, these draws say nothing.
LARGEST_CONFIDENCE = 0.9999


@lru_cache(maxsize=8)
def p_value_band(n_rows: int, confidence: float) -> NDArray[np.float64]:
    """The p-value of every rank among independent calibration scores. → (n_rows + 1,) ascending

    A new score has rank j if j − 1 calibration scores are at least as high. With probability
    `confidence` over the calibration rows, at once for all j: of new normal rows, at most the
    share ``band[j - 1]`` has rank j or a smaller one. Given the calibration rows, p-values of
    independent new rows are then independent, and those of normal rows are not too small
    (Bates, Candès, Lei, Romano and Sesia 2023, Testing for outliers with conformal p-values).
    An ordinary conformal p-value, j / (n_rows + 1), holds on average over calibration rows only.

    The share of new normal rows above the j-th largest calibration score is a Beta(j, n + 1 − j)
    variable at most; the band is its quantile at 1 − λ / j. λ comes from simulated calibration
    rows, as an order statistic that counts the real ones as one more draw. With the same λ for
    all j the smallest p-value would be 6.4 / n instead of 3.5 / n (confidence 0.95, 3,000 rows),
    with the bounds of Simes and of Dvoretzky, Kiefer and Wolfowitz 6.0 / n and 75 / n; and the
    smallest p-values decide what can be found. Between checked ranks, that of the next one is used.
    """
    ranks = _checked_ranks(n_rows)
    shares = _simulated_shares(n_rows, ranks)
    allowed = int((1.0 - confidence) * (_DRAWS + 1)) - 1  # draws outside the band
    lower, upper = np.log(1e-9), 0.0  # of log λ
    while upper - lower > 1e-3:
        middle = (lower + upper) / 2
        outside = (shares > _quantiles(n_rows, ranks, np.exp(middle))).any(axis=1)
        if np.count_nonzero(outside) <= allowed:
            lower = middle
        else:
            upper = middle
    checked = np.maximum.accumulate(_quantiles(n_rows, ranks, np.exp(lower)))
    band = np.append(checked[np.searchsorted(ranks, np.arange(1, n_rows + 1))], 1.0)
    band.flags.writeable = False  # shared by all who ask for it
    return band


def _checked_ranks(n_rows: int) -> NDArray[np.int64]:
    """The ranks at which the band is computed, ascending, with the last one."""
    n_steps = int(np.log(max(n_rows / _EACH_RANK, 1.0)) / np.log1p(_STEP)) + 1
    larger = _EACH_RANK * (1.0 + _STEP) ** np.arange(n_steps)
    ranks = np.concatenate([np.arange(1, _EACH_RANK), larger.astype(np.int64), [n_rows]])
    return np.unique(ranks[ranks <= n_rows])


def _simulated_shares(n_rows: int, ranks: NDArray[np.int64]) -> NDArray[np.float64]:
    """Shares of new rows above the calibration scores of these ranks. → (draws, ranks)

    They are order statistics of uniform variables: sums of exponential variables, divided by the
    sum of all n + 1 of them.
    """
    counts = np.diff(np.concatenate([[0], ranks, [n_rows + 1]]))
    generator = np.random.default_rng(_SEED)
    sums = np.cumsum(generator.standard_gamma(counts, size=(_DRAWS, len(counts))), axis=1)
    return np.asarray(sums[:, :-1] / sums[:, -1:])


def _quantiles(n_rows: int, ranks: NDArray[np.int64], level: float) -> NDArray[np.float64]:
    return np.asarray(betainccinv(ranks, n_rows + 1 - ranks, level / ranks))
