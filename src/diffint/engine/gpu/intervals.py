"""The fused interval layer on the GPU: Triton kernels for all runs at once.

The mathematics is that of `cpu/intervals.py`: u = e^(x/τ), v = e^(−x/τ), P = e^(lower/τ),
Q = e^(−upper/τ) and 1/I = (1 + v·P)·(1 + u·Q), the product over features kept as mantissa and
exponent. Elements (row, unit, feature) are kept in registers and never written to memory.

Where |x|/τ exceeds the safe range of the exponentials, the same kernels work by difference: u is
then x, v is 1 where x is present, P and Q are lower and upper.

Every kernel reads its step from a plan: line ``base + index`` of ``plan`` (lines, runs, 2) is
(first index into ``orders``, rows in the batch), and of ``rates`` (lines, runs, 3) is (learning
rate, Adam's two bias corrections). A run without rows in a line does not change. ``base`` is stored
on the device, so that one captured graph works for every part of the plan.

Shapes: u, v (runs, features4, batch); p, q (runs, features4, units); log_box, upstream
(runs, batch, units); x (runs, batch, out). Units and out are padded to multiples of 16,
features4 to multiples of 4 and the batch to whole blocks, with cells that contribute nothing.
"""

from __future__ import annotations

import os

import numpy as np
import triton
import triton.language as tl

# Triton's interpreter runs the kernels without a GPU, but does not support inline assembly.
_INTERPRETED = tl.constexpr(os.environ.get("TRITON_INTERPRET") == "1")

# Arguments that vary between tables or between steps of a graph: without this, Triton would compile
# every kernel again when one of them is 1 or a multiple of 16.
VARYING = (
    "index",
    "runs",
    "n_features",
    "features4",
    "n_units",
    "n_hidden",
    "hidden_tiles",
    "output_tiles",
    "row_blocks",
)

_MAX_RECIPROCAL = tl.constexpr(1e8)  # 1 / MIN_MEMBERSHIP
_EXPONENT_LIMIT = tl.constexpr(49.0)  # as in `cpu/intervals.py`
_LN2 = tl.constexpr(0.6931471805599453)
_LN2_HIGH = tl.constexpr(0.693359375)
_LN2_LOW = tl.constexpr(-2.12194440e-4)
_LOG2_E = tl.constexpr(1.4426950408889634)

_BETA1 = tl.constexpr(float(np.float32(0.9)))
_BETA2 = tl.constexpr(float(np.float32(0.999)))
_REST1 = tl.constexpr(1.0 - float(np.float32(0.9)))
_REST2 = tl.constexpr(1.0 - float(np.float32(0.999)))
_ADAM_EPSILON = tl.constexpr(1e-8)


@triton.jit
def _exp(x):
    """e^x to about 1e-7, with range reduction, because 2^(x·log2 e) alone loses digits of x."""
    n = tl.floor(x * _LOG2_E + 0.5)
    r = x - n * _LN2_HIGH - n * _LN2_LOW
    return tl.exp2(r * _LOG2_E) * tl.exp2(n)


@triton.jit
def _reciprocal(x):
    """1/x of a normal number, with an error of one unit in the last place."""
    if _INTERPRETED:
        result = 1.0 / x
    else:
        result = tl.inline_asm_elementwise(
            "rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
        )
    return result


@triton.jit
def adam(parameter, moment1, moment2, at, mask, gradient, rates, factor):
    """One Adam update of ``parameter[at]`` at `factor` times the rate; returns the new values."""
    rate, correction1, correction2 = tl.load(rates), tl.load(rates + 1), tl.load(rates + 2)
    rate *= factor
    m = _BETA1 * tl.load(moment1 + at, mask=mask, other=0.0) + _REST1 * gradient
    s = _BETA2 * tl.load(moment2 + at, mask=mask, other=0.0) + _REST2 * gradient * gradient
    tl.store(moment1 + at, m, mask=mask)
    tl.store(moment2 + at, s, mask=mask)
    value = tl.load(parameter + at, mask=mask, other=0.0)
    value -= rate * (m / correction1) / (tl.sqrt(s / correction2) + _ADAM_EPSILON)
    tl.store(parameter + at, value, mask=mask)
    return value


@triton.jit(do_not_specialize=VARYING)
def gather_rows(
    data,
    run_start,
    orders,
    plan,
    base,
    index,
    runs,
    x,
    u,
    v,
    batch,
    n_features,
    features4,
    out,
    inverse_temperature,
    BY_DIFFERENCE: tl.constexpr,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_FEATURES: tl.constexpr,
):
    """Fill x, u and v with the batch of this step; rows and features beyond it are missing cells.

    data: (all rows of all runs, features); run_start: (runs,) each run's first row.
    """
    b = tl.program_id(0) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    j = tl.program_id(1) * BLOCK_FEATURES + tl.arange(0, BLOCK_FEATURES)
    run = tl.program_id(2).to(tl.int64)
    line = plan + ((tl.load(base) + index) * runs + run) * 2
    inside = b < tl.load(line + 1)
    row = tl.load(orders + tl.load(line) + b, mask=inside, other=0) + tl.load(run_start + run)
    mask = inside[:, None] & (j < n_features)[None, :]
    value = tl.load(data + row[:, None] * n_features + j[None, :], mask=mask, other=float("nan"))
    tl.store(x + (run * batch + b)[:, None] * out + j[None, :], value, mask=(j < out)[None, :])
    present = value == value
    value = tl.where(present, value, 0.0)
    if BY_DIFFERENCE:
        first, second = value, present.to(tl.float32)
    else:
        value *= inverse_temperature
        first, second = tl.where(present, _exp(value), 0.0), tl.where(present, _exp(-value), 0.0)
    at = (run * features4 + j)[None, :] * batch + b[:, None]
    tl.store(u + at, first, mask=(j < features4)[None, :])
    tl.store(v + at, second, mask=(j < features4)[None, :])


@triton.jit
def _edges(u, v, p, q, inverse_temperature, BY_DIFFERENCE: tl.constexpr):
    """1/σ of the lower and the upper edge of every (row, unit), and factors of their slopes.

    u, v: (rows,); p, q: (units,). The derivative of an edge is its factor times P or Q; by
    difference it is the factor itself.
    """
    u, v, p, q = u[:, None], v[:, None], p[None, :], q[None, :]
    if BY_DIFFERENCE:
        low_factor = _exp(tl.clamp((p - u) * inverse_temperature, -80.0, 80.0)) * v
        up_factor = _exp(tl.clamp((u - q) * inverse_temperature, -80.0, 80.0)) * v
        low, up = 1.0 + low_factor, 1.0 + up_factor
    else:
        low_factor, up_factor = v, u
        low, up = 1.0 + v * p, 1.0 + u * q
    return low, up, low_factor, up_factor


@triton.jit
def _split_exponent(product, exponent):
    """The product's mantissa in [1, 2), and `exponent` plus the product's biased exponent."""
    bits = product.to(tl.int32, bitcast=True)
    mantissa = ((bits & 0x7FFFFF) | 0x3F800000).to(tl.float32, bitcast=True)
    return mantissa, exponent + (bits >> 23)


@triton.jit(do_not_specialize=VARYING)
def log_box_memberships(
    u,
    v,
    p,
    q,
    plan,
    base,
    index,
    runs,
    log_box,
    features4,
    inverse_temperature,
    BY_DIFFERENCE: tl.constexpr,
    BATCH: tl.constexpr,
    UNITS: tl.constexpr,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_UNITS: tl.constexpr,
    STAGES: tl.constexpr,
):
    """log_box = Σ_j log I. Four factors of at most 1e8 and a mantissa below 2 cannot overflow.

    A program computes two blocks of rows, which share the loads of p and q. Batch and units are
    compile-time constants, so that the loads of four features need no address arithmetic.
    """
    k = tl.program_id(0) * BLOCK_UNITS + tl.arange(0, BLOCK_UNITS)
    first = tl.program_id(1) * 2 * BLOCK_ROWS
    run = tl.program_id(2).to(tl.int64)
    rows = tl.load(plan + ((tl.load(base) + index) * runs + run) * 2 + 1)
    if first >= rows:
        return
    b = tl.arange(0, BLOCK_ROWS)
    u += run * features4 * BATCH + first
    v += run * features4 * BATCH + first
    p += run * features4 * UNITS
    q += run * features4 * UNITS
    tile = log_box + (run * BATCH + first) * UNITS + b[:, None] * UNITS + k[None, :]
    # The mask is empty, so this loads nothing. It gives the tile the layout of a coalesced load,
    # four neighbouring units per thread, so that the loop loads p and q as vectors and uses each u
    # and v for four units.
    mantissa0 = tl.load(tile, mask=(b < 0)[:, None], other=1.0)
    mantissa1 = mantissa0
    exponent0 = (mantissa0 - 1.0).to(tl.int32)
    exponent1 = exponent0
    u, v, p, q = u + b, v + b, p + k, q + k
    for _ in tl.range(0, features4, 4, num_stages=STAGES):
        for i in tl.static_range(4):
            pk, qk = tl.load(p + i * UNITS), tl.load(q + i * UNITS)
            u0, v0 = tl.load(u + i * BATCH), tl.load(v + i * BATCH)
            low, up, _, _ = _edges(u0, v0, pk, qk, inverse_temperature, BY_DIFFERENCE)
            mantissa0 *= tl.minimum(low * up, _MAX_RECIPROCAL)
            u1, v1 = tl.load(u + i * BATCH + BLOCK_ROWS), tl.load(v + i * BATCH + BLOCK_ROWS)
            low, up, _, _ = _edges(u1, v1, pk, qk, inverse_temperature, BY_DIFFERENCE)
            mantissa1 *= tl.minimum(low * up, _MAX_RECIPROCAL)
        u, v, p, q = u + 4 * BATCH, v + 4 * BATCH, p + 4 * UNITS, q + 4 * UNITS
        mantissa0, exponent0 = _split_exponent(mantissa0, exponent0)
        mantissa1, exponent1 = _split_exponent(mantissa1, exponent1)
    bias = 127 * (features4 // 4)
    tl.store(tile, -((exponent0 - bias).to(tl.float32) + tl.log2(mantissa0)) * _LN2)
    tile += BLOCK_ROWS * UNITS
    tl.store(tile, -((exponent1 - bias).to(tl.float32) + tl.log2(mantissa1)) * _LN2)


@triton.jit
def _accumulate(
    u, v, p, q, upstream, d_low, d_up, total, inverse_temperature, BY_DIFFERENCE: tl.constexpr
):
    """Add rows of one feature to its sums of slopes and memberships, each (rows, units)."""
    low, up, low_factor, up_factor = _edges(u, v, p, q, inverse_temperature, BY_DIFFERENCE)
    product = low * up
    membership = _reciprocal(tl.minimum(product, _MAX_RECIPROCAL))
    weight = tl.where(product < _MAX_RECIPROCAL, upstream * membership, 0.0)
    return (
        d_low + weight * up * low_factor,
        d_up + weight * low * up_factor,
        total + membership,
    )


@triton.jit
def _sums_over_rows(first, second, third, fourth):
    """Sums over the rows of four (rows, units) tiles, one per feature. → (4, units)"""
    i = tl.arange(0, 4)[:, None]
    a, b, c, d = tl.sum(first, 0), tl.sum(second, 0), tl.sum(third, 0), tl.sum(fourth, 0)
    early = tl.where(i == 0, a[None, :], b[None, :])
    late = tl.where(i == 2, c[None, :], d[None, :])
    return tl.where(i < 2, early, late)


@triton.jit(do_not_specialize=VARYING)
def interval_step(
    u,
    v,
    p,
    q,
    upstream,
    rates,
    plan,
    base,
    index,
    runs,
    flat,
    moment1,
    moment2,
    support,
    support_weight,
    n_features,
    features4,
    run_stride,
    inverse_temperature,
    decay,
    interval_rate,
    narrowing,
    BY_DIFFERENCE: tl.constexpr,
    HAS_MISSING: tl.constexpr,
    BATCH: tl.constexpr,
    UNITS: tl.constexpr,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_UNITS: tl.constexpr,
):
    """Gradients, Adam, support, and new p and q, in one pass.

    The gradients are those of Σ upstream · log_box + Σ narrowing · half-width.
    flat, moment1, moment2: (runs, run_stride), each run beginning with center and width_logit
    (features, units); support: (runs, features, units); support_weight: (runs, features).
    A program computes four features of a block of units, which share the loads of upstream.
    """
    k = tl.program_id(0) * BLOCK_UNITS + tl.arange(0, BLOCK_UNITS)
    j = tl.program_id(1) * 4
    run = tl.program_id(2).to(tl.int64)
    line = (tl.load(base) + index) * runs + run
    rows = tl.load(plan + line * 2 + 1)
    if rows == 0:
        return
    u += (run * features4 + j) * BATCH
    v += (run * features4 + j) * BATCH
    at = (run * features4 + j) * UNITS + k
    p0, q0 = tl.load(p + at), tl.load(q + at)
    p1, q1 = tl.load(p + at + UNITS), tl.load(q + at + UNITS)
    p2, q2 = tl.load(p + at + 2 * UNITS), tl.load(q + at + 2 * UNITS)
    p3, q3 = tl.load(p + at + 3 * UNITS), tl.load(q + at + 3 * UNITS)
    b = tl.arange(0, BLOCK_ROWS)
    tile = upstream + (run * BATCH + b)[:, None] * UNITS + k[None, :]
    zero = tl.load(
        tile, mask=(b < 0)[:, None], other=0.0
    )  # for its layout, as in `log_box_memberships`
    low0, up0, total0 = zero, zero, zero
    low1, up1, total1 = zero, zero, zero
    low2, up2, total2 = zero, zero, zero
    low3, up3, total3 = zero, zero, zero
    t = inverse_temperature
    for b0 in range(0, rows, BLOCK_ROWS):
        b = b0 + tl.arange(0, BLOCK_ROWS)
        g = tl.load(tile + b0 * UNITS, mask=(b < rows)[:, None], other=0.0)
        ub, vb = u + b, v + b
        low0, up0, total0 = _accumulate(
            tl.load(ub), tl.load(vb), p0, q0, g, low0, up0, total0, t, BY_DIFFERENCE
        )
        ub, vb = ub + BATCH, vb + BATCH
        low1, up1, total1 = _accumulate(
            tl.load(ub), tl.load(vb), p1, q1, g, low1, up1, total1, t, BY_DIFFERENCE
        )
        ub, vb = ub + BATCH, vb + BATCH
        low2, up2, total2 = _accumulate(
            tl.load(ub), tl.load(vb), p2, q2, g, low2, up2, total2, t, BY_DIFFERENCE
        )
        ub, vb = ub + BATCH, vb + BATCH
        low3, up3, total3 = _accumulate(
            tl.load(ub), tl.load(vb), p3, q3, g, low3, up3, total3, t, BY_DIFFERENCE
        )
    j = tl.program_id(1) * 4 + tl.arange(0, 4)
    real = (j < n_features)[:, None] & (k < UNITS)[None, :]
    at = (run * features4 + j)[:, None] * UNITS + k[None, :]
    d_lower = -t * _sums_over_rows(low0, low1, low2, low3)
    d_upper = t * _sums_over_rows(up0, up1, up2, up3)
    if not BY_DIFFERENCE:
        d_lower *= tl.load(p + at)
        d_upper *= tl.load(q + at)

    center_at = run * run_stride + j[:, None] * UNITS + k[None, :]
    width_at = center_at + n_features * UNITS
    rates += line * 3
    width_slope = 1.0 / (1.0 + _exp(-tl.load(flat + width_at, mask=real, other=0.0)))
    center = adam(flat, moment1, moment2, center_at, real, d_lower + d_upper, rates, interval_rate)
    d_width = (d_upper - d_lower + narrowing) * width_slope
    width = adam(flat, moment1, moment2, width_at, real, d_width, rates, interval_rate)
    half_width = tl.maximum(width, 0.0) + tl.log(1.0 + _exp(-tl.abs(width)))
    lower, upper = center - half_width, center + half_width
    if not BY_DIFFERENCE:
        limit = _EXPONENT_LIMIT
        lower = _exp(tl.clamp(lower * t, -limit, limit))
        upper = _exp(tl.clamp(-upper * t, -limit, limit))
    tl.store(p + at, lower, mask=real)
    tl.store(q + at, upper, mask=real)

    present = tl.zeros([4], tl.int32) + rows
    if HAS_MISSING:
        found = tl.zeros([4, BLOCK_ROWS], tl.int32)
        cells = v + tl.arange(0, 4)[:, None] * BATCH + tl.arange(0, BLOCK_ROWS)[None, :]
        for b0 in range(0, rows, BLOCK_ROWS):
            found += (tl.load(cells + b0) > 0).to(tl.int32)
        present = tl.sum(found, 1)
    # The sums are over whole blocks of rows, in which missing and padding cells count as 1.
    neutral = (rows + BLOCK_ROWS - 1) // BLOCK_ROWS * BLOCK_ROWS - present
    share = (1.0 - decay) / tl.maximum(present, 1)
    total = _sums_over_rows(total0, total1, total2, total3) - neutral[:, None]
    support_at = support + (run * n_features + j)[:, None] * UNITS + k[None, :]
    seen = real & (present > 0)[:, None]
    old = tl.load(support_at, mask=seen, other=0.0)
    tl.store(support_at, decay * old + share[:, None] * total, mask=seen)
    if tl.program_id(0) == 0:
        weight_at = support_weight + run * n_features + j
        counted = (j < n_features) & (present > 0)
        old_weight = tl.load(weight_at, mask=counted, other=0.0)
        tl.store(weight_at, decay * old_weight + (1.0 - decay), mask=counted)
