"""The compiled function that scores rows: all members in one call.

Rows go through scaling, encoding and decoding (`score_scaling`, `score_encoding`,
`score_decoding`) in tiles of TILE_ROWS. No result depends on the other rows of a tile: sums run in
the same order in every tile, and terms that are left out of a sum are exactly 0.
"""

from __future__ import annotations

import numpy as np
from numba import carray

from ..kernel_cache import compiled, flush_tiny_numbers, set_float_mode
from .intervals import log
from .product_tile import LANES
from .score_decoding import decode
from .score_encoding import box_products, set_codes, set_exponentials
from .score_layout import (
    CELLS,
    CODE,
    EXPONENT,
    FEATURES,
    FIRST_FLOAT,
    FLOATS,
    GROUPS,
    ITEM,
    OUTPUT,
    OUTPUTS,
    TARGET,
    TILE_ROWS,
    TRUE_UNITS,
    UNCLIPPED,
    UNITS,
)
from .score_row_loops import mean_error
from .score_scaling import doubles_at, read_tile, scale_tile

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
    features, units, cells = places[FEATURES], places[UNITS], places[CELLS]
    x = carray(doubles_at(x_address), (n_rows, features))
    inverse = np.float32(doubles[0])
    members = np.float64(last_member - first_member)
    n_units, outputs = places[TRUE_UNITS], places[OUTPUTS]
    unclipped = places[UNCLIPPED] != 0
    mode = flush_tiny_numbers()
    for start in range(0, n_rows, TILE_ROWS):
        rows = min(TILE_ROWS, n_rows - start)
        row = first_row + start
        read_tile(x, start, rows, cells, wide)
        for b in range(rows):
            scores[row + b] = 0.0
        if parts.shape[0] > 0:
            for b in range(rows):
                for j in range(features):
                    parts[row + b, j] = 0.0
        for m in range(first_member, last_member):
            member = places[FIRST_FLOAT] + m * places[FLOATS]
            set_float_mode(mode)  # columns of tiny values must be scaled exactly
            missing = scale_tile(wide, rows, doubles, m, places, unclipped, scratch)
            flush_tiny_numbers()
            set_exponentials(places, inverse, rows, scratch)
            box_products(floats, member, places, inverse, rows, missing, scratch, exponents)
            if logs.shape[0] > 0:
                bias = np.int32(127 * places[GROUPS])
                for b in range(rows):
                    first, power = places[CODE] + b * units, places[EXPONENT] + b * units
                    code = scratch[first : first + n_units]
                    exponent = exponents[power : power + n_units]
                    log_box = logs[row + b]
                    for k in range(n_units):
                        log_box[k] = -(np.float32(exponent[k] - bias) * _LN2 + log(code[k]))
            set_codes(places, places[CODE], places[EXPONENT], rows, scratch, exponents)
            decode(floats, member, places, places[CODE], rows, scratch, exponents)
            for b in range(rows):
                first, at = places[TARGET] + b * cells, places[OUTPUT] + b * outputs
                target, output = scratch[first : first + features], scratch[at : at + features]
                scores[row + b] += mean_error(
                    scratch.ctypes.data + first * ITEM,
                    scratch.ctypes.data + at * ITEM,
                    cells // LANES,
                )
                if parts.shape[0] > 0:
                    _add_parts(target, output, members, parts[row + b])
                if reconstructions.shape[0] > 0:
                    copied = reconstructions[(m - first_member) * scores.shape[0] + row + b]
                    for j in range(features):
                        copied[j] = output[j]
        for b in range(rows):
            scores[row + b] /= members
    set_float_mode(mode)


@compiled
def _add_parts(target, output, members, parts):
    """Add each feature's part of one member's error to parts (features,)."""
    present = 0
    for j in range(target.shape[0]):
        present += target[j] == target[j]
    for j in range(target.shape[0]):
        error = abs(np.float64(target[j]) - np.float64(output[j]))
        parts[j] += error / max(present, 1) / members if error == error else 0.0
