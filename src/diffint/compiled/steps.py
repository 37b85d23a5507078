"""The training step: forward, backward, Adam and the running support."""

from __future__ import annotations

import numpy as np

from ..compiling import compiled
from .backward import decoder_gradients, interval_gradients, loss_and_output_gradient
from .forward import decode, encode, set_bounds
from .linear import whole_tiles
from .spectral import through_normalisation, use_weights

_BETA1, _BETA2, _ADAM_EPSILON = np.float32(0.9), np.float32(0.999), np.float32(1e-8)
_ONE = np.float32(1.0)


@compiled
def _adam(flat, gradient, first, second, rate, correction1, correction2):
    for i in range(flat.shape[0]):
        slope = gradient[i]
        m = _BETA1 * first[i] + (_ONE - _BETA1) * slope
        s = _BETA2 * second[i] + (_ONE - _BETA2) * slope * slope
        first[i] = m
        second[i] = s
        flat[i] -= rate * (m / correction1) / (np.sqrt(s / correction2) + _ADAM_EPSILON)


@compiled
def _update_support(support, weight, decay, work, rows):
    """Running means of the batch-mean membership; a feature absent from the batch is left out."""
    full = whole_tiles(rows)
    for j in range(work.present.shape[0]):
        present = 0
        for b in range(rows):
            present += work.x[b, j] == work.x[b, j]
        if present == 0:
            continue
        neutral = np.float32(full - present)
        share = (1.0 - decay) / present
        weight[j] = weight[j] * decay + (1.0 - decay)
        for k in range(support.shape[1]):
            support[j, k] = decay * support[j, k] + share * (work.total[j, k] - neutral)


@compiled
def train_steps(
    data,
    order,
    first_row,
    last_row,
    batch_size,
    step,
    schedule,
    shape,
    flat,
    gradient,
    moment1,
    moment2,
    w,
    g,
    spectral,
    work,
    support,
    support_weight,
    support_decay,
):
    """Train on data[order[first_row:last_row]] in batches; → (Σ of row losses, steps done)"""
    loss = 0.0
    start = first_row
    while start < last_row:
        rows = min(batch_size, last_row - start)
        for b in range(rows):
            for j in range(shape.features):
                work.x[b, j] = data[order[start + b], j]
        norms = use_weights(w, shape, spectral, work, 1)
        set_bounds(w, shape, work)
        encode(shape, work, rows)
        decode(w, shape, work, rows)
        loss += loss_and_output_gradient(shape, work, rows)
        decoder_gradients(w, g, shape, work, rows)
        if shape.certified:
            through_normalisation(
                g.hidden_weight,
                work.hidden_weight,
                norms[0],
                spectral.hidden_left,
                spectral.hidden_right,
            )
            through_normalisation(
                g.output_weight,
                work.output_weight,
                norms[1],
                spectral.output_left,
                spectral.output_right,
            )
        interval_gradients(w, g, shape, work, rows)
        rate = schedule.learning_rate
        if schedule.cosine:
            rate *= 0.5 * (1.0 + np.cos(np.pi * step / schedule.total_steps))
        step += 1
        _adam(
            flat,
            gradient,
            moment1,
            moment2,
            np.float32(rate),
            np.float32(1.0 - float(_BETA1) ** step),
            np.float32(1.0 - float(_BETA2) ** step),
        )
        _update_support(support, support_weight, support_decay, work, rows)
        start += rows
    return loss, step
