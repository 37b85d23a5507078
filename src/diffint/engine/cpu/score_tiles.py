"""The innermost loops of scoring over tiles of rows and units, as LLVM vector code.

Compiled from plain loops, running sums and products would be kept in memory instead of registers
(see also `product_tile` and `linear`). Addresses and steps are in bytes.
"""

from __future__ import annotations

from typing import Any

from llvmlite import binding, ir
from numba import config, types
from numba.extending import intrinsic

from .product_tile import LANES
from .vector_code import BITS, INT, ITEM, VECTOR, VectorBuilder, constant, fold, loop, splat


def _has_wide_registers() -> bool:
    """Whether code is compiled for AVX-512: twice as many registers, each of twice the width."""
    if config.CPU_FEATURES is not None:
        return "+avx512f" in config.CPU_FEATURES
    try:
        return bool(binding.get_host_cpu_features().get("avx512f"))
    except RuntimeError:  # unknown on this system
        return False


# Rows of a tile: enough independent sums to hide the latency of the instructions, and no more than
# fit in registers. Results do not depend on these numbers.
_WIDE_REGISTERS = _has_wide_registers()
SUM_ROWS = 8 if _WIDE_REGISTERS else 4
FACTOR_ROWS = 4
BOUNDED_ROWS = 4
DISTANCE_ROWS = 4


@intrinsic
def multiply_listed(
    _typing: Any,
    c: Any,
    c_step: Any,
    b: Any,
    b_step: Any,
    a: Any,
    a_step: Any,
    listed: Any,
    count: Any,
) -> Any:
    """A tile of SUM_ROWS × LANES of c += a @ b, over the listed inner indices only.

    listed: address of `count` ≥ 1 increasing int32. Each element is one chain of multiply-adds in
    the order of the list: leaving out an index where a is 0 changes no bit of the result.
    """

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        c, c_step, b, b_step, a, a_step, listed, count = arguments
        emit = VectorBuilder(builder)
        rows = range(SUM_ROWS)
        places = [emit.offset(c, c_step, r) for r in rows]
        start = [emit.load(place) for place in places]
        factor_rows = [emit.offset(a, a_step, r) for r in rows]

        def body(i: Any, sums: list[Any]) -> list[Any]:
            place = emit.pointer(emit.offset(listed, emit.number(ITEM), i), ir.IntType(32))
            k = builder.sext(builder.load(place), INT)
            column = emit.load(emit.offset(b, b_step, k))
            factors = (
                emit.load_splat(emit.offset(row, emit.number(ITEM), k)) for row in factor_rows
            )
            return [
                emit.multiply_add(factor, column, total)
                for factor, total in zip(factors, sums, strict=True)
            ]

        for place, total in zip(places, loop(builder, count, start, body), strict=True):
            emit.store(total, place)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 8), generate


@intrinsic
def multiply_factors(
    _typing: Any,
    u: Any,
    v: Any,
    cell_step: Any,
    p: Any,
    q: Any,
    c: Any,
    feature_step: Any,
    features: Any,
    mantissa: Any,
    exponent: Any,
    out_step: Any,
) -> Any:
    """∏ min(c + v·P + u·Q, 1e8) over features, for FACTOR_ROWS rows × LANES units.

    The same bits as `product_tile.multiply_features`, but for any number of features, without
    padding. The exponent contains float32's bias once for every four features and once for the
    rest.
    """

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        u, v, cell_step, p, q, c, feature_step, features = arguments[:8]
        mantissa, exponent, out_step = arguments[8:]
        emit = VectorBuilder(builder)
        rows = range(FACTOR_ROWS)
        most = constant(VECTOR, 1e8)
        up_rows = [emit.offset(u, cell_step, r) for r in rows]
        down_rows = [emit.offset(v, cell_step, r) for r in rows]

        def multiply(j: Any, products: list[Any]) -> list[Any]:
            low, up, inside = (emit.load(emit.offset(a, feature_step, j)) for a in (p, q, c))
            cell = builder.mul(j, emit.number(ITEM))
            following = []
            for r in rows:
                below = emit.load_splat(builder.add(down_rows[r], cell))
                above = emit.load_splat(builder.add(up_rows[r], cell))
                factor = emit.multiply_add(below, low, inside)
                factor = emit.multiply_add(above, up, factor)
                following.append(builder.fmul(products[r], emit.minimum(factor, most)))
            return following

        def split_exponents(
            products: list[Any], exponents: list[Any]
        ) -> tuple[list[Any], list[Any]]:
            parts = [emit.split(product) for product in products]
            powers = [builder.add(e, part[1]) for e, part in zip(exponents, parts, strict=True)]
            return [part[0] for part in parts], powers

        def group(i: Any, values: list[Any]) -> list[Any]:
            products, exponents = values[:FACTOR_ROWS], values[FACTOR_ROWS:]
            first = builder.mul(i, emit.number(4))
            for feature in range(4):
                products = multiply(builder.add(first, emit.number(feature)), products)
            # Four factors of at most 1e8 and a mantissa below 2 cannot overflow float32.
            products, exponents = split_exponents(products, exponents)
            return [*products, *exponents]

        one, zero = constant(VECTOR, 1.0), constant(BITS, 0)
        groups = builder.lshr(features, emit.number(2))
        values = loop(builder, groups, [one for _ in rows] + [zero for _ in rows], group)
        products, exponents = values[:FACTOR_ROWS], values[FACTOR_ROWS:]
        done = builder.mul(groups, emit.number(4))
        rest = builder.sub(features, done)
        products = loop(
            builder, rest, products, lambda j, running: multiply(builder.add(done, j), running)
        )
        # Without a rest this adds the bias of a product in [1, 2), which is subtracted below.
        products, exponents = split_exponents(products, exponents)
        none = builder.icmp_signed("==", rest, emit.number(0))
        bias = builder.select(
            none, ir.Constant(ir.IntType(32), 127), ir.Constant(ir.IntType(32), 0)
        )
        biases = splat(builder, bias, BITS)
        for r in rows:
            emit.store(products[r], emit.offset(mantissa, out_step, r))
            power = builder.sub(exponents[r], biases)
            emit.store(power, emit.offset(exponent, out_step, r), BITS)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 11), generate


@intrinsic
def multiply_bounded(
    _typing: Any,
    u: Any,
    v: Any,
    cell_step: Any,
    p: Any,
    q: Any,
    c: Any,
    feature_step: Any,
    features: Any,
    mantissa: Any,
    exponent: Any,
    out_step: Any,
    bound: Any,
) -> Any:
    """Multiply stored products by ∏ min(c + v·P + u·Q, bound) over `features` ≥ 1 features.

    For BOUNDED_ROWS rows × LANES units. bound**features must stay below 2¹²⁶. mantissa (float32 in
    [1, 2)) and exponent (int32, biased): addresses of the products, rows `out_step` bytes apart;
    bound: address of the bound.
    """

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        u, v, cell_step, p, q, c, feature_step, features = arguments[:8]
        mantissa, exponent, out_step, bound = arguments[8:]
        emit = VectorBuilder(builder)
        most = emit.load_splat(bound)
        mantissas, exponents = (
            [emit.offset(start, out_step, r) for r in range(BOUNDED_ROWS)]
            for start in (mantissa, exponent)
        )
        first = [emit.load(place) for place in mantissas]
        up_rows = [emit.offset(u, cell_step, r) for r in range(BOUNDED_ROWS)]
        down_rows = [emit.offset(v, cell_step, r) for r in range(BOUNDED_ROWS)]

        def body(j: Any, products: list[Any]) -> list[Any]:
            low, up, inside = (emit.load(emit.offset(a, feature_step, j)) for a in (p, q, c))
            cell = builder.mul(j, emit.number(ITEM))
            following = []
            for r in range(BOUNDED_ROWS):
                below = emit.load_splat(builder.add(down_rows[r], cell))
                above = emit.load_splat(builder.add(up_rows[r], cell))
                factor = emit.multiply_add(below, low, inside)
                factor = emit.multiply_add(above, up, factor)
                following.append(builder.fmul(products[r], emit.minimum(factor, most)))
            return following

        for r, product in enumerate(loop(builder, features, first, body)):
            left, power = emit.split(product)
            total = emit.load(exponents[r], BITS)
            emit.store(left, mantissas[r])
            emit.store(builder.add(total, power), exponents[r], BITS)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 12), generate


@intrinsic
def bound_groups(
    _typing: Any,
    values: Any,
    masks: Any,
    cell_step: Any,
    middle: Any,
    half: Any,
    features: Any,
    bounds: Any,
    bound_step: Any,
) -> Any:
    """Distances of DISTANCE_ROWS rows from LANES boxes, by the sum over features; 0 inside a box.

    values: float32 of the rows; masks: int32, all bits but the sign where there is a value, else 0;
    middle, half: addresses of the boxes' middles and half-widths, (features, LANES) float32;
    bounds: (rows, LANES).
    """

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        values, masks, cell_step, middle, half, features, bounds, bound_step = arguments
        emit = VectorBuilder(builder)
        rows = range(DISTANCE_ROWS)
        value_rows = [emit.offset(values, cell_step, r) for r in rows]
        mask_rows = [emit.offset(masks, cell_step, r) for r in rows]
        zero = constant(VECTOR, 0.0)

        def body(j: Any, sums: list[Any]) -> list[Any]:
            middles, halves = (
                emit.load(emit.offset(part, emit.number(LANES * ITEM), j))
                for part in (middle, half)
            )
            added = []
            for total, value_row, mask_row in zip(sums, value_rows, mask_rows, strict=True):
                value = emit.load_splat(emit.offset(value_row, emit.number(ITEM), j))
                away = emit.without_missing(
                    builder.fsub(value, middles), emit.offset(mask_row, emit.number(ITEM), j)
                )
                outside = emit.maximum(builder.fsub(away, halves), zero)
                added.append(builder.fadd(total, outside))
            return added

        sums = loop(builder, features, [zero] * DISTANCE_ROWS, body)
        for r, total in zip(rows, sums, strict=True):
            emit.store(total, emit.offset(bounds, bound_step, r))
        return context.get_dummy_value()

    return types.void(*[types.int64] * 8), generate


@intrinsic
def least_of(_typing: Any, values: Any, vectors: Any) -> Any:
    """Index of the least of `vectors` · LANES float32 at an address, the first of several."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        values, vectors = arguments
        emit = VectorBuilder(builder)
        lanes, step = ir.Constant(BITS, list(range(LANES))), constant(BITS, LANES)

        def body(i: Any, found: list[Any]) -> list[Any]:
            least, index, here = found
            value = emit.load(emit.offset(values, emit.number(LANES * ITEM), i))
            nearer = builder.fcmp_ordered("<", value, least)
            return [
                builder.select(nearer, value, least),
                builder.select(nearer, here, index),
                builder.add(here, step),
            ]

        start = [constant(VECTOR, float("inf")), constant(BITS, 0), lanes]
        least, index, _ = loop(builder, vectors, start, body)
        smallest = splat(builder, fold(builder, least, emit.minimum), VECTOR)
        is_least = builder.fcmp_ordered("==", least, smallest)
        index = builder.select(is_least, index, constant(BITS, 0x7FFFFFFF))

        def first(a: Any, b: Any) -> Any:
            return builder.select(builder.icmp_signed("<", a, b), a, b)

        return builder.sext(fold(builder, index, first), INT)

    return types.int64(types.int64, types.int64), generate


@intrinsic
def list_within(_typing: Any, values: Any, count: Any, limit: Any, listed: Any) -> Any:
    """List the indices of values that are not above a limit, in order. → their number

    values: address of `count` float32, padded to whole vectors; limit: float32; listed: address for
    int32.
    """

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        values, count, limit, listed = arguments
        emit = VectorBuilder(builder)
        limits = splat(builder, limit, VECTOR)
        lanes, most = emit.number(LANES), emit.number((1 << LANES) - 1)
        vectors = builder.sdiv(builder.add(count, emit.number(LANES - 1)), lanes)
        item, number = emit.number(ITEM), ir.IntType(32)

        def body(i: Any, written: list[Any]) -> list[Any]:
            value = emit.load(emit.offset(values, emit.number(LANES * ITEM), i))
            near = builder.fcmp_ordered("<=", value, limits)
            bits = builder.zext(builder.bitcast(near, ir.IntType(LANES)), INT)
            first = builder.mul(i, lanes)
            left = builder.sub(count, first)  # values from here on; the others are padding
            is_whole = builder.icmp_signed(">=", left, lanes)
            shift = builder.select(is_whole, emit.number(0), builder.sub(lanes, left))
            bits = builder.and_(bits, builder.lshr(most, shift))

            def write(_: Any, state: list[Any]) -> list[Any]:
                some, written = state
                place = builder.cttz(some, ir.Constant(ir.IntType(1), 0))
                index = builder.trunc(builder.add(first, place), number)
                builder.store(index, emit.pointer(emit.offset(listed, item, written), number))
                rest = builder.and_(some, builder.sub(some, emit.number(1)))
                return [rest, builder.add(written, emit.number(1))]

            return [loop(builder, builder.ctpop(bits), [bits, written[0]], write)[1]]

        return loop(builder, vectors, [emit.number(0)], body)[0]

    return types.int64(types.int64, types.int64, types.float32, types.int64), generate


@intrinsic
def find_nearer(
    _typing: Any,
    value: Any,
    mask: Any,
    kept: Any,
    features: Any,
    listed: Any,
    count: Any,
    smallest: Any,
    nearest: Any,
) -> Any:
    """Compare a row with the listed groups of LANES kept rows, by the sum of |value − kept|.

    value, mask: addresses of one row, see `bound_groups`; kept: address of (groups, features,
    LANES) float32; listed: address of `count` int32. smallest, nearest: (LANES,) float32 and int32,
    the smallest distance so far in each lane, and its group. → the smallest distance of all lanes
    """

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        value, mask, kept, features, listed, count, smallest, nearest = arguments
        emit = VectorBuilder(builder)
        one, item, vector = emit.number(1), emit.number(ITEM), emit.number(LANES * ITEM)
        pairs, rest = builder.lshr(features, one), builder.and_(features, one)
        last, group_step = builder.sub(features, one), builder.mul(features, vector)

        def compare(i: Any, found: list[Any]) -> list[Any]:
            before, groups = found
            group = builder.load(emit.pointer(emit.offset(listed, item, i), ir.IntType(32)))
            rows = emit.offset(kept, group_step, builder.sext(group, INT))

            def add(j: Any, total: Any) -> Any:
                column = emit.load(emit.offset(rows, vector, j))
                difference = builder.fsub(emit.load_splat(emit.offset(value, item, j)), column)
                distance = emit.without_missing(difference, emit.offset(mask, item, j))
                return builder.fadd(total, distance)

            def pair(k: Any, sums: list[Any]) -> list[Any]:
                j = builder.shl(k, one)
                return [add(j, sums[0]), add(builder.add(j, one), sums[1])]

            # Two sums, of even and of odd features: an addition need not wait for the one before.
            even, odd = loop(builder, pairs, [constant(VECTOR, 0.0)] * 2, pair)
            (even,) = loop(builder, rest, [even], lambda _, sums: [add(last, sums[0])])
            total = builder.fadd(even, odd)
            nearer = builder.fcmp_ordered("<", total, before)
            return [
                builder.select(nearer, total, before),
                builder.select(nearer, splat(builder, group, BITS), groups),
            ]

        start = [emit.load(smallest), emit.load(nearest, BITS)]
        best, groups = loop(builder, count, start, compare)
        emit.store(best, smallest)
        emit.store(groups, nearest, BITS)
        return fold(builder, best, emit.minimum)

    return types.float32(*[types.int64] * 8), generate
