"""First step of scoring: scale the rows of a tile, with the same result as `Scaler.transform`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from ...core.constants import CONSTANT_DISTANCE, UNCLIPPED_LIMIT
from ..kernel_cache import compiled
from .product_tile import LANES
from .score_layout import (
    CELLS,
    CLIPPED,
    CLIPS,
    CONSTANT,
    DIVISOR,
    DOUBLES,
    FEATURES,
    FIRST_DOUBLE,
    ITEM,
    LOWER,
    N_DOUBLES,
    OFFSET,
    TARGET,
    UPPER,
)
from .score_row_loops import scale_cells

_NAN = np.float32(np.nan)


@intrinsic
def doubles_at(_typing: Any, _address: Any) -> Any:
    """An int64 address as a pointer to float64."""
    kind = types.CPointer(types.float64)

    def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], context.get_value_type(kind))

    return kind(types.int64), generate


@compiled
def read_tile(x, start, rows, cells, wide):
    """Copy rows of x to the start of wide, (rows, padded features); its padding is NaN."""
    for b in range(rows):
        row, copied = x[start + b], wide[b * cells : (b + 1) * cells]
        for j in range(row.shape[0]):
            copied[j] = row[j]


@compiled
def scale_tile(wide, rows, doubles, member, places, unclipped, scratch):
    """Scale the tile's rows for one member. → whether any cell may be missing"""
    cells = places[CELLS]
    first = places[FIRST_DOUBLE] + member * places[DOUBLES]
    missing = False
    for b in range(rows):
        row = wide[b * cells : (b + 1) * cells]
        missing |= scale_row(row, doubles, first, places, unclipped, scratch, b)
    return missing


@compiled
def scale_row(row, doubles, start, places, unclipped, scratch, b):
    """Fill row b of CLIPPED (for the encoder) and of TARGET (for the error).

    row: (padded features,) float64, NaN in the padding; unclipped: whether the target of a scaling
    that clips is the unclipped value. → whether cells may be missing
    """
    features, cells = places[FEATURES], places[CELLS]
    low, high = doubles[start + LOWER * cells], doubles[start + UPPER * cells]
    lowest, highest = 2 * low - high, 2 * high - low
    clips = places[CLIPS] != 0
    if not clips:
        low, lowest = -UNCLIPPED_LIMIT, -UNCLIPPED_LIMIT
        high, highest = UNCLIPPED_LIMIT, UNCLIPPED_LIMIT
    if not unclipped:
        lowest, highest = low, high
    clipped, target = places[CLIPPED] + b * cells, places[TARGET] + b * cells
    missing = scale_cells(
        row.ctypes.data,
        doubles.ctypes.data + (start + OFFSET * cells) * 8,
        doubles.ctypes.data + (start + DIVISOR * cells) * 8,
        cells // LANES,
        scratch.ctypes.data + clipped * ITEM,
        scratch.ctypes.data + target * ITEM,
        low,
        high,
        lowest,
        highest,
    )
    if doubles[start + N_DOUBLES * cells] > 0.0:  # some features are constant or were never seen
        _scale_constant_cells(
            row[:features],
            doubles,
            start,
            cells,
            clips,
            scratch[clipped : clipped + features],
            scratch[target : target + features],
            low,
            high,
            lowest,
            highest,
        )
        return True
    return missing > cells - features


@compiled
def _scale_constant_cells(
    row, doubles, start, cells, clips, clipped, target, low, high, lowest, highest
):
    """Cells of features that were constant in training or never seen."""
    features = row.shape[0]
    for j in range(features):
        constant = doubles[start + CONSTANT * cells + j]
        value = row[j]
        if constant != constant:
            if doubles[start + DIVISOR * cells + j] > 0.0:
                continue
            clipped[j] = _NAN
            target[j] = _NAN
        elif value != value:
            clipped[j] = _NAN
            target[j] = _NAN
        elif not clips:
            side = 1.0 if value > constant else (-1.0 if value < constant else 0.0)
            apart = doubles[start + LOWER * cells + j] + CONSTANT_DISTANCE * side
            apart = low if apart < low else (high if apart > high else apart)
            clipped[j] = np.float32(apart)
            target[j] = np.float32(apart)
        elif value == constant:
            clipped[j] = np.float32(low)
            target[j] = np.float32(low)
        else:
            clipped[j] = np.float32(high)
            target[j] = np.float32(highest if value > constant else lowest)
            if highest == high:  # the target is the clipped value
                target[j] = np.float32(high)
