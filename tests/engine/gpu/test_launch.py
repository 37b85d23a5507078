"""The interval layer on the GPU compared with its definition."""

from dataclasses import replace

import numpy as np
import pytest

from diffint.core.config import PAPER
from diffint.core.decoder import CertifiedDecoder, FreeDecoder
from diffint.engine.parameters import Parameters, inverse_softplus
from diffint.engine.reference import intervals as reference

from .conftest import make_runs, too_slow


def one_step(x, center, half_width, temperature, device, decoder=FreeDecoder, coverage_weight=0.0):
    """A launch after one step on the rows x, with support decay 0 and learning rate 0."""
    import torch

    from diffint.engine.cpu import layout, spectral
    from diffint.engine.cpu.intervals import largest_magnitude
    from diffint.engine.gpu.launch import Launch

    rng = np.random.default_rng(5)
    (n_units, n_features), hidden = center.shape, 9

    def normal(*size):
        return rng.normal(size=size).astype(np.float32)

    start = Parameters(
        center,
        inverse_softplus(half_width),
        decoder(
            normal(n_units, hidden),
            normal(hidden),
            normal(hidden),
            normal(hidden),
            normal(hidden, n_features),
            normal(n_features),
        ),
    )
    shape = layout.shape_of(start, temperature, largest_magnitude(x))
    flat = layout.pack(start, shape)
    singular = spectral.start_spectral(rng, layout.views(flat, shape), shape)
    orders = torch.arange(len(x), dtype=torch.int32, device=device)
    launch = Launch(
        [x],
        flat[None],
        [singular],
        shape,
        len(x),
        1,
        orders,
        0.0,
        coverage_weight=coverage_weight,
    )
    plan = np.array([[[0, len(x)]]], dtype=np.int32)
    launch.load(plan, np.array([[[0.0, 1.0, 1.0]]], dtype=np.float32))
    launch.run(1)
    return start, launch


def relative_error(value, expected):
    return np.linalg.norm(value - expected) / max(np.linalg.norm(expected), 1e-30)


@pytest.mark.parametrize(
    ("n_rows", "n_features", "n_units", "temperature", "missing", "spread"),
    [
        (1, 1, 1, 0.1, 0.0, 1.0),
        (37, 5, 3, 0.02, 0.0, 0.5),
        pytest.param(130, 39, 200, 0.1, 0.0, 1.0, marks=too_slow),
        (64, 7, 17, 10.0, 0.2, 1.0),
        (70, 33, 20, 0.5, 0.3, 1.0),
        (65, 4, 16, 0.1, 0.2, 3.0),  # distant rows: memberships are clamped
        (50, 6, 5, 0.02, 0.2, 40.0),  # beyond the safe range: by difference
        pytest.param(3, 1555, 2, 0.1, 0.1, 1.0, marks=too_slow),
    ],
)
def test_layer_equals_the_definition(
    device, n_rows, n_features, n_units, temperature, missing, spread
):
    rng = np.random.default_rng(n_rows)
    x = make_runs([n_rows], n_features, missing, spread)[0].rows
    center = rng.uniform(-1, 1, (n_units, n_features)).astype(np.float32)
    half_width = rng.uniform(0.05, 0.8, (n_units, n_features))
    start, launch = one_step(x, center, half_width, temperature, device)
    half = np.logaddexp(0.0, start.width_logit.astype(np.float64))
    lower, upper = center - half, center + half

    log_box = launch.log_box[0, :n_rows, :n_units].cpu().numpy()
    expected = reference.log_box_memberships(x, lower, upper, temperature)
    np.testing.assert_allclose(log_box, expected, rtol=2e-6, atol=2e-5)

    upstream = launch.upstream[0, :n_rows, :n_units].cpu().numpy()
    d_lower, d_upper, _ = reference.gradients(x, lower, upper, temperature, upstream)
    slope = 1.0 / (1.0 + np.exp(-start.width_logit.astype(np.float64)))
    moment = launch._named(launch.moment1)  # after one step: (1 − β₁) times the gradient
    for given, wanted in (
        (moment.center, d_lower + d_upper),
        (moment.width_logit, (d_upper - d_lower) * slope),
    ):
        gradient = given[0, :, :n_units].cpu().numpy().T / np.float32(0.1)
        assert relative_error(gradient, wanted) < 2e-5

    membership = np.exp(reference.log_memberships(x, lower, upper, temperature))
    present = ~np.isnan(x)
    seen = present.any(axis=0)
    total = np.where(present[:, None], membership, 0.0).sum(axis=0)
    mean = total[:, seen] / present.sum(axis=0)[seen]
    support = launch.results()[1][0][:, seen]
    np.testing.assert_allclose(support, mean, rtol=1e-5, atol=5e-6)


@pytest.mark.parametrize("coverage_weight", [0.0, 0.5])
@pytest.mark.parametrize("decoder", [FreeDecoder, CertifiedDecoder])
@pytest.mark.parametrize(("n_rows", "n_features", "n_units"), [(37, 5, 3), (18, 20, 17)])
def test_decoder_and_its_gradients_equal_the_definition(
    device, n_rows, n_features, n_units, decoder, coverage_weight
):
    import torch

    from diffint.engine.reference.network import Network, loss

    rng = np.random.default_rng(n_rows)
    x = make_runs([n_rows], n_features, 0.2)[0].rows
    center = rng.uniform(-1, 1, (n_units, n_features)).astype(np.float32)
    half_width = rng.uniform(0.05, 0.8, (n_units, n_features))
    start, launch = one_step(x, center, half_width, 0.1, device, decoder, coverage_weight)

    config = replace(PAPER, temperature=0.1, hidden_width=len(start.decoder.hidden_bias))
    network = Network(start, config).double()
    layers = list(network.decoder)
    if decoder is FreeDecoder:  # training begins with ones and zeros
        layers[1].weight.data = torch.tensor(start.decoder.norm_gain).double()
        layers[1].bias.data = torch.tensor(start.decoder.norm_shift).double()
    rows = torch.tensor(x, dtype=torch.float64)
    log_box = network.intervals(rows)
    code = torch.softmax(log_box, dim=1)
    value = loss(rows, network.decoder(code))
    (value + coverage_weight * network.intervals.looseness(log_box, code)).backward()

    found = launch.code[0, :n_rows, :n_units].cpu().numpy()
    np.testing.assert_allclose(found, code.detach().numpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(launch.losses_of(1)[0, 0] / n_rows, value.item(), rtol=1e-5)
    intervals = network.intervals
    expected = {
        "center": intervals.center.grad.T,
        "width_logit": intervals.width_logit.grad.T,
        "hidden_weight": layers[0].weight.grad.T,
        "hidden_bias": layers[0].bias.grad,
        "output_weight": layers[-1].weight.grad.T,
        "output_bias": layers[-1].bias.grad,
    }
    if decoder is FreeDecoder:
        expected |= {"norm_gain": layers[1].weight.grad, "norm_shift": layers[1].bias.grad}
    # After one step the moments are (1 − β₁) times the gradient and (1 − β₂) times its square.
    first, second = launch._named(launch.moment1), launch._named(launch.moment2)
    for name, gradient in expected.items():
        part = (0, *(slice(n) for n in gradient.shape))
        found = getattr(first, name)[part].cpu().numpy() / 0.1
        assert relative_error(found, gradient.numpy()) < 1e-4, name
        found = getattr(second, name)[part].cpu().numpy() / 0.001
        assert relative_error(found, gradient.numpy() ** 2) < 2e-4, name
