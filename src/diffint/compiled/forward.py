"""Rows to codes, reconstructions and scores."""

from __future__ import annotations

import numpy as np

from ..compiling import compiled, compiled_sums
from ..intervals import cpu
from ..intervals.cpu import exp, log
from .linear import multiply_add, start_with, whole_tiles

NORM_EPSILON = 1e-5
_ONE, _ZERO = np.float32(1.0), np.float32(0.0)


@compiled
def set_bounds(w, shape, work):
    """Bounds from centers and width logits, and their exponentials."""
    for j in range(shape.features):
        for k in range(w.center.shape[1]):
            logit = w.width_logit[j, k]
            half = max(logit, _ZERO) + log(_ONE + exp(-abs(logit)))
            work.lower[j, k] = w.center[j, k] - half
            work.upper[j, k] = w.center[j, k] + half
    if not shape.by_difference:
        cpu.unit_exponentials(work.lower, work.upper, shape.temperature, work.p, work.q)


@compiled_sums
def encode(shape, work, rows):
    """Log box memberships and codes of work.x[:rows]; the bounds must be set."""
    full = whole_tiles(rows)
    x, log_box = work.x[:rows], work.log_box[:full]
    if shape.by_difference:
        cpu.log_box_memberships_by_difference(x, work.lower, work.upper, shape.temperature, log_box)
    else:
        u, v = work.u[:full], work.v[:full]
        cpu.row_exponentials(x, shape.temperature, u, v)
        cpu.log_box_memberships(u, v, work.p, work.q, work.mantissa, work.exponent, log_box)
    for b in range(full):
        largest = log_box[b, 0]
        for k in range(shape.units):
            largest = max(largest, log_box[b, k])
        total = _ZERO
        for k in range(shape.units):
            value = exp(log_box[b, k] - largest)
            work.code[b, k] = value
            total += value
        scale = _ONE / total
        for k in range(shape.units):
            work.code[b, k] *= scale
        for k in range(shape.units, work.code.shape[1]):
            work.code[b, k] = _ZERO


@compiled_sums
def decode(w, shape, work, rows):
    """work.output from work.code, with the weights in force in `work`."""
    full = whole_tiles(rows)
    pre = work.normed[:full]
    start_with(pre, w.hidden_bias)
    multiply_add(work.code[:full], work.hidden_weight, pre)
    for b in range(full):
        if shape.certified:
            for i in range(pre.shape[1]):
                work.activation[b, i] = max(pre[b, i], _ZERO)
            continue
        total = _ZERO
        for i in range(shape.hidden):
            total += pre[b, i]
        mean = total / np.float32(shape.hidden)
        squares = _ZERO
        for i in range(shape.hidden):
            pre[b, i] -= mean
            squares += pre[b, i] * pre[b, i]
        inverse = _ONE / np.sqrt(squares / np.float32(shape.hidden) + np.float32(NORM_EPSILON))
        work.inverse_deviation[b] = inverse
        for i in range(shape.hidden):
            normed = pre[b, i] * inverse
            pre[b, i] = normed
            work.activation[b, i] = max(normed * w.norm_gain[i] + w.norm_shift[i], _ZERO)
        for i in range(shape.hidden, pre.shape[1]):
            pre[b, i] = _ZERO
            work.activation[b, i] = _ZERO
    start_with(work.output[:full], w.output_bias)
    multiply_add(work.activation[:full], work.output_weight, work.output[:full])


@compiled
def evaluate(clipped, target, w, shape, work, scores, best, outputs, logs):
    """Score rows with the weights in force and the bounds already set in `work`.

    clipped, target: (rows, features). scores: (rows,) mean absolute error over present features
    (0 where none is present); best: (rows,) unit with the largest code. outputs and logs get the
    reconstructions (rows, features) and log box memberships (rows, units) unless they are empty.
    """
    block = work.x.shape[0]
    for start in range(0, clipped.shape[0], block):
        rows = min(block, clipped.shape[0] - start)
        for b in range(rows):
            for j in range(shape.features):
                work.x[b, j] = clipped[start + b, j]
        encode(shape, work, rows)
        decode(w, shape, work, rows)
        for b in range(rows):
            total, present = 0.0, 0
            for j in range(shape.features):
                value = target[start + b, j]
                if value == value:
                    total += abs(np.float64(value) - np.float64(work.output[b, j]))
                    present += 1
            scores[start + b] = total / max(present, 1)
            top = 0
            for k in range(1, shape.units):
                if work.code[b, k] > work.code[b, top]:
                    top = k
            best[start + b] = top
            if outputs.shape[0] > 0:
                for j in range(shape.features):
                    outputs[start + b, j] = work.output[b, j]
            if logs.shape[0] > 0:
                for k in range(shape.units):
                    logs[start + b, k] = work.log_box[b, k]
