"""The matrix product compared with NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diffint.engine.cpu.linear import LANES, TILE_ROWS, multiply_add


@settings(max_examples=60)
@given(
    rows=st.integers(1, 40),
    inner=st.integers(1, 600),
    columns=st.integers(1, 5),
    transposed=st.booleans(),
)
def test_multiply_add(rows, inner, columns, transposed):
    rng = np.random.default_rng(rows * inner)
    m, n = rows * TILE_ROWS, columns * LANES
    a = rng.normal(size=(inner, m) if transposed else (m, inner)).astype(np.float32)
    a = a.T if transposed else a
    b, c = (rng.normal(size=s).astype(np.float32) for s in ((inner, n), (m, n)))
    expected = c.astype(float) + a.astype(float) @ b.astype(float)
    multiply_add(a, b, c)
    np.testing.assert_allclose(c, expected, atol=1e-5 * inner)


@pytest.mark.parametrize("rows", [8, 64, 256])
def test_a_row_does_not_depend_on_other_rows(rows):
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=s).astype(np.float32) for s in ((256, 300), (300, 64)))
    whole, part = np.zeros((256, 64), np.float32), np.zeros((rows, 64), np.float32)
    multiply_add(a, b, whole)
    order = rng.permutation(256)[:rows]
    multiply_add(a[order], b, part)
    np.testing.assert_array_equal(part, whole[order])
