"""The definition compared with the formula of the paper, and its gradients with torch."""

import numpy as np
import pytest
import torch

from diffint.core.constants import MIN_MEMBERSHIP
from diffint.engine.reference import intervals as reference


def test_membership_equals_the_formula_of_the_paper():
    x, lower, upper, temperature = 0.3, -0.2, 0.5, 0.1
    low = 1 / (1 + np.exp(-(x - lower) / temperature))
    up = 1 / (1 + np.exp(-(upper - x) / temperature))
    log_i = reference.log_memberships(
        np.array([[x]]), np.array([[lower]]), np.array([[upper]]), temperature
    )
    assert np.exp(log_i[0, 0, 0]) == pytest.approx(low * up)


def test_missing_cells_have_membership_one_and_distant_cells_are_clamped():
    x = np.array([[np.nan, 50.0]])
    lower, upper = np.array([[-1.0, -1.0]]), np.array([[1.0, 1.0]])
    log_i = reference.log_memberships(x, lower, upper, 0.1)[0, 0]
    np.testing.assert_allclose(log_i, [0.0, np.log(MIN_MEMBERSHIP)])


def test_codes_sum_to_one():
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(4, 3))
    codes = reference.codes(rng.normal(size=(5, 3)), centers - 0.3, centers + 0.3, 0.1)
    np.testing.assert_allclose(codes.sum(axis=1), 1.0)


def torch_definition(x, lower, upper):
    low = torch.nn.functional.logsigmoid((x[:, None] - lower) / 0.3)
    up = torch.nn.functional.logsigmoid((upper - x[:, None]) / 0.3)
    return torch.clamp_min(low + up, np.log(MIN_MEMBERSHIP)).sum(dim=2)


def test_gradients_equal_torch():
    rng = np.random.default_rng(1)
    arrays = [rng.normal(size=(4, 3)), rng.normal(-0.5, 0.1, (2, 3)), rng.normal(0.5, 0.1, (2, 3))]
    x, lower, upper = (torch.tensor(a, requires_grad=True) for a in arrays)
    assert torch.autograd.gradcheck(torch_definition, (x, lower, upper))
    upstream = rng.normal(size=(4, 2))
    torch_definition(x, lower, upper).backward(torch.tensor(upstream))
    d_lower, d_upper, d_x = reference.gradients(*arrays, 0.3, upstream)
    for gradient, tensor in ((d_lower, lower), (d_upper, upper), (d_x, x)):
        np.testing.assert_allclose(gradient, tensor.grad.numpy(), atol=1e-12)
