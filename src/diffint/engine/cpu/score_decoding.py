"""Third step of scoring: reconstructions from the codes of a tile."""

from __future__ import annotations

import numpy as np

from ...core.constants import NORM_EPSILON
from ..kernel_cache import compiled, compiled_sums
from .product_tile import LANES
from .score_layout import (
    ACTIVATION,
    CERTIFIED,
    DECODED_ROWS,
    EVERY,
    GAIN,
    HIDDEN,
    HIDDEN_BIAS,
    HIDDEN_WEIGHT,
    ITEM,
    LISTED,
    OUTPUT,
    OUTPUT_BIAS,
    OUTPUT_WEIGHT,
    OUTPUTS,
    PRE,
    SEEN,
    SHIFT,
    TRUE_HIDDEN,
    UNITS,
)
from .score_tiles import SUM_ROWS, multiply_listed

_ONE, _ZERO = np.float32(1.0), np.float32(0.0)


@compiled
def decode(floats, member, places, code, rows, scratch, exponents):
    """Fill OUTPUT with the reconstructions of the tile's rows from the codes at `code`."""
    units, hidden, outputs = places[UNITS], places[HIDDEN], places[OUTPUTS]
    full = (rows + DECODED_ROWS - 1) // DECODED_ROWS * DECODED_ROWS
    at, weights = scratch.ctypes.data, floats.ctypes.data + member * ITEM
    lists = exponents.ctypes.data
    pre, activation, output = places[PRE], places[ACTIVATION], places[OUTPUT]
    _fill_rows(scratch, pre, full, hidden, floats, member + places[HIDDEN_BIAS])
    for b in range(0, full, DECODED_ROWS):
        listed, seen = places[LISTED], places[SEEN] + b // DECODED_ROWS * units
        count = _list_units(scratch[seen : seen + units], exponents[listed : listed + units])
        for n in range(0, hidden, LANES):
            for row in range(b, b + DECODED_ROWS, SUM_ROWS):
                multiply_listed(
                    at + (pre + row * hidden + n) * ITEM,
                    hidden * ITEM,
                    weights + (places[HIDDEN_WEIGHT] + n) * ITEM,
                    hidden * ITEM,
                    at + (code + row * units) * ITEM,
                    units * ITEM,
                    lists + listed * ITEM,
                    count,
                )
    gain, shift = member + places[GAIN], member + places[SHIFT]
    for b in range(full):
        values = scratch[pre + b * hidden : pre + (b + 1) * hidden]
        active = scratch[activation + b * hidden : activation + (b + 1) * hidden]
        if places[CERTIFIED]:
            for i in range(hidden):
                active[i] = max(values[i], _ZERO)
        else:
            _normalise(
                values,
                floats[gain : gain + hidden],
                floats[shift : shift + hidden],
                places[TRUE_HIDDEN],
                active,
            )
    _fill_rows(scratch, output, full, outputs, floats, member + places[OUTPUT_BIAS])
    for n in range(0, outputs, LANES):
        for b in range(0, full, SUM_ROWS):
            multiply_listed(
                at + (output + b * outputs + n) * ITEM,
                outputs * ITEM,
                weights + (places[OUTPUT_WEIGHT] + n) * ITEM,
                outputs * ITEM,
                at + (activation + b * hidden) * ITEM,
                hidden * ITEM,
                lists + places[EVERY] * ITEM,
                hidden,
            )


@compiled
def _list_units(seen, listed):
    """Write the units with a code above 0 in a block of rows to `listed`. → their number

    seen: (units,) sums of codes; listed: (units,) int32.
    """
    count = 0
    for k in range(seen.shape[0]):
        listed[count] = np.int32(k)
        count += 1 if seen[k] > _ZERO else 0
    return count


@compiled
def _fill_rows(scratch, first, rows, width, floats, start):
    """Set each of the rows (rows, width) at scratch[first:] to floats[start : start + width]."""
    values = floats[start : start + width]
    for b in range(rows):
        row = scratch[first + b * width : first + (b + 1) * width]
        for i in range(width):
            row[i] = values[i]


@compiled_sums
def _normalise(pre, gain, shift, width, activation):
    """activation = ReLU(LayerNorm(pre)); all arrays (padded hidden,), of which `width` count."""
    total, squares = _ZERO, _ZERO
    # The padding is 0 until the mean is subtracted.
    for i in range(pre.shape[0]):
        total += pre[i]
    mean = total / np.float32(width)
    for i in range(width):
        deviation = pre[i] - mean
        squares += deviation * deviation
    inverse = _ONE / np.sqrt(squares / np.float32(width) + np.float32(NORM_EPSILON))
    # Gain and shift of the padding are 0.
    for i in range(pre.shape[0]):
        activation[i] = max((pre[i] - mean) * inverse * gain[i] + shift[i], _ZERO)
