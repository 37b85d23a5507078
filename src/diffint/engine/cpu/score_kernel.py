"""The compiled function that scores rows: all members in one call.

Rows go through scaling, encoding, decoding and the search for the nearest kept row
(`score_scaling`, `score_encoding`, `score_decoding`, `score_distance`) in tiles of TILE_ROWS. No
result depends on the other rows of a tile: sums run in the same order in every tile, and terms that
are left out of a sum are exactly 0.
"""

from __future__ import annotations

import numpy as np
from numba import carray

from ..kernel_cache import compiled, flush_tiny_numbers, set_float_mode
from .intervals import log
from .product_tile import LANES
from .score_decoding import decode
from .score_distance import find_nearest
from .score_encoding import box_products, set_codes, set_exponentials
from .score_layout import (
    ALL_SURPRISE,
    CELLS,
    CHUNK_ROWS,
    CODE,
    COUNTED,
    DISTANCE_WEIGHT,
    DOUBLES,
    EXPONENT,
    FEATURES,
    FIRST_DOUBLE,
    FIRST_FLOAT,
    FLOATS,
    GROUPS,
    ITEM,
    KEPT_GROUPS,
    MISSING_COUNTS,
    MISSING_ERROR,
    MISSING_SURPRISE,
    N_DOUBLES,
    NEAREST_ROW,
    OUTPUT,
    OUTPUTS,
    TARGET,
    TILE_ROWS,
    TRUE_UNITS,
    UNCLIPPED,
    UNITS,
    WEIGHTED,
)
from .score_row_loops import total_error
from .score_scaling import borrowed, doubles_at, read_tile, scale_tile

_LN2 = np.float32(0.6931471805599453)


@compiled
def score_rows(
    x_address,
    n_rows,
    first_row,
    first_member,
    last_member,
    floats,
    doubles,
    places,
    scratch,
    exponents,
    wide,
    scores,
    parts,
    reconstructions,
    logs,
):
    """Score n_rows rows with the members first_member..last_member.

    x_address: address of the rows (n_rows, features), float64, in C order; not an array, because
    numba would compile the function again for a read-only one.
    floats, doubles, places: see `score_layout`; scratch, exponents, wide: scratch space of
    float32, int32 and float64.

    The results of row i are written to index first_row + i of
    scores: (rows,); and, unless they are empty, of
    parts: (rows, features), each feature's part of the score;
    reconstructions: (members · rows, features) float32, scaled, one member after the other;
    logs: (rows, units) float32, the log box memberships of the last member.
    """
    floats, doubles, places = borrowed(floats), borrowed(doubles), borrowed(places)
    scratch, exponents, wide = borrowed(scratch), borrowed(exponents), borrowed(wide)
    features, cells, outputs = places[FEATURES], places[CELLS], places[OUTPUTS]
    x = carray(doubles_at(x_address), (n_rows, features))
    inverse = np.float32(doubles[0])
    members = np.float64(last_member - first_member)
    unclipped, signals = places[UNCLIPPED] != 0, places[MISSING_COUNTS] != 0
    mode = flush_tiny_numbers()
    for chunk in range(0, n_rows, CHUNK_ROWS):
        last = min(chunk + CHUNK_ROWS, n_rows)
        for i in range(first_row + chunk, first_row + last):
            scores[i] = 0.0
        if parts.shape[0] > 0:
            for i in range(first_row + chunk, first_row + last):
                for j in range(features):
                    parts[i, j] = 0.0
        for m in range(first_member, last_member):
            member = places[FIRST_FLOAT] + m * places[FLOATS]
            single = places[FIRST_DOUBLE] + m * places[DOUBLES] + N_DOUBLES * cells
            weight = doubles[single + DISTANCE_WEIGHT]
            measures_distance = places[KEPT_GROUPS] > 0 and weight > 0.0
            for start in range(chunk, last, TILE_ROWS):
                rows = min(TILE_ROWS, last - start)
                row = first_row + start
                read_tile(x, start, rows, cells, wide)
                set_float_mode(mode)  # columns of tiny values must be scaled exactly
                missing = scale_tile(wide, rows, doubles, m, places, unclipped, scratch)
                flush_tiny_numbers()
                set_exponentials(places, inverse, rows, scratch)
                box_products(floats, member, places, inverse, rows, missing, scratch, exponents)
                if logs.shape[0] > 0:
                    _write_logs(places, row, rows, scratch, exponents, logs)
                set_codes(places, places[CODE], places[EXPONENT], rows, scratch, exponents)
                decode(floats, member, places, places[CODE], rows, scratch, exponents)
                if measures_distance:
                    find_nearest(floats, member, places, rows, scratch, exponents)
                for b in range(rows):
                    first, at = places[TARGET] + b * cells, places[OUTPUT] + b * outputs
                    target, output = scratch[first : first + features], scratch[at : at + features]
                    total = _distance(scratch, first, at, cells)
                    counted = doubles[single + COUNTED]
                    surprise = 0.0
                    if missing:
                        surprise, n_missing = _missing_surprise(target, doubles, single, cells)
                        if signals:
                            for j in range(features):
                                if target[j] != target[j]:
                                    total += _missing_part(doubles, single, cells, surprise, j)
                        else:
                            counted = np.float64(max(features - n_missing, 1))
                    first, at = places[WEIGHTED] + b * cells, places[NEAREST_ROW] + b * cells
                    if measures_distance:
                        total += weight * _distance(scratch, first, at, cells)
                    scores[row + b] += total / counted
                    if parts.shape[0] > 0:
                        part = parts[row + b]
                        for j in range(features):
                            error = abs(np.float64(target[j]) - np.float64(output[j]))
                            if measures_distance:
                                apart = np.float64(scratch[first + j]) - np.float64(scratch[at + j])
                                error += weight * abs(apart)
                            if target[j] != target[j]:
                                lost = _missing_part(doubles, single, cells, surprise, j)
                                error = lost if signals else 0.0
                            part[j] += error / counted / members
                    if reconstructions.shape[0] > 0:
                        copied = reconstructions[(m - first_member) * scores.shape[0] + row + b]
                        for j in range(features):
                            copied[j] = output[j]
        for i in range(first_row + chunk, first_row + last):
            scores[i] /= members
    set_float_mode(mode)


@compiled
def _write_logs(places, row, rows, scratch, exponents, logs):
    """Log box memberships of a tile, from the products that `box_products` left."""
    units, n_units = places[UNITS], places[TRUE_UNITS]
    bias = np.int32(127 * places[GROUPS])
    for b in range(rows):
        first, power = places[CODE] + b * units, places[EXPONENT] + b * units
        code = scratch[first : first + n_units]
        exponent = exponents[power : power + n_units]
        log_box = logs[row + b]
        for k in range(n_units):
            log_box[k] = -(np.float32(exponent[k] - bias) * _LN2 + log(code[k]))


@compiled
def _distance(scratch, first, other, cells):
    """Sum of |difference| of two rows in the scratch space, where the first has a value."""
    start = scratch.ctypes.data
    return total_error(start + first * ITEM, start + other * ITEM, cells // LANES)


@compiled
def _missing_surprise(target, doubles, single, cells):
    """The missing share of all surprise, and the number of missing cells."""
    first = single + (MISSING_SURPRISE - N_DOUBLES) * cells
    surprise, n_missing = 0.0, 0
    for j in range(target.shape[0]):
        if target[j] != target[j]:
            surprise += doubles[first + j]
            n_missing += 1
    return surprise / doubles[single + ALL_SURPRISE], n_missing


@compiled
def _missing_part(doubles, single, cells, surprise, j):
    """What a missing cell counts; surprise: the missing share of all surprise."""
    error = doubles[single + (MISSING_ERROR - N_DOUBLES) * cells + j]
    return error + doubles[single + (MISSING_SURPRISE - N_DOUBLES) * cells + j] * surprise**3
