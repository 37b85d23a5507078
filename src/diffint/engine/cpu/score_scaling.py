"""First step of scoring: scale the rows of a tile, with the same result as `Scaler.transform`."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ...core.constants import CONSTANT_DISTANCE, UNCLIPPED_LIMIT
from ...core.scaling.curves import MOST_KNOTS
from ..kernel_cache import compiled
from .product_tile import LANES
from .score_layout import (
    CELLS,
    CLIPPED,
    CLIPS,
    CONSTANT,
    CURVE,
    CURVES,
    DIVISOR,
    DOUBLES,
    FEATURES,
    FIRST_DOUBLE,
    ITEM,
    LOWER,
    N_DOUBLES,
    N_SINGLE,
    OFFSET,
    SPECIAL,
    TARGET,
    UPPER,
)
from .score_row_loops import scale_cells

_NAN = np.float32(np.nan)
_STEP = 6  # knots that are skipped at first when the segment of a value is searched
assert _STEP**2 == MOST_KNOTS


@intrinsic
def doubles_at(_typing: Any, _address: Any) -> Any:
    """An int64 address as a pointer to float64."""
    kind = types.CPointer(types.float64)

    def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], context.get_value_type(kind))

    return kind(types.int64), generate


@intrinsic
def borrowed(_typing: Any, array: Any) -> Any:
    """The same array without an owner. The caller must keep the array itself.

    Slices of an array with an owner count its references, for every row and by all threads, which
    then wait for each other.
    """

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        found = context.make_array(array)(context, builder, arguments[0])
        found.meminfo = ir.Constant(found.meminfo.type, None)
        found.parent = ir.Constant(found.parent.type, None)
        return found._getvalue()

    return array(array), generate


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
    scale_curves(wide, 0, rows, doubles, first, places, unclipped, scratch)
    return missing


@compiled
def scale_curves(wide, first_row, last_row, doubles, start, places, unclipped, scratch):
    """Fill the cells of features with curves, in some rows of CLIPPED and TARGET."""
    cells = places[CELLS]
    low, high = doubles[start + LOWER * cells], doubles[start + UPPER * cells]
    single = start + N_DOUBLES * cells
    curves = int(doubles[single + CURVES])
    for c in range(curves):
        curve = single + N_SINGLE + c * CURVE
        j, knots = int(doubles[curve]), int(doubles[curve + 1])
        values, scaled, runs = _knots(doubles, curve)
        for b in range(first_row, last_row):
            value = wide[b * cells + j]
            i = _segment(values, knots, value)
            # Divided, not multiplied: a product and a sum could become one instruction, which
            # rounds once instead of twice, and the result would not be that of `Curve.scale`.
            result = scaled[i] + (value - values[i]) / runs[i]
            result = scaled[i] if result < scaled[i] else result
            result = scaled[i + 1] if result > scaled[i + 1] else result
            inside = low if result < low else (high if result > high else result)
            scratch[places[CLIPPED] + b * cells + j] = np.float32(inside)
            scratch[places[TARGET] + b * cells + j] = np.float32(result if unclipped else inside)


@compiled
def scale_row(row, doubles, start, places, unclipped, scratch, b):
    """Fill row b of CLIPPED (for the encoder) and of TARGET (for the error), except for curves.

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
    # Some features are constant or were never seen.
    if doubles[start + N_DOUBLES * cells + SPECIAL] > 0.0:
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
def back_along_curve(doubles, curve, value):
    """A scaled value in original units, as `Curve.to_original` computes it."""
    values, scaled, runs = _knots(doubles, curve)
    i = _segment(scaled, int(doubles[curve + 1]), value)
    return values[i] + (value - scaled[i]) * runs[i]


@compiled
def _knots(doubles, curve):
    """Values, scaled values and runs of a curve, (MOST_KNOTS,) each."""
    first = curve + 2
    return (
        doubles[first : first + MOST_KNOTS],
        doubles[first + MOST_KNOTS : first + 2 * MOST_KNOTS],
        doubles[first + 2 * MOST_KNOTS : first + 3 * MOST_KNOTS],
    )


@compiled
def _segment(knot, knots, value):
    """The last knot that is not above the value, but not the last of all. knot: (MOST_KNOTS,)

    Every sixth knot first, then the five before the next one, without a branch.
    """
    steps, count = 0, 0
    for i in range(_STEP - 1, MOST_KNOTS, _STEP):
        steps += 1 if knot[i] <= value else 0  # false for the padding, which is NaN
    first = min(steps, _STEP - 1) * _STEP
    rest = knot[first : first + _STEP]
    for i in range(_STEP):
        count += 1 if rest[i] <= value else 0
    return min(max(first + count - 1, 0), knots - 2)


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
