"""LLVM vector code: the pieces from which the innermost loops of scoring are built."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from .product_tile import LANES

ITEM = 4  # bytes of a float32

INT, FLOAT = ir.IntType(64), ir.FloatType()
VECTOR = ir.VectorType(FLOAT, LANES)
BITS = ir.VectorType(ir.IntType(32), LANES)
_FIRST_LANE = ir.Constant(BITS, [0] * LANES)
WIDE = ir.VectorType(ir.DoubleType(), LANES)
_CONTRACT = ("contract",)  # a multiply-add may be one instruction


def loop(builder: Any, count: Any, starts: list[Any], body: Any) -> list[Any]:
    """`for i in range(count)` with values that each pass replaces.

    starts: the values before the first pass; body(i, values) → the next values. → the last values
    """
    before = builder.block
    check = builder.append_basic_block("check")
    inside = builder.append_basic_block("inside")
    after = builder.append_basic_block("after")
    builder.branch(check)
    builder.position_at_end(check)
    i = builder.phi(INT)
    values = [builder.phi(start.type) for start in starts]
    builder.cbranch(builder.icmp_signed("<", i, count), inside, after)
    builder.position_at_end(inside)
    following = body(i, values)
    last = builder.block  # not `inside` if the body has a loop of its own
    step = builder.add(i, ir.Constant(INT, 1))
    i.add_incoming(ir.Constant(INT, 0), before)
    i.add_incoming(step, last)
    for value, start, next_value in zip(values, starts, following, strict=True):
        value.add_incoming(start, before)
        value.add_incoming(next_value, last)
    builder.branch(check)
    builder.position_at_end(after)
    return values


def fold(builder: Any, vector: Any, combine: Any) -> Any:
    """Combine all lanes of a vector into one value, by halves: always in the same order."""
    lanes = ir.VectorType(ir.IntType(32), LANES)
    undefined = ir.Constant(vector.type, ir.Undefined)
    width = LANES // 2
    while width:
        upper = ir.Constant(lanes, [(i + width) % LANES for i in range(LANES)])
        vector = combine(vector, builder.shuffle_vector(vector, undefined, upper))
        width //= 2
    return builder.extract_element(vector, ir.Constant(ir.IntType(32), 0))


def constant(kind: Any, value: Any) -> Any:
    """A vector with the same constant in every lane."""
    return ir.Constant(kind, [value] * LANES)


def splat(builder: Any, value: Any, kind: Any) -> Any:
    """A vector with the same value in every lane."""
    undefined = ir.Constant(kind, ir.Undefined)
    single = builder.insert_element(undefined, value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(single, undefined, _FIRST_LANE)


class VectorBuilder:
    """Loads, stores and arithmetic on vectors. Addresses and steps are in bytes."""

    def __init__(self, builder: Any) -> None:
        self.builder = builder

    def number(self, value: int) -> Any:
        """An int64 constant."""
        return ir.Constant(INT, value)

    def pointer(self, address: Any, kind: Any) -> Any:
        """A pointer to a value of type `kind`."""
        return self.builder.inttoptr(address, kind.as_pointer())

    def offset(self, address: Any, step: Any, times: Any) -> Any:
        """address + step · times"""
        if isinstance(times, int):
            times = self.number(times)
        return self.builder.add(address, self.builder.mul(step, times))

    def load(self, address: Any, kind: Any = VECTOR) -> Any:
        """The vector at an address."""
        return self.builder.load(self.pointer(address, kind), align=ITEM)

    def load_splat(self, address: Any) -> Any:
        """The float at an address, in every lane."""
        value = self.builder.load(self.pointer(address, FLOAT))
        undefined = ir.Constant(VECTOR, ir.Undefined)
        zero = ir.Constant(ir.IntType(32), 0)
        single = self.builder.insert_element(undefined, value, zero)
        return self.builder.shuffle_vector(single, undefined, _FIRST_LANE)

    def multiply_add(self, a: Any, b: Any, c: Any) -> Any:
        """a·b + c"""
        product = self.builder.fmul(a, b, flags=_CONTRACT)
        return self.builder.fadd(c, product, flags=_CONTRACT)

    def minimum(self, a: Any, b: Any) -> Any:
        """The smaller of two vectors of float32, lane by lane."""
        return self.builder.select(self.builder.fcmp_ordered("<", a, b), a, b)

    def maximum(self, a: Any, b: Any) -> Any:
        """The larger of two vectors of float32, lane by lane."""
        return self.builder.select(self.builder.fcmp_ordered(">", a, b), a, b)

    def without_missing(self, difference: Any, mask: Any) -> Any:
        """|difference|, or 0 where the cell is missing. mask: address of the cell's bit mask"""
        bits = self.builder.bitcast(self.load_splat(mask), BITS)
        size = self.builder.and_(self.builder.bitcast(difference, BITS), bits)
        return self.builder.bitcast(size, VECTOR)

    def split(self, product: Any) -> tuple[Any, Any]:
        """Positive numbers as mantissas in [1, 2) and exponents with float32's bias of 127."""
        builder = self.builder
        raw = builder.bitcast(product, BITS)
        mantissa = builder.and_(raw, constant(BITS, 0x7FFFFF))
        mantissa = builder.or_(mantissa, constant(BITS, 0x3F800000))
        return builder.bitcast(mantissa, VECTOR), builder.lshr(raw, constant(BITS, 23))

    def store(self, value: Any, address: Any, kind: Any = VECTOR) -> None:
        """Write a vector to an address."""
        self.builder.store(value, self.pointer(address, kind), align=ITEM)
