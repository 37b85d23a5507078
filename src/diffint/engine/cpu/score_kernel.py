"""Rows to scores and explanations: all members in one compiled call with few arguments.

`packed_members.py` makes the vectors that the two entry points take, and says where in them things
lie; the constants below are the places in its vector of sizes. Rows go through in tiles of
TILE_ROWS, so that everything about a tile stays in the second-level cache while all members look
at it. No result depends on which rows are beside a row: sums run in the same order whatever the
tile, and what is left out of a sum is exactly 0.

Codes below CODE_FLOOR are set to 0 in every row by itself. Most units are far from a row, and a
unit that is 0 in all rows of a tile need not be decoded.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray, types
from numba.extending import intrinsic

from ...core.constants import BEYOND_WEIGHT, NORM_EPSILON
from ..kernel_cache import (
    bits_float,
    compiled,
    compiled_sums,
    float_bits,
    flush_tiny_numbers,
    set_float_mode,
)
from .intervals import exp, log
from .product_tile import LANES
from .score_tiles import (
    BOUNDED_ROWS,
    FACTOR_ROWS,
    SUM_ROWS,
    mean_error,
    multiply_bounded,
    multiply_factors,
    multiply_listed,
    scale_cells,
    smallest_product,
    softmax_codes,
)

TILE_ROWS = 32
DECODED_ROWS = 8  # of a tile, that one list of units serves
# A code below it counts as 0. Far below float32's resolution of a sum of codes (2⁻²⁴), so that no
# score changes by more than the order of its sums would change it.
CODE_FLOOR = 2.0**-30
BOUNDED_FEATURES = 16  # multiplied before the exponent is taken out: float32 holds as many bounds

# Places in the vector of sizes. Starts are within a member's part of the parameters, or within the
# scratch space.
FEATURES, UNITS, HIDDEN, OUTPUTS, MEMBERS = 0, 1, 2, 3, 4  # units, hidden and outputs as padded
CELLS, GROUPS, TRUE_UNITS, TRUE_HIDDEN = 5, 6, 7, 8  # cells: features as padded
CERTIFIED, BY_DIFFERENCE, CLIPS, UNCLIPPED = 9, 10, 11, 12
FLOATS, DOUBLES, FIRST_FLOAT, FIRST_DOUBLE = 13, 14, 15, 16  # sizes of a member's parts; starts
P, Q, C = 17, 18, 19  # or lower, upper and nothing
HIDDEN_WEIGHT, HIDDEN_BIAS, GAIN, SHIFT, OUTPUT_WEIGHT, OUTPUT_BIAS = 20, 21, 22, 23, 24, 25
BOX_LOWER, BOX_UPPER, CENTER, BOX_HALF_WIDTH = 26, 27, 28, 29
CLIPPED, TARGET, U, V, CODE, PRE, ACTIVATION, OUTPUT, SEEN = 30, 31, 32, 33, 34, 35, 36, 37, 38
EXPONENT, LISTED, EVERY = 39, 40, 41  # of the scratch space of int32
N_PLACES = 42

# Parts of a member's float64 parameters, in multiples of the padded features; a flag follows them.
OFFSET, DIVISOR, CONSTANT, LOWER, UPPER = 0, 1, 2, 3, 4
TO_FACTOR, TO_OFFSET = 5, 6  # back to original units: 0 where the member knows nothing
N_DOUBLES = 7

_UNCLIPPED_LIMIT, _APART = 1e15, 2.0  # as in `scaling`
_ITEM = 4  # bytes of a float32 or int32
# The largest code of a row is above 1/2 before it is divided by the sum: half the floor.
_SMALLEST = np.float32(CODE_FLOOR / 2)
NEVER = np.int32(1 << 29)  # an exponent that no box reaches
_MOST = np.float32(1e8)  # 1 / MIN_MEMBERSHIP
_MANTISSA, _ONE_BITS = np.int32(0x7FFFFF), np.int32(0x3F800000)
_ONE, _ZERO, _NAN = np.float32(1.0), np.float32(0.0), np.float32(np.nan)
_LN2 = np.float32(0.6931471805599453)
_TINY = np.float32(np.finfo(np.float32).tiny)


@intrinsic  # type: ignore[untyped-decorator]
def _doubles_at(_typing: Any, _address: Any) -> Any:
    kind = types.CPointer(types.float64)

    def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], context.get_value_type(kind))

    return kind(types.int64), generate


# --- Scaling -------------------------------------------------------------------------------------


@compiled
def _scale_row(row, doubles, start, places, unclipped, scratch, b):
    """Row b of the tile as the encoder and the error want it: as `Scaler.transform` does it.

    row: (padded features,) float64, NaN where it pads. `unclipped` says which of the two values of
    a map that clips is the target. → whether cells may be missing
    """
    features, cells = places[FEATURES], places[CELLS]
    low, high = doubles[start + LOWER * cells], doubles[start + UPPER * cells]
    lowest, highest = 2 * low - high, 2 * high - low
    clips = places[CLIPS] != 0
    if not clips:
        low, lowest = -_UNCLIPPED_LIMIT, -_UNCLIPPED_LIMIT
        high, highest = _UNCLIPPED_LIMIT, _UNCLIPPED_LIMIT
    if not unclipped:
        lowest, highest = low, high
    clipped, target = places[CLIPPED] + b * cells, places[TARGET] + b * cells
    missing = scale_cells(
        row.ctypes.data,
        doubles.ctypes.data + (start + OFFSET * cells) * 8,
        doubles.ctypes.data + (start + DIVISOR * cells) * 8,
        cells // LANES,
        scratch.ctypes.data + clipped * _ITEM,
        scratch.ctypes.data + target * _ITEM,
        low,
        high,
        lowest,
        highest,
    )
    if doubles[start + N_DOUBLES * cells] > 0.0:  # it has features without a range
        _scale_odd_cells(
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
def _scale_odd_cells(
    row, doubles, start, cells, clips, clipped, target, low, high, lowest, highest
):
    """The cells of constant and never-seen features."""
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
            apart = doubles[start + LOWER * cells + j] + _APART * side
            apart = low if apart < low else (high if apart > high else apart)
            clipped[j] = np.float32(apart)
            target[j] = np.float32(apart)
        elif value == constant:
            clipped[j] = np.float32(low)
            target[j] = np.float32(low)
        else:
            clipped[j] = np.float32(high)
            target[j] = np.float32(highest if value > constant else lowest)
            if highest == high:  # the error is that of the clipped row
                target[j] = np.float32(high)


# --- Encoder -------------------------------------------------------------------------------------


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
def _by_difference(cells, floats, lower, upper, places, inverse, most, mantissa, exponent):
    """A row's ∏_j min(1/I, most) where exponentials of the cells themselves would overflow.

    cells: (features,); lower, upper: where the bounds lie in floats; mantissa, exponent: (units,),
    filled as `multiply_factors` does.
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
def _take_out(c, mantissa, exponent):
    """Divide a missing cell's factor, which is c instead of 1, out of a row's products."""
    for k in range(c.shape[0]):
        bits = float_bits(mantissa[k] / c[k])
        exponent[k] += (bits >> np.int32(23)) - np.int32(127)
        mantissa[k] = bits_float((bits & _MANTISSA) | _ONE_BITS)


@compiled
def _take_out_missing(floats, member, places, code, exponent, rows, scratch, exponents):
    """Take the missing cells' factors out of the tile's products at `code` and `exponent`."""
    units, cells = places[UNITS], places[CELLS]
    for b in range(rows):
        for j in range(places[FEATURES]):
            if scratch[places[U] + b * cells + j] == _ZERO:
                start = member + places[C] + j * units
                _take_out(
                    floats[start : start + units],
                    scratch[code + b * units : code + (b + 1) * units],
                    exponents[exponent + b * units : exponent + (b + 1) * units],
                )


@compiled
def _products(floats, member, places, inverse, rows, missing, scratch, exponents):
    """∏_j 1/I of the tile's rows as mantissa, in place of the codes, and exponent."""
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
                _MOST,
                scratch[code + b * units : code + (b + 1) * units],
                exponents[exponent + b * units : exponent + (b + 1) * units],
            )
        return
    at, bounds = scratch.ctypes.data, floats.ctypes.data + member * _ITEM
    for b in range(0, rows, FACTOR_ROWS):
        for k in range(0, units, LANES):
            multiply_factors(
                at + (places[U] + b * cells) * _ITEM,
                at + (places[V] + b * cells) * _ITEM,
                cells * _ITEM,
                bounds + (places[P] + k) * _ITEM,
                bounds + (places[Q] + k) * _ITEM,
                bounds + (places[C] + k) * _ITEM,
                units * _ITEM,
                features,
                at + (code + b * units + k) * _ITEM,
                exponents.ctypes.data + (exponent + b * units + k) * _ITEM,
                units * _ITEM,
            )
    if missing:
        _take_out_missing(floats, member, places, code, exponent, rows, scratch, exponents)


@compiled
def _codes(places, code, exponent, rows, scratch, exponents):
    """Codes of the tile's rows in place of the mantissas at `code`, and the rows that only pad."""
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
            at + (code + b * units) * _ITEM,
            exponents.ctypes.data + (exponent + b * units) * _ITEM,
            at + (seen + b // DECODED_ROWS * units) * _ITEM,
            units // LANES,
            places[TRUE_UNITS],
            _SMALLEST,
        )


# --- Decoder -------------------------------------------------------------------------------------


@compiled
def _list_units(seen, listed):
    """List the units that have a code above 0 in a block of rows; (units,) both. → how many"""
    count = 0
    for k in range(seen.shape[0]):
        listed[count] = np.int32(k)
        count += 1 if seen[k] > _ZERO else 0
    return count


@compiled
def _start_with(scratch, first, rows, width, floats, start):
    """Every row of (rows, width) from first = floats[start : start + width]."""
    values = floats[start : start + width]
    for b in range(rows):
        row = scratch[first + b * width : first + (b + 1) * width]
        for i in range(width):
            row[i] = values[i]


@compiled_sums
def _normalise(pre, gain, shift, width, activation):
    """ReLU of the LayerNorm of pre, both (padded hidden,)."""
    total, squares = _ZERO, _ZERO
    # What pads is 0 before the mean is taken out.
    for i in range(pre.shape[0]):
        total += pre[i]
    mean = total / np.float32(width)
    for i in range(width):
        deviation = pre[i] - mean
        squares += deviation * deviation
    inverse = _ONE / np.sqrt(squares / np.float32(width) + np.float32(NORM_EPSILON))
    # Gain and shift of what pads are 0.
    for i in range(pre.shape[0]):
        activation[i] = max((pre[i] - mean) * inverse * gain[i] + shift[i], _ZERO)


@compiled
def _decode(floats, member, places, code, rows, scratch, exponents):
    """Reconstructions of the tile's rows from the codes at `code` in the scratch space."""
    units, hidden, outputs = places[UNITS], places[HIDDEN], places[OUTPUTS]
    full = (rows + DECODED_ROWS - 1) // DECODED_ROWS * DECODED_ROWS
    at, weights = scratch.ctypes.data, floats.ctypes.data + member * _ITEM
    lists = exponents.ctypes.data
    pre, activation, output = places[PRE], places[ACTIVATION], places[OUTPUT]
    _start_with(scratch, pre, full, hidden, floats, member + places[HIDDEN_BIAS])
    for b in range(0, full, DECODED_ROWS):
        listed, seen = places[LISTED], places[SEEN] + b // DECODED_ROWS * units
        count = _list_units(scratch[seen : seen + units], exponents[listed : listed + units])
        for n in range(0, hidden, LANES):
            for row in range(b, b + DECODED_ROWS, SUM_ROWS):
                multiply_listed(
                    at + (pre + row * hidden + n) * _ITEM,
                    hidden * _ITEM,
                    weights + (places[HIDDEN_WEIGHT] + n) * _ITEM,
                    hidden * _ITEM,
                    at + (code + row * units) * _ITEM,
                    units * _ITEM,
                    lists + listed * _ITEM,
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
    _start_with(scratch, output, full, outputs, floats, member + places[OUTPUT_BIAS])
    for n in range(0, outputs, LANES):
        for b in range(0, full, SUM_ROWS):
            multiply_listed(
                at + (output + b * outputs + n) * _ITEM,
                outputs * _ITEM,
                weights + (places[OUTPUT_WEIGHT] + n) * _ITEM,
                outputs * _ITEM,
                at + (activation + b * hidden) * _ITEM,
                hidden * _ITEM,
                lists + places[EVERY] * _ITEM,
                hidden,
            )


# --- Scores --------------------------------------------------------------------------------------


@compiled
def _add_parts(target, output, members, parts):
    """Add each feature's part of one member's error to parts (features,)."""
    present = 0
    for j in range(target.shape[0]):
        present += target[j] == target[j]
    for j in range(target.shape[0]):
        error = abs(np.float64(target[j]) - np.float64(output[j]))
        parts[j] += error / max(present, 1) / members if error == error else 0.0


@compiled
def _read_tile(x, start, rows, cells, wide):
    """Copy rows of x to the head of wide, (rows, padded features); what pads there is NaN."""
    for b in range(rows):
        row, copied = x[start + b], wide[b * cells : (b + 1) * cells]
        for j in range(row.shape[0]):
            copied[j] = row[j]


@compiled
def _scale_tile(wide, rows, doubles, member, places, unclipped, scratch):
    """Scale the tile's rows for one member. → whether any cell may be missing"""
    cells = places[CELLS]
    first = places[FIRST_DOUBLE] + member * places[DOUBLES]
    missing = False
    for b in range(rows):
        row = wide[b * cells : (b + 1) * cells]
        missing |= _scale_row(row, doubles, first, places, unclipped, scratch, b)
    return missing


@compiled
def _set_exponentials(places, inverse, rows, scratch):
    """The exponentials of the tile's cells; of whole blocks of rows, whatever the rest holds."""
    if places[BY_DIFFERENCE]:
        return
    size = (rows + 3) // 4 * 4 * places[CELLS]
    clipped, u, v = places[CLIPPED], places[U], places[V]
    _exponentials(
        scratch[clipped : clipped + size], inverse, scratch[u : u + size], scratch[v : v + size]
    )


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
    """Scores of n_rows rows by the members first_member..last_member.

    x_address: of the rows (n_rows, features), float64, in C order; a number, because numba would
    compile once more for an array that is read-only. The results of row i go to place
    first_row + i of

    scores: (rows,), filled; and, unless they are empty,
    parts: (rows, features), filled with each feature's part of the score,
    reconstructions: (members · rows, features) float32, one member after the other, scaled,
    logs: (rows, units) float32, the log box memberships of the last member.
    """
    features, units, cells = places[FEATURES], places[UNITS], places[CELLS]
    x = carray(_doubles_at(x_address), (n_rows, features))
    inverse = np.float32(doubles[0])
    members = np.float64(last_member - first_member)
    n_units, outputs = places[TRUE_UNITS], places[OUTPUTS]
    unclipped = places[UNCLIPPED] != 0
    mode = flush_tiny_numbers()
    for start in range(0, n_rows, TILE_ROWS):
        rows = min(TILE_ROWS, n_rows - start)
        row = first_row + start
        _read_tile(x, start, rows, cells, wide)
        for b in range(rows):
            scores[row + b] = 0.0
        if parts.shape[0] > 0:
            for b in range(rows):
                for j in range(features):
                    parts[row + b, j] = 0.0
        for m in range(first_member, last_member):
            member = places[FIRST_FLOAT] + m * places[FLOATS]
            set_float_mode(mode)  # a column of tiny values is scaled as exactly as any other
            missing = _scale_tile(wide, rows, doubles, m, places, unclipped, scratch)
            flush_tiny_numbers()
            _set_exponentials(places, inverse, rows, scratch)
            _products(floats, member, places, inverse, rows, missing, scratch, exponents)
            if logs.shape[0] > 0:
                bias = np.int32(127 * places[GROUPS])
                for b in range(rows):
                    first, power = places[CODE] + b * units, places[EXPONENT] + b * units
                    code = scratch[first : first + n_units]
                    exponent = exponents[power : power + n_units]
                    log_box = logs[row + b]
                    for k in range(n_units):
                        log_box[k] = -(np.float32(exponent[k] - bias) * _LN2 + log(code[k]))
            _codes(places, places[CODE], places[EXPONENT], rows, scratch, exponents)
            _decode(floats, member, places, places[CODE], rows, scratch, exponents)
            for b in range(rows):
                first, at = places[TARGET] + b * cells, places[OUTPUT] + b * outputs
                target, output = scratch[first : first + features], scratch[at : at + features]
                scores[row + b] += mean_error(
                    scratch.ctypes.data + first * _ITEM,
                    scratch.ctypes.data + at * _ITEM,
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


# --- Explanations --------------------------------------------------------------------------------


@compiled
def _bounded_products(floats, member, places, inverse, rows, missing, scratch, exponents):
    """∏_j min(1/I, bound) of the tile's rows; the bound is the first number of floats."""
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
    at, weights = scratch.ctypes.data, floats.ctypes.data + member * _ITEM
    for b in range(0, rows, BOUNDED_ROWS):
        for k in range(0, units, LANES):
            for j in range(0, features, BOUNDED_FEATURES):
                multiply_bounded(
                    at + (places[U] + b * cells + j) * _ITEM,
                    at + (places[V] + b * cells + j) * _ITEM,
                    cells * _ITEM,
                    weights + (places[P] + j * units + k) * _ITEM,
                    weights + (places[Q] + j * units + k) * _ITEM,
                    weights + (places[C] + j * units + k) * _ITEM,
                    units * _ITEM,
                    min(BOUNDED_FEATURES, features - j),
                    at + (code + b * units + k) * _ITEM,
                    exponents.ctypes.data + (exponent + b * units + k) * _ITEM,
                    units * _ITEM,
                    floats.ctypes.data,
                )
    if missing:  # c is below 2 and the bound is not: what is taken out was not bounded
        _take_out_missing(floats, member, places, code, exponent, rows, scratch, exponents)


@compiled
def _reach(target, floats, member, places, unit):
    """How far a row is from the center of its unit's box, in half-widths, where it is farthest."""
    features = target.shape[0]
    first, half = member + places[CENTER], member + places[BOX_HALF_WIDTH]
    center = floats[first + unit * features : first + (unit + 1) * features]
    half_width = floats[half + unit * features : half + (unit + 1) * features]
    farthest = 0.0
    for j in range(features):
        distance = abs(np.float64(target[j]) - np.float64(center[j]))
        ratio = distance / np.float64(max(half_width[j], _TINY))
        farthest = ratio if ratio > farthest else farthest  # not of a missing cell
    return farthest


@compiled
def _set_excess(target, floats, member, places, unit, excess):
    """How far each value is beyond its unit's box: above 0 above, below 0 below; (features,)"""
    features = target.shape[0]
    low, up = member + places[BOX_LOWER], member + places[BOX_UPPER]
    lower = floats[low + unit * features : low + (unit + 1) * features]
    upper = floats[up + unit * features : up + (unit + 1) * features]
    for j in range(features):
        above, below = target[j] - upper[j], target[j] - lower[j]
        excess[j] = above if above > _ZERO else (below if below < _ZERO else _ZERO)


@compiled
def _add_responsibility(target, output, doubles, start, cells, expected, responsibility):
    """Add one member's reconstruction, in original units, and how far the row is from it.

    A member that has never seen a feature adds 0 to what is expected of it.
    """
    lower = doubles[start + LOWER * cells : start + (LOWER + 1) * cells]
    upper = doubles[start + UPPER * cells : start + (UPPER + 1) * cells]
    factor = doubles[start + TO_FACTOR * cells : start + (TO_FACTOR + 1) * cells]
    offset = doubles[start + TO_OFFSET * cells : start + (TO_OFFSET + 1) * cells]
    for j in range(target.shape[0]):
        value, made = np.float64(target[j]), np.float64(output[j])
        nearest = lower[j] if value < lower[j] else (upper[j] if value > upper[j] else value)
        away = abs(value - made) + BEYOND_WEIGHT * abs(value - nearest)
        responsibility[j] += away if away == away else 0.0  # 0 for a missing cell
        expected[j] += made * factor[j] + offset[j]


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
    units_of,
    middle,
    excess,
):
    """Responsibilities and nearest patterns of rows, by robust memberships.

    x_address, n_rows, first_row: as in `score_rows`. excluded: (members · units,) int32, NEVER for
    units that are not patterns; wide: scratch space of float64. Filled: expected, responsibility:
    (rows, features), unless they are empty; units_of: (rows, members) int64, each member's own
    unit; middle: (rows,) int64, the member whose pattern is reported; excess: (rows, features)
    float32.
    """
    features, units, cells = places[FEATURES], places[UNITS], places[CELLS]
    x = carray(_doubles_at(x_address), (n_rows, features))
    inverse = np.float32(doubles[0])
    members, outputs = places[MEMBERS], places[OUTPUTS]
    reaches = TILE_ROWS * cells  # in wide, after the rows themselves
    knowing = doubles[1 : 1 + features]
    attributes = expected.shape[0] > 0
    unclipped = features > 0  # always; a constant would have the functions compiled once more
    mode = flush_tiny_numbers()
    for start in range(0, n_rows, TILE_ROWS):
        rows = min(TILE_ROWS, n_rows - start)
        row = first_row + start
        _read_tile(x, start, rows, cells, wide)
        if attributes:
            for b in range(rows):
                for j in range(features):
                    expected[row + b, j] = 0.0
                    responsibility[row + b, j] = 0.0
        for m in range(members):
            member = places[FIRST_FLOAT] + m * places[FLOATS]
            first_double = places[FIRST_DOUBLE] + m * places[DOUBLES]
            set_float_mode(mode)
            missing = _scale_tile(wide, rows, doubles, m, places, unclipped, scratch)
            flush_tiny_numbers()
            _set_exponentials(places, inverse, rows, scratch)
            _bounded_products(floats, member, places, inverse, rows, missing, scratch, exponents)
            for b in range(rows):
                first, power = places[CODE] + b * units, places[EXPONENT] + b * units
                unit = smallest_product(
                    scratch.ctypes.data + first * _ITEM,
                    exponents.ctypes.data + power * _ITEM,
                    excluded.ctypes.data + m * units * _ITEM,
                    units // LANES,
                )
                target = places[TARGET] + b * cells
                units_of[row + b, m] = unit
                wide[reaches + b * members + m] = _reach(
                    scratch[target : target + features], floats, member, places, unit
                )
            if not attributes:
                continue
            _codes(places, places[CODE], places[EXPONENT], rows, scratch, exponents)
            _decode(floats, member, places, places[CODE], rows, scratch, exponents)
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
            at = reaches + b * members
            reach = wide[at : at + members]
            chosen = 0
            for m in range(members):
                before = 0
                for other in range(members):
                    nearer = reach[other] < reach[m] or (reach[other] == reach[m] and other < m)
                    before += 1 if nearer else 0
                chosen = m if before == (members - 1) // 2 else chosen
            middle[row + b] = chosen
            set_float_mode(mode)
            target = places[TARGET] + b * cells
            first = places[FIRST_DOUBLE] + chosen * places[DOUBLES]
            x_row = wide[b * cells : (b + 1) * cells]
            _scale_row(x_row, doubles, first, places, unclipped, scratch, b)
            flush_tiny_numbers()
            _set_excess(
                scratch[target : target + features],
                floats,
                places[FIRST_FLOAT] + chosen * places[FLOATS],
                places,
                units_of[row + b, chosen],
                excess[row + b],
            )
            if attributes:
                for j in range(features):
                    count = max(knowing[j], 1.0)
                    responsibility[row + b, j] /= count
                    value = expected[row + b, j] / count
                    expected[row + b, j] = value if knowing[j] > 0.0 else np.nan
    set_float_mode(mode)
