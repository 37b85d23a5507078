"""The decoder on the GPU: Triton kernels of its forward and backward pass, the loss and Adam.

Everything between the log box memberships and their gradient is local to a row: one kernel takes a
block of rows through the decoder to the loss and back to the hidden layer, a second one from there
to the log box memberships. A third computes the gradients of the weights, which are sums over rows.
A row's gradient is proportional to its ``scale`` 1 / (present · rmse · rows), which is known only
after the output: ``error`` is stored without it, ``activation`` and ``d_hidden`` with it, so that
the products over rows need no further factor.

Plan, base and index are explained in `intervals.py`. Shapes: code, upstream (runs, batch, units);
activation, d_hidden (runs, batch, hidden); error (runs, batch, out); scale, along (runs, batch).
Units, hidden and out are padded to multiples of 16 with zeros.
"""

from __future__ import annotations

import triton
import triton.language as tl

from ...core.constants import LOSS_EPSILON, NORM_EPSILON
from .intervals import VARYING, adam

_NORM_EPSILON = tl.constexpr(NORM_EPSILON)
_LOSS_EPSILON = tl.constexpr(LOSS_EPSILON)


@triton.jit(do_not_specialize=VARYING)
def decode_rows(
    log_box,
    x,
    hidden_weight,
    hidden_weight_stride,
    output_weight,
    output_weight_stride,
    hidden_bias,
    norm_gain,
    norm_shift,
    output_bias,
    run_stride,
    plan,
    base,
    index,
    runs,
    code,
    activation,
    d_hidden,
    error,
    scale,
    along,
    norm_sums,
    losses,
    batch,
    n_units,
    units,
    n_hidden,
    hidden,
    n_features,
    out,
    covering,
    LAYER_NORM: tl.constexpr,
    PRECISION: tl.constexpr,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_UNITS: tl.constexpr,
    BLOCK_HIDDEN: tl.constexpr,
    BLOCK_OUT: tl.constexpr,
    BLOCK_SLICE: tl.constexpr,
):
    """A block of rows from log_box to the loss and back to the hidden layer.

    along: Σ_k code_k · ∂/∂code_k of each row, plus the coverage term's covering / rows: both are
    subtracted from every ∂/∂code_k of the row; norm_sums: (runs, row blocks, 2 · hidden) the
    block's part of the gradients of gain and shift; losses: (lines, runs, row blocks) the block's
    sum of row losses. hidden must not exceed BLOCK_HIDDEN.
    """
    b = tl.program_id(0) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    run = tl.program_id(1).to(tl.int64)
    line = (tl.load(base) + index) * runs + run
    rows = tl.load(plan + line * 2 + 1)
    inside = b < rows
    # Offsets within a run fit 32 bits, which saves registers.
    first_row = run * batch
    log_box += first_row * units
    code += first_row * units
    x += first_row * out
    error += first_row * out
    activation += first_row * hidden
    d_hidden += first_row * hidden
    h = tl.arange(0, BLOCK_HIDDEN)
    real_h = h < hidden
    hidden_weight += run * hidden_weight_stride
    output_weight += run * output_weight_stride
    log_row = log_box + b[:, None] * units

    # The softmax's peak and sum, then code and code · weights.
    peak = tl.full([BLOCK_ROWS], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_ROWS], tl.float32)
    for k0 in range(0, n_units, 256):
        k = k0 + tl.arange(0, 256)
        value = tl.load(log_row + k[None, :], mask=(k < n_units)[None, :], other=float("-inf"))
        new_peak = tl.maximum(peak, tl.max(value, 1))
        powers = tl.sum(tl.exp(value - new_peak[:, None]), 1)
        total = total * tl.exp(peak - new_peak) + powers
        peak = new_peak
    inverse_total = 1.0 / total
    product = tl.zeros([BLOCK_ROWS, BLOCK_HIDDEN], tl.float32)
    for k0 in range(0, n_units, BLOCK_UNITS):
        k = k0 + tl.arange(0, BLOCK_UNITS)
        value = tl.load(log_row + k[None, :], mask=(k < n_units)[None, :], other=float("-inf"))
        share = tl.exp(value - peak[:, None]) * inverse_total[:, None]
        tl.store(code + b[:, None] * units + k[None, :], share, mask=(k < units)[None, :])
        mask = (k < n_units)[:, None] & real_h[None, :]
        w = tl.load(hidden_weight + k[:, None] * hidden + h[None, :], mask=mask, other=0.0)
        product = tl.dot(share, w, product, input_precision=PRECISION)

    pre = product + tl.load(hidden_bias + run * run_stride + h, mask=real_h, other=0.0)[None, :]
    if not LAYER_NORM:
        active = tl.maximum(pre, 0.0)
    else:
        gain = tl.load(norm_gain + run * run_stride + h, mask=real_h, other=0.0)[None, :]
        shift = tl.load(norm_shift + run * run_stride + h, mask=real_h, other=0.0)[None, :]
        mean = tl.sum(pre, 1) / n_hidden  # padding is zero up to here
        normed = tl.where((h < n_hidden)[None, :], pre - mean[:, None], 0.0)
        inverse_deviation = 1.0 / tl.sqrt(tl.sum(normed * normed, 1) / n_hidden + _NORM_EPSILON)
        normed *= inverse_deviation[:, None]
        active = tl.maximum(normed * gain + shift, 0.0)
    hidden_at = b[:, None] * hidden + h[None, :]
    tl.store(activation + hidden_at, active, mask=real_h[None, :])

    # The output, its error, and the gradient of the hidden layer. Sums over features are kept as
    # tiles and reduced once, after the loop.
    squares = tl.zeros([BLOCK_ROWS, BLOCK_OUT], tl.float32)
    found = tl.zeros([BLOCK_ROWS, BLOCK_OUT], tl.float32)
    slope = tl.zeros([BLOCK_ROWS, BLOCK_HIDDEN], tl.float32)
    tl.debug_barrier()  # activations are read back in slices, to save registers
    for j0 in range(0, n_features, BLOCK_OUT):
        j = j0 + tl.arange(0, BLOCK_OUT)
        real_j = (j < out)[None, :]
        output = tl.zeros([BLOCK_ROWS, BLOCK_OUT], tl.float32)
        for i0 in range(0, hidden, BLOCK_SLICE):
            i = i0 + tl.arange(0, BLOCK_SLICE)
            real_i = i < hidden
            a = tl.load(
                activation + b[:, None] * hidden + i[None, :], mask=real_i[None, :], other=0
            )
            mask = real_i[:, None] & real_j
            w = tl.load(output_weight + i[:, None] * out + j[None, :], mask=mask, other=0.0)
            output = tl.dot(a, w, output, input_precision=PRECISION)
        bias = tl.load(output_bias + run * run_stride + j, mask=j < out, other=0.0)
        cells = b[:, None] * out + j[None, :]
        value = tl.load(x + cells, mask=real_j, other=float("nan"))
        there = value == value
        difference = tl.where(there, output + bias[None, :] - value, 0.0)
        tl.store(error + cells, difference, mask=real_j)
        squares += difference * difference
        found += there.to(tl.float32)
        mask = real_h[:, None] & real_j
        w = tl.load(output_weight + h[:, None] * out + j[None, :], mask=mask, other=0.0)
        slope = tl.dot(difference, tl.trans(w), slope, input_precision=PRECISION)
    present = tl.maximum(tl.sum(found, 1), 1.0)
    rmse = tl.sqrt(tl.sum(squares, 1) / present + _LOSS_EPSILON)
    row_scale = tl.where(inside, 1.0 / (present * rmse * rows), 0.0)
    tl.store(scale + first_row + b, row_scale)
    loss = tl.sum(tl.where(inside, rmse, 0.0), 0)
    tl.store(losses + line * tl.num_programs(0) + tl.program_id(0), loss)

    # Backward through ReLU and LayerNorm.
    active = tl.load(activation + hidden_at, mask=real_h[None, :], other=0.0)
    tl.debug_barrier()  # all slices have been read
    tl.store(activation + hidden_at, active * row_scale[:, None], mask=real_h[None, :])
    slope = tl.where(active > 0.0, slope * row_scale[:, None], 0.0)
    if LAYER_NORM:
        sums_at = norm_sums + (run * tl.num_programs(0) + tl.program_id(0)) * 2 * hidden + h
        tl.store(sums_at, tl.sum(slope * normed, 0), mask=real_h)
        tl.store(sums_at + hidden, tl.sum(slope, 0), mask=real_h)
        slope *= gain
        mean = tl.sum(slope, 1) / n_hidden
        with_normed = tl.sum(slope * normed, 1) / n_hidden
        slope = slope - mean[:, None] - normed * with_normed[:, None]
        slope = tl.where((h < n_hidden)[None, :], slope * inverse_deviation[:, None], 0.0)
    tl.store(d_hidden + hidden_at, slope, mask=real_h[None, :])
    covered = tl.where(inside, covering / rows, 0.0)
    # Σ_k code_k · ∂/∂code_k, computed without the derivatives.
    tl.store(along + first_row + b, tl.sum(slope * product, 1) + covered)


@triton.jit(do_not_specialize=VARYING)
def softmax_gradient(
    d_hidden,
    hidden_weight,
    hidden_weight_stride,
    code,
    along,
    upstream,
    batch,
    units,
    hidden,
    PRECISION: tl.constexpr,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_UNITS: tl.constexpr,
    BLOCK_HIDDEN: tl.constexpr,
):
    """upstream = ∂loss/∂log_box = code · (d_hidden · weightsᵀ − along)"""
    k = tl.program_id(0) * BLOCK_UNITS + tl.arange(0, BLOCK_UNITS)
    run = tl.program_id(2).to(tl.int64)
    row = run * batch + tl.program_id(1) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    real_k = (k < units)[None, :]
    hidden_weight += run * hidden_weight_stride
    d_code = tl.zeros([BLOCK_ROWS, BLOCK_UNITS], tl.float32)
    for h0 in range(0, hidden, BLOCK_HIDDEN):
        h = h0 + tl.arange(0, BLOCK_HIDDEN)
        real_h = h < hidden
        mask = real_h[:, None] & real_k
        slope = tl.load(
            d_hidden + row[:, None] * hidden + h[None, :], mask=real_h[None, :], other=0
        )
        w = tl.load(hidden_weight + k[None, :] * hidden + h[:, None], mask=mask, other=0.0)
        d_code = tl.dot(slope, w, d_code, input_precision=PRECISION)
    at = row[:, None] * units + k[None, :]
    share = tl.load(code + at, mask=real_k, other=0.0)
    tl.store(upstream + at, share * (d_code - tl.load(along + row)[:, None]), mask=real_k)


@triton.jit
def _gradient_tile(
    tile,
    left,
    right,
    scale,
    run,
    rows,
    weight_gradient,
    bias_gradient,
    batch,
    n_left,
    n_right,
    SCALED: tl.constexpr,
    SPLITS: tl.constexpr,
    PRECISION: tl.constexpr,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_LEFT: tl.constexpr,
    BLOCK_RIGHT: tl.constexpr,
):
    """A tile of leftᵀ · right over this split's rows, and of the column sums of right.

    Rows beyond the batch are zero in left or in right. SCALED: right includes its scale.
    """
    blocks = tl.cdiv(n_right, BLOCK_RIGHT)
    i = tile // blocks * BLOCK_LEFT + tl.arange(0, BLOCK_LEFT)
    j = tile % blocks * BLOCK_RIGHT + tl.arange(0, BLOCK_RIGHT)
    part = tl.cdiv(tl.cdiv(rows, SPLITS), BLOCK_ROWS) * BLOCK_ROWS
    first = tl.program_id(1) * part
    gradient = tl.zeros([BLOCK_LEFT, BLOCK_RIGHT], tl.float32)
    total = tl.zeros([BLOCK_ROWS, BLOCK_RIGHT], tl.float32)
    for b0 in range(first, tl.minimum(rows, first + part), BLOCK_ROWS):
        b = b0 + tl.arange(0, BLOCK_ROWS)
        row = run * batch + b
        from_left = tl.load(left + row[:, None] * n_left + i[None, :], mask=(i < n_left)[None, :])
        to_right = tl.load(right + row[:, None] * n_right + j[None, :], mask=(j < n_right)[None, :])
        gradient = tl.dot(tl.trans(from_left), to_right, gradient, input_precision=PRECISION)
        if SCALED:
            total += to_right
        else:
            total += to_right * tl.load(scale + row)[:, None]
    at = weight_gradient + i[:, None] * n_right + j[None, :]
    tl.store(at, gradient, mask=(i < n_left)[:, None] & (j < n_right)[None, :])
    if tile < blocks:
        tl.store(bias_gradient + j, tl.sum(total, 0), mask=j < n_right)


@triton.jit(do_not_specialize=VARYING)
def decoder_gradients(
    code,
    d_hidden,
    activation,
    error,
    scale,
    norm_sums,
    plan,
    base,
    index,
    runs,
    hidden_weight_gradient,
    hidden_bias_gradient,
    output_weight_gradient,
    output_bias_gradient,
    norm_gradient,
    split_stride,
    run_stride,
    hidden_tiles,
    output_tiles,
    row_blocks,
    batch,
    units,
    hidden,
    out,
    SPLITS: tl.constexpr,
    PRECISION: tl.constexpr,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_LEFT: tl.constexpr,
    BLOCK_RIGHT: tl.constexpr,
    BLOCK_OUT: tl.constexpr,
):
    """The gradients of all effective decoder weights, as SPLITS partial sums over the rows.

    The first programs compute the hidden weights, the next the output weights, the last the sums of
    `norm_sums`. The rows are split because the few tiles of weights alone do not occupy the GPU.
    """
    tile = tl.program_id(0)
    split = tl.program_id(1)
    run = tl.program_id(2).to(tl.int64)
    rows = tl.load(plan + ((tl.load(base) + index) * runs + run) * 2 + 1)
    offset = split * split_stride + run * run_stride
    if tile < hidden_tiles:
        _gradient_tile(
            tile,
            code,
            d_hidden,
            scale,
            run,
            rows,
            hidden_weight_gradient + offset,
            hidden_bias_gradient + offset,
            batch,
            units,
            hidden,
            True,
            SPLITS,
            PRECISION,
            BLOCK_ROWS,
            BLOCK_LEFT,
            BLOCK_RIGHT,
        )
    elif tile < hidden_tiles + output_tiles:
        _gradient_tile(
            tile - hidden_tiles,
            activation,
            error,
            scale,
            run,
            rows,
            output_weight_gradient + offset,
            output_bias_gradient + offset,
            batch,
            hidden,
            out,
            False,
            SPLITS,
            PRECISION,
            BLOCK_ROWS,
            BLOCK_LEFT,
            BLOCK_OUT,
        )
    else:
        i = (tile - hidden_tiles - output_tiles) * 64 + tl.arange(0, 64)
        inside = (i < 2 * hidden)[None, :]
        total = tl.zeros([16, 64], tl.float32)
        for block in range(split * 16, row_blocks, SPLITS * 16):
            n = block + tl.arange(0, 16)
            at = norm_sums + (run * row_blocks + n)[:, None] * 2 * hidden + i[None, :]
            total += tl.load(at, mask=(n < row_blocks)[:, None] & inside, other=0.0)
        tl.store(norm_gradient + offset + i, tl.sum(total, 0), mask=i < 2 * hidden)


@triton.jit(do_not_specialize=VARYING)
def adam_step(
    flat,
    moment1,
    moment2,
    gradient,
    rates,
    plan,
    base,
    index,
    runs,
    split_stride,
    run_stride,
    start,
    size,
    SPLITS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Adam on flat[:, start : start + size], with the sum of the gradient's partial sums."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    run = tl.program_id(1).to(tl.int64)
    line = (tl.load(base) + index) * runs + run
    if tl.load(plan + line * 2 + 1) == 0:
        return
    at = run * run_stride + start + i
    slope = tl.zeros([BLOCK], tl.float32)
    for split in tl.static_range(SPLITS):
        slope += tl.load(gradient + split * split_stride + at, mask=i < size, other=0.0)
    adam(flat, moment1, moment2, at, i < size, slope, rates + line * 3, 1.0)
