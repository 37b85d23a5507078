"""The fused interval layer on the CPU: memberships, codes and gradients.

With u = e^(x/τ), v = e^(−x/τ), P = e^(lower/τ) and Q = e^(−upper/τ),

    1/I = (1 + v·P)·(1 + u·Q) = c + v·P + u·Q,  c = 1 + P·Q,

so an element costs two multiply-adds and no transcendental function. The sum of log I over features
is minus the log of a product. The product is kept as mantissa and exponent: log memberships need
one logarithm per (row, unit), codes none. A missing cell has u = v = 0. Its factor is then 1 in the
first form and c in the second, where it is divided out again.

Layout: features × units, the units padded to whole vectors; the innermost loops run over the units,
so a row's arithmetic does not depend on the other rows. Rows and features are padded to multiples
of four with neutral cells. The functions do not allocate: callers pass the arrays to fill.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..kernel_cache import bits_float, compiled, compiled_sums, float_bits
from .product_tile import LANES, TILE_ROWS, multiply_features

SAFE_EXPONENT = 30.0  # up to this |x|/τ no product of the four exponentials overflows float32
_EXPONENT_LIMIT = np.float32(49.0)  # above SAFE_EXPONENT + log 1e8 the clamp applies anyway

_BACKWARD_ROWS = 16
MAX_RECIPROCAL = 100.0  # largest allowed bound on 1/membership
_FACTORS = 16  # bounded factors multiplied before a logarithm: their product fits float32

_ONE = np.float32(1.0)
_HALF = np.float32(0.5)
_ZERO = np.float32(0.0)
_MAX_RECIPROCAL = np.float32(1e8)  # 1 / MIN_MEMBERSHIP
_LN2 = np.float32(0.6931471805599453)
_NEVER = np.int32(1 << 29)  # larger than any exponent of a box
_LN2_HIGH = np.float32(0.693359375)  # exact in few bits, so that n·LN2_HIGH is exact
_LN2_LOW = np.float32(-2.12194440e-4)
_LOG2_E = np.float32(1.4426950408889634)
_SQRT_HALF = np.float32(0.70710678)
_MANTISSA = np.int32(0x7FFFFF)
_ONE_BITS = np.int32(0x3F800000)
_EXP_MIN, _EXP_MAX = np.float32(-87.0), np.float32(88.0)


def padded(size: int, multiple: int = LANES) -> int:
    """`size` rounded up to a multiple."""
    return -(-size // multiple) * multiple


def largest_magnitude(x: NDArray[np.float32]) -> float:
    """The largest |value|, ignoring NaN; 0 if there is none."""
    if x.size == 0:
        return 0.0
    largest = max(np.fmax.reduce(x, axis=None), -np.fmin.reduce(x, axis=None))
    return 0.0 if np.isnan(largest) else float(largest)


@compiled
def exp(x):
    """e^x in float32, relative error about 1e-7; 0 for x < -87, e^88 for x > 88."""
    underflows = x < _EXP_MIN
    x = min(max(x, _EXP_MIN), _EXP_MAX)
    n = np.floor(x * _LOG2_E + _HALF)
    r = x - n * _LN2_HIGH - n * _LN2_LOW
    p = np.float32(1.9875691500e-4)
    p = p * r + np.float32(1.3981999507e-3)
    p = p * r + np.float32(8.3334519073e-3)
    p = p * r + np.float32(4.1665795894e-2)
    p = p * r + np.float32(1.6666665459e-1)
    p = p * r + np.float32(5.0000001201e-1)
    p = p * r * r + r + _ONE
    return _ZERO if underflows else p * bits_float((np.int32(n) + np.int32(127)) << np.int32(23))


@compiled
def inverse_temperature(temperature):
    """1/τ, finite for every τ > 0."""
    return np.float32(min(1.0 / temperature, 3e38))


@compiled
def log(x):
    """Natural logarithm of a positive, normal float32, error about 1e-7."""
    bits = float_bits(x)
    exponent = (bits >> np.int32(23)) - np.int32(126)
    m = bits_float((bits & _MANTISSA) | np.int32(0x3F000000))  # in [0.5, 1)
    small = m < _SQRT_HALF
    m = (m + m if small else m) - _ONE
    e = np.float32(exponent - np.int32(1) if small else exponent)
    z = m * m
    p = np.float32(7.0376836292e-2)
    p = p * m + np.float32(-1.1514610310e-1)
    p = p * m + np.float32(1.1676998740e-1)
    p = p * m + np.float32(-1.2420140846e-1)
    p = p * m + np.float32(1.4249322787e-1)
    p = p * m + np.float32(-1.6668057665e-1)
    p = p * m + np.float32(2.0000714765e-1)
    p = p * m + np.float32(-2.4999993993e-1)
    p = p * m + np.float32(3.3333331174e-1)
    return m + (m * z * p + (e * _LN2_LOW - _HALF * z)) + e * _LN2_HIGH


@compiled
def row_exponentials(x, temperature, u, v):
    """Fill u, v (padded rows, padded features) from x (rows, features); padding is neutral."""
    rows, features = x.shape
    inverse = inverse_temperature(temperature)
    for b in range(u.shape[0]):
        up, down = u[b], v[b]
        for j in range(u.shape[1]):
            up[j] = _ZERO
            down[j] = _ZERO
        if b < rows:
            values = x[b]
            for j in range(features):
                value = values[j]
                scaled = value * inverse
                up[j] = exp(scaled) if value == value else _ZERO
                down[j] = exp(-scaled) if value == value else _ZERO


@compiled
def unit_exponentials(lower, upper, temperature, p, q, c):
    """Fill p, q and c = 1 + p·q from bounds, all (features, padded units)."""
    inverse = inverse_temperature(temperature)
    for j in range(lower.shape[0]):
        for k in range(lower.shape[1]):
            low = lower[j, k] * inverse
            up = -upper[j, k] * inverse
            p[j, k] = exp(min(max(low, -_EXPONENT_LIMIT), _EXPONENT_LIMIT))
            q[j, k] = exp(min(max(up, -_EXPONENT_LIMIT), _EXPONENT_LIMIT))
            c[j, k] = _ONE + p[j, k] * q[j, k]


@compiled
def box_products(u, v, p, q, c, n_rows, mantissa, exponent):
    """∏_j 1/I as mantissa in (0, 2) and exponent; both (padded rows, padded units).

    The exponents include float32's bias of 127 once for every four features.
    """
    rows, features = u.shape
    groups = features // 4
    cell_step, feature_step, out_step = u.strides[0], p.strides[0], mantissa.strides[0]
    for b in range(0, rows, TILE_ROWS):
        for k in range(0, p.shape[1], LANES):
            unit = k * 4  # bytes
            multiply_features(
                u.ctypes.data + b * cell_step,
                v.ctypes.data + b * cell_step,
                cell_step,
                p.ctypes.data + unit,
                q.ctypes.data + unit,
                c.ctypes.data + unit,
                feature_step,
                groups,
                mantissa.ctypes.data + b * out_step + unit,
                exponent.ctypes.data + b * out_step + unit,
                out_step,
            )
    for b in range(n_rows):
        for j in range(features):
            if u[b, j] == _ZERO:
                take_out(c[j], mantissa[b], exponent[b])


@compiled
def take_out(c, mantissa, exponent):
    """Divide the factor of a missing cell, c, out of a row's products.

    c, mantissa, exponent: (units,)
    """
    for k in range(c.shape[0]):
        bits = float_bits(mantissa[k] / c[k])
        exponent[k] += (bits >> np.int32(23)) - np.int32(127)
        mantissa[k] = bits_float((bits & _MANTISSA) | _ONE_BITS)


@compiled
def product_logs(mantissa, exponent, features, out):
    """Log box memberships from the products over (padded) features."""
    bias = np.int32(127 * (features // 4))
    for b in range(out.shape[0]):
        for k in range(out.shape[1]):
            out[b, k] = -(np.float32(exponent[b, k] - bias) * _LN2 + log(mantissa[b, k]))


@compiled
def bounded_log_boxes(u, v, p, q, max_reciprocal, product, out):
    """Σ_j log max(I_kj, 1/max_reciprocal), max_reciprocal ≤ MAX_RECIPROCAL.

    u, v: (padded rows, padded features); p, q: (padded features, padded units); product: (padded
    units,) scratch; out: (padded rows, padded units), 0 in padding rows.
    """
    largest = np.float32(max_reciprocal)
    features, units = p.shape
    for b in range(out.shape[0]):
        total = out[b]
        for k in range(units):
            total[k] = _ZERO
            product[k] = _ONE
        for j in range(features):
            ub, vb, low, up = u[b, j], v[b, j], p[j], q[j]
            for k in range(units):
                product[k] *= min((_ONE + vb * low[k]) * (_ONE + ub * up[k]), largest)
            if (j + 1) % _FACTORS == 0 or j + 1 == features:
                for k in range(units):
                    total[k] -= log(product[k])
                    product[k] = _ONE


@compiled_sums
def product_codes(mantissa, exponent, n_units):
    """Replace the mantissas by codes: the softmax over units of the log box memberships.

    A code is 2^−exponent / mantissa, divided by the sum over the units: no logarithm and no
    exponential. Exponents are relative to the smallest; padding units get 0.
    """
    units = mantissa.shape[1]
    for b in range(mantissa.shape[0]):
        code, powers = mantissa[b], exponent[b]
        for k in range(n_units, units):
            powers[k] = _NEVER
        smallest = powers[0]
        for k in range(units):
            smallest = min(smallest, powers[k])
        total = _ZERO
        for k in range(units):
            shift = max(np.int32(127) - (powers[k] - smallest), np.int32(0))
            value = bits_float(shift << np.int32(23)) / code[k]
            code[k] = value
            total += value
        scale = _ONE / total
        for k in range(units):
            code[k] *= scale


@compiled
def _accumulate_four_rows(u, v, p, q, g, d_low, d_up, total):
    """Add four rows of one feature to its gradient sums, for all units."""
    u0, u1, u2, u3 = u[0], u[1], u[2], u[3]
    v0, v1, v2, v3 = v[0], v[1], v[2], v[3]
    g0, g1, g2, g3 = g[0], g[1], g[2], g[3]
    for k in range(p.shape[0]):
        pk, qk = p[k], q[k]
        low0, up0, t0 = _edge_slopes(u0, v0, pk, qk, g0[k])
        low1, up1, t1 = _edge_slopes(u1, v1, pk, qk, g1[k])
        low2, up2, t2 = _edge_slopes(u2, v2, pk, qk, g2[k])
        low3, up3, t3 = _edge_slopes(u3, v3, pk, qk, g3[k])
        d_low[k] += (low0 + low1) + (low2 + low3)
        d_up[k] += (up0 + up1) + (up2 + up3)
        total[k] += (t0 + t1) + (t2 + t3)


@compiled
def _edge_slopes(u, v, p, q, g):
    """(g·v/(1 + v·p), g·u/(1 + u·q), I); the first two are 0 where I is clamped."""
    a, b = _ONE + v * p, _ONE + u * q
    r = a * b
    t = _ONE / min(r, _MAX_RECIPROCAL)
    w = g * t if r < _MAX_RECIPROCAL else _ZERO
    return w * b * v, w * a * u, t


@compiled
def bound_gradients(u, v, p, q, upstream, temperature, start, stop, d_lower, d_upper, total):
    """Gradients of Σ upstream · log box membership, and Σ I, in one pass over the elements.

    For the features start..stop. upstream: (padded rows, padded units); d_lower, d_upper, total:
    (features, padded units). ``total`` counts a neutral cell (missing or padding) as membership 1.
    """
    inverse = inverse_temperature(temperature)
    for j in range(start, stop):
        for k in range(p.shape[1]):
            d_lower[j, k] = _ZERO
            d_upper[j, k] = _ZERO
            total[j, k] = _ZERO
    # In tiles of rows, so that upstream stays in the first-level cache over the loop on features,
    # and a feature's bounds and sums over the loop on rows.
    rows = u.shape[0]
    for first in range(0, rows, _BACKWARD_ROWS):
        for j in range(start, stop):
            for b in range(first, min(first + _BACKWARD_ROWS, rows), 4):
                _accumulate_four_rows(
                    u[b : b + 4, j],
                    v[b : b + 4, j],
                    p[j],
                    q[j],
                    upstream[b : b + 4],
                    d_lower[j],
                    d_upper[j],
                    total[j],
                )
    for j in range(start, stop):
        for k in range(p.shape[1]):
            d_lower[j, k] *= -inverse * p[j, k]
            d_upper[j, k] *= inverse * q[j, k]


@compiled_sums
def input_gradients(u, v, p, q, upstream, temperature, n_units, d_x):
    """Gradient of Σ upstream · log box membership with respect to x. d_x: (rows, features)"""
    inverse = inverse_temperature(temperature)
    for b in range(d_x.shape[0]):
        for j in range(d_x.shape[1]):
            ub, vb = u[b, j], v[b, j]
            total = _ZERO
            for k in range(n_units):
                below, above = vb * p[j, k], ub * q[j, k]
                r = (_ONE + below) * (_ONE + above)
                slope = (below * (_ONE + above) - above * (_ONE + below)) / min(r, _MAX_RECIPROCAL)
                total += upstream[b, k] * slope if r < _MAX_RECIPROCAL else _ZERO
            d_x[b, j] = total * inverse


# --- By difference, for inputs beyond the safe range: one exponential per edge -------------------


@compiled
def _edges(value, lower, upper, inverse):
    """(1/σ − 1 of the lower edge, 1/σ − 1 of the upper edge), each finite."""
    return exp((lower - value) * inverse), exp((value - upper) * inverse)


@compiled
def log_box_memberships_by_difference(x, lower, upper, temperature, out):
    """Log box memberships, from x (rows, features) and bounds (features, padded units)."""
    inverse = inverse_temperature(temperature)
    for b in range(out.shape[0]):
        for k in range(out.shape[1]):
            out[b, k] = _ZERO
        if b >= x.shape[0]:
            continue
        for j in range(x.shape[1]):
            value = x[b, j]
            if value == value:
                for k in range(out.shape[1]):
                    below, above = _edges(value, lower[j, k], upper[j, k], inverse)
                    out[b, k] -= log(min((_ONE + below) * (_ONE + above), _MAX_RECIPROCAL))


@compiled
def bounded_log_boxes_by_difference(x, lower, upper, temperature, max_reciprocal, product, out):
    """As `bounded_log_boxes`, from x (rows, features) and bounds (features, padded units)."""
    inverse = inverse_temperature(temperature)
    largest = np.float32(max_reciprocal)
    features, units = lower.shape
    for b in range(out.shape[0]):
        total = out[b]
        for k in range(units):
            total[k] = _ZERO
            product[k] = _ONE
        if b >= x.shape[0]:
            continue
        for j in range(features):
            value, low, up = x[b, j], lower[j], upper[j]
            if value == value:
                for k in range(units):
                    below, above = _edges(value, low[k], up[k], inverse)
                    product[k] *= min((_ONE + below) * (_ONE + above), largest)
            if (j + 1) % _FACTORS == 0 or j + 1 == features:
                for k in range(units):
                    total[k] -= log(product[k])
                    product[k] = _ONE


@compiled
def bound_gradients_by_difference(
    x, lower, upper, upstream, temperature, neutral_rows, start, stop, d_lower, d_upper, total
):
    """As `bound_gradients`; `neutral_rows` padding rows count as membership 1 in ``total``."""
    inverse = inverse_temperature(temperature)
    for j in range(start, stop):
        for k in range(d_lower.shape[1]):
            d_lower[j, k] = _ZERO
            d_upper[j, k] = _ZERO
            total[j, k] = np.float32(neutral_rows)
        for b in range(x.shape[0]):
            value = x[b, j]
            if value != value:
                for k in range(d_lower.shape[1]):
                    total[j, k] += _ONE
                continue
            for k in range(d_lower.shape[1]):
                below, above = _edges(value, lower[j, k], upper[j, k], inverse)
                r = (_ONE + below) * (_ONE + above)
                total[j, k] += _ONE / min(r, _MAX_RECIPROCAL)
                g = upstream[b, k] * inverse if r < _MAX_RECIPROCAL else _ZERO
                d_lower[j, k] -= g * (below / (_ONE + below))
                d_upper[j, k] += g * (above / (_ONE + above))


@compiled_sums
def input_gradients_by_difference(x, lower, upper, upstream, temperature, n_units, d_x):
    """As `input_gradients`, from x (rows, features) and bounds (features, padded units)."""
    inverse = inverse_temperature(temperature)
    for b in range(d_x.shape[0]):
        for j in range(d_x.shape[1]):
            value = x[b, j]
            total = _ZERO
            if value == value:
                for k in range(n_units):
                    below, above = _edges(value, lower[j, k], upper[j, k], inverse)
                    slope = below / (_ONE + below) - above / (_ONE + above)
                    r = (_ONE + below) * (_ONE + above)
                    total += upstream[b, k] * slope if r < _MAX_RECIPROCAL else _ZERO
            d_x[b, j] = total * inverse
