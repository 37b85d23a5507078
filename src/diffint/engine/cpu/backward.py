"""The backward pass of training: from the loss to the gradients of all parameters.

First the gradients of each row, then the sums over rows for each parameter. Threads can share
either part without changing the order of any sum.
"""

from __future__ import annotations

import numpy as np

from ...core.constants import LOSS_EPSILON
from ..kernel_cache import compiled, compiled_sums
from . import intervals
from .linear import fill, multiply_add, whole_tiles

_ONE, _ZERO = np.float32(1.0), np.float32(0.0)


@compiled_sums
def row_gradients(w, shape, work, first, last, rows, coverage_weight):
    """Losses of the rows first..last of a batch of `rows` rows, and their gradients.

    Fills work.row_loss, d_output, d_activation, d_hidden, and d_code (with the gradient of the log
    box memberships). first and last are multiples of the tile size; rows beyond the batch get 0.
    """
    fill(work.d_output[first:last], _ZERO)
    for b in range(first, min(last, rows)):
        x, output, slope = work.x[b], work.output[b], work.d_output[b]
        squares, present = _ZERO, _ZERO
        for j in range(shape.features):
            value = x[j]
            error = output[j] - value if value == value else _ZERO
            slope[j] = error
            squares += error * error
            present += _ONE if value == value else _ZERO
        rmse = np.sqrt(squares / present + np.float32(LOSS_EPSILON))
        work.row_loss[b] = rmse
        scale = _ONE / (present * rmse * np.float32(rows))
        for j in range(shape.features):
            slope[j] *= scale

    fill(work.d_activation[first:last], _ZERO)
    multiply_add(work.d_output[first:last], work.output_transposed, work.d_activation[first:last])
    width = np.float32(shape.hidden)
    for b in range(first, last):
        d_activation, d_hidden = work.d_activation[b], work.d_hidden[b]
        activation, normed = work.activation[b], work.normed[b]
        for i in range(d_hidden.shape[0]):
            slope = d_activation[i] if activation[i] > _ZERO else _ZERO
            d_activation[i] = slope
            d_hidden[i] = slope
        if shape.layer_norm:
            total, along = _ZERO, _ZERO
            for i in range(shape.hidden):
                slope = d_activation[i] * w.norm_gain[i]
                d_hidden[i] = slope
                total += slope
                along += slope * normed[i]
            total /= width
            along /= width
            inverse = work.inverse_deviation[b]
            for i in range(shape.hidden):
                d_hidden[i] = (d_hidden[i] - total - normed[i] * along) * inverse

    fill(work.d_code[first:last], _ZERO)
    multiply_add(work.d_hidden[first:last], work.hidden_transposed, work.d_code[first:last])
    log_gradients(work, first, last)
    if coverage_weight > 0.0:
        cover_rows(
            work,
            first,
            min(last, rows),
            np.float32(2.0 * coverage_weight / (shape.features * rows)),
        )


@compiled_sums
def log_gradients(work, first, last):
    """Backward through the softmax, in place: gradients of codes to those of log memberships."""
    for b in range(first, last):
        code, d_code = work.code[b], work.d_code[b]
        along = _ZERO
        for k in range(code.shape[0]):
            along += code[k] * d_code[k]
        for k in range(code.shape[0]):
            d_code[k] = code[k] * (d_code[k] - along)


@compiled
def cover_rows(work, first, last, weight):
    """Add the gradient of the coverage term's memberships: −weight · code."""
    for b in range(first, last):
        code, d_code = work.code[b], work.d_code[b]
        for k in range(code.shape[0]):
            d_code[k] -= weight * code[k]


@compiled
def column_sums(a, rows, first, last, out):
    """out[first:last] = sums of the columns first..last of the first `rows` rows of a."""
    sums = out[first:last]  # a slice, because a loop that starts at 0 vectorises
    for i in range(last - first):
        sums[i] = _ZERO
    for b in range(rows):
        row = a[b][first:last]
        for i in range(last - first):
            sums[i] += row[i]


@compiled
def norm_gradients(g, work, rows, first, last):
    """Gradients of LayerNorm's gain and shift, hidden units first..last."""
    column_sums(work.d_activation, rows, first, last, g.norm_shift)
    sums = g.norm_gain[first:last]
    for i in range(last - first):
        sums[i] = _ZERO
    for b in range(rows):
        slope, normed = work.d_activation[b][first:last], work.normed[b][first:last]
        for i in range(last - first):
            sums[i] += slope[i] * normed[i]


@compiled
def hidden_weight_gradients(g, work, rows, first, last):
    """Gradients of the hidden weights of the units first..last (whole tiles)."""
    full = whole_tiles(rows)
    fill(g.hidden_weight[first:last], _ZERO)
    multiply_add(work.code[:full, first:last].T, work.d_hidden[:full], g.hidden_weight[first:last])


@compiled
def output_weight_gradients(g, work, rows, first, last):
    """Gradients of the output weights of the hidden units first..last (whole tiles)."""
    full = whole_tiles(rows)
    fill(g.output_weight[first:last], _ZERO)
    multiply_add(
        work.activation[:full, first:last].T, work.d_output[:full], g.output_weight[first:last]
    )


@compiled
def interval_gradients(w, g, shape, work, rows, first, last, coverage_weight):
    """Gradients of centers and width logits of the features first..last.

    work.total gets Σ I per (feature, unit), with 1 for every missing or padding cell.
    """
    full = whole_tiles(rows)
    intervals.bound_gradients(
        work.u[:full],
        work.v[:full],
        work.p,
        work.q,
        work.d_code[:full],
        shape.temperature,
        first,
        last,
        work.d_lower,
        work.d_upper,
        work.total,
    )
    _from_bounds(w, g, shape, work, first, last, coverage_weight)


@compiled
def interval_gradients_by_difference(w, g, shape, work, rows, first, last, coverage_weight):
    """`interval_gradients` for inputs of any size."""
    intervals.bound_gradients_by_difference(
        work.x[:rows],
        work.lower,
        work.upper,
        work.d_code,
        shape.temperature,
        whole_tiles(rows) - rows,
        first,
        last,
        work.d_lower,
        work.d_upper,
        work.total,
    )
    _from_bounds(w, g, shape, work, first, last, coverage_weight)


@compiled
def _from_bounds(w, g, shape, work, first, last, coverage_weight):
    """Gradients of centers and width logits from those of the bounds."""
    # The coverage term also contains the mean half-width.
    narrowing = np.float32(coverage_weight / (shape.units * shape.features))
    for j in range(first, last):
        for k in range(w.center.shape[1]):
            g.center[j, k] = work.d_lower[j, k] + work.d_upper[j, k]
            widening = work.d_upper[j, k] - work.d_lower[j, k]
            g.width_logit[j, k] = (widening + narrowing) * work.slope[j, k]
