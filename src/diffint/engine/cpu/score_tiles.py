"""The innermost loops of scoring and explaining, as vector code.

Plain loops would keep the running sums and products in memory; `intervals/product_tile.py` and
`linear.py` say more. Addresses and steps are in bytes.
"""

from __future__ import annotations

from typing import Any

from llvmlite import binding, ir
from numba import config, types
from numba.extending import intrinsic

from .product_tile import LANES


def _has_wide_registers() -> bool:
    """Whether code is compiled for AVX-512: twice as many registers, each of one whole vector."""
    if config.CPU_FEATURES is not None:
        return "+avx512f" in config.CPU_FEATURES
    try:
        return bool(binding.get_host_cpu_features().get("avx512f"))
    except RuntimeError:  # not known of this system
        return False


# Rows of a tile: enough running values to hide the latency of the instructions, and no more than
# there are registers. What comes out does not depend on them.
_WIDE_REGISTERS = _has_wide_registers()
SUM_ROWS = 8 if _WIDE_REGISTERS else 4
FACTOR_ROWS = 4
BOUNDED_ROWS = 4
_ITEM = 4  # bytes of a float32

_INT, _FLOAT = ir.IntType(64), ir.FloatType()
_VECTOR = ir.VectorType(_FLOAT, LANES)
_BITS = ir.VectorType(ir.IntType(32), LANES)
_FIRST_LANE = ir.Constant(_BITS, [0] * LANES)
_WIDE = ir.VectorType(ir.DoubleType(), LANES)
_CONTRACT = ("contract",)  # a multiply-add may be one instruction


def _loop(builder: Any, count: Any, starts: list[Any], body: Any) -> list[Any]:
    """`for i in range(count)` with running values.

    body(i, values) → the next values; → the last ones
    """
    before = builder.block
    check = builder.append_basic_block("check")
    loop = builder.append_basic_block("loop")
    after = builder.append_basic_block("after")
    builder.branch(check)
    builder.position_at_end(check)
    i = builder.phi(_INT)
    values = [builder.phi(start.type) for start in starts]
    builder.cbranch(builder.icmp_signed("<", i, count), loop, after)
    builder.position_at_end(loop)
    following = body(i, values)
    step = builder.add(i, ir.Constant(_INT, 1))
    i.add_incoming(ir.Constant(_INT, 0), before)
    i.add_incoming(step, loop)
    for value, start, next_value in zip(values, starts, following, strict=True):
        value.add_incoming(start, before)
        value.add_incoming(next_value, loop)
    builder.branch(check)
    builder.position_at_end(after)
    return values


def _fold(builder: Any, vector: Any, combine: Any) -> Any:
    """All lanes of a vector as one value, halves first: always in the same order."""
    lanes = ir.VectorType(ir.IntType(32), LANES)
    undefined = ir.Constant(vector.type, ir.Undefined)
    width = LANES // 2
    while width:
        upper = ir.Constant(lanes, [(i + width) % LANES for i in range(LANES)])
        vector = combine(vector, builder.shuffle_vector(vector, undefined, upper))
        width //= 2
    return builder.extract_element(vector, ir.Constant(ir.IntType(32), 0))


def _constant(kind: Any, value: Any) -> Any:
    return ir.Constant(kind, [value] * LANES)


def _splat(builder: Any, value: Any, kind: Any) -> Any:
    undefined = ir.Constant(kind, ir.Undefined)
    single = builder.insert_element(undefined, value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(single, undefined, _FIRST_LANE)


class _Code:
    """What the generators below have in common."""

    def __init__(self, builder: Any) -> None:
        self.builder = builder

    def number(self, value: int) -> Any:
        return ir.Constant(_INT, value)

    def pointer(self, address: Any, kind: Any) -> Any:
        return self.builder.inttoptr(address, kind.as_pointer())

    def offset(self, address: Any, step: Any, times: Any) -> Any:
        if isinstance(times, int):
            times = self.number(times)
        return self.builder.add(address, self.builder.mul(step, times))

    def vector(self, address: Any, kind: Any = _VECTOR) -> Any:
        return self.builder.load(self.pointer(address, kind), align=_ITEM)

    def splat(self, address: Any) -> Any:
        """The float at an address, in every lane."""
        value = self.builder.load(self.pointer(address, _FLOAT))
        undefined = ir.Constant(_VECTOR, ir.Undefined)
        zero = ir.Constant(ir.IntType(32), 0)
        single = self.builder.insert_element(undefined, value, zero)
        return self.builder.shuffle_vector(single, undefined, _FIRST_LANE)

    def multiply_add(self, a: Any, b: Any, c: Any) -> Any:
        """a·b + c"""
        product = self.builder.fmul(a, b, flags=_CONTRACT)
        return self.builder.fadd(c, product, flags=_CONTRACT)

    def least(self, a: Any, b: Any) -> Any:
        """The smaller of two vectors of float32, lane by lane."""
        return self.builder.select(self.builder.fcmp_ordered("<", a, b), a, b)

    def split(self, product: Any) -> tuple[Any, Any]:
        """Positive numbers as mantissa in [1, 2) and exponent, with float32's bias of 127."""
        builder = self.builder
        raw = builder.bitcast(product, _BITS)
        mantissa = builder.and_(raw, _constant(_BITS, 0x7FFFFF))
        mantissa = builder.or_(mantissa, _constant(_BITS, 0x3F800000))
        return builder.bitcast(mantissa, _VECTOR), builder.lshr(raw, _constant(_BITS, 23))

    def store(self, value: Any, address: Any, kind: Any = _VECTOR) -> None:
        self.builder.store(value, self.pointer(address, kind), align=_ITEM)


@intrinsic  # type: ignore[untyped-decorator]
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
    """A tile of SUM_ROWS × LANES of c += a @ b, over the listed inner indices alone.

    listed: address of `count` ≥ 1 increasing int32. Each element is one chain of multiply-adds in
    the order of the list: an index left out where a is 0 changes no bit.
    """

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        c, c_step, b, b_step, a, a_step, listed, count = arguments
        code = _Code(builder)
        rows = range(SUM_ROWS)
        places = [code.offset(c, c_step, r) for r in rows]
        start = [code.vector(place) for place in places]
        factor_rows = [code.offset(a, a_step, r) for r in rows]

        def body(i: Any, sums: list[Any]) -> list[Any]:
            place = code.pointer(code.offset(listed, code.number(_ITEM), i), ir.IntType(32))
            k = builder.sext(builder.load(place), _INT)
            column = code.vector(code.offset(b, b_step, k))
            factors = (code.splat(code.offset(row, code.number(_ITEM), k)) for row in factor_rows)
            return [
                code.multiply_add(factor, column, total)
                for factor, total in zip(factors, sums, strict=True)
            ]

        for place, total in zip(places, _loop(builder, count, start, body), strict=True):
            code.store(total, place)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 8), generate


@intrinsic  # type: ignore[untyped-decorator]
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

    As `product_tile.multiply_features`, to the bit, but for any number of features: none pads. The
    exponent holds float32's bias once for every four features and once for the rest.
    """

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        u, v, cell_step, p, q, c, feature_step, features = arguments[:8]
        mantissa, exponent, out_step = arguments[8:]
        code = _Code(builder)
        rows = range(FACTOR_ROWS)
        most = _constant(_VECTOR, 1e8)
        up_rows = [code.offset(u, cell_step, r) for r in rows]
        down_rows = [code.offset(v, cell_step, r) for r in rows]

        def multiply(j: Any, products: list[Any]) -> list[Any]:
            low, up, inside = (code.vector(code.offset(a, feature_step, j)) for a in (p, q, c))
            cell = builder.mul(j, code.number(_ITEM))
            following = []
            for r in rows:
                below = code.splat(builder.add(down_rows[r], cell))
                above = code.splat(builder.add(up_rows[r], cell))
                factor = code.multiply_add(below, low, inside)
                factor = code.multiply_add(above, up, factor)
                following.append(builder.fmul(products[r], code.least(factor, most)))
            return following

        def take_out(products: list[Any], exponents: list[Any]) -> tuple[list[Any], list[Any]]:
            parts = [code.split(product) for product in products]
            powers = [builder.add(e, part[1]) for e, part in zip(exponents, parts, strict=True)]
            return [part[0] for part in parts], powers

        def group(i: Any, values: list[Any]) -> list[Any]:
            products, exponents = values[:FACTOR_ROWS], values[FACTOR_ROWS:]
            first = builder.mul(i, code.number(4))
            for feature in range(4):
                products = multiply(builder.add(first, code.number(feature)), products)
            # Four factors of at most 1e8 and a mantissa below 2 cannot overflow float32.
            products, exponents = take_out(products, exponents)
            return [*products, *exponents]

        one, zero = _constant(_VECTOR, 1.0), _constant(_BITS, 0)
        groups = builder.lshr(features, code.number(2))
        values = _loop(builder, groups, [one for _ in rows] + [zero for _ in rows], group)
        products, exponents = values[:FACTOR_ROWS], values[FACTOR_ROWS:]
        done = builder.mul(groups, code.number(4))
        rest = builder.sub(features, done)
        products = _loop(
            builder, rest, products, lambda j, running: multiply(builder.add(done, j), running)
        )
        # Without a rest this adds the bias of a product in [1, 2), and is taken back.
        products, exponents = take_out(products, exponents)
        none = builder.icmp_signed("==", rest, code.number(0))
        bias = builder.select(
            none, ir.Constant(ir.IntType(32), 127), ir.Constant(ir.IntType(32), 0)
        )
        biases = _splat(builder, bias, _BITS)
        for r in rows:
            code.store(products[r], code.offset(mantissa, out_step, r))
            power = builder.sub(exponents[r], biases)
            code.store(power, code.offset(exponent, out_step, r), _BITS)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 11), generate


@intrinsic  # type: ignore[untyped-decorator]
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
    """Products over features of min(c + v·P + u·Q, bound).

    For BOUNDED_ROWS rows × LANES units and `features` ≥ 1 features, few enough that the product
    of as many bounds stays below 2¹²⁶. The stored mantissas (float32 in [1, 2)) are multiplied, the
    biased exponents (int32) are added to; rows lie `out_step` bytes apart. bound: its address.
    """

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        u, v, cell_step, p, q, c, feature_step, features = arguments[:8]
        mantissa, exponent, out_step, bound = arguments[8:]
        code = _Code(builder)
        most = code.splat(bound)
        mantissas, exponents = (
            [code.offset(start, out_step, r) for r in range(BOUNDED_ROWS)]
            for start in (mantissa, exponent)
        )
        first = [code.vector(place) for place in mantissas]
        up_rows = [code.offset(u, cell_step, r) for r in range(BOUNDED_ROWS)]
        down_rows = [code.offset(v, cell_step, r) for r in range(BOUNDED_ROWS)]

        def body(j: Any, products: list[Any]) -> list[Any]:
            low, up, inside = (code.vector(code.offset(a, feature_step, j)) for a in (p, q, c))
            cell = builder.mul(j, code.number(_ITEM))
            following = []
            for r in range(BOUNDED_ROWS):
                below = code.splat(builder.add(down_rows[r], cell))
                above = code.splat(builder.add(up_rows[r], cell))
                factor = code.multiply_add(below, low, inside)
                factor = code.multiply_add(above, up, factor)
                following.append(builder.fmul(products[r], code.least(factor, most)))
            return following

        for r, product in enumerate(_loop(builder, features, first, body)):
            left, power = code.split(product)
            total = code.vector(exponents[r], _BITS)
            code.store(left, mantissas[r])
            code.store(builder.add(total, power), exponents[r], _BITS)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 12), generate


@intrinsic  # type: ignore[untyped-decorator]
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
    NaN stays NaN. → whether there is any
    """

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        x, offset, divisor, vectors, clipped, target, *ends = arguments
        code = _Code(builder)
        low, high, lowest, highest = (_splat(builder, end, _WIDE) for end in ends)

        def bounded(value: Any, least: Any, most: Any) -> Any:
            value = builder.select(builder.fcmp_ordered("<", value, least), least, value)
            value = builder.select(builder.fcmp_ordered(">", value, most), most, value)
            return builder.fptrunc(value, _VECTOR)

        def body(i: Any, values: list[Any]) -> list[Any]:
            wide = builder.mul(i, code.number(LANES * 8))
            narrow = builder.mul(i, code.number(LANES * _ITEM))
            value, start, range_ = (
                builder.load(code.pointer(builder.add(a, wide), _WIDE), align=8)
                for a in (x, offset, divisor)
            )
            scaled = builder.fdiv(builder.fsub(value, start), range_)
            code.store(bounded(scaled, low, high), builder.add(clipped, narrow))
            code.store(bounded(scaled, lowest, highest), builder.add(target, narrow))
            missing = builder.fcmp_unordered("uno", scaled, scaled)
            bits = builder.zext(builder.bitcast(missing, ir.IntType(LANES)), _INT)
            # Padding is missing as well: count what the caller did not put there.
            return [builder.add(values[0], builder.ctpop(bits))]

        return _loop(builder, vectors, [code.number(0)], body)[0]

    kinds = [types.int64] * 6 + [types.float64] * 4
    return types.int64(*kinds), generate


@intrinsic  # type: ignore[untyped-decorator]
def softmax_codes(
    _typing: Any,
    mantissa: Any,
    exponent: Any,
    seen: Any,
    vectors: Any,
    units: Any,
    smallest: Any,
) -> Any:
    """Codes from products, in place of the mantissas, and added to `seen`.

    mantissa, seen: addresses of `vectors` · LANES float32; exponent: of as many int32. A code is
    2^−exponent / mantissa over its sum. Exponents are taken from the smallest; units from `units`
    on only pad and get 0, and so do those whose value is below `smallest` (float32), before the
    sum is taken.
    """

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        mantissa, exponent, seen, vectors, units, floor = arguments
        code = _Code(builder)
        lanes = ir.Constant(_BITS, list(range(LANES)))
        floors, zero = _splat(builder, floor, _VECTOR), _constant(_VECTOR, 0.0)
        count = _splat(builder, builder.trunc(units, ir.IntType(32)), _BITS)

        def at(address: Any, i: Any) -> Any:
            return builder.add(address, builder.mul(i, code.number(LANES * _ITEM)))

        def least(a: Any, b: Any) -> Any:
            return builder.select(builder.icmp_signed("<", a, b), a, b)

        def powers(i: Any) -> Any:
            first = builder.trunc(builder.mul(i, code.number(LANES)), ir.IntType(32))
            unit = builder.add(lanes, _splat(builder, first, _BITS))
            pads = builder.icmp_signed(">=", unit, count)
            never = _constant(_BITS, 1 << 29)
            return builder.select(pads, never, code.vector(at(exponent, i), _BITS))

        def find_smallest(i: Any, values: list[Any]) -> list[Any]:
            return [least(values[0], powers(i))]

        start = _constant(_BITS, 1 << 29)
        nearest = _fold(builder, _loop(builder, vectors, [start], find_smallest)[0], least)
        nearest = _splat(builder, nearest, _BITS)

        def make_values(i: Any, values: list[Any]) -> list[Any]:
            gap = least(builder.sub(powers(i), nearest), _constant(_BITS, 64))
            bits = builder.shl(builder.sub(_constant(_BITS, 127), gap), _constant(_BITS, 23))
            place = at(mantissa, i)
            value = builder.fdiv(builder.bitcast(bits, _VECTOR), code.vector(place))
            value = builder.select(builder.fcmp_ordered(">=", value, floors), value, zero)
            code.store(value, place)
            return [builder.fadd(values[0], value)]

        total = _loop(builder, vectors, [zero], make_values)[0]
        total = _fold(builder, total, builder.fadd)
        scale = _splat(builder, builder.fdiv(ir.Constant(_FLOAT, 1.0), total), _VECTOR)

        def divide(i: Any, _values: list[Any]) -> list[Any]:
            place, sums = at(mantissa, i), at(seen, i)
            value = builder.fmul(code.vector(place), scale)
            code.store(value, place)
            code.store(builder.fadd(code.vector(sums), value), sums)
            return []

        _loop(builder, vectors, [], divide)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 5, types.float32), generate


@intrinsic  # type: ignore[untyped-decorator]
def mean_error(_typing: Any, target: Any, output: Any, vectors: Any) -> Any:
    """Mean absolute difference, in float64, where the target is no NaN; 0 where it always is.

    target, output: addresses of `vectors` · LANES float32.
    """

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        target, output, vectors = arguments
        code = _Code(builder)
        zero, one = _constant(_WIDE, 0.0), _constant(_WIDE, 1.0)

        def body(i: Any, values: list[Any]) -> list[Any]:
            step = builder.mul(i, code.number(LANES * _ITEM))
            wanted, made = (code.vector(builder.add(a, step)) for a in (target, output))
            error = builder.fsub(builder.fpext(wanted, _WIDE), builder.fpext(made, _WIDE))
            negative = builder.fcmp_ordered("<", error, zero)
            error = builder.select(negative, builder.fsub(zero, error), error)
            present = builder.fcmp_ordered("ord", wanted, wanted)
            return [
                builder.fadd(values[0], builder.select(present, error, zero)),
                builder.fadd(values[1], builder.select(present, one, zero)),
            ]

        total, present = _loop(builder, vectors, [zero, zero], body)
        total, present = (_fold(builder, value, builder.fadd) for value in (total, present))
        none = builder.fcmp_ordered("<", present, ir.Constant(ir.DoubleType(), 1.0))
        present = builder.select(none, ir.Constant(ir.DoubleType(), 1.0), present)
        return builder.fdiv(total, present)

    return types.float64(*[types.int64] * 3), generate


@intrinsic  # type: ignore[untyped-decorator]
def smallest_product(
    _typing: Any, mantissa: Any, exponent: Any, excluded: Any, vectors: Any
) -> Any:
    """The first unit with the smallest product.

    mantissa, exponent, excluded: addresses of `vectors` · LANES float32 and int32; `excluded` is
    added to the exponents: 0, or so much that the unit is not chosen.
    """

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        mantissa, exponent, excluded, vectors = arguments
        code = _Code(builder)

        def least(a: Any, b: Any) -> Any:
            return builder.select(builder.icmp_signed("<", a, b), a, b)

        def at(address: Any, i: Any) -> Any:
            return builder.add(address, builder.mul(i, code.number(LANES * _ITEM)))

        def power(i: Any) -> Any:
            powers = (code.vector(at(a, i), _BITS) for a in (exponent, excluded))
            return builder.add(*powers)

        most = _constant(_BITS, 0x7FFFFFFF)
        nearest = _loop(builder, vectors, [most], lambda i, v: [least(v[0], power(i))])[0]
        nearest = _splat(builder, _fold(builder, nearest, least), _BITS)

        def key(i: Any) -> Any:
            """Exponent and mantissa in one number, as the bits of a float have them."""
            gap = least(builder.sub(power(i), nearest), _constant(_BITS, 255))
            bits = builder.and_(code.vector(at(mantissa, i), _BITS), _constant(_BITS, 0x7FFFFF))
            return builder.or_(builder.shl(gap, _constant(_BITS, 23)), bits)

        lowest = _loop(builder, vectors, [most], lambda i, v: [least(v[0], key(i))])[0]
        lowest = _splat(builder, _fold(builder, lowest, least), _BITS)
        lanes = ir.Constant(_BITS, list(range(LANES)))

        def find(i: Any, values: list[Any]) -> list[Any]:
            first = builder.trunc(builder.mul(i, code.number(LANES)), ir.IntType(32))
            unit = builder.add(lanes, _splat(builder, first, _BITS))
            found = builder.select(builder.icmp_signed("==", key(i), lowest), unit, most)
            return [least(values[0], found)]

        found = _fold(builder, _loop(builder, vectors, [most], find)[0], least)
        return builder.sext(found, _INT)

    return types.int64(*[types.int64] * 4), generate
