"""The training step: forward, backward, Adam and the running support.

A step has two phases with a barrier after each. By rows: codes, reconstructions, losses and the
gradients of each row. By parameters: sums over the rows, Adam, and the bounds and transposed
weights that the next step needs. A thread works on its share of the rows and of the parameters.
Every sum runs in the same order for any number of threads, so the results have the same bits.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..kernel_cache import compiled, flush_tiny_numbers, set_float_mode
from .backward import (
    column_sums,
    hidden_weight_gradients,
    interval_gradients,
    interval_gradients_by_difference,
    norm_gradients,
    output_weight_gradients,
    row_gradients,
)
from .forward import decode, encode_by_difference, encode_by_product, set_bounds
from .indirect_calls import NOT_NEEDED, address_of, call
from .layout import Shape, Spectral, Weights, Workspace
from .linear import TILE_ROWS, transpose, whole_tiles
from .product_tile import LANES
from .spectral import through_normalisation, use_weights
from .team import meet, share
from .tuple_references import ByReference, reference

_BETA1, _BETA2, _ADAM_EPSILON = np.float32(0.9), np.float32(0.999), np.float32(1e-8)
_ONE = np.float32(1.0)
Call: TypeAlias = tuple[Any, tuple[Any, ...]]
_BLOCK_ROWS = 64  # go from codes to gradients together, so that their arrays stay in cache


@compiled
def _adam(w, g, first, second, rate, correction1, correction2):
    """One Adam step on a vector."""
    for i in range(w.shape[0]):
        slope = g[i]
        m = _BETA1 * first[i] + (_ONE - _BETA1) * slope
        s = _BETA2 * second[i] + (_ONE - _BETA2) * slope * slope
        first[i] = m
        second[i] = s
        w[i] -= rate * (m / correction1) / (np.sqrt(s / correction2) + _ADAM_EPSILON)


@compiled
def _adam_rows(w, g, first, second, start, stop, rate, correction1, correction2):
    """One Adam step on rows of a matrix."""
    for i in range(start, stop):
        _adam(w[i], g[i], first[i], second[i], rate, correction1, correction2)


@compiled
def _adam_part(w, g, first, second, start, stop, rate, correction1, correction2):
    """One Adam step on a part of a vector."""
    _adam(
        w[start:stop],
        g[start:stop],
        first[start:stop],
        second[start:stop],
        rate,
        correction1,
        correction2,
    )


@compiled
def _update_support(support, weight, decay, work, rows, first, last):
    """Update the running mean of memberships; features without a value in the batch are skipped."""
    full = whole_tiles(rows)
    for j in range(first, last):
        present = 0
        for b in range(rows):
            present += work.x[b, j] == work.x[b, j]
        if present == 0:
            continue
        neutral = np.float32(full - present)
        portion = (1.0 - decay) / present
        weight[j] = weight[j] * decay + (1.0 - decay)
        for k in range(support.shape[1]):
            support[j, k] = decay * support[j, k] + portion * (work.total[j, k] - neutral)


# --- The parts of a step, each compiled separately -----------------------------------------------


@compiled
def prepare(w, shape, work, thread, threads):
    """Bounds and transposed weights for this thread's share of the parameters."""
    first, last = share(shape.features, 1, thread, threads)
    set_bounds(w, shape, work, first, last)
    first, last = share(w.hidden_weight.shape[0], TILE_ROWS, thread, threads)
    transpose(work.hidden_weight, work.hidden_transposed, first, last)
    first, last = share(w.output_weight.shape[0], TILE_ROWS, thread, threads)
    transpose(work.output_weight, work.output_transposed, first, last)


@compiled
def pass_rows(w, shape, work, first, last, rows, coverage_weight):
    """Forward and backward pass of the rows first..last of work.x (whole tiles)."""
    for block in range(first, last, _BLOCK_ROWS):
        end = min(block + _BLOCK_ROWS, last)
        encode_by_product(shape, work, block, end, rows, False)
        decode(w, shape, work, block, end)
        row_gradients(w, shape, work, block, end, rows, coverage_weight)


@compiled
def pass_rows_by_difference(w, shape, work, first, last, rows, coverage_weight):
    """`pass_rows` for inputs of any size."""
    for block in range(first, last, _BLOCK_ROWS):
        end = min(block + _BLOCK_ROWS, last)
        encode_by_difference(shape, work, block, end, rows)
        decode(w, shape, work, block, end)
        row_gradients(w, shape, work, block, end, rows, coverage_weight)


@compiled
def sum_weight_gradients(g, shape, work, rows, units, hidden, outputs):
    """Gradients of this thread's shares (first, last) of the decoder's parameters."""
    hidden_weight_gradients(g, work, rows, units[0], units[1])
    output_weight_gradients(g, work, rows, hidden[0], hidden[1])
    column_sums(work.d_hidden, rows, hidden[0], hidden[1], g.hidden_bias)
    if shape.layer_norm:
        norm_gradients(g, work, rows, hidden[0], hidden[1])
    column_sums(work.d_output, rows, outputs[0], outputs[1], g.output_bias)


@compiled
def update(w, g, m, s, rates, features, units, hidden, outputs):
    """Adam on this thread's shares (first, last) of the parameters.

    m, s: the moments; rates: (of the decoder, of the intervals, corrections of the moments)
    """
    a, interval_a, b1, b2 = rates
    first, last = features
    _adam_rows(w.center, g.center, m.center, s.center, first, last, interval_a, b1, b2)
    _adam_rows(
        w.width_logit, g.width_logit, m.width_logit, s.width_logit, first, last, interval_a, b1, b2
    )
    first, last = units
    _adam_rows(
        w.hidden_weight,
        g.hidden_weight,
        m.hidden_weight,
        s.hidden_weight,
        first,
        last,
        a,
        b1,
        b2,
    )
    first, last = hidden
    _adam_rows(
        w.output_weight,
        g.output_weight,
        m.output_weight,
        s.output_weight,
        first,
        last,
        a,
        b1,
        b2,
    )
    _adam_part(w.hidden_bias, g.hidden_bias, m.hidden_bias, s.hidden_bias, first, last, a, b1, b2)
    _adam_part(w.norm_gain, g.norm_gain, m.norm_gain, s.norm_gain, first, last, a, b1, b2)
    _adam_part(w.norm_shift, g.norm_shift, m.norm_shift, s.norm_shift, first, last, a, b1, b2)
    first, last = outputs
    _adam_part(w.output_bias, g.output_bias, m.output_bias, s.output_bias, first, last, a, b1, b2)


class Parts(NamedTuple):
    """Addresses of the functions above, for one kind of network."""

    normalise: int
    prepare: int
    pass_rows: int
    interval_gradients: int
    sum_weight_gradients: int
    through_normalisation: int
    update: int


class PartCalls(NamedTuple):
    """The functions that a step calls, each with example arguments."""

    normalise: Call | None
    prepare: Call
    pass_rows: Call
    interval_gradients: Call
    sum_weight_gradients: Call
    through_normalisation: Call | None
    update: Call


def part_calls(shape: Shape, w: Weights, spectral: Spectral, work: Workspace) -> PartCalls:
    """The functions that this kind of network needs; None for those it does not."""
    rates, part = (_ONE, _ONE, _ONE, _ONE), (0, 0)
    row_pass, gradients = (
        (pass_rows_by_difference, interval_gradients_by_difference)
        if shape.by_difference
        else (pass_rows, interval_gradients)
    )
    # `use_weights` takes the tuples themselves, because it is called from Python as well.
    normalise = (use_weights, (w, spectral, work)) if shape.normalised else None
    a, b = ByReference(w), ByReference(work)
    return PartCalls(
        normalise=normalise,
        prepare=(prepare, (a, shape, b, 0, 1)),
        pass_rows=(row_pass, (a, shape, b, 0, 0, 0, 0.0)),
        interval_gradients=(gradients, (a, a, shape, b, 0, 0, 0, 0.0)),
        sum_weight_gradients=(sum_weight_gradients, (a, shape, b, 0, part, part, part)),
        through_normalisation=(
            (through_normalisation, (a, b, spectral)) if shape.normalised else None
        ),
        update=(update, (a, a, a, a, rates, part, part, part, part)),
    )


def parts_for(shape: Shape, w: Weights, spectral: Spectral, work: Workspace) -> Parts:
    """Addresses of the functions that this kind of network needs; compiles them if necessary."""
    kind = shape.layer_norm, shape.normalised, shape.by_difference
    if kind not in _PARTS:
        calls = part_calls(shape, w, spectral, work)
        _PARTS[kind] = Parts(
            *(NOT_NEEDED if call is None else address_of(call[0], *call[1]) for call in calls)
        )
    return _PARTS[kind]


_PARTS: dict[
    tuple[bool, bool, bool], Parts
] = {}  # valid for all networks: argument types are the same


# --- The steps ----------------------------------------------------------------------------------


@compiled
def step_loop(
    thread,
    threads,
    parts,
    data,
    order,
    first_row,
    last_row,
    batch_size,
    step,
    schedule,
    shape,
    w,
    g,
    moment1,
    moment2,
    spectral,
    work,
    support,
    support_weight,
    support_decay,
):
    """Train on data[order[first_row:last_row]] in batches, as one of `threads` threads.

    → (Σ of row losses, steps done)
    """
    loss = 0.0
    start = first_row
    features = share(shape.features, 1, thread, threads)
    units = share(w.hidden_weight.shape[0], TILE_ROWS, thread, threads)
    hidden = share(w.output_weight.shape[0], TILE_ROWS, thread, threads)
    outputs = share(w.output_bias.shape[0], LANES, thread, threads)
    weights, gradients, space = reference(w), reference(g), reference(work)
    first_moment, second_moment = reference(moment1), reference(moment2)
    while start < last_row:
        # Normalising the decoder needs the parameters of all threads.
        if shape.normalised:
            if not meet(work.team, threads):
                return loss, step
            if thread == 0:
                call(parts.normalise, (w, spectral, work))
            if not meet(work.team, threads):
                return loss, step
        call(parts.prepare, (weights, shape, space, thread, threads))
        if not meet(work.team, threads):
            return loss, step
        rows = min(batch_size, last_row - start)
        first, last = share(whole_tiles(rows), TILE_ROWS, thread, threads)
        for b in range(first, min(last, rows)):
            for j in range(shape.features):
                work.x[b, j] = data[order[start + b], j]
        call(
            parts.pass_rows,
            (weights, shape, space, first, last, rows, schedule.coverage_weight),
        )
        if not meet(work.team, threads):
            return loss, step

        for b in range(rows):
            loss += work.row_loss[b]
        call(
            parts.interval_gradients,
            (
                weights,
                gradients,
                shape,
                space,
                rows,
                features[0],
                features[1],
                schedule.coverage_weight,
            ),
        )
        call(parts.sum_weight_gradients, (gradients, shape, space, rows, units, hidden, outputs))
        if shape.normalised:  # one thread, because it needs the whole gradients
            if not meet(work.team, threads):
                return loss, step
            if thread == 0:
                call(parts.through_normalisation, (gradients, space, spectral))
            if not meet(work.team, threads):
                return loss, step

        rate = schedule.learning_rate
        if schedule.cosine:
            rate *= 0.5 * (1.0 + np.cos(np.pi * step / schedule.total_steps))
        step += 1
        rates = (
            np.float32(rate),
            np.float32(rate * schedule.interval_rate),
            np.float32(1.0 - float(_BETA1) ** step),
            np.float32(1.0 - float(_BETA2) ** step),
        )
        call(
            parts.update,
            (
                weights,
                gradients,
                first_moment,
                second_moment,
                rates,
                features,
                units,
                hidden,
                outputs,
            ),
        )
        _update_support(
            support, support_weight, support_decay, work, rows, features[0], features[1]
        )
        start += rows
    return loss, step


def train_steps(*arguments: Any) -> tuple[float, int]:
    """`step_loop` with numbers below 1e-38 treated as zero.

    Many codes and Adam moments are that small. They do not change any sum, but on some processors
    training with them takes ten times as long.
    """
    mode = flush_tiny_numbers()
    try:
        loss, step = step_loop(*arguments)
    finally:
        set_float_mode(mode)
    return loss, step
