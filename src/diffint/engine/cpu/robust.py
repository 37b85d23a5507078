"""Rows to reconstructions from memberships that no single feature can make small."""

from __future__ import annotations

import numpy as np

from ..kernel_cache import compiled
from . import intervals as cpu
from .forward import decode, softmax
from .linear import copy, whole_tiles


@compiled
def reconstruct(rows, w, shape, work, max_reciprocal, outputs):
    """Decode the codes of bounded memberships, with the bounds already set in `work`.

    rows: (rows, features) scaled and clipped; outputs: the same shape, filled.
    """
    block = work.x.shape[0]
    product = np.empty(work.lower.shape[1], dtype=np.float32)
    for start in range(0, rows.shape[0], block):
        count = min(block, rows.shape[0] - start)
        full = whole_tiles(count)
        x = rows[start : start + count]
        log_box, code = work.log_box[:full], work.code[:full]
        if shape.by_difference:
            cpu.bounded_log_boxes_by_difference(
                x, work.lower, work.upper, shape.temperature, max_reciprocal, product, log_box
            )
        else:
            u, v = work.u[:full], work.v[:full]
            cpu.row_exponentials(x, shape.temperature, u, v)
            cpu.bounded_log_boxes(u, v, work.p, work.q, max_reciprocal, product, log_box)
        softmax(log_box, shape.units, code)
        decode(w, shape, work, 0, full)
        copy(work.output[:count, : shape.features], outputs[start : start + count])
