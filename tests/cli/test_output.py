"""Numbers of output files."""

import numpy as np

from diffint.cli.output import significant


def test_significant_digits():
    rng = np.random.default_rng(0)
    values = rng.normal(size=5_000) * 10.0 ** rng.integers(-30, 30, 5_000)
    values[:6] = [0.0, np.nan, np.inf, 999999.5, 1e-3, 5e-324]
    rounded = significant(values, 6)
    expected = np.array([float(f"{value:.6g}") for value in values])
    np.testing.assert_allclose(rounded, expected, rtol=1.1e-5)  # halves may be rounded otherwise
    assert all(float(f"{value:.6g}") == value for value in rounded[np.isfinite(rounded)])
