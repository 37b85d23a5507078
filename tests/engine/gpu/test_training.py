"""Training on the GPU compared with the CPU."""

from dataclasses import replace

import numpy as np
import pytest

from diffint.core.config import PAPER, RECOMMENDED
from diffint.core.errors import TrainingError
from diffint.engine.cpu.training import train_members
from diffint.engine.devices import engine_for

from .conftest import make_runs, sized, too_slow

SMALL = replace(
    PAPER, n_units=21, hidden_width=19, learning_rate=1e-3, batch_size=16, epochs=sized(3, 1)
)
COVERING = {"coverage_weight": 0.5, "interval_rate": 3.0}  # the paper's configuration has neither


def assert_members_agree(actual, expected, atol):
    for one, other in zip(actual, expected, strict=True):
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


@pytest.mark.parametrize(
    ("change", "missing", "scale"),
    [
        ({}, 0.0, 1.0),
        ({"init": "data", "schedule": "cosine"}, 0.0, 1.0),
        ({"temperature": 0.02}, 0.2, 1.0),
        ({"decoder": "certified"}, 0.1, 1.0),
        ({"decoder": "spectral"}, 0.1, 1.0),
        ({"hidden_width": 300}, 0.1, 1.0),
        ({"temperature": 0.5}, 0.0, 20.0),
        (COVERING, 0.0, 1.0),
        ({**COVERING, "init": "data", "schedule": "cosine"}, 0.2, 1.0),
        ({**COVERING, "decoder": "certified"}, 0.1, 1.0),
        ({**COVERING, "decoder": "spectral"}, 0.1, 1.0),
        ({**COVERING, "hidden_width": 300}, 0.1, 1.0),
        ({**COVERING, "temperature": 0.5}, 0.2, 20.0),
    ],
)
def test_training_equals_the_cpu(train_on_gpu, change, missing, scale):
    config = replace(SMALL, **change)
    runs = make_runs(sized([45, 30], [20, 9]), 7, missing, scale)
    # Adam amplifies rounding errors of tiny gradients up to a fraction of a step.
    atol = 2e-4 * config.interval_rate
    assert_members_agree(train_on_gpu(runs, config), train_members(runs, config), atol)


@pytest.mark.parametrize("decoder", ["free", "certified"])
def test_two_steps_equal_the_definition(train_on_gpu, decoder):
    config = replace(SMALL, **COVERING, decoder=decoder, schedule="cosine", epochs=1)
    runs = make_runs([25, 16], 6, 0.2)
    expected = engine_for("reference").train(runs, config)
    assert_members_agree(train_on_gpu(runs, config), expected, atol=6e-4)


@pytest.mark.parametrize(
    ("n_rows", "n_features", "n_units", "hidden"), [(2, 1, 1, 1), (5, 33, 3, 5), (70, 2, 17, 40)]
)
def test_odd_sizes(train_on_gpu, n_rows, n_features, n_units, hidden):
    config = replace(SMALL, n_units=n_units, hidden_width=hidden, init="data")
    runs = make_runs([n_rows], n_features)
    assert_members_agree(train_on_gpu(runs, config), train_members(runs, config), atol=2e-4)


@pytest.mark.parametrize("decoder", ["free", "certified", "spectral"])
def test_a_run_does_not_depend_on_other_runs(train_on_gpu, decoder):
    config = replace(SMALL, **COVERING, decoder=decoder, schedule="cosine", epochs=sized(4, 1))
    runs = make_runs(sized([45, 7, 32, 33], [20, 7, 16]), 5)
    together = train_on_gpu(runs, config)
    alone = [train_on_gpu([run], config)[0] for run in runs]
    assert_members_agree(together, alone, atol=1e-6)


@too_slow
def test_large_batches(train_on_gpu):
    config = replace(RECOMMENDED, epochs=2, batch_size=1024)
    runs = make_runs([3000, 2100], 10)
    assert_members_agree(train_on_gpu(runs, config), train_members(runs, config), atol=1e-3)


def test_orders_of_large_tables_are_drawn_on_the_gpu(device):
    from diffint.engine.gpu import training as gpu_training

    orders = gpu_training._Orders([np.random.default_rng(0)], [25_000], 2, device)
    orders.upload(2)
    drawn = orders.on_device.cpu().numpy().reshape(2, -1)
    assert (np.sort(drawn, axis=1) == np.arange(25_000)).all()
    assert (drawn[0] != drawn[1]).any()


def test_progress_and_chunks(train_on_gpu, monkeypatch):
    from diffint.engine.gpu import training as gpu_training

    calls = []
    runs = make_runs(sized([20, 40], [3, 10]), 3)
    config = replace(SMALL, epochs=sized(5, 3))
    whole = train_on_gpu(runs, config, progress=lambda *args: calls.append(args))
    assert [member for member, _ in calls].count(0) == config.epochs
    assert [loss for member, loss in calls if member == 1] == list(whole[1].history)
    monkeypatch.setattr(gpu_training, "_STEPS_PER_CHUNK", sized(6, 2))  # two epochs
    assert_members_agree(train_on_gpu(runs, config), whole, atol=0)


def test_divergence_is_an_error(train_on_gpu):
    config = replace(SMALL, learning_rate=1e38)
    with pytest.raises(TrainingError, match="diverged in epoch"):
        train_on_gpu(make_runs([40], 3), config)
