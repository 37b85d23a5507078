"""Second step of scoring: codes of the scaled rows of a tile.

The product over features of 1/membership is kept as mantissa and exponent, so that it cannot
overflow and a softmax needs neither logarithm nor exponential. Codes below CODE_FLOOR are set to 0
for each row separately: most units are far from a row, and a unit whose code is 0 in all rows of a
block is not decoded.
"""

from __future__ import annotations

import numpy as np

from ..kernel_cache import bits_float, compiled, float_bits
from .intervals import exp, take_out
from .product_tile import LANES
from .score_layout import (
    BY_DIFFERENCE,
    CELLS,
    CLIPPED,
    CODE,
    DECODED_ROWS,
    EXPONENT,
    FEATURES,
    GROUPS,
    ITEM,
    SEEN,
    TILE_ROWS,
    TRUE_UNITS,
    UNITS,
    C,
    P,
    Q,
    U,
    V,
)
from .score_row_loops import softmax_codes
from .score_tiles import (
    BOUNDED_ROWS,
    FACTOR_ROWS,
    multiply_bounded,
    multiply_factors,
)

# Smaller codes count as 0. This is far below float32's resolution of a sum of codes (2⁻²⁴): a score
# changes by no more than another order of summation would change it.
CODE_FLOOR = 2.0**-30
# Factors that are multiplied before the exponent is split off: the product of so many bounds on
# 1/membership fits float32.
BOUNDED_FEATURES = 16

# The largest code of a row is above 1/2 before the division by the sum, hence half the floor.
_SMALLEST = np.float32(CODE_FLOOR / 2)
_MAX_RECIPROCAL = np.float32(1e8)  # 1 / MIN_MEMBERSHIP
_MANTISSA, _ONE_BITS = np.int32(0x7FFFFF), np.int32(0x3F800000)
_ONE, _ZERO = np.float32(1.0), np.float32(0.0)


@compiled
def set_exponentials(places, inverse, rows, scratch):
    """Exponentials of the tile's cells, for whole blocks of four rows.

    The values in the rows that fill up the last block do not matter.
    """
    if places[BY_DIFFERENCE]:
        return
    size = (rows + 3) // 4 * 4 * places[CELLS]
    clipped, u, v = places[CLIPPED], places[U], places[V]
    _exponentials(
        scratch[clipped : clipped + size], inverse, scratch[u : u + size], scratch[v : v + size]
    )


@compiled
def _exponentials(cells, inverse, u, v):
    """u = e^(cell/τ), v = e^(−cell/τ), both 0 where the cell is missing. All (n,)"""
    for i in range(cells.shape[0]):
        value = cells[i]
        scaled = value * inverse
        present = value == value
        u[i] = exp(scaled) if present else _ZERO
        v[i] = exp(-scaled) if present else _ZERO


@compiled
def box_products(floats, member, places, inverse, rows, missing, scratch, exponents):
    """∏_j 1/I of the tile's rows: mantissas go where the codes will be, exponents to EXPONENT."""
    units, cells, features = places[UNITS], places[CELLS], places[FEATURES]
    code, exponent = places[CODE], places[EXPONENT]
    if places[BY_DIFFERENCE]:
        for b in range(rows):
            start = places[CLIPPED] + b * cells
            _by_difference(
                scratch[start : start + places[FEATURES]],
                floats,
                member + places[P],
                member + places[Q],
                places,
                inverse,
                _MAX_RECIPROCAL,
                scratch[code + b * units : code + (b + 1) * units],
                exponents[exponent + b * units : exponent + (b + 1) * units],
            )
        return
    at, bounds = scratch.ctypes.data, floats.ctypes.data + member * ITEM
    for b in range(0, rows, FACTOR_ROWS):
        for k in range(0, units, LANES):
            multiply_factors(
                at + (places[U] + b * cells) * ITEM,
                at + (places[V] + b * cells) * ITEM,
                cells * ITEM,
                bounds + (places[P] + k) * ITEM,
                bounds + (places[Q] + k) * ITEM,
                bounds + (places[C] + k) * ITEM,
                units * ITEM,
                features,
                at + (code + b * units + k) * ITEM,
                exponents.ctypes.data + (exponent + b * units + k) * ITEM,
                units * ITEM,
            )
    if missing:
        _take_out_missing(floats, member, places, code, exponent, rows, scratch, exponents)


@compiled
def bounded_products(floats, member, places, inverse, rows, missing, scratch, exponents):
    """As `box_products` with ∏_j min(1/I, bound); the bound is floats[0]."""
    units, cells, features = places[UNITS], places[CELLS], places[FEATURES]
    code, exponent = places[CODE], places[EXPONENT]
    if places[BY_DIFFERENCE]:
        for b in range(rows):
            start = places[CLIPPED] + b * cells
            first, power = code + b * units, exponent + b * units
            _by_difference(
                scratch[start : start + features],
                floats,
                member + places[P],
                member + places[Q],
                places,
                inverse,
                floats[0],
                scratch[first : first + units],
                exponents[power : power + units],
            )
        return
    mantissas = scratch[code : code + TILE_ROWS * units]
    powers = exponents[exponent : exponent + TILE_ROWS * units]
    for i in range(mantissas.shape[0]):
        mantissas[i] = _ONE
        powers[i] = np.int32(0)
    at, weights = scratch.ctypes.data, floats.ctypes.data + member * ITEM
    for b in range(0, rows, BOUNDED_ROWS):
        for k in range(0, units, LANES):
            for j in range(0, features, BOUNDED_FEATURES):
                multiply_bounded(
                    at + (places[U] + b * cells + j) * ITEM,
                    at + (places[V] + b * cells + j) * ITEM,
                    cells * ITEM,
                    weights + (places[P] + j * units + k) * ITEM,
                    weights + (places[Q] + j * units + k) * ITEM,
                    weights + (places[C] + j * units + k) * ITEM,
                    units * ITEM,
                    min(BOUNDED_FEATURES, features - j),
                    at + (code + b * units + k) * ITEM,
                    exponents.ctypes.data + (exponent + b * units + k) * ITEM,
                    units * ITEM,
                    floats.ctypes.data,
                )
    if missing:  # the factor c of a missing cell is below 2, so the bound has not changed it
        _take_out_missing(floats, member, places, code, exponent, rows, scratch, exponents)


@compiled
def _by_difference(cells, floats, lower, upper, places, inverse, most, mantissa, exponent):
    """∏_j min(1/I, most) of one row, where exponentials of the cells would overflow.

    cells: (features,); lower, upper: start of the bounds in floats; mantissa, exponent: (units,),
    filled as by `multiply_factors`.
    """
    features, units = places[FEATURES], places[UNITS]
    for k in range(units):
        mantissa[k] = _ONE
        exponent[k] = np.int32(0)
    for j in range(4 * places[GROUPS]):
        if j < features and cells[j] == cells[j]:
            value = cells[j]
            low = floats[lower + j * units : lower + (j + 1) * units]
            up = floats[upper + j * units : upper + (j + 1) * units]
            for k in range(units):
                below, above = exp((low[k] - value) * inverse), exp((value - up[k]) * inverse)
                mantissa[k] *= min((_ONE + below) * (_ONE + above), most)
        if j % 4 == 3:
            for k in range(units):
                bits = float_bits(mantissa[k])
                exponent[k] += bits >> np.int32(23)
                mantissa[k] = bits_float((bits & _MANTISSA) | _ONE_BITS)


@compiled
def _take_out_missing(floats, member, places, code, exponent, rows, scratch, exponents):
    """Divide the factors of missing cells out of the tile's products at `code` and `exponent`."""
    units, cells = places[UNITS], places[CELLS]
    for b in range(rows):
        for j in range(places[FEATURES]):
            if scratch[places[U] + b * cells + j] == _ZERO:
                start = member + places[C] + j * units
                take_out(
                    floats[start : start + units],
                    scratch[code + b * units : code + (b + 1) * units],
                    exponents[exponent + b * units : exponent + (b + 1) * units],
                )


@compiled
def set_codes(places, code, exponent, rows, scratch, exponents):
    """Replace the mantissas at `code` by codes; padding rows get 0.

    SEEN gets the sum of the codes of each unit over DECODED_ROWS rows.
    """
    units, seen = places[UNITS], places[SEEN]
    full = (rows + DECODED_ROWS - 1) // DECODED_ROWS * DECODED_ROWS
    totals = scratch[seen : seen + full // DECODED_ROWS * units]
    for i in range(totals.shape[0]):
        totals[i] = _ZERO
    rest = scratch[code + rows * units : code + full * units]
    for i in range(rest.shape[0]):
        rest[i] = _ZERO
    at = scratch.ctypes.data
    for b in range(rows):
        softmax_codes(
            at + (code + b * units) * ITEM,
            exponents.ctypes.data + (exponent + b * units) * ITEM,
            at + (seen + b // DECODED_ROWS * units) * ITEM,
            units // LANES,
            places[TRUE_UNITS],
            _SMALLEST,
        )
