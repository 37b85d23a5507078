"""The innermost loops of scoring and explaining, as vector code.

Plain loops would keep the running sums and products in memory; `intervals/product_tile.py` and
`linear.py` say more. Addresses and steps are in bytes.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ..intervals.product_tile import LANES

DECODED_ROWS = 8  # times one vector of columns: enough sums to hide a multiply-add's latency
BOUNDED_ROWS = 4  # times one vector of units and BOUNDS products
BOUNDS = 3  # how many floors a membership is bounded by at a time
_ITEM = 4  # bytes of a float32

_INT, _FLOAT = ir.IntType(64), ir.FloatType()
_VECTOR = ir.VectorType(_FLOAT, LANES)
_BITS = ir.VectorType(ir.IntType(32), LANES)
_FIRST_LANE = ir.Constant(_BITS, [0] * LANES)
_CONTRACT = ("contract",)  # a multiply-add may be one instruction


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
    """A tile of DECODED_ROWS × LANES of c += a @ b, over the listed inner indices alone.

    listed: address of `count` ≥ 1 increasing int32. Each element is one chain of multiply-adds in
    the order of the list: an index left out where a is 0 changes no bit.
    """

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        c, c_step, b, b_step, a, a_step, listed, count = arguments
        code = _Code(builder)
        rows = range(DECODED_ROWS)
        places = [code.offset(c, c_step, r) for r in rows]
        start = [code.vector(place) for place in places]
        factor_rows = [code.offset(a, a_step, r) for r in rows]
        before = builder.block
        loop = builder.append_basic_block("listed")
        after = builder.append_basic_block("store")
        builder.branch(loop)

        builder.position_at_end(loop)
        i = builder.phi(_INT)
        i.add_incoming(code.number(0), before)
        sums = [builder.phi(_VECTOR) for _ in rows]
        place = code.pointer(code.offset(listed, code.number(_ITEM), i), ir.IntType(32))
        k = builder.sext(builder.load(place), _INT)
        column = code.vector(code.offset(b, b_step, k))
        for r in rows:
            factor = code.splat(code.offset(factor_rows[r], code.number(_ITEM), k))
            sums[r].add_incoming(start[r], before)
            sums[r].add_incoming(code.multiply_add(factor, column, sums[r]), loop)
        following = builder.add(i, code.number(1))
        i.add_incoming(following, loop)
        builder.cbranch(builder.icmp_signed("<", following, count), loop, after)

        builder.position_at_end(after)
        for r in rows:
            code.store(sums[r].incomings[1][0], places[r])
        return context.get_dummy_value()

    return types.void(*[types.int64] * 8), generate


@intrinsic  # type: ignore[untyped-decorator]
def multiply_bounded(
    _typing: Any,
    u: Any,
    v: Any,
    cell_step: Any,
    p: Any,
    q: Any,
    feature_step: Any,
    features: Any,
    mantissa: Any,
    exponent: Any,
    out_step: Any,
    bound_step: Any,
    bounds: Any,
) -> Any:
    """Products over features of min((1 + v·P)·(1 + u·Q), bound), for BOUNDS bounds at once.

    For BOUNDED_ROWS rows × LANES units and `features` ≥ 1 features, few enough that the product
    of as many bounds stays below 2¹²⁶. What is stored as mantissa (float32 in [1, 2)) is multiplied
    on, and the biased exponents (int32) are added to; rows lie `out_step`, bounds `bound_step`
    bytes apart. bounds: address of BOUNDS float32.
    """

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        (u, v, cell_step, p, q, feature_step, features) = arguments[:7]
        (mantissa, exponent, out_step, bound_step, bounds) = arguments[7:]
        code = _Code(builder)

        def bits(value: int) -> Any:
            return ir.Constant(_BITS, [value] * LANES)

        one = ir.Constant(_VECTOR, [1.0] * LANES)
        tile = [(r, f) for r in range(BOUNDED_ROWS) for f in range(BOUNDS)]
        most = [code.splat(code.offset(bounds, code.number(_ITEM), f)) for f in range(BOUNDS)]

        def place(start: Any, r: int, f: int) -> Any:
            return code.offset(code.offset(start, out_step, r), bound_step, f)

        first = [code.vector(place(mantissa, r, f)) for r, f in tile]
        up_rows = [code.offset(u, cell_step, r) for r in range(BOUNDED_ROWS)]
        down_rows = [code.offset(v, cell_step, r) for r in range(BOUNDED_ROWS)]
        before = builder.block
        loop = builder.append_basic_block("features")
        after = builder.append_basic_block("store")
        builder.branch(loop)

        builder.position_at_end(loop)
        j = builder.phi(_INT)
        j.add_incoming(code.number(0), before)
        products = [builder.phi(_VECTOR) for _ in tile]
        low = code.vector(code.offset(p, feature_step, j))
        up = code.vector(code.offset(q, feature_step, j))
        cell = builder.mul(j, code.number(_ITEM))
        for r in range(BOUNDED_ROWS):
            below = code.splat(builder.add(down_rows[r], cell))
            above = code.splat(builder.add(up_rows[r], cell))
            factor = builder.fmul(
                code.multiply_add(below, low, one), code.multiply_add(above, up, one)
            )
            for f in range(BOUNDS):
                kept = builder.select(builder.fcmp_ordered("<", factor, most[f]), factor, most[f])
                product = products[r * BOUNDS + f]
                product.add_incoming(first[r * BOUNDS + f], before)
                product.add_incoming(builder.fmul(product, kept), loop)
        following = builder.add(j, code.number(1))
        j.add_incoming(following, loop)
        builder.cbranch(builder.icmp_signed("<", following, features), loop, after)

        builder.position_at_end(after)
        for (r, f), product in zip(tile, products, strict=True):
            raw = builder.bitcast(product.incomings[1][0], _BITS)
            total = code.vector(place(exponent, r, f), _BITS)
            total = builder.add(total, builder.lshr(raw, bits(23)))
            left = builder.or_(builder.and_(raw, bits(0x7FFFFF)), bits(0x3F800000))
            code.store(left, place(mantissa, r, f), _BITS)
            code.store(total, place(exponent, r, f), _BITS)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 12), generate


_WIDE = ir.VectorType(ir.DoubleType(), LANES)
_TRUTHS = ir.VectorType(ir.IntType(1), LANES)


def _loop(builder: Any, count: Any, starts: list[Any], body: Any) -> list[Any]:
    """`for i in range(count)` with running values; count ≥ 1.

    body(i, values) → the next values; → the last ones
    """
    before = builder.block
    loop = builder.append_basic_block("loop")
    after = builder.append_basic_block("after")
    builder.branch(loop)
    builder.position_at_end(loop)
    i = builder.phi(_INT)
    i.add_incoming(ir.Constant(_INT, 0), before)
    values = [builder.phi(start.type) for start in starts]
    following = body(i, values)
    for value, start, next_value in zip(values, starts, following, strict=True):
        value.add_incoming(start, before)
        value.add_incoming(next_value, loop)
    step = builder.add(i, ir.Constant(_INT, 1))
    i.add_incoming(step, loop)
    builder.cbranch(builder.icmp_signed("<", step, count), loop, after)
    builder.position_at_end(after)
    return following  # type: ignore[no-any-return]


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
