"""The fused interval layer for plain arrays: pads them and calls the loops of `intervals`.

Same functions as `reference/intervals.py`, in float32, without (rows × units × features) arrays.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import intervals
from .product_tile import TILE_ROWS

Array = NDArray[np.float32]
_TILE_ROWS = 1_024


class Gradients(NamedTuple):
    """lower, upper: (units, features); memberships: (units, features) Σ over present cells."""

    lower: Array
    upper: Array
    memberships: Array


def log_box_memberships(
    x: NDArray[Any], lower: NDArray[Any], upper: NDArray[Any], temperature: float
) -> Array:
    """x: (rows, features); lower, upper: (units, features) → (rows, units)"""
    x = np.ascontiguousarray(x, dtype=np.float32)
    boxes = _Boxes(lower, upper, temperature, x)
    out = np.empty((len(x), len(lower)), dtype=np.float32)
    for rows in _tiles(len(x)):
        out[rows] = boxes.log_box(x[rows])[: len(x[rows]), : len(lower)]
    return out


def bounded_log_box_memberships(
    x: NDArray[Any], lower: NDArray[Any], upper: NDArray[Any], temperature: float, floor: float
) -> Array:
    """As `log_box_memberships`, with memberships below `floor` (at least 0.01) raised to it."""
    if not 1.0 / intervals.MAX_RECIPROCAL <= floor <= 1.0:
        raise ValueError(f"floor={floor} is not between {1.0 / intervals.MAX_RECIPROCAL} and 1")
    x = np.ascontiguousarray(x, dtype=np.float32)
    boxes = _Boxes(lower, upper, temperature, x)
    out = np.empty((len(x), len(lower)), dtype=np.float32)
    for rows in _tiles(len(x)):
        out[rows] = boxes.bounded_log_box(x[rows], 1.0 / floor)[: len(x[rows]), : len(lower)]
    return out


def gradients(
    x: NDArray[Any],
    lower: NDArray[Any],
    upper: NDArray[Any],
    temperature: float,
    upstream: NDArray[Any] | None = None,
) -> Gradients:
    """Gradients of Σ upstream · log_box_memberships, and the sums of memberships.

    upstream: (rows, units); None if only the sums are needed.
    """
    x = np.ascontiguousarray(x, dtype=np.float32)
    boxes = _Boxes(lower, upper, temperature, x)
    sums = np.zeros((3, x.shape[1], boxes.units))
    for rows in _tiles(len(x)):
        sums += boxes.bound_gradients(x[rows], None if upstream is None else upstream[rows])
    return Gradients(*(s[:, : len(lower)].T.astype(np.float32) for s in sums))


def input_gradients(
    x: NDArray[Any],
    lower: NDArray[Any],
    upper: NDArray[Any],
    temperature: float,
    upstream: NDArray[Any],
) -> Array:
    """Gradient of Σ upstream · log_box_memberships with respect to x; 0 where x is missing."""
    x = np.ascontiguousarray(x, dtype=np.float32)
    boxes = _Boxes(lower, upper, temperature, x)
    out = np.empty_like(x)
    for rows in _tiles(len(x)):
        boxes.input_gradients(x[rows], upstream[rows], out[rows])
    return out


def _tiles(n_rows: int) -> list[slice]:
    return [slice(start, start + _TILE_ROWS) for start in range(0, n_rows, _TILE_ROWS)]


class _Boxes:
    """Bounds in the layout of the compiled loops, and scratch space for one tile of rows."""

    def __init__(
        self, lower: NDArray[Any], upper: NDArray[Any], temperature: float, x: Array
    ) -> None:
        n_units, n_features = np.shape(lower)
        self.units, self.features = intervals.padded(n_units), intervals.padded(n_features, 4)
        self.n_units, self.temperature = n_units, float(temperature)
        self.lower = np.zeros((n_features, self.units), dtype=np.float32)
        self.upper = np.zeros_like(self.lower)
        self.lower[:, :n_units], self.upper[:, :n_units] = np.transpose(lower), np.transpose(upper)
        self.by_difference = intervals.largest_magnitude(x) / temperature > intervals.SAFE_EXPONENT
        rows = intervals.padded(min(len(x), _TILE_ROWS), TILE_ROWS)
        self.out = np.empty((rows, self.units), dtype=np.float32)
        self.upstream = np.zeros_like(self.out)
        self.sums = np.empty((3, n_features, self.units), dtype=np.float32)
        if not self.by_difference:
            self.u, self.v = np.empty((2, rows, self.features), dtype=np.float32)
            self.p, self.q, self.c = np.zeros((3, self.features, self.units), dtype=np.float32)
            self.c[:] = 1.0  # neutral for padding features
            self.mantissa = np.empty_like(self.out)
            self.exponent = np.empty(self.out.shape, dtype=np.int32)
            count = len(self.lower)
            intervals.unit_exponentials(
                self.lower,
                self.upper,
                self.temperature,
                self.p[:count],
                self.q[:count],
                self.c[:count],
            )

    def _set_rows(self, x: Array) -> tuple[Array, Array]:
        rows = intervals.padded(len(x), TILE_ROWS)
        intervals.row_exponentials(x, self.temperature, self.u[:rows], self.v[:rows])
        return self.u[:rows], self.v[:rows]

    def log_box(self, x: Array) -> Array:
        out = self.out[: intervals.padded(len(x), TILE_ROWS)]
        if self.by_difference:
            intervals.log_box_memberships_by_difference(
                x, self.lower, self.upper, self.temperature, out
            )
        else:
            u, v = self._set_rows(x)
            mantissa, exponent = self.mantissa[: len(out)], self.exponent[: len(out)]
            intervals.box_products(u, v, self.p, self.q, self.c, len(x), mantissa, exponent)
            intervals.product_logs(mantissa, exponent, self.features, out)
        return out

    def bounded_log_box(self, x: Array, max_reciprocal: float) -> Array:
        out = self.out[: intervals.padded(len(x), TILE_ROWS)]
        product = np.empty(self.units, dtype=np.float32)
        if self.by_difference:
            intervals.bounded_log_boxes_by_difference(
                x, self.lower, self.upper, self.temperature, max_reciprocal, product, out
            )
        else:
            u, v = self._set_rows(x)
            intervals.bounded_log_boxes(u, v, self.p, self.q, max_reciprocal, product, out)
        return out

    def bound_gradients(self, x: Array, upstream: NDArray[Any] | None) -> Array:
        rows = intervals.padded(len(x), TILE_ROWS)
        g = self.upstream[:rows]
        if upstream is not None:
            g[:] = 0.0
            g[: len(x), : self.n_units] = upstream
        if self.by_difference:
            intervals.bound_gradients_by_difference(
                x,
                self.lower,
                self.upper,
                g,
                self.temperature,
                rows - len(x),
                0,
                len(self.lower),
                *self.sums,
            )
        else:
            u, v = self._set_rows(x)
            intervals.bound_gradients(
                u, v, self.p, self.q, g, self.temperature, 0, len(self.lower), *self.sums
            )
        neutral = rows - len(x) + np.isnan(x).sum(axis=0)
        self.sums[2] -= neutral[:, None].astype(np.float32)
        return self.sums

    def input_gradients(self, x: Array, upstream: NDArray[Any], out: Array) -> None:
        g = np.ascontiguousarray(upstream, dtype=np.float32)
        if self.by_difference:
            intervals.input_gradients_by_difference(
                x, self.lower, self.upper, g, self.temperature, self.n_units, out
            )
        else:
            u, v = self._set_rows(x)
            intervals.input_gradients(u, v, self.p, self.q, g, self.temperature, self.n_units, out)
