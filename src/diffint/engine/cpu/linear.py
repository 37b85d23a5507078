"""A matrix product for small matrices, as fast as BLAS at these sizes.

Instead of BLAS, because BLAS has its own threads: calling it from several threads, after a fork or
together with other thread pools is not safe everywhere, and its sums may depend on the number of
rows. Here every element is one chain of multiply-adds in the order of the inner index.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ..kernel_cache import compiled
from .product_tile import LANES

TILE_ROWS = 8  # times one vector of columns: enough sums to hide a multiply-add's latency
_BLOCK_ROWS = 128  # of the left factor, kept in the second-level cache
_BLOCK_INNER = 256  # of the right factor's column panel, kept in the first-level cache
_ITEM = 4  # bytes of a float32

_INT, _FLOAT = ir.IntType(64), ir.FloatType()
_VECTOR = ir.VectorType(_FLOAT, LANES)
_FIRST_LANE = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)


@intrinsic
def _multiply_tile(
    _typing: Any,
    c: Any,
    c_step: Any,
    b: Any,
    b_step: Any,
    a: Any,
    a_row_step: Any,
    a_inner_step: Any,
    inner: Any,
) -> Any:
    """A tile of TILE_ROWS × LANES of c += a @ b; addresses and steps in bytes, inner ≥ 1.

    In LLVM vector code, because compiled from a plain loop the sums would be kept in memory, and
    loads and stores would limit the speed to a third.
    """

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        c, c_step, b, b_step, a, a_row_step, a_inner_step, inner = arguments

        def pointer(address: Any, kind: Any) -> Any:
            return builder.inttoptr(address, kind.as_pointer())

        def offset(address: Any, step: Any, times: Any) -> Any:
            return builder.add(address, builder.mul(step, times))

        places = [
            pointer(offset(c, c_step, ir.Constant(_INT, r)), _VECTOR) for r in range(TILE_ROWS)
        ]
        start = [builder.load(place, align=_ITEM) for place in places]
        before = builder.block
        loop = builder.append_basic_block("inner")
        after = builder.append_basic_block("store")
        builder.branch(loop)

        builder.position_at_end(loop)
        k = builder.phi(_INT)
        k.add_incoming(ir.Constant(_INT, 0), before)
        sums = [builder.phi(_VECTOR) for _ in places]
        column = builder.load(pointer(offset(b, b_step, k), _VECTOR), align=_ITEM)
        factors = offset(a, a_inner_step, k)
        contract = ("contract",)  # a multiply-add may be one instruction
        for r, (total, first) in enumerate(zip(sums, start, strict=True)):
            place = pointer(offset(factors, a_row_step, ir.Constant(_INT, r)), _FLOAT)
            undefined = ir.Constant(_VECTOR, ir.Undefined)
            zero = ir.Constant(ir.IntType(32), 0)
            single = builder.insert_element(undefined, builder.load(place), zero)
            factor = builder.shuffle_vector(single, undefined, _FIRST_LANE)
            product = builder.fmul(factor, column, flags=contract)
            total.add_incoming(first, before)
            total.add_incoming(builder.fadd(total, product, flags=contract), loop)
        following = builder.add(k, ir.Constant(_INT, 1))
        k.add_incoming(following, loop)
        builder.cbranch(builder.icmp_signed("<", following, inner), loop, after)

        builder.position_at_end(after)
        for place, total in zip(places, sums, strict=True):
            builder.store(total.incomings[1][0], place, align=_ITEM)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 8), generate


@compiled
def multiply_add(a, b, c):
    """c += a @ b.

    a: (m, k), possibly a transposed view; b: (k, n); c: (m, n); rows of b and c contiguous.
    m is a multiple of TILE_ROWS and n of LANES.
    """
    rows, inner = a.shape
    a_row_step, a_inner_step = a.strides
    b_step, c_step = b.strides[0], c.strides[0]
    a_start, b_start, c_start = a.ctypes.data, b.ctypes.data, c.ctypes.data
    for k in range(0, inner, _BLOCK_INNER):
        for first in range(0, rows, _BLOCK_ROWS):
            for n in range(0, c.shape[1], LANES):
                for i in range(first, min(first + _BLOCK_ROWS, rows), TILE_ROWS):
                    _multiply_tile(
                        c_start + i * c_step + n * _ITEM,
                        c_step,
                        b_start + k * b_step + n * _ITEM,
                        b_step,
                        a_start + i * a_row_step + k * a_inner_step,
                        a_row_step,
                        a_inner_step,
                        min(_BLOCK_INNER, inner - k),
                    )


@compiled
def whole_tiles(rows):
    """`rows` rounded up to a multiple of TILE_ROWS."""
    return (rows + TILE_ROWS - 1) // TILE_ROWS * TILE_ROWS


@compiled
def fill(array, value):
    """array[:, :] = value"""
    for i in range(array.shape[0]):
        for j in range(array.shape[1]):
            array[i, j] = value


@compiled
def start_with(c, row):
    """Set every row of c to `row`."""
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            c[i, j] = row[j]


@compiled
def transpose(a, out, first, last):
    """Copy rows first..last of a to columns first..last of out."""
    for i in range(first, last):
        for j in range(a.shape[1]):
            out[j, i] = a[i, j]
