"""The innermost loop of the forward pass in training, as LLVM vector code.

For a few rows and one vector of units it multiplies c + v·P + u·Q, c = 1 + P·Q, over all features.
The running products stay in registers; compiled from a plain loop they would be kept in memory.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

LANES = 16
TILE_ROWS = 4
_ITEM = 4  # bytes of a float32

_INT, _FLOAT = ir.IntType(64), ir.FloatType()
_VECTOR = ir.VectorType(_FLOAT, LANES)
_BITS = ir.VectorType(ir.IntType(32), LANES)
_FIRST_LANE = ir.Constant(_BITS, [0] * LANES)


@intrinsic
def multiply_features(
    _typing: Any,
    u: Any,
    v: Any,
    row_step: Any,
    p: Any,
    q: Any,
    c: Any,
    feature_step: Any,
    groups: Any,
    mantissa: Any,
    exponent: Any,
    out_step: Any,
) -> Any:
    """Products over 4·groups features for TILE_ROWS rows × LANES units; groups ≥ 1.

    u, v: addresses of the rows' exponentials, `row_step` bytes apart; p, q, c: addresses of the
    units' exponentials, `feature_step` bytes apart. Every factor is clamped at 1e8. Stores the
    product as mantissa (float32 in [1, 2)) and biased exponents (int32, Σ over groups), rows
    `out_step` bytes apart.
    """

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        u, v, row_step, p, q, c, feature_step, groups, mantissa, exponent, out_step = arguments

        def pointer(address: Any, kind: Any) -> Any:
            return builder.inttoptr(address, kind.as_pointer())

        def offset(address: Any, step: Any, times: int) -> Any:
            return builder.add(address, builder.mul(step, ir.Constant(_INT, times)))

        def splat(value: Any) -> Any:
            undefined = ir.Constant(_VECTOR, ir.Undefined)
            zero = ir.Constant(ir.IntType(32), 0)
            single = builder.insert_element(undefined, value, zero)
            return builder.shuffle_vector(single, undefined, _FIRST_LANE)

        def constant(value: float) -> Any:
            return ir.Constant(_VECTOR, [value] * LANES)

        def bits(value: int) -> Any:
            return ir.Constant(_BITS, [value] * LANES)

        one, most = constant(1.0), constant(1e8)
        contract = ("contract",)
        rows = range(TILE_ROWS)
        before = builder.block
        loop = builder.append_basic_block("features")
        after = builder.append_basic_block("store")
        builder.branch(loop)

        builder.position_at_end(loop)
        group = builder.phi(_INT)
        group.add_incoming(ir.Constant(_INT, 0), before)
        running = [builder.phi(_VECTOR) for _ in rows]
        exponents = [builder.phi(_BITS) for _ in rows]
        for r in rows:
            running[r].add_incoming(one, before)
            exponents[r].add_incoming(bits(0), before)
        cells = builder.mul(group, ir.Constant(_INT, 4 * _ITEM))
        bounds = builder.mul(builder.mul(group, ir.Constant(_INT, 4)), feature_step)
        u_cells, v_cells = builder.add(u, cells), builder.add(v, cells)
        p_bounds, q_bounds, c_bounds = (builder.add(a, bounds) for a in (p, q, c))
        products: list[Any] = list(running)
        for feature in range(4):
            low, up, inside = (
                builder.load(pointer(offset(a, feature_step, feature), _VECTOR), align=_ITEM)
                for a in (p_bounds, q_bounds, c_bounds)
            )
            for r in rows:
                place = builder.add(
                    builder.mul(row_step, ir.Constant(_INT, r)), ir.Constant(_INT, feature * _ITEM)
                )
                below = splat(builder.load(pointer(builder.add(v_cells, place), _FLOAT)))
                above = splat(builder.load(pointer(builder.add(u_cells, place), _FLOAT)))
                factor = builder.fadd(
                    inside, builder.fmul(below, low, flags=contract), flags=contract
                )
                factor = builder.fadd(
                    factor, builder.fmul(above, up, flags=contract), flags=contract
                )
                clamped = builder.select(builder.fcmp_ordered("<", factor, most), factor, most)
                products[r] = builder.fmul(products[r], clamped)
        # Four factors of at most 1e8 and a mantissa below 2 cannot overflow float32.
        ends = []
        for r in rows:
            raw = builder.bitcast(products[r], _BITS)
            total = builder.add(exponents[r], builder.lshr(raw, bits(23)))
            kept = builder.or_(builder.and_(raw, bits(0x7FFFFF)), bits(0x3F800000))
            left = builder.bitcast(kept, _VECTOR)
            running[r].add_incoming(left, loop)
            exponents[r].add_incoming(total, loop)
            ends.append((left, total))
        following = builder.add(group, ir.Constant(_INT, 1))
        group.add_incoming(following, loop)
        builder.cbranch(builder.icmp_signed("<", following, groups), loop, after)

        builder.position_at_end(after)
        for r, (left, total) in enumerate(ends):
            builder.store(left, pointer(offset(mantissa, out_step, r), _VECTOR), align=_ITEM)
            builder.store(total, pointer(offset(exponent, out_step, r), _BITS), align=_ITEM)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 11), generate
