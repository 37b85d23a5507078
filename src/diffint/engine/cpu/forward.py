"""The forward pass of training: rows to codes and reconstructions."""

from __future__ import annotations

import numpy as np

from ...core.constants import NORM_EPSILON
from ..kernel_cache import compiled, compiled_sums
from . import intervals
from .intervals import exp, log
from .linear import multiply_add, start_with

_ONE, _ZERO = np.float32(1.0), np.float32(0.0)


@compiled
def set_bounds(w, shape, work, first, last):
    """Bounds of the features first..last from centers and width logits, and their exponentials.

    work.slope gets the derivative of the half-width with respect to its logit.
    """
    for j in range(first, last):
        for k in range(w.center.shape[1]):
            logit = w.width_logit[j, k]
            power = exp(-abs(logit))
            half = max(logit, _ZERO) + log(_ONE + power)
            work.slope[j, k] = (_ONE if logit > _ZERO else power) / (_ONE + power)
            work.lower[j, k] = w.center[j, k] - half
            work.upper[j, k] = w.center[j, k] + half
    if not shape.by_difference:
        intervals.unit_exponentials(
            work.lower[first:last],
            work.upper[first:last],
            shape.temperature,
            work.p[first:last],
            work.q[first:last],
            work.c[first:last],
        )


@compiled_sums
def encode(shape, work, first, last, rows, with_logs):
    """Codes of the rows first..last of work.x, and with_logs their log box memberships.

    first and last are multiples of the tile size; rows from `rows` on are padding. `set_bounds`
    must have been called.
    """
    if shape.by_difference:
        encode_by_difference(shape, work, first, last, rows)
    else:
        encode_by_product(shape, work, first, last, rows, with_logs)


@compiled_sums
def encode_by_difference(shape, work, first, last, rows):
    """`encode` for inputs of any size."""
    x = work.x[first : min(last, max(rows, first))]
    log_box, code = work.log_box[first:last], work.code[first:last]
    intervals.log_box_memberships_by_difference(
        x, work.lower, work.upper, shape.temperature, log_box
    )
    softmax(log_box, shape.units, code)


@compiled_sums
def encode_by_product(shape, work, first, last, rows, with_logs):
    """`encode` for inputs in the safe range of the exponentials."""
    x = work.x[first : min(last, max(rows, first))]
    log_box, code = work.log_box[first:last], work.code[first:last]
    u, v, exponent = work.u[first:last], work.v[first:last], work.exponent[first:last]
    intervals.row_exponentials(x, shape.temperature, u, v)
    intervals.box_products(u, v, work.p, work.q, work.c, len(x), code, exponent)
    if with_logs:
        intervals.product_logs(code, exponent, u.shape[1], log_box)
    intervals.product_codes(code, exponent, shape.units)


@compiled_sums
def softmax(logs, n_units, code):
    """Codes (rows, padded units) from log box memberships; padding units get 0."""
    for b in range(logs.shape[0]):
        largest = logs[b, 0]
        for k in range(n_units):
            largest = max(largest, logs[b, k])
        total = _ZERO
        for k in range(n_units):
            value = exp(logs[b, k] - largest)
            code[b, k] = value
            total += value
        for k in range(n_units):
            code[b, k] /= total
        for k in range(n_units, code.shape[1]):
            code[b, k] = _ZERO


@compiled_sums
def decode(w, shape, work, first, last):
    """work.output of the rows first..last from work.code, with the effective weights in `work`."""
    start_with(work.normed[first:last], w.hidden_bias)
    multiply_add(work.code[first:last, : shape.units], work.hidden_weight, work.normed[first:last])
    width = np.float32(shape.hidden)
    for b in range(first, last):
        pre, activation = work.normed[b], work.activation[b]
        if not shape.layer_norm:
            for i in range(pre.shape[0]):
                activation[i] = max(pre[i], _ZERO)
            continue
        total, squares = _ZERO, _ZERO
        for i in range(shape.hidden):
            total += pre[i]
        mean = total / width
        for i in range(shape.hidden):
            pre[i] -= mean
            squares += pre[i] * pre[i]
        inverse = _ONE / np.sqrt(squares / width + np.float32(NORM_EPSILON))
        work.inverse_deviation[b] = inverse
        for i in range(shape.hidden):
            normed = pre[i] * inverse
            pre[i] = normed
            activation[i] = max(normed * w.norm_gain[i] + w.norm_shift[i], _ZERO)
        for i in range(shape.hidden, pre.shape[0]):
            pre[i] = _ZERO
            activation[i] = _ZERO
    start_with(work.output[first:last], w.output_bias)
    multiply_add(work.activation[first:last], work.output_weight, work.output[first:last])
