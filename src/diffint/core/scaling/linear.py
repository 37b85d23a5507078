"""Scalers with one linear map per feature."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .base import ColumnSummary, RangeScaler, Scaler, UnclippedScaler, mean_and_deviation


class MinMaxScaler(RangeScaler):
    """The training range to [−1, 1]."""

    name, bottom, top = "minmax", -1.0, 1.0

    @classmethod
    def fit(cls, x: NDArray[Any]) -> Scaler:
        columns = ColumnSummary.of(x)
        # Halves first: the sum or difference of two huge values may overflow.
        low, high = columns.smallest / 2, columns.largest / 2
        return cls._from_columns(columns, low + high, high - low)


class UnitScaler(RangeScaler):
    """The training range to [0, 1]."""

    name, bottom, top = "unit", 0.0, 1.0

    @classmethod
    def fit(cls, x: NDArray[Any]) -> Scaler:
        columns = ColumnSummary.of(x)
        return cls._from_columns(columns, columns.smallest, columns.largest - columns.smallest)


class StandardScaler(UnclippedScaler):
    """Mean 0 and standard deviation 1 in the training rows."""

    name = "standard"

    @classmethod
    def fit(cls, x: NDArray[Any]) -> Scaler:
        columns = ColumnSummary.of(x)
        offset, divisor = np.zeros(x.shape[1]), np.ones(x.shape[1])
        offset[columns.any], divisor[columns.any] = mean_and_deviation(x[:, columns.any])
        return cls._from_columns(columns, offset, divisor)


class IdentityScaler(UnclippedScaler):
    """Values in their original units."""

    name = "none"

    @classmethod
    def fit(cls, x: NDArray[Any]) -> Scaler:
        columns = ColumnSummary.of(x)
        return cls._from_columns(columns, np.zeros(x.shape[1]), np.ones(x.shape[1]))
