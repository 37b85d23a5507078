"""A small matrix product.

Of its own, because BLAS brings threads: calling it from several threads at once, after a fork,
or beside other libraries' thread pools is not safe everywhere, and its sums may depend on how
many rows are multiplied at a time.
"""

from __future__ import annotations

from ..compiling import compiled


@compiled
def _four_by_four(c, b, a, i, k):
    """Rows i..i+3 of c += a[i:i+4, k:k+4] @ b[k:k+4]."""
    a00, a01, a02, a03 = a[i, k], a[i, k + 1], a[i, k + 2], a[i, k + 3]
    a10, a11, a12, a13 = a[i + 1, k], a[i + 1, k + 1], a[i + 1, k + 2], a[i + 1, k + 3]
    a20, a21, a22, a23 = a[i + 2, k], a[i + 2, k + 1], a[i + 2, k + 2], a[i + 2, k + 3]
    a30, a31, a32, a33 = a[i + 3, k], a[i + 3, k + 1], a[i + 3, k + 2], a[i + 3, k + 3]
    c0, c1, c2, c3 = c[i], c[i + 1], c[i + 2], c[i + 3]
    b0, b1, b2, b3 = b[k], b[k + 1], b[k + 2], b[k + 3]
    for n in range(c.shape[1]):
        x0, x1, x2, x3 = b0[n], b1[n], b2[n], b3[n]
        c0[n] += a00 * x0 + a01 * x1 + a02 * x2 + a03 * x3
        c1[n] += a10 * x0 + a11 * x1 + a12 * x2 + a13 * x3
        c2[n] += a20 * x0 + a21 * x1 + a22 * x2 + a23 * x3
        c3[n] += a30 * x0 + a31 * x1 + a32 * x2 + a33 * x3


@compiled
def multiply_add(a, b, c):
    """c += a @ b; a may be a transposed view. Rows and inner size are multiples of four."""
    for i in range(0, a.shape[0], 4):
        for k in range(0, a.shape[1], 4):
            _four_by_four(c, b, a, i, k)


@compiled
def fill(array, value):
    for i in range(array.shape[0]):
        for j in range(array.shape[1]):
            array[i, j] = value


@compiled
def start_with(c, row):
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            c[i, j] = row[j]


@compiled
def transpose(a, out):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[j, i] = a[i, j]
