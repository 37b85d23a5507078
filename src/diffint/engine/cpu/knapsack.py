"""Fills fractional knapsacks: the maximum of a linear function of a code within its ranges."""

from __future__ import annotations

from ..kernel_cache import compiled


@compiled
def fill_knapsacks(weights, order, room, left, out):
    """Add to `out` what filling each knapsack in its order is worth.

    weights, order: (1 or boxes, functions, units), the units in the order in which they are filled;
    room: (boxes, units); left: (boxes,) what is to be filled in; out: (boxes, functions)
    """
    for b in range(out.shape[0]):
        own = b if weights.shape[0] > 1 else 0
        for i in range(out.shape[1]):
            remaining = left[b]
            for k in range(order.shape[2]):
                if remaining <= 0.0:  # usually after a few units
                    break
                unit = order[own, i, k]
                taken = min(room[b, unit], remaining)
                out[b, i] += taken * weights[own, i, unit]
                remaining -= taken
