"""`Scaler.transform` in one pass over the cells, for the maps that clip."""

from __future__ import annotations

import numpy as np

from ..kernel_cache import compiled


@compiled
def scale_rows(x, offset, divisor, constant, low, high, clipped, unclipped):
    """Fill clipped and unclipped (rows, features) float32 from x (rows, features) float64.

    The very operations of `Scaler.transform`, so that both agree to the last bit.
    """
    lowest, highest = 2 * low - high, 2 * high - low
    for b in range(x.shape[0]):
        for j in range(x.shape[1]):
            scaled = (x[b, j] - offset[j]) / divisor[j]
            clipped[b, j] = np.float32(min(max(scaled, low), high))
            unclipped[b, j] = np.float32(min(max(scaled, lowest), highest))
    for j in range(x.shape[1]):
        if divisor[j] > 0:
            continue
        for b in range(x.shape[0]):
            value = x[b, j]
            if value != value or constant[j] != constant[j]:
                clipped[b, j] = np.nan
                unclipped[b, j] = np.nan
            elif value == constant[j]:
                clipped[b, j] = low
                unclipped[b, j] = low
            else:
                clipped[b, j] = high
                unclipped[b, j] = highest if value > constant[j] else lowest
