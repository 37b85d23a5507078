"""Scalers: maps between original units and the scaled units of the intervals.

A new scaler is one subclass of `Scaler` and one entry in `SCALERS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .adaptive import AdaptiveScaler
from .base import Range, ScaledRegion, Scaler
from .curves import Curve
from .linear import IdentityScaler, MinMaxScaler, StandardScaler, UnitScaler

__all__ = ["SCALERS", "Curve", "Range", "ScaledRegion", "Scaler", "fit_scaler"]

SCALERS: dict[str, type[Scaler]] = {
    scaler.name: scaler
    for scaler in (AdaptiveScaler, MinMaxScaler, UnitScaler, StandardScaler, IdentityScaler)
}


def fit_scaler(
    x: NDArray[Any],
    name: str,
    curves: Mapping[int, Curve] | None = None,
    others: NDArray[Any] | None = None,
) -> Scaler:
    """The scaler of this name, fitted on the rows `x` (rows, features).

    curves: of features whose curve is known; others: rows that also count when it is decided
    whether a feature has long tails. Only the adaptive scaler has curves.
    """
    x = np.asarray(x)
    if SCALERS[name] is AdaptiveScaler:
        return AdaptiveScaler.fit(x, curves, others)
    return SCALERS[name].fit(x)
