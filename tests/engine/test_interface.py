"""Engines give the same members for the same runs, up to rounding."""

from dataclasses import replace

import numpy as np
import pytest

from diffint.core.config import RECOMMENDED
from diffint.engine.devices import engine_for
from diffint.engine.interface import TrainingRun

CONFIG = replace(RECOMMENDED, n_units=13, hidden_width=9, epochs=3, batch_size=16)


def make_runs():
    rows = np.random.default_rng(0).uniform(-1, 1, (70, 5)).astype(np.float32)
    return [TrainingRun(rows[:n], np.random.SeedSequence(n)) for n in (50, 70)]


def test_cpu_engine_equals_reference_engine():
    pytest.importorskip("torch")
    losses = {"cpu": [], "reference": []}
    trained = {
        name: engine_for(name).train(
            make_runs(), CONFIG, 1, lambda member, loss, name=name: losses[name].append(loss)
        )
        for name in losses
    }
    for fast, plain in zip(trained["cpu"], trained["reference"], strict=True):
        for name, array in fast.parameters.arrays().items():
            np.testing.assert_array_equal(fast.start.arrays()[name], plain.start.arrays()[name])
            np.testing.assert_allclose(
                array, plain.parameters.arrays()[name], atol=5e-3, err_msg=name
            )
        np.testing.assert_allclose(fast.history, plain.history, rtol=1e-3)
        np.testing.assert_allclose(fast.support, plain.support, atol=1e-3)
    np.testing.assert_allclose(losses["cpu"], losses["reference"], rtol=1e-3)
    assert len(losses["cpu"]) == 2 * CONFIG.epochs


@pytest.mark.parametrize("decoder", ["free", "certified"])
def test_engines_go_on_from_given_parameters(decoder):
    pytest.importorskip("torch")
    config = replace(CONFIG, decoder=decoder)
    first = engine_for("cpu").train(make_runs(), config)
    runs = [
        replace(run, start=member.parameters)
        for run, member in zip(make_runs(), first, strict=True)
    ]
    fast, plain = (engine_for(name).train(runs, config) for name in ("cpu", "reference"))
    for before, one, other in zip(first, fast, plain, strict=True):
        assert one.start is before.parameters
        assert one.history[0] < before.history[0]
        np.testing.assert_allclose(one.history, other.history, rtol=1e-2)
        np.testing.assert_allclose(one.parameters.center, other.parameters.center, atol=2e-2)
