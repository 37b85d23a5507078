"""Feature maps into the domain the intervals live in, and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .config import Scaling
from .immutable import Frozen

Vector = NDArray[np.float64]

# Without clipping a value can exceed what float32 arithmetic can square; no score needs more.
_UNCLIPPED_LIMIT = 1e15
# Where nothing is clipped: how far a value that differs from a constant lies from it.
_APART = 2.0


@dataclass(frozen=True, eq=False)
class Scaler(Frozen):
    """One map per feature: ``scaled = (value − offset) / divisor``.

    Attributes
    ----------
    kind: which map.
    offset, divisor: (features,); the divisor of a constant or never-seen feature is 0.
    constant: (features,) the training value of a constant feature, NaN for the others.
    lower, upper: (features,) the scaled training range.
    """

    kind: Scaling
    offset: Vector
    divisor: Vector
    constant: Vector
    lower: Vector
    upper: Vector

    @property
    def clips(self) -> bool:
        """Whether values are clipped to the training range before the encoder."""
        return self.kind in ("minmax", "unit")

    @property
    def span(self) -> Vector:
        """(features,) width of the scaled training range."""
        return self.upper - self.lower

    @property
    def original_lower(self) -> Vector:
        """(features,) smallest training value, in original units."""
        return self.to_original(self.lower)

    @property
    def original_upper(self) -> Vector:
        """(features,) largest training value, in original units."""
        return self.to_original(self.upper)

    def transform(self, x: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Scaled rows as (clipped, unclipped), each (rows, features) float32; NaN stays NaN.

        The clipped rows feed the encoder. The unclipped ones are bounded to one range beyond
        each end, so that one wild cell cannot drown the rest.
        """
        x = np.asarray(x, dtype=np.float64)
        known = self.divisor > 0
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = (x - self.offset) / np.where(known, self.divisor, 1.0)
        constants = np.flatnonzero(~np.isnan(self.constant))
        if not self.clips:
            for j in constants:  # any other value stands apart, however near or far it is
                scaled[:, j] = self.lower[j] + _APART * np.sign(x[:, j] - self.constant[j])
            scaled[:, ~known & np.isnan(self.constant)] = np.nan
            bounded = np.clip(scaled, -_UNCLIPPED_LIMIT, _UNCLIPPED_LIMIT)
            return _as_rows(bounded), _as_rows(bounded)
        low, high = self.lower[0], self.upper[0]
        unclipped = np.clip(scaled, 2 * low - high, 2 * high - low)
        clipped = np.clip(scaled, low, high)
        clipped[:, ~known] = np.nan  # never seen in training
        unclipped[:, ~known] = np.nan
        for j in constants:
            # A constant maps to the lower end, any other value to the upper one; the unclipped
            # value keeps the side.
            value, constant = x[:, j], self.constant[j]
            same, missing = value == constant, np.isnan(value)
            side = np.where(value > constant, 2 * high - low, 2 * low - high)
            clipped[:, j] = np.where(missing, np.nan, np.where(same, low, high))
            unclipped[:, j] = np.where(missing, np.nan, np.where(same, low, side))
        return _as_rows(clipped), _as_rows(unclipped)

    def to_original(self, scaled: NDArray[Any]) -> NDArray[np.float64]:
        """Scaled values (…, features) in original units; a constant feature gives its constant."""
        known = self.divisor > 0
        original = np.asarray(scaled, dtype=np.float64) * self.divisor + self.offset
        return np.where(known, original, self.constant)


def fit_scaler(x: NDArray[Any], kind: Scaling) -> Scaler:
    """The scaler of the rows `x` (rows, features); missing cells do not count."""
    x = np.asarray(x)
    n_features = x.shape[1]
    seen = ~np.all(np.isnan(x), axis=0)
    smallest = np.full(n_features, np.nan)
    largest = np.full(n_features, np.nan)
    if seen.any():
        smallest[seen] = np.nanmin(x[:, seen], axis=0)
        largest[seen] = np.nanmax(x[:, seen], axis=0)
    varies = seen & (largest / 2 - smallest / 2 > 0)  # halves: the difference may overflow
    constant = np.where(seen & ~varies, smallest, np.nan)

    if kind == "minmax":
        offset, divisor = smallest / 2 + largest / 2, largest / 2 - smallest / 2
        lower, upper = np.full(n_features, -1.0), np.ones(n_features)
    elif kind == "unit":
        offset, divisor = smallest, largest - smallest
        lower, upper = np.zeros(n_features), np.ones(n_features)
    else:
        offset, divisor = np.zeros(n_features), np.ones(n_features)
        if kind == "standard":
            offset[seen], divisor[seen] = _mean_and_deviation(x[:, seen])
            divisor = np.where(varies, divisor, 1.0)
        safe = np.where(seen, divisor, 1.0)
        lower = np.where(seen, smallest / safe - offset / safe, 0.0)
        upper = np.where(seen, largest / safe - offset / safe, 0.0)
        return Scaler(
            kind,
            np.where(seen, offset, 0.0),
            np.where(seen, divisor, 0.0),
            constant,
            lower,
            upper,
        )
    return Scaler(
        kind,
        offset=np.where(varies, offset, 0.0),
        divisor=np.where(varies, divisor, 0.0),
        constant=constant,
        lower=lower,
        upper=upper,
    )


def _as_rows(x: NDArray[np.float64]) -> NDArray[np.float32]:
    return x.astype(np.float32, order="C")  # compiled loops know one layout


def _mean_and_deviation(x: NDArray[Any]) -> tuple[Vector, Vector]:
    # Dividing by the largest magnitude first keeps squares of huge and tiny values in range.
    unit = np.maximum(np.nanmax(np.abs(x), axis=0).astype(np.float64), np.finfo(float).tiny)
    shrunk = x / unit
    return np.nanmean(shrunk, axis=0) * unit, np.nanstd(shrunk, axis=0) * unit
