"""The compiled network against the plain torch one, step by step."""

from dataclasses import replace

import numpy as np
import pytest

from diffint.core.config import PAPER
from diffint.engine.cpu.training import train_members
from diffint.engine.interface import TrainingRun, epoch_orders
from diffint.engine.parameters import Parameters, initial_parameters, inverse_softplus, softplus
from diffint.engine.reference import network

SMALL = replace(PAPER, n_units=21, hidden_width=19, learning_rate=1e-3, batch_size=16)


def make_rows(n_rows, n_features, missing, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.uniform(-1, 1, (n_rows, n_features)).astype(np.float32)
    rows[rng.random(rows.shape) < missing] = np.nan
    rows[:, 0] = np.nan_to_num(rows[:, 0])  # no row without any value
    return rows


def train_both(rows, config, epochs):
    """(compiled result, eager network, support and history in float64) from one start."""
    config = replace(config, epochs=epochs)
    seed = np.random.SeedSequence(7)
    compiled = train_members([TrainingRun(rows, seed)], config)[0]
    rng = np.random.default_rng(seed)
    start = initial_parameters(rng, rows, config)
    rng.integers(2**63)  # the draw that seeds the certified decoder's singular vectors
    steps = epochs * -(-len(rows) // config.batch_size)
    orders = epoch_orders(rng, len(rows), epochs)
    # In float64: in float32, eager slopes of edges far away round to zero, ours do not.
    arrays = {name: array.astype(float) for name, array in start.arrays().items()}
    center, width_logit = arrays.pop("center"), arrays.pop("width_logit")
    start = Parameters(center, width_logit, type(start.decoder)(**arrays))
    return compiled, *network.train_eagerly(
        rows.astype(float), start, orders, config.batch_size, steps, config
    )


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("temperature", [0.1, 0.01])
@pytest.mark.parametrize("schedule", ["constant", "cosine"])
@pytest.mark.parametrize("init", ["gaussian", "data"])
def test_every_step_is_the_eager_one(missing, temperature, schedule, init):
    config = replace(SMALL, temperature=temperature, schedule=schedule, init=init)
    rows = make_rows(45, 7, missing)
    for epochs in (1, 4):  # 3 and 12 steps, the last of each epoch a partial batch
        # Adam turns rounding of tiny slopes into parts of a step (of 1e-3); so does x/τ.
        tolerance = (2e-5 if epochs == 1 else 2e-4) * (1 if temperature == 0.1 else 10)
        compiled, eager, support, history = train_both(rows, config, epochs)
        expected = eager.parameters_as_arrays()
        for name, array in compiled.parameters.arrays().items():
            np.testing.assert_allclose(array, expected.arrays()[name], atol=tolerance, err_msg=name)
        np.testing.assert_allclose(compiled.history, history, rtol=1e-5)
        if missing == 0.0:
            np.testing.assert_allclose(compiled.support, support, atol=tolerance)


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_the_coverage_term_is_the_eager_one(missing):
    config = replace(SMALL, init="data", coverage_weight=0.5, interval_rate=3.0)
    compiled, eager, _, history = train_both(make_rows(45, 7, missing), config, 4)
    expected = eager.parameters_as_arrays()
    for name in ("center", "width_logit", "hidden_weight"):
        np.testing.assert_allclose(
            compiled.parameters.arrays()[name], expected.arrays()[name], atol=4e-4, err_msg=name
        )
    np.testing.assert_allclose(compiled.history, history, rtol=1e-5)
    plain = train_both(make_rows(45, 7, missing), replace(SMALL, init="data"), 4)[0]
    assert np.abs(plain.parameters.width_logit - compiled.parameters.width_logit).max() > 5e-3


def test_certified_training_follows_the_eager_one():
    # Torch starts its power iteration at other vectors, so the two agree only closely.
    config = replace(SMALL, decoder="certified")
    compiled, eager, _, history = train_both(make_rows(45, 7, 0.1), config, 4)
    np.testing.assert_allclose(compiled.history, history, rtol=1e-3)
    expected = eager.parameters_as_arrays()
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
    compiled, eager, _, history = train_both(make_rows(rows, features, 0.0), config, 2)
    np.testing.assert_allclose(compiled.history, history, rtol=1e-5)
    np.testing.assert_allclose(
        compiled.parameters.center, eager.parameters_as_arrays().center, atol=2e-5
    )


def test_members_are_independent_of_the_others_and_of_the_threads():
    rows = make_rows(60, 4, 0.1)
    runs = [TrainingRun(rows[i:], np.random.SeedSequence(i)) for i in range(3)]
    config = replace(SMALL, epochs=3)
    together = train_members(runs, config, n_jobs=3)
    for run, result in zip(runs, together, strict=True):
        alone = train_members([run], config)[0]
        np.testing.assert_array_equal(alone.parameters.center, result.parameters.center)
        np.testing.assert_array_equal(alone.support, result.support)


@pytest.mark.parametrize("decoder", ["free", "certified"])
@pytest.mark.parametrize("temperature", [0.1, 0.01])
def test_threads_that_work_on_one_member_do_not_change_a_bit(decoder, temperature):
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
    from diffint.engine.reference import intervals as reference

    p = result.start
    half = p.half_width
    log_i = reference.log_memberships(rows, p.center - half, p.center + half, 0.1)
    np.testing.assert_allclose(result.support, np.exp(log_i).mean(axis=0), atol=0.02)


def test_progress_is_told_of_every_epoch():
    told = []
    rows = make_rows(30, 3, 0.0)
    runs = [TrainingRun(rows, np.random.SeedSequence(i)) for i in range(2)]
    train_members(runs, replace(SMALL, epochs=3), progress=lambda m, loss: told.append((m, loss)))
    assert [m for m, _ in told] == [0, 0, 0, 1, 1, 1]
    assert all(np.isfinite(loss) for _, loss in told)


def test_data_start():
    rows = make_rows(50, 4, 0.1)
    config = replace(SMALL, init="data")
    start = initial_parameters(np.random.default_rng(0), rows, config)
    present = ~np.isnan(rows)
    mean = np.nanmean(rows, axis=0)
    for center in start.center:
        distance = np.abs(np.where(present, rows, mean) - center).sum(axis=1)
        assert distance.min() < 1e-5
    np.testing.assert_allclose(
        start.half_width, np.broadcast_to(np.nanstd(rows, axis=0), (21, 4)), rtol=1e-4
    )


def test_softplus_and_its_inverse():
    y = np.array([1e-3, 0.05, 0.7, 5.0, 40.0])
    np.testing.assert_allclose(softplus(inverse_softplus(y)), y, rtol=1e-5)
