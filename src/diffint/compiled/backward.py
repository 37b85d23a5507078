"""From the loss back to every parameter."""

from __future__ import annotations

import numpy as np

from ..compiling import compiled_sums
from ..intervals import cpu
from ..intervals.cpu import exp
from .linear import fill, multiply_add, transpose, whole_tiles

LOSS_EPSILON = 1e-8
_ONE, _ZERO = np.float32(1.0), np.float32(0.0)


@compiled_sums
def loss_and_output_gradient(shape, work, rows):
    """Σ over the rows of √(mean squared error + ε), and its mean's gradient in work.d_output."""
    full = whole_tiles(rows)
    fill(work.d_output[:full], _ZERO)
    loss = 0.0
    for b in range(rows):
        squares, present = _ZERO, _ZERO
        for j in range(shape.features):
            value = work.x[b, j]
            error = work.output[b, j] - value if value == value else _ZERO
            work.d_output[b, j] = error
            squares += error * error
            present += _ONE if value == value else _ZERO
        rmse = np.sqrt(squares / present + np.float32(LOSS_EPSILON))
        loss += rmse
        scale = _ONE / (present * rmse * np.float32(rows))
        for j in range(shape.features):
            work.d_output[b, j] *= scale
    return loss


@compiled_sums
def decoder_gradients(w, g, shape, work, rows):
    """Gradients of the decoder's weights (those in force), and work.d_code."""
    full = whole_tiles(rows)
    d_output, d_hidden, d_code = work.d_output[:full], work.d_hidden[:full], work.d_code[:full]
    activation, normed = work.activation[:full], work.normed[:full]

    fill(g.output_weight, _ZERO)
    multiply_add(activation.T, d_output, g.output_weight)
    for i in range(g.output_bias.shape[0]):
        g.output_bias[i] = _ZERO
    for b in range(rows):
        for i in range(g.output_bias.shape[0]):
            g.output_bias[i] += d_output[b, i]

    transpose(work.output_weight, work.output_transposed)
    fill(d_hidden, _ZERO)
    multiply_add(d_output, work.output_transposed, d_hidden)

    for i in range(g.norm_gain.shape[0]):
        g.norm_gain[i] = _ZERO
        g.norm_shift[i] = _ZERO
        g.hidden_bias[i] = _ZERO
    for b in range(full):
        for i in range(d_hidden.shape[1]):
            if activation[b, i] <= _ZERO:
                d_hidden[b, i] = _ZERO
        if not shape.certified:
            total, along = _ZERO, _ZERO
            for i in range(shape.hidden):
                slope = d_hidden[b, i]
                g.norm_gain[i] += slope * normed[b, i]
                g.norm_shift[i] += slope
                slope *= w.norm_gain[i]
                d_hidden[b, i] = slope
                total += slope
                along += slope * normed[b, i]
            total /= np.float32(shape.hidden)
            along /= np.float32(shape.hidden)
            for i in range(shape.hidden):
                slope = d_hidden[b, i] - total - normed[b, i] * along
                d_hidden[b, i] = slope * work.inverse_deviation[b]
        for i in range(d_hidden.shape[1]):
            g.hidden_bias[i] += d_hidden[b, i]

    fill(g.hidden_weight, _ZERO)
    multiply_add(work.code[:full].T, d_hidden, g.hidden_weight)
    transpose(work.hidden_weight, work.hidden_transposed)
    fill(d_code, _ZERO)
    multiply_add(d_hidden, work.hidden_transposed, d_code)


@compiled_sums
def interval_gradients(w, g, shape, work, rows):
    """Through the softmax and the interval layer; work.total gets Σ I per (feature, unit)."""
    full = whole_tiles(rows)
    for b in range(full):
        along = _ZERO
        for k in range(shape.units):
            along += work.code[b, k] * work.d_code[b, k]
        for k in range(work.code.shape[1]):
            work.d_code[b, k] = work.code[b, k] * (work.d_code[b, k] - along)
    if shape.by_difference:
        cpu.bound_gradients_by_difference(
            work.x[:rows],
            work.lower,
            work.upper,
            work.d_code,
            shape.temperature,
            full - rows,
            work.d_lower,
            work.d_upper,
            work.total,
        )
    else:
        cpu.bound_gradients(
            work.u[:full],
            work.v[:full],
            work.p,
            work.q,
            work.d_code[:full],
            shape.temperature,
            work.d_lower,
            work.d_upper,
            work.total,
        )
    for j in range(shape.features):
        for k in range(w.center.shape[1]):
            slope = _ONE / (_ONE + exp(-w.width_logit[j, k]))  # d softplus
            g.center[j, k] = work.d_lower[j, k] + work.d_upper[j, k]
            g.width_logit[j, k] = (work.d_upper[j, k] - work.d_lower[j, k]) * slope
