"""Elementary functions of the interval layer."""

import numpy as np
import pytest

from diffint.engine.cpu import intervals


@pytest.mark.parametrize(("low", "high"), [(-87, 88), (-1, 1)])
def test_exp(low, high):
    x = np.linspace(low, high, 2001, dtype=np.float32)
    actual = np.array([intervals.exp(v) for v in x])
    np.testing.assert_allclose(actual, np.exp(x.astype(float)), rtol=3e-7)


def test_log():
    x = np.concatenate([np.geomspace(1e-37, 1e38, 2001), np.linspace(0.5, 2, 501)])
    actual = np.array([intervals.log(v) for v in x.astype(np.float32)])
    np.testing.assert_allclose(
        actual, np.log(x.astype(np.float32).astype(float)), atol=1e-7, rtol=3e-7
    )
