"""What the drift monitor is compared with: tests of batches against the stored calibration rows.

Both have a rate of `rate` false alarms over a stream of `n_rows` rows, like the monitor.

- Kolmogorov–Smirnov for every feature (as in Evidently), missing values in front and new
  categories behind all others, with Bonferroni's correction over features and batches.
- The maximum mean discrepancy of alibi-detect's `MMDDrift`: the unbiased MMD² with a Gaussian
  kernel and the median bandwidth of the stored rows, at most 1,000 of them, standardised;
  categories as columns of zeros and ones, missing cells as the mean with such a column beside
  them. It is computed here in NumPy; `benchmarks/drift_streams.py --alibi-detect` compares it with
  that of alibi-detect 0.13.0 (they differ by 1e-6 at most). p-values from its 100 permutations
  cannot reach the level that 1 % over a whole stream needs. So the threshold is what batches
  without drift exceed at this level, by a gamma distribution with the mean, variance and skewness
  of 400 such batches (a Pearson curve, as Gretton et al. 2012 propose). Who watches a stream does
  not have these batches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import kstwo, pearson3, skew

from diffint import DiffInt

Rows = np.ndarray
_MOST_STORED, _UNDRIFTED = 1_000, 400


def batch_level(rate: float, size: int, n_rows: int) -> float:
    """The level of every batch of this size."""
    return rate / float(np.ceil(n_rows / size))


def read(detector: DiffInt, rows: pd.DataFrame) -> Rows:
    """Rows as the detector reads them, categories as codes. → (rows, features)"""
    return np.asarray(detector._read(rows), dtype=np.float64)


class KolmogorovSmirnov:
    """A test of every feature of a batch against the stored rows."""

    def __init__(self, detector: DiffInt, size: int, rate: float, n_rows: int) -> None:
        known = np.nan_to_num(detector.model_.calibration.sample, nan=-1e300)
        self._stored, self._names = np.sort(known, axis=0), detector.model_.feature_names
        level = batch_level(rate, size, n_rows) / known.shape[1]
        self._critical = kstwo.isf(level, round(len(known) * size / (len(known) + size)))

    def __call__(self, batch: Rows) -> tuple[bool, str]:
        """Whether a batch has moved, and the feature that has most."""
        distances = []
        for stored, values in zip(self._stored.T, np.nan_to_num(batch, nan=-1e300).T, strict=True):
            ordered = np.sort(values)
            both = np.concatenate([stored, ordered])
            shares = [np.searchsorted(v, both, "right") / len(v) for v in (stored, ordered)]
            distances.append(np.abs(shares[0] - shares[1]).max())
        return max(distances) >= self._critical, str(self._names[int(np.argmax(distances))])


class MeanDiscrepancy:
    """MMD² of a batch and the stored rows."""

    def __init__(self, detector: DiffInt, size: int, rate: float, n_rows: int,
                 draw: Callable[[int], Rows]) -> None:  # fmt: skip
        """draw: rows without drift, as many as asked for"""
        model = detector.model_
        known = model.calibration.sample[:_MOST_STORED]
        self._n_values = {j: n for j, n in model.kinds.n_values.items() if j in model.categories}
        self._mean, self._sd = np.nanmean(known, axis=0), np.nanstd(known, axis=0)
        self._sd[~(self._sd > 0)] = 1.0
        self.stored = self.encoded(known)
        distances = _squares(self.stored, self.stored)
        n = len(distances)
        middle = n + (n * n - n) // 2 - 1  # as in alibi-detect
        self._median = float(np.partition(distances.ravel(), middle)[middle])
        kernel = np.exp(-distances / self._median)
        self._within = float((kernel.sum() - np.trace(kernel)) / (n * (n - 1)))
        values = [self.value(self.encoded(draw(size))) for _ in range(_UNDRIFTED)]
        level = batch_level(rate, size, n_rows)
        self._critical = pearson3.isf(level, skew(values), np.mean(values), np.std(values))

    def encoded(self, rows: Rows) -> Rows:
        """Rows as MMD sees them. (rows, features) → (rows, columns)"""
        missing = np.isnan(rows)
        parts = []
        for j in range(rows.shape[1]):
            if j in self._n_values:
                codes = np.minimum(rows[:, j], self._n_values[j])
                parts.append(codes[:, np.newaxis] == np.arange(self._n_values[j] + 1))
            else:
                scaled = np.where(missing[:, j], 0.0, (rows[:, j] - self._mean[j]) / self._sd[j])
                parts.append(scaled[:, np.newaxis])
        return np.concatenate([*parts, missing], axis=1).astype(np.float32)

    def value(self, batch: Rows) -> float:
        """MMD² of encoded rows."""
        n = len(batch)
        own = np.exp(-_squares(batch, batch) / self._median)
        other = np.exp(-_squares(batch, self.stored) / self._median)
        within = float((own.sum() - np.trace(own)) / (n * (n - 1)))
        return self._within + within - 2.0 * float(other.mean())

    def __call__(self, batch: Rows) -> tuple[bool, str]:
        """Whether a batch has moved; it names no feature."""
        return bool(self.value(self.encoded(batch)) >= self._critical), ""


def _squares(a: Rows, b: Rows) -> Rows:
    """Squared distances of rows. (n, columns), (m, columns) → (n, m)"""
    lengths = (a * a).sum(axis=1)[:, np.newaxis] + (b * b).sum(axis=1)
    return np.asarray(np.maximum(lengths - 2.0 * (a @ b.T), 0.0))


def first_alarm(test: Any, rows: Rows, size: int) -> tuple[int | None, str]:
    """The last row of the first batch that has moved, and the feature named; None without one."""
    for start in range(0, len(rows) - size + 1, size):
        moved, name = test(rows[start : start + size])
        if moved:
            return start + size - 1, name
    return None, ""


def difference_from_alibi_detect(stored: Rows, batch: Rows, value: float) -> float:
    """How far a value of MMD² is from that of alibi-detect."""
    from alibi_detect.cd.pytorch.mmd import MMDDriftTorch  # type: ignore[import-not-found]

    return float(abs(value - MMDDriftTorch(stored, n_permutations=1, device="cpu").score(batch)[1]))
