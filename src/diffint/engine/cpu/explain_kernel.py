"""The compiled function that explains rows: all members in one call.

The steps are those of `score_kernel`, with robust memberships: 1/membership is bounded, so that no
single feature can exclude a unit.
"""

from __future__ import annotations

import numpy as np
from numba import carray

from ...core.constants import BEYOND_WEIGHT, LARGEST_ORIGINAL
from ..kernel_cache import compiled, flush_tiny_numbers, set_float_mode
from .product_tile import LANES
from .score_decoding import decode
from .score_encoding import bounded_products, set_codes, set_exponentials
from .score_layout import (
    BOX_HALF_WIDTH,
    BOX_LOWER,
    BOX_UPPER,
    CELLS,
    CENTER,
    CODE,
    CURVE,
    CURVES,
    DOUBLES,
    EXPONENT,
    FEATURES,
    FIRST_DOUBLE,
    FIRST_FLOAT,
    FLOATS,
    ITEM,
    LOWER,
    MEMBERS,
    N_DOUBLES,
    N_SINGLE,
    OUTPUT,
    OUTPUTS,
    TARGET,
    TILE_ROWS,
    TO_FACTOR,
    TO_OFFSET,
    UNITS,
    UPPER,
)
from .score_row_loops import smallest_product
from .score_scaling import (
    back_along_curve,
    borrowed,
    doubles_at,
    read_tile,
    scale_curves,
    scale_row,
    scale_tile,
)

_ZERO = np.float32(0.0)
_TINY = np.float32(np.finfo(np.float32).tiny)


@compiled
def explain_rows(
    x_address,
    n_rows,
    first_row,
    floats,
    doubles,
    places,
    excluded,
    scratch,
    exponents,
    wide,
    expected,
    responsibility,
    nearest_unit,
    median_member,
    excess,
):
    """Responsibilities and nearest patterns of rows.

    x_address, n_rows, first_row, floats, doubles, places and the scratch space: as in `score_rows`.
    excluded: (members · units,) int32, NEVER for units that are not patterns.

    Filled:
    expected, responsibility: (rows, features), unless they are empty;
    nearest_unit: (rows, members) int64, each member's nearest unit;
    median_member: (rows,) int64, the member whose pattern is reported;
    excess: (rows, features) float32.
    """
    floats, doubles, places = borrowed(floats), borrowed(doubles), borrowed(places)
    excluded, scratch = borrowed(excluded), borrowed(scratch)
    exponents, wide = borrowed(exponents), borrowed(wide)
    features, units, cells = places[FEATURES], places[UNITS], places[CELLS]
    x = carray(doubles_at(x_address), (n_rows, features))
    inverse = np.float32(doubles[0])
    members, outputs = places[MEMBERS], places[OUTPUTS]
    first_distance = TILE_ROWS * cells  # start of the distances in `wide`, after the rows
    seen_by = doubles[1 : 1 + features]
    attributes = expected.shape[0] > 0
    unclipped = features > 0  # always true; a literal would be another type, compiled separately
    mode = flush_tiny_numbers()
    for start in range(0, n_rows, TILE_ROWS):
        rows = min(TILE_ROWS, n_rows - start)
        row = first_row + start
        read_tile(x, start, rows, cells, wide)
        if attributes:
            for b in range(rows):
                for j in range(features):
                    expected[row + b, j] = 0.0
                    responsibility[row + b, j] = 0.0
        for m in range(members):
            member = places[FIRST_FLOAT] + m * places[FLOATS]
            first_double = places[FIRST_DOUBLE] + m * places[DOUBLES]
            set_float_mode(mode)
            missing = scale_tile(wide, rows, doubles, m, places, unclipped, scratch)
            flush_tiny_numbers()
            set_exponentials(places, inverse, rows, scratch)
            bounded_products(floats, member, places, inverse, rows, missing, scratch, exponents)
            for b in range(rows):
                first, power = places[CODE] + b * units, places[EXPONENT] + b * units
                unit = smallest_product(
                    scratch.ctypes.data + first * ITEM,
                    exponents.ctypes.data + power * ITEM,
                    excluded.ctypes.data + m * units * ITEM,
                    units // LANES,
                )
                target = places[TARGET] + b * cells
                nearest_unit[row + b, m] = unit
                wide[first_distance + b * members + m] = _center_distance(
                    scratch[target : target + features], floats, member, places, unit
                )
            if not attributes:
                continue
            set_codes(places, places[CODE], places[EXPONENT], rows, scratch, exponents)
            decode(floats, member, places, places[CODE], rows, scratch, exponents)
            for b in range(rows):
                first, at = places[TARGET] + b * cells, places[OUTPUT] + b * outputs
                _add_responsibility(
                    scratch[first : first + features],
                    scratch[at : at + features],
                    doubles,
                    first_double,
                    cells,
                    expected[row + b],
                    responsibility[row + b],
                )
        for b in range(rows):
            at = first_distance + b * members
            distance = wide[at : at + members]
            chosen = 0
            for m in range(members):
                before = 0
                for other in range(members):
                    nearer = distance[other] < distance[m] or (
                        distance[other] == distance[m] and other < m
                    )
                    before += 1 if nearer else 0
                chosen = m if before == (members - 1) // 2 else chosen
            median_member[row + b] = chosen
            set_float_mode(mode)
            target = places[TARGET] + b * cells
            first = places[FIRST_DOUBLE] + chosen * places[DOUBLES]
            x_row = wide[b * cells : (b + 1) * cells]
            scale_row(x_row, doubles, first, places, unclipped, scratch, b)
            scale_curves(wide, b, b + 1, doubles, first, places, unclipped, scratch)
            flush_tiny_numbers()
            _set_excess(
                scratch[target : target + features],
                floats,
                places[FIRST_FLOAT] + chosen * places[FLOATS],
                places,
                nearest_unit[row + b, chosen],
                excess[row + b],
            )
            if attributes:
                for j in range(features):
                    count = max(seen_by[j], 1.0)
                    responsibility[row + b, j] /= count
                    value = expected[row + b, j] / count
                    expected[row + b, j] = value if seen_by[j] > 0.0 else np.nan
    set_float_mode(mode)


@compiled
def _center_distance(target, floats, member, places, unit):
    """Largest distance of a row from the center of its unit's box, in half-widths."""
    features = target.shape[0]
    first, half = member + places[CENTER], member + places[BOX_HALF_WIDTH]
    center = floats[first + unit * features : first + (unit + 1) * features]
    half_width = floats[half + unit * features : half + (unit + 1) * features]
    farthest = 0.0
    for j in range(features):
        distance = abs(np.float64(target[j]) - np.float64(center[j]))
        ratio = distance / np.float64(max(half_width[j], _TINY))
        farthest = ratio if ratio > farthest else farthest  # false for a missing cell
    return farthest


@compiled
def _set_excess(target, floats, member, places, unit, excess):
    """Distance of each value from its unit's box, negative below it, 0 inside; (features,)"""
    features = target.shape[0]
    low, up = member + places[BOX_LOWER], member + places[BOX_UPPER]
    lower = floats[low + unit * features : low + (unit + 1) * features]
    upper = floats[up + unit * features : up + (unit + 1) * features]
    for j in range(features):
        above, below = target[j] - upper[j], target[j] - lower[j]
        excess[j] = above if above > _ZERO else (below if below < _ZERO else _ZERO)


@compiled
def _add_responsibility(target, output, doubles, start, cells, expected, responsibility):
    """Add one member's reconstruction in original units, and the row's distance from it.

    A member that never saw a feature adds 0 to its expected value.
    """
    lower = doubles[start + LOWER * cells : start + (LOWER + 1) * cells]
    upper = doubles[start + UPPER * cells : start + (UPPER + 1) * cells]
    factor = doubles[start + TO_FACTOR * cells : start + (TO_FACTOR + 1) * cells]
    offset = doubles[start + TO_OFFSET * cells : start + (TO_OFFSET + 1) * cells]
    for j in range(target.shape[0]):
        value, output_value = np.float64(target[j]), np.float64(output[j])
        nearest = lower[j] if value < lower[j] else (upper[j] if value > upper[j] else value)
        distance = abs(value - output_value) + BEYOND_WEIGHT * abs(value - nearest)
        responsibility[j] += distance if distance == distance else 0.0  # 0 for a missing cell
        original = output_value * factor[j] + offset[j]
        expected[j] += min(max(original, -LARGEST_ORIGINAL), LARGEST_ORIGINAL)
    single = start + N_DOUBLES * cells
    curves = int(doubles[single + CURVES])
    for i in range(curves):
        curve = single + N_SINGLE + i * CURVE
        j = int(doubles[curve])
        original = back_along_curve(doubles, curve, np.float64(output[j]))
        expected[j] += min(max(original, -LARGEST_ORIGINAL), LARGEST_ORIGINAL)
