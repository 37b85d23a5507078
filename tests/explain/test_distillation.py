"""Training of compact patterns: gradients, what is trained, and what stays as it is."""

import numpy as np
import pytest

from diffint import DiffInt
from diffint.core.calibration import Calibration
from diffint.explain import distillation
from diffint.explain.compact import Box, beyond, description_lengths, saved
from diffint.explain.distillation import (
    MOST_TARGET,
    Network,
    distilled,
    evenly_chosen,
    forward,
    gradients,
    loss_and_upstream,
    target_of,
)
from diffint.explain.mining import Rows
from diffint.explain.stored_rows import stored_rows
from diffint.explain.varied_rows import varied_rows


def random_network(rng, n_patterns=3, n_conditions=2, n_features=4):
    features = np.stack(
        [rng.choice(n_features, n_conditions, replace=False) for _ in range(n_patterns)]
    )
    shape = n_patterns, n_conditions
    arrays = [rng.normal(0, 0.5, shape), rng.normal(-1, 0.5, shape), rng.normal(1, 0.3, shape)]
    arrays += [rng.normal(2, 1, n_patterns), rng.normal(0, 0.5, n_patterns)]
    is_open = np.ones(shape, dtype=bool)
    is_open[0, -1] = False
    return Network(features, is_open, *(array.astype(np.float32) for array in arrays))


def as_boxes(network):
    """The patterns of a network, by their definition."""
    half = np.log1p(np.exp(network.half_logit.astype(np.float64)))
    return [
        Box(
            network.features[k, chosen],
            network.middle[k, chosen] - half[k, chosen],
            network.middle[k, chosen] + half[k, chosen],
            np.exp(-network.log_slope[k, chosen].astype(np.float64)),
            float(network.worth[k]),
            float(np.exp(network.log_weight[k])),
        )
        for k, chosen in enumerate(network.is_open)
    ]


@pytest.mark.parametrize("seed", range(5))
def test_what_is_trained_is_what_patterns_save(seed):
    rng = np.random.default_rng(seed)
    network = random_network(rng)
    x = rng.uniform(-1.3, 1.3, size=(50, 4))
    total = forward(network, x.astype(np.float32)).total
    np.testing.assert_allclose(total, saved(x, as_boxes(network)).sum(axis=1), rtol=1e-4)


@pytest.mark.parametrize("seed", range(5))
def test_gradients_are_those_of_the_loss(seed):
    """Against differences of the loss, computed in float64 from the definition."""
    rng = np.random.default_rng(seed)
    network = random_network(rng)
    x = rng.uniform(-1.3, 1.3, size=(60, 4)).astype(np.float32)
    target = rng.normal(size=60).astype(np.float32)
    cost = beyond(x.astype(np.float64)).sum(axis=1)

    def loss(changed):
        lengths = cost - saved(x.astype(np.float64), as_boxes(changed)).sum(axis=1)
        return 1.0 - np.corrcoef(lengths, target)[0, 1]

    done = forward(network, x)
    value, upstream = loss_and_upstream(done.total, cost.astype(np.float32), target)
    assert value == pytest.approx(loss(network), abs=1e-5)
    names = Network._fields[2:]
    for name, gradient in zip(names, gradients(network, done, upstream), strict=True):
        array = getattr(network, name)
        for place in np.ndindex(array.shape):
            step = np.zeros(array.shape)
            step[place] = 1e-4
            above, below = (
                loss(network._replace(**{name: array.astype(np.float64) + sign * step}))
                for sign in (1, -1)
            )
            # A row at the very end of a range has two slopes.
            assert gradient[place] == pytest.approx((above - below) / 2e-4, rel=0.05, abs=1e-3)


def far_from_two_centers(x):
    return np.minimum(np.abs(x[:, :2] + 0.5).sum(axis=1), np.abs(x[:, :2] - 0.5).sum(axis=1))


def test_training_learns_the_order_of_the_target():
    rng = np.random.default_rng(0)
    rows = rng.normal(0, 0.1, size=(300, 8)) + np.where(np.arange(300) % 2, 0.5, -0.5)[:, None]
    made = rng.uniform(-1, 1, size=(3_000, 8))
    target = far_from_two_centers(made)
    boxes = distilled(Rows.of(rows, np.ones(8)), [], made, target, 6, 2)
    assert len(boxes) == 6
    assert all(len(box.features) <= 2 for box in boxes)
    new = rng.uniform(-1, 1, size=(1_000, 8))
    agreement = np.corrcoef(description_lengths(new, boxes), far_from_two_centers(new))[0, 1]
    assert agreement > 0.8
    counts = np.bincount(np.concatenate([box.features for box in boxes]), minlength=8)
    assert set(np.argsort(-counts)[:2].tolist()) == {0, 1}


def test_mined_patterns_keep_their_features():
    rng = np.random.default_rng(0)
    rows = Rows.of(rng.uniform(-1, 1, size=(100, 5)), np.ones(5))
    start = [Box(np.array([1, 3]), np.full(2, -0.2), np.full(2, 0.2), np.full(2, 0.1), 2.0)]
    made = rng.uniform(-1, 1, size=(500, 5))
    boxes = distilled(rows, start, made, np.abs(made).sum(axis=1), 3, 3)
    assert boxes[0].features.tolist() == [1, 3]
    assert [len(box.features) for box in boxes[1:]] == [3, 3]


def calibrated(scores):
    return Calibration("members", np.sort(scores), np.ones(len(scores), dtype=np.int64))


def test_targets_keep_the_order_of_scores():
    calibration = calibrated(np.random.default_rng(0).exponential(size=500))
    scores = np.linspace(0, 30, 200)
    target = target_of(scores, calibration)
    assert (np.diff(target) >= 0).all()
    assert target[0] == pytest.approx(0.0, abs=0.01)
    limit = np.quantile(calibration.scores, 0.95)
    assert target_of(np.array([6 * limit]), calibration)[0] == pytest.approx(MOST_TARGET)


def test_equal_calibration_scores_have_targets():
    calibration = calibrated(np.zeros(50))
    target = target_of(np.array([0.0, 1e-3, 1.0]), calibration)
    assert np.isfinite(target).all()
    assert target[0] < target[1] < target[2]


def test_rows_are_chosen_evenly_over_the_targets():
    target = np.concatenate([np.full(9_000, 0.1), np.linspace(0, MOST_TARGET, 1_000), [50.0]])
    chosen = evenly_chosen(target, 4_000)
    assert target[chosen].max() <= MOST_TARGET
    counts = np.histogram(target[chosen], bins=10, range=(0, MOST_TARGET))[0]
    assert counts.min() > 100
    assert (evenly_chosen(np.full(10, 9.0), 5) < 10).all()  # all are far


def test_varied_rows_are_like_rows_of_the_table():
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.integers(0, 5, 200), rng.normal(100, 5, 200), np.full(200, 3.0)])
    detector = DiffInt(random_state=0, epochs=20, n_units=30, n_members=2).fit(table)
    model = detector.model_
    rows = stored_rows(model).rows
    scaled = model.members[0].scaler.target(rows, "unclipped").astype(np.float64)
    made = varied_rows(model, scaled, 2_000)
    assert made.shape == (2_000, 3)
    np.testing.assert_array_equal(made[:, 0], np.round(made[:, 0]))
    p_values = detector.p_values(made)
    assert (p_values < 0.05).any()
    assert (p_values > 0.5).any()
    np.testing.assert_array_equal(made, varied_rows(model, scaled, 2_000))


def test_fewer_steps_train_less(monkeypatch):
    """The number of steps is what limits the time, also with many features."""
    rng = np.random.default_rng(0)
    rows = Rows.of(rng.uniform(-1, 1, size=(50, 40)), np.ones(40))
    made = rng.uniform(-1, 1, size=(200, 40))
    monkeypatch.setattr(distillation, "_STEPS", 30)
    boxes = distilled(rows, [], made, made[:, 0], 4, 5)
    assert all(len(box.features) == 5 for box in boxes)
