"""The recommended scaler: linear for most features, curved for those with long tails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..constants import LARGEST_TRAINING_VALUE
from .base import Scaler
from .curves import MOST_KNOTS, Curve, fit_curve, has_long_tails
from .linear import MinMaxScaler


@dataclass(frozen=True, eq=False)
class AdaptiveScaler(MinMaxScaler):
    """The training range to [−1, 1], along a curve where a feature has long tails (`curves`).

    knots: (features, 2, MOST_KNOTS) values and scaled values of the knots, followed by NaN; a
        feature with a linear map has none.
    """

    knots: NDArray[np.float64]

    name = "adaptive"

    @classmethod
    def fit(
        cls,
        x: NDArray[Any],
        curves: Mapping[int, Curve] | None = None,
        others: NDArray[Any] | None = None,
    ) -> Scaler:
        linear = MinMaxScaler.fit(x)
        curves = curves or {}
        every = x if others is None else np.concatenate([x, others])
        knots = np.full((x.shape[1], 2, MOST_KNOTS), np.nan)
        for j in np.flatnonzero(linear.varies):
            curve = curves.get(int(j))
            if curve is None and has_long_tails(_present(every[:, j])):
                curve = fit_curve(_present(x[:, j]))
            if curve is not None:
                knots[j, :, : len(curve.values)] = curve
        return cls(**{f.name: getattr(linear, f.name) for f in fields(linear)}, knots=knots)

    @cached_property
    def curves(self) -> Mapping[int, Curve]:
        counts = (~np.isnan(self.knots[:, 0])).sum(axis=1)
        return {int(j): Curve(*self.knots[j, :, : counts[j]]) for j in np.flatnonzero(counts)}

    def is_possible(self) -> bool:
        given = ~np.isnan(self.knots)
        counts = given.sum(axis=2)
        in_front = (given == (np.arange(MOST_KNOTS) < counts[..., None])).all()
        return (
            super().is_possible()
            and bool(in_front and (counts[:, 0] == counts[:, 1]).all())
            and bool(self.varies[list(self.curves)].all())
            and all(curve.is_possible(LARGEST_TRAINING_VALUE) for curve in self.curves.values())
        )


def _present(column: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(column[~np.isnan(column)], dtype=np.float64)
