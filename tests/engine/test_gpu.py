"""The GPU engine: its kernels against the definition, its training against the CPU's.

Without a GPU, but with triton installed, TRITON_INTERPRET=1 runs the same tests in Triton's
interpreter.
"""

import os
from dataclasses import replace

import numpy as np
import pytest

from diffint.core.config import PAPER, RECOMMENDED
from diffint.core.decoder import FreeDecoder
from diffint.core.errors import InputError, TrainingError
from diffint.engine.cpu.training import train_members
from diffint.engine.interface import TrainingRun
from diffint.engine.parameters import Parameters, inverse_softplus
from diffint.engine.reference import intervals as reference


def _device() -> str | None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("triton")
    if torch.cuda.is_available():
        return "cuda"
    return "cpu" if os.environ.get("TRITON_INTERPRET") == "1" else None


@pytest.fixture
def device():
    device = _device()
    if device is None:
        pytest.skip("no CUDA GPU here")
    return device


@pytest.fixture
def train_on_gpu(device):
    from diffint.engine.gpu.training import train_members_on_gpu

    return lambda runs, config, **more: train_members_on_gpu(runs, config, device, **more)


SMALL = replace(PAPER, n_units=21, hidden_width=19, learning_rate=1e-3, batch_size=16, epochs=3)
COVERING = {"coverage_weight": 0.5, "interval_rate": 3.0}  # both off in the paper's configuration


def make_runs(sizes, n_features, missing=0.0, scale=1.0):
    runs = []
    for seed, n_rows in enumerate(sizes):
        rng = np.random.default_rng(seed)
        rows = scale * rng.uniform(-1, 1, (n_rows, n_features)).astype(np.float32)
        rows[rng.random(rows.shape) < missing] = np.nan
        rows[:, 0] = np.nan_to_num(rows[:, 0])  # no row without any value
        runs.append(TrainingRun(rows, np.random.SeedSequence(seed)))
    return runs


def assert_members_agree(ours, theirs, atol):
    for one, other in zip(ours, theirs, strict=True):
        for name, array in one.parameters.arrays().items():
            start = one.start.arrays()[name]
            np.testing.assert_array_equal(start, other.start.arrays()[name])
            np.testing.assert_allclose(
                array,
                other.parameters.arrays()[name],
                rtol=0,
                atol=atol,
                err_msg=name,
            )
        np.testing.assert_allclose(one.support, other.support, rtol=0, atol=atol)
        np.testing.assert_allclose(one.history, other.history, rtol=atol)


# --- The interval layer ---------------------------------------------------------------------------


def one_step(x, center, half_width, temperature, device):
    """A launch after one step on the rows x, without decay and with the rate 0."""
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
        FreeDecoder(
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
    launch = Launch([x], flat[None], [singular], shape, len(x), 1, orders, 0.0)
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
        (130, 39, 200, 0.1, 0.0, 1.0),
        (64, 7, 17, 10.0, 0.2, 1.0),
        (70, 33, 20, 0.5, 0.3, 1.0),
        (65, 4, 16, 0.1, 0.2, 3.0),  # rows far out of support: the clamp binds
        (50, 6, 5, 0.02, 0.2, 40.0),  # beyond the safe range: by difference
        (3, 1555, 2, 0.1, 0.1, 1.0),
    ],
)
def test_layer_against_the_definition(
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


# --- Training -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "missing", "scale"),
    [
        ({}, 0.0, 1.0),
        ({"init": "data", "schedule": "cosine"}, 0.0, 1.0),
        ({"temperature": 0.02}, 0.2, 1.0),
        ({"decoder": "certified"}, 0.1, 1.0),
        ({"hidden_width": 300}, 0.1, 1.0),
        ({"temperature": 0.5}, 0.0, 20.0),
        (COVERING, 0.0, 1.0),
        ({**COVERING, "init": "data", "schedule": "cosine"}, 0.2, 1.0),
        ({**COVERING, "decoder": "certified"}, 0.1, 1.0),
        ({**COVERING, "hidden_width": 300}, 0.1, 1.0),
        ({**COVERING, "temperature": 0.5}, 0.2, 20.0),
    ],
)
def test_training_is_that_of_the_cpu(train_on_gpu, change, missing, scale):
    config = replace(SMALL, **change)
    runs = make_runs([45, 30], 7, missing, scale)
    # Adam amplifies the rounding of tiny slopes to parts of a step.
    atol = 2e-4 * config.interval_rate
    assert_members_agree(train_on_gpu(runs, config), train_members(runs, config), atol)


@pytest.mark.parametrize(
    ("n_rows", "n_features", "n_units", "hidden"), [(2, 1, 1, 1), (5, 33, 3, 5), (70, 2, 17, 40)]
)
def test_odd_sizes(train_on_gpu, n_rows, n_features, n_units, hidden):
    config = replace(SMALL, n_units=n_units, hidden_width=hidden, init="data")
    runs = make_runs([n_rows], n_features)
    assert_members_agree(train_on_gpu(runs, config), train_members(runs, config), atol=2e-4)


@pytest.mark.parametrize("decoder", ["free", "certified"])
def test_runs_of_different_sizes_do_not_disturb_each_other(train_on_gpu, decoder):
    config = replace(SMALL, **COVERING, decoder=decoder, schedule="cosine", epochs=4)
    runs = make_runs([45, 7, 32, 33], 5)
    together = train_on_gpu(runs, config)
    alone = [train_on_gpu([run], config)[0] for run in runs]
    assert_members_agree(together, alone, atol=1e-6)


def test_large_batches(train_on_gpu, device):
    if device == "cpu":
        pytest.skip("takes too long in the interpreter")
    config = replace(RECOMMENDED, epochs=2, batch_size=1024)
    runs = make_runs([3000, 2100], 10)
    assert_members_agree(train_on_gpu(runs, config), train_members(runs, config), atol=1e-3)


def test_the_gpu_draws_the_orders_of_large_tables(device):
    from diffint.engine.gpu import training as gpu_training

    orders = gpu_training._Orders([np.random.default_rng(0)], [25_000], 2, device)
    orders.upload(2)
    drawn = orders.on_device.cpu().numpy().reshape(2, -1)
    assert (np.sort(drawn, axis=1) == np.arange(25_000)).all()
    assert (drawn[0] != drawn[1]).any()


def test_progress_and_stretches(train_on_gpu, monkeypatch):
    from diffint.engine.gpu import training as gpu_training

    heard = []
    runs = make_runs([20, 40], 3)
    config = replace(SMALL, epochs=5)
    whole = train_on_gpu(runs, config, progress=lambda *args: heard.append(args))
    assert [member for member, _ in heard].count(0) == 5
    assert [loss for member, loss in heard if member == 1] == list(whole[1].history)
    monkeypatch.setattr(gpu_training, "_STEPS_PER_CHUNK", 6)
    assert_members_agree(train_on_gpu(runs, config), whole, atol=0)


def test_a_loss_that_is_not_finite_is_an_error(train_on_gpu):
    config = replace(SMALL, learning_rate=1e38)
    with pytest.raises(TrainingError, match="diverged in epoch"):
        train_on_gpu(make_runs([40], 3), config)


def test_without_a_gpu_the_error_says_what_to_do():
    try:
        import torch

        has_gpu = torch.cuda.is_available() or os.environ.get("TRITON_INTERPRET") == "1"
    except ImportError:
        has_gpu = False
    if has_gpu:
        pytest.skip("there is a GPU")

    def train():
        from diffint.engine.gpu.training import train_members_on_gpu

        train_members_on_gpu(make_runs([10], 2), SMALL)

    with pytest.raises(InputError, match="device='cuda' needs"):
        train()
