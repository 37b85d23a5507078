"""How far rows are from everything that a decoder can output."""

import numpy as np
import pytest

from diffint import DiffInt
from diffint.certify.bound_propagation import IntervalNetwork
from diffint.core.scaling import Range

from ..conftest import QUICK, make_rows


@pytest.fixture(scope="module", params=["free", "certified", "spectral"])
def network(request):
    detector = DiffInt(**{**QUICK, "epochs": 30}, decoder=request.param).fit(make_rows(200))
    return IntervalNetwork(detector.model_.config, detector.model_.members[0])


def errors(network, target, codes):
    """The least Σ|x − output| over x in the target, of every code. → (boxes, codes)"""
    outputs = network.member.decoder.reconstruct(codes)
    beyond = np.maximum(target.low[:, None] - outputs, outputs - target.high[:, None])
    return np.nan_to_num(np.maximum(beyond, 0.0)).sum(axis=2)


def test_no_code_has_a_smaller_error(network):
    rng = np.random.default_rng(0)
    n_units, d = network.lower.shape
    rows = rng.normal(0, 2, size=(30, d))
    rows[rng.random(rows.shape) < 0.1] = np.nan
    least = network.least_errors(rows.astype(np.float32))
    codes = np.concatenate([np.eye(n_units), rng.dirichlet(np.full(n_units, 0.1), 3_000)])
    found = errors(network, Range(rows, rows), codes).min(axis=1)
    assert (least <= found + 1e-5).all()
    assert (least > 0).mean() > 0.3
    # Far away, the distance itself is what counts.
    far = network.least_errors(np.full((1, d), 50.0, dtype=np.float32))
    assert far[0] > 40 * d


def test_codes_within_ranges(network):
    rng = np.random.default_rng(1)
    n_units, d = network.lower.shape
    middle = rng.dirichlet(np.full(n_units, 0.3), 20)
    codes = Range(0.5 * middle, 0.5 * middle + 0.5)
    low = rng.normal(0, 1.5, size=(20, d))
    target = Range(low, low + rng.exponential(0.2, size=(20, d)))
    target.low[:, 0], target.high[:, 1] = -np.inf, np.inf
    decoded = network._decode(codes)
    least = network.image.distance(target, codes, decoded.stretch, decoded.error)
    within = 0.5 * middle[:, None] + 0.5 * rng.dirichlet(np.full(n_units, 0.1), (20, 500))
    for box in range(20):
        one = Range(target.low[[box]], target.high[[box]])
        assert least[box] <= errors(network, one, within[box]).min() + 1e-5
    anywhere = network.image.distance(target, None, decoded.stretch, decoded.error)
    assert least.sum() >= anywhere.sum()


def test_one_unit_has_one_output():
    detector = DiffInt(**{**QUICK, "n_units": 1}, decoder="certified").fit(make_rows(100))
    network = IntervalNetwork(detector.model_.config, detector.model_.members[0])
    rows = np.random.default_rng(0).normal(size=(20, 5)).astype(np.float32)
    exact = np.abs(rows - network.member.decoder.reconstruct(np.ones((1, 1)))).sum(axis=1)
    least = network.least_errors(rows)
    assert (least <= exact).all()
    assert (least > 0.85 * exact).all()
