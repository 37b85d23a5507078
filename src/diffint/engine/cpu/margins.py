"""Per-row quantities of the clipping margin of certificates, in float64."""

from __future__ import annotations

import math

import numpy as np

from ..kernel_cache import compiled

_LARGEST = 1e8  # 1 / MIN_MEMBERSHIP
_SAFE_EXPONENT = 300.0  # up to this |value|/τ no product of two exponentials overflows float64
_FEATURES_PER_LOG = 32  # a product of this many factors of at most 1e8 does not overflow


@compiled
def row_margins(x, lower, upper, active, temperature, eta, omega, lowest, pattern, strict, log_box):
    """Fill the quantities of each row that need neither codes nor decoder, and its log memberships.

    x: (rows, features) as the encoder sees them; lower, upper: (features, units) float64; active:
    (features, units).

    Filled:
    omega: (rows,) Σ_j of the spread over units of log I_kj, less what `pattern` accounts for;
    lowest: (rows,) a lower bound of every unit's log box membership;
    pattern: (rows, features) ±1 if above or below the intervals of all units by eta, ±2 if the
    memberships of all units are clamped as well, else 0;
    strict: (rows,) whether the row is beyond every active feature of some unit;
    log_box: (rows, units).
    """
    features, units = lower.shape
    inverse = 1.0 / temperature
    largest = 0.0
    top, bottom = np.empty(features), np.empty(features)
    for j in range(features):
        top[j], bottom[j] = upper[j].max(), lower[j].min()
        largest = max(largest, max(abs(top[j]), abs(bottom[j])))
        largest = max(largest, max(abs(upper[j].min()), abs(lower[j].max())))
    by_product = largest * inverse <= _SAFE_EXPONENT
    p, q = np.empty((2, features, units))
    if by_product:
        for j in range(features):
            for k in range(units):
                p[j, k] = math.exp(lower[j, k] * inverse)
                q[j, k] = math.exp(-upper[j, k] * inverse)
    reciprocal, product = np.empty(units), np.empty(units)
    misses, has_active = np.empty(units), np.zeros(units)
    for j in range(features):
        for k in range(units):
            has_active[k] += active[j, k]
    for b in range(x.shape[0]):
        omega[b], lowest[b] = 0.0, 0.0
        factors = 0
        logs = log_box[b]
        for k in range(units):
            logs[k], product[k], misses[k] = 0.0, 1.0, 0.0
        for j in range(features):
            value = np.float64(x[b, j])
            pattern[b, j] = 0
            if value != value:
                for k in range(units):
                    misses[k] += active[j, k]
                continue
            if by_product and abs(value) * inverse <= _SAFE_EXPONENT:
                up, down = math.exp(value * inverse), math.exp(-value * inverse)
                for k in range(units):
                    r = (1.0 + down * p[j, k]) * (1.0 + up * q[j, k])
                    reciprocal[k] = min(r, _LARGEST)
            else:
                for k in range(units):
                    r = 1.0 + math.exp(min((lower[j, k] - value) * inverse, 50.0))
                    r *= 1.0 + math.exp(min((value - upper[j, k]) * inverse, 50.0))
                    reciprocal[k] = min(r, _LARGEST)
            smallest_r, largest_r = reciprocal[0], reciprocal[0]
            for k in range(units):
                smallest_r = min(smallest_r, reciprocal[k])
                largest_r = max(largest_r, reciprocal[k])
                product[k] *= reciprocal[k]
            for k in range(units):
                beyond = value < lower[j, k] - eta or value > upper[j, k] + eta
                misses[k] += 0.0 if beyond else active[j, k]
            lowest[b] -= math.log(largest_r)
            side = 0
            if value > top[j] + eta:
                side = 1
            elif value < bottom[j] - eta:
                side = -1
            if side == 0:
                omega[b] += math.log(largest_r / smallest_r)
            elif smallest_r >= _LARGEST:  # the same for every unit
                side *= 2
            else:
                least, most = math.inf, -math.inf
                for k in range(units):
                    expected = upper[j, k] - top[j] if side > 0 else bottom[j] - lower[j, k]
                    rest = -math.log(reciprocal[k]) - expected * inverse
                    least, most = min(least, rest), max(most, rest)
                omega[b] += most - least
            pattern[b, j] = side
            factors += 1
            if factors % _FEATURES_PER_LOG == 0:
                for k in range(units):
                    logs[k] -= math.log(product[k])
                    product[k] = 1.0
        strict[b] = False
        for k in range(units):
            logs[k] -= math.log(product[k])
            if has_active[k] > 0.0 and misses[k] == 0.0:
                strict[b] = True
