"""Initial values of the trainable arrays."""

from dataclasses import replace

import numpy as np

from diffint.core.config import PAPER
from diffint.engine.parameters import initial_parameters, inverse_softplus, softplus


def test_data_start_places_centers_at_rows():
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (50, 4)).astype(np.float32)
    rows[rng.random(rows.shape) < 0.1] = np.nan
    config = replace(PAPER, n_units=21, init="data")
    start = initial_parameters(np.random.default_rng(0), rows, config)
    present = ~np.isnan(rows)
    mean = np.nanmean(rows, axis=0)
    for center in start.center:
        distance = np.abs(np.where(present, rows, mean) - center).sum(axis=1)
        assert distance.min() < 1e-5
    np.testing.assert_allclose(
        start.half_width, np.broadcast_to(np.nanstd(rows, axis=0), (21, 4)), rtol=1e-4
    )


def test_inverse_softplus():
    y = np.array([1e-3, 0.05, 0.7, 5.0, 40.0])
    np.testing.assert_allclose(softplus(inverse_softplus(y)), y, rtol=1e-5)
