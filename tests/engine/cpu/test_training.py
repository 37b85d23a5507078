"""Compiled training compared with plain torch, step by step."""

from dataclasses import replace

import numpy as np
import pytest

from diffint.core.config import PAPER
from diffint.engine.cpu.training import train_members
from diffint.engine.interface import TrainingRun, epoch_orders
from diffint.engine.parameters import Parameters, initial_parameters
from diffint.engine.reference import intervals as reference
from diffint.engine.reference import network

SMALL = replace(PAPER, n_units=21, hidden_width=19, learning_rate=1e-3, batch_size=16)


def make_rows(n_rows, n_features, missing, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.uniform(-1, 1, (n_rows, n_features)).astype(np.float32)
    rows[rng.random(rows.shape) < missing] = np.nan
    rows[:, 0] = np.nan_to_num(rows[:, 0])  # every row has a value
    return rows


def train_both(rows, config, epochs):
    """(compiled result, torch network, support and history in float64) from the same start."""
    config = replace(config, epochs=epochs)
    seed = np.random.SeedSequence(7)
    compiled = train_members([TrainingRun(rows, seed)], config)[0]
    rng = np.random.default_rng(seed)
    start = initial_parameters(rng, rows, config)
    rng.integers(2**63)  # `train_members` draws a seed for the singular vectors here
    steps = epochs * -(-len(rows) // config.batch_size)
    orders = epoch_orders(rng, len(rows), epochs)
    # In float64, because torch in float32 rounds gradients of distant edges to zero.
    arrays = {name: array.astype(float) for name, array in start.arrays().items()}
    center, width_logit = arrays.pop("center"), arrays.pop("width_logit")
    start = Parameters(center, width_logit, type(start.decoder)(**arrays))
    return compiled, *network.train_eagerly(
        rows.astype(float), start, orders, config.batch_size, steps, config
    )


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("temperature", [0.1, 0.01])
@pytest.mark.parametrize("schedule", ["constant", "cosine"])
@pytest.mark.parametrize(
    ("init", "decoder"), [("gaussian", "free"), ("data", "free"), ("data", "certified")]
)
def test_training_equals_torch(missing, temperature, schedule, init, decoder):
    config = replace(SMALL, temperature=temperature, schedule=schedule, init=init, decoder=decoder)
    rows = make_rows(45, 7, missing)
    for epochs in (1, 4):  # 3 and 12 steps; the last batch of an epoch is smaller
        # Adam amplifies rounding errors of tiny gradients up to a fraction of a step (of 1e-3).
        tolerance = (2e-5 if epochs == 1 else 2e-4) * (1 if temperature == 0.1 else 10)
        compiled, torch_network, support, history = train_both(rows, config, epochs)
        expected = torch_network.parameters_as_arrays()
        for name, array in compiled.parameters.arrays().items():
            np.testing.assert_allclose(array, expected.arrays()[name], atol=tolerance, err_msg=name)
        np.testing.assert_allclose(compiled.history, history, rtol=1e-5)
        if missing == 0.0:
            np.testing.assert_allclose(compiled.support, support, atol=tolerance)


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_coverage_term_equals_torch(missing):
    config = replace(SMALL, init="data", coverage_weight=0.5, interval_rate=3.0)
    compiled, torch_network, _, history = train_both(make_rows(45, 7, missing), config, 4)
    expected = torch_network.parameters_as_arrays()
    for name in ("center", "width_logit", "hidden_weight"):
        np.testing.assert_allclose(
            compiled.parameters.arrays()[name], expected.arrays()[name], atol=4e-4, err_msg=name
        )
    np.testing.assert_allclose(compiled.history, history, rtol=1e-5)
    plain = train_both(make_rows(45, 7, missing), replace(SMALL, init="data"), 4)[0]
    assert np.abs(plain.parameters.width_logit - compiled.parameters.width_logit).max() > 5e-3


def test_spectral_training_is_close_to_torch():
    # Torch starts its power iteration with other vectors, so results differ slightly.
    config = replace(SMALL, decoder="spectral")
    compiled, torch_network, _, history = train_both(make_rows(45, 7, 0.1), config, 4)
    np.testing.assert_allclose(compiled.history, history, rtol=1e-3)
    expected = torch_network.parameters_as_arrays()
    difference = np.abs(compiled.parameters.center - expected.center)
    assert difference.mean() < 2e-4  # of 12 steps of 1e-3
    assert difference.max() < 6e-3
    decoder = compiled.parameters.decoder
    np.testing.assert_array_equal(decoder.norm_gain, 1.0)
    np.testing.assert_array_equal(decoder.norm_shift, 0.0)
    for weight in (decoder.hidden_weight, decoder.output_weight):
        assert np.linalg.norm(weight, 2) == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize(("rows", "features", "units"), [(2, 1, 1), (5, 33, 3), (70, 2, 17)])
def test_odd_sizes(rows, features, units):
    config = replace(SMALL, n_units=units, hidden_width=5)
    compiled, torch_network, _, history = train_both(make_rows(rows, features, 0.0), config, 2)
    np.testing.assert_allclose(compiled.history, history, rtol=1e-5)
    np.testing.assert_allclose(
        compiled.parameters.center, torch_network.parameters_as_arrays().center, atol=2e-5
    )


@pytest.mark.parametrize("n_jobs", [1, 2, 3, 5, 11])
def test_members_do_not_depend_on_other_members_or_threads(n_jobs):
    rows = make_rows(60, 4, 0.1)
    runs = [TrainingRun(rows[i:], np.random.SeedSequence(i)) for i in range(5)]
    config = replace(SMALL, epochs=3)
    together = train_members(runs, config, n_jobs=n_jobs)
    assert len(together) == len(runs)
    for run, result in zip(runs, together, strict=True):
        alone = train_members([run], config)[0]
        np.testing.assert_array_equal(alone.parameters.center, result.parameters.center)
        np.testing.assert_array_equal(alone.support, result.support)


@pytest.mark.parametrize("decoder", ["free", "certified", "spectral"])
@pytest.mark.parametrize("temperature", [0.1, 0.01])
def test_number_of_threads_changes_no_bit(decoder, temperature):
    run = TrainingRun(make_rows(90, 11, 0.1), np.random.SeedSequence(3))
    config = replace(SMALL, epochs=4, decoder=decoder, temperature=temperature, batch_size=40)
    alone = train_members([run], config, n_jobs=1)[0]
    for n_jobs in (2, 3, 4, 7):
        result = train_members([run], config, n_jobs=n_jobs)[0]
        for name, array in result.parameters.arrays().items():
            np.testing.assert_array_equal(array, alone.parameters.arrays()[name], err_msg=name)
        np.testing.assert_array_equal(result.support, alone.support)
        np.testing.assert_array_equal(result.history, alone.history)


def test_support_is_bias_corrected():
    rows = make_rows(64, 3, 0.0)
    config = replace(SMALL, epochs=1, learning_rate=1e-12)
    result = train_members([TrainingRun(rows, np.random.SeedSequence(0))], config)[0]
    p = result.start
    half = p.half_width
    log_i = reference.log_memberships(rows, p.center - half, p.center + half, 0.1)
    np.testing.assert_allclose(result.support, np.exp(log_i).mean(axis=0), atol=0.02)


def test_progress_is_called_after_every_epoch():
    calls = []
    rows = make_rows(30, 3, 0.0)
    runs = [TrainingRun(rows, np.random.SeedSequence(i)) for i in range(2)]
    train_members(runs, replace(SMALL, epochs=3), progress=lambda m, loss: calls.append((m, loss)))
    assert [m for m, _ in calls] == [0, 0, 0, 1, 1, 1]
    assert all(np.isfinite(loss) for _, loss in calls)
