"""The extremes of linear functions of a code."""

import numpy as np
import pytest
from scipy.optimize import linprog

from diffint.certify.knapsack import fullest, least, most
from diffint.core.scaling import Range


def make_codes(rng, n_boxes, n_units):
    code = rng.dirichlet(np.full(n_units, 0.3), size=n_boxes)
    below, above = rng.random((2, n_boxes, n_units)) * rng.random((2, n_boxes, 1))
    return Range(code * (1 - below), code + (1 - code) * above)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("own", [False, True])
def test_extremes_are_those_of_linear_programming(seed, own):
    rng = np.random.default_rng(seed)
    codes = make_codes(rng, 3, int(rng.integers(1, 9)))
    n_units = codes.low.shape[1]
    weights = rng.normal(size=(3, 4, n_units) if own else (4, n_units))
    highest, lowest = most(codes, weights), least(codes, weights)
    for box in range(3):
        ranges = list(zip(codes.low[box], codes.high[box], strict=True))
        for i, w in enumerate(weights[box] if own else weights):
            for found, sign in ((highest, -1.0), (lowest, 1.0)):
                one = np.ones((1, n_units))
                expected = linprog(sign * w, A_eq=one, b_eq=[1.0], bounds=ranges)
                assert found[box, i] == pytest.approx(sign * expected.fun, abs=1e-8)


def test_the_fullest_code_is_within_the_ranges_and_has_the_largest_sum():
    rng = np.random.default_rng(0)
    codes, weights = make_codes(rng, 20, 7), rng.normal(size=(20, 7))
    code = fullest(codes, weights)
    np.testing.assert_allclose(code.sum(axis=1), 1.0)
    assert (code >= codes.low - 1e-12).all()
    assert (code <= codes.high + 1e-12).all()
    np.testing.assert_allclose((code * weights).sum(axis=1), most(codes, weights[:, None])[:, 0])
    anything = fullest(None, weights)
    np.testing.assert_array_equal(anything.argmax(axis=1), weights.argmax(axis=1))
