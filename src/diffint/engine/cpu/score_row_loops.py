"""The innermost loops of scoring over one row, as LLVM vector code.

Addresses and steps are in bytes.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .product_tile import LANES
from .vector_code import (
    BITS,
    FLOAT,
    INT,
    ITEM,
    VECTOR,
    WIDE,
    VectorBuilder,
    constant,
    fold,
    loop,
    splat,
)


@intrinsic
def scale_cells(
    _typing: Any,
    x: Any,
    offset: Any,
    divisor: Any,
    vectors: Any,
    clipped: Any,
    target: Any,
    low: Any,
    high: Any,
    lowest: Any,
    highest: Any,
) -> Any:
    """clipped = (x − offset) / divisor between low and high, target between lowest and highest.

    x, offset, divisor: addresses of `vectors` · LANES float64; clipped, target: of as many float32.
    NaN stays NaN. → the number of NaN
    """

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        x, offset, divisor, vectors, clipped, target, *ends = arguments
        emit = VectorBuilder(builder)
        low, high, lowest, highest = (splat(builder, end, WIDE) for end in ends)

        def clip(value: Any, lower: Any, upper: Any) -> Any:
            value = builder.select(builder.fcmp_ordered("<", value, lower), lower, value)
            value = builder.select(builder.fcmp_ordered(">", value, upper), upper, value)
            return builder.fptrunc(value, VECTOR)

        def body(i: Any, values: list[Any]) -> list[Any]:
            wide = builder.mul(i, emit.number(LANES * 8))
            narrow = builder.mul(i, emit.number(LANES * ITEM))
            value, start, range_ = (
                builder.load(emit.pointer(builder.add(a, wide), WIDE), align=8)
                for a in (x, offset, divisor)
            )
            scaled = builder.fdiv(builder.fsub(value, start), range_)
            emit.store(clip(scaled, low, high), builder.add(clipped, narrow))
            emit.store(clip(scaled, lowest, highest), builder.add(target, narrow))
            missing = builder.fcmp_unordered("uno", scaled, scaled)
            bits = builder.zext(builder.bitcast(missing, ir.IntType(LANES)), INT)
            # Padding is NaN as well; the caller subtracts it from the count.
            return [builder.add(values[0], builder.ctpop(bits))]

        return loop(builder, vectors, [emit.number(0)], body)[0]

    kinds = [types.int64] * 6 + [types.float64] * 4
    return types.int64(*kinds), generate


@intrinsic
def softmax_codes(
    _typing: Any,
    mantissa: Any,
    exponent: Any,
    seen: Any,
    vectors: Any,
    units: Any,
    smallest: Any,
) -> Any:
    """Replace a row's products by its codes, and add the codes to `seen`.

    mantissa, seen: addresses of `vectors` · LANES float32; exponent: of as many int32. A code is
    2^−exponent / mantissa, divided by the sum over the units; exponents are relative to the
    smallest. Values below `smallest` (float32) become 0 before the sum is taken. Units from `units`
    on are padding and get 0.
    """

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        mantissa, exponent, seen, vectors, units, floor = arguments
        emit = VectorBuilder(builder)
        lanes = ir.Constant(BITS, list(range(LANES)))
        floors, zero = splat(builder, floor, VECTOR), constant(VECTOR, 0.0)
        count = splat(builder, builder.trunc(units, ir.IntType(32)), BITS)

        def at(address: Any, i: Any) -> Any:
            return builder.add(address, builder.mul(i, emit.number(LANES * ITEM)))

        def minimum(a: Any, b: Any) -> Any:
            return builder.select(builder.icmp_signed("<", a, b), a, b)

        def powers(i: Any) -> Any:
            first = builder.trunc(builder.mul(i, emit.number(LANES)), ir.IntType(32))
            unit = builder.add(lanes, splat(builder, first, BITS))
            pads = builder.icmp_signed(">=", unit, count)
            never = constant(BITS, 1 << 29)
            return builder.select(pads, never, emit.load(at(exponent, i), BITS))

        def find_smallest(i: Any, values: list[Any]) -> list[Any]:
            return [minimum(values[0], powers(i))]

        start = constant(BITS, 1 << 29)
        nearest = fold(builder, loop(builder, vectors, [start], find_smallest)[0], minimum)
        nearest = splat(builder, nearest, BITS)

        def make_values(i: Any, values: list[Any]) -> list[Any]:
            gap = minimum(builder.sub(powers(i), nearest), constant(BITS, 64))
            bits = builder.shl(builder.sub(constant(BITS, 127), gap), constant(BITS, 23))
            place = at(mantissa, i)
            value = builder.fdiv(builder.bitcast(bits, VECTOR), emit.load(place))
            value = builder.select(builder.fcmp_ordered(">=", value, floors), value, zero)
            emit.store(value, place)
            return [builder.fadd(values[0], value)]

        total = loop(builder, vectors, [zero], make_values)[0]
        total = fold(builder, total, builder.fadd)
        scale = splat(builder, builder.fdiv(ir.Constant(FLOAT, 1.0), total), VECTOR)

        def divide(i: Any, _values: list[Any]) -> list[Any]:
            place, sums = at(mantissa, i), at(seen, i)
            value = builder.fmul(emit.load(place), scale)
            emit.store(value, place)
            emit.store(builder.fadd(emit.load(sums), value), sums)
            return []

        loop(builder, vectors, [], divide)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 5, types.float32), generate


@intrinsic
def total_error(_typing: Any, target: Any, output: Any, vectors: Any) -> Any:
    """Sum of absolute differences, in float64, where the target is not NaN.

    target, output: addresses of `vectors` · LANES float32.
    """

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        target, output, vectors = arguments
        emit = VectorBuilder(builder)
        zero = constant(WIDE, 0.0)

        def body(i: Any, values: list[Any]) -> list[Any]:
            step = builder.mul(i, emit.number(LANES * ITEM))
            wanted, given = (emit.load(builder.add(a, step)) for a in (target, output))
            error = builder.fsub(builder.fpext(wanted, WIDE), builder.fpext(given, WIDE))
            negative = builder.fcmp_ordered("<", error, zero)
            error = builder.select(negative, builder.fsub(zero, error), error)
            present = builder.fcmp_ordered("ord", wanted, wanted)
            return [builder.fadd(values[0], builder.select(present, error, zero))]

        return fold(builder, loop(builder, vectors, [zero], body)[0], builder.fadd)

    return types.float64(*[types.int64] * 3), generate


@intrinsic
def smallest_product(
    _typing: Any, mantissa: Any, exponent: Any, excluded: Any, vectors: Any
) -> Any:
    """Index of the first unit with the smallest product.

    mantissa: address of `vectors` · LANES float32; exponent, excluded: of as many int32. `excluded`
    is added to the exponents: 0, or NEVER for a unit that must not be chosen.
    """

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        mantissa, exponent, excluded, vectors = arguments
        emit = VectorBuilder(builder)

        def minimum(a: Any, b: Any) -> Any:
            return builder.select(builder.icmp_signed("<", a, b), a, b)

        def at(address: Any, i: Any) -> Any:
            return builder.add(address, builder.mul(i, emit.number(LANES * ITEM)))

        def power(i: Any) -> Any:
            powers = (emit.load(at(a, i), BITS) for a in (exponent, excluded))
            return builder.add(*powers)

        most = constant(BITS, 0x7FFFFFFF)
        nearest = loop(builder, vectors, [most], lambda i, v: [minimum(v[0], power(i))])[0]
        nearest = splat(builder, fold(builder, nearest, minimum), BITS)

        def key(i: Any) -> Any:
            """Exponent and mantissa in one integer that orders as the products do."""
            gap = minimum(builder.sub(power(i), nearest), constant(BITS, 255))
            bits = builder.and_(emit.load(at(mantissa, i), BITS), constant(BITS, 0x7FFFFF))
            return builder.or_(builder.shl(gap, constant(BITS, 23)), bits)

        lowest = loop(builder, vectors, [most], lambda i, v: [minimum(v[0], key(i))])[0]
        lowest = splat(builder, fold(builder, lowest, minimum), BITS)
        lanes = ir.Constant(BITS, list(range(LANES)))

        def find(i: Any, values: list[Any]) -> list[Any]:
            first = builder.trunc(builder.mul(i, emit.number(LANES)), ir.IntType(32))
            unit = builder.add(lanes, splat(builder, first, BITS))
            found = builder.select(builder.icmp_signed("==", key(i), lowest), unit, most)
            return [minimum(values[0], found)]

        found = fold(builder, loop(builder, vectors, [most], find)[0], minimum)
        return builder.sext(found, INT)

    return types.int64(*[types.int64] * 4), generate
