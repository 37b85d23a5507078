"""What the interval layer guarantees: no row, unit or value may break a bound."""

from dataclasses import replace

import numpy as np
import pytest

from diffint import DiffInt, InputError, InputWarning
from diffint.certify.interval_layer import (
    encoder_lipschitz_bound,
    graded_suppression,
    soft_union,
    soft_union_error,
)
from diffint.engine.reference import intervals

from ..conftest import QUICK, make_rows
from .test_rows import probes


@pytest.fixture(scope="module")
def model(rows):
    return DiffInt(**QUICK).fit(rows).model_


def with_intervals(model, center, half_width):
    """The model with other intervals in its first member. center, half_width: (units, features)"""
    changed = {"center": center.astype(np.float32), "half_width": half_width.astype(np.float32)}
    first = replace(model.members[0], **changed)
    return replace(model, members=(first, *model.members[1:]))


# --- Graded suppression ------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*no value:diffint.core.errors.InputWarning")
@pytest.mark.parametrize("scaling", ["adaptive", "standard"])
@pytest.mark.parametrize("temperature", [0.005, 0.1, 1.0])
@pytest.mark.parametrize("active_threshold", [0.7, 0.9, 2.0])
def test_violated_units_are_suppressed(rows, scaling, temperature, active_threshold):
    fitted = DiffInt(**QUICK, scaling=scaling, temperature=temperature).fit(rows).model_
    new = probes(rows)
    for member in range(len(fitted.members)):
        for margin in (0.01, 0.2, 1.0):
            found = graded_suppression(fitted, new, member, active_threshold, margin)
            assert (found.log_weight <= found.log_bound + 1e-12).all()
            assert found.n_violated.shape == (len(new), fitted.config.n_units)
    if scaling == "standard" and active_threshold == 2.0:  # every interval counts
        assert found.n_violated.max() == rows.shape[1]


def test_suppression_is_nearly_attained(model):
    """A row beyond one end of a wide interval by exactly the margin."""
    center, half_width = np.zeros((16, 5)), np.full((16, 5), 0.5)
    wide = with_intervals(model, center, half_width)
    scaler = wide.members[0].scaler
    x = scaler.to_original(np.array([[0.7, 0.0, 0.0, 0.0, 0.0]]))
    found = graded_suppression(wide, x, active_threshold=2.0, margin=0.2 - 1e-6)
    assert (found.n_violated == 1).all()
    assert (found.log_weight <= found.log_bound).all()
    assert (found.log_weight > found.log_bound - 0.1).all()


def test_missing_values_violate_nothing(model, rows):
    found = graded_suppression(model, np.full((2, 5), np.nan))
    assert (found.n_violated == 0).all()
    assert (found.log_weight == 0).all()


# --- Lipschitz bound of the encoder ------------------------------------------------------------


def jacobian_norm(x, lower, upper, temperature):
    """The largest singular value of the code's slopes at one scaled row. x: (features,)"""
    logs = intervals.log_memberships(x[None], lower, upper, temperature)[0]
    below, above = (x - lower) / temperature, (upper - x) / temperature
    slope = (1 / (1 + np.exp(-above)) - 1 / (1 + np.exp(-below))) / temperature
    slope = np.where(logs > np.log(1e-8), slope, 0.0)
    code = intervals.codes(x[None], lower, upper, temperature)[0]
    return np.linalg.norm(code[:, None] * (slope - code @ slope), 2)


def steepest(lower, upper, temperature, start, stop, seed=0, steps=300):
    """The largest slope that random rows and hill climbing find. start, stop: (features,)"""
    rng = np.random.default_rng(seed)
    rows = rng.uniform(start, stop, (60, len(start)))
    found = [jacobian_norm(x, lower, upper, temperature) for x in rows]
    for i in np.argsort(found)[-3:]:
        x, best, reach = rows[i], found[i], 0.5 * (stop - start)
        for _ in range(steps):
            moved = x + reach * rng.normal(size=len(x)) * (rng.random(len(x)) < 0.5)
            moved = np.clip(moved, start, stop)
            norm = jacobian_norm(moved, lower, upper, temperature)
            if norm > best:
                x, best = moved, norm
            else:
                reach = reach * 0.985
        found.append(best)
    return max(found)


@pytest.mark.parametrize("temperature", [0.02, 0.1, 0.5])
@pytest.mark.parametrize("scaling", ["minmax", "standard"])
@pytest.mark.parametrize("spread", [0.05, 0.5, 2.0])
def test_codes_change_no_faster_than_the_bound(temperature, scaling, spread):
    rng = np.random.default_rng(0)
    x = make_rows(100, 4, seed=2)
    fitted = DiffInt(**{**QUICK, "epochs": 1}, scaling=scaling, temperature=temperature).fit(x)
    center = spread * rng.normal(size=(16, 4))
    model = with_intervals(fitted.model_, center, rng.uniform(0.01, 1.0, center.shape))
    member = model.members[0]
    lower, upper = member.lower.astype(float), member.upper.astype(float)
    reach = np.ones(4) if scaling == "minmax" else np.full(4, 6.0)
    found = steepest(lower, upper, temperature, -reach, reach)
    bound = encoder_lipschitz_bound(model)
    assert found <= bound
    # Far below the paper's constant, and never above what holds for all intervals.
    assert bound <= np.sqrt(4 / 2) / temperature * (1 + 1e-6)
    # Differences of codes, not only slopes.
    ends = rng.uniform(-reach, reach, (2, 200, 4))
    ends[1, ::2] = np.clip(ends[0, ::2] + 1e-3 * rng.normal(size=(100, 4)), -reach, reach)
    codes = [intervals.codes(end, lower, upper, temperature) for end in ends]
    moved = np.linalg.norm(codes[0] - codes[1], axis=1)
    assert (moved <= bound * np.linalg.norm(ends[0] - ends[1], axis=1)).all()


@pytest.mark.parametrize("n_features", [1, 3, 10])
def test_the_bound_for_all_intervals_is_attained(n_features):
    """Two units on either side of a row, in every feature: √(d/2)/τ cannot be improved."""
    temperature = 0.02
    x = np.random.default_rng(0).normal(size=(60, n_features))
    settings = {**QUICK, "n_units": 2, "epochs": 1, "temperature": temperature}
    fitted = DiffInt(**settings, scaling="minmax").fit(x)
    center = np.repeat([[-0.25], [0.25]], n_features, axis=1)
    model = with_intervals(fitted.model_, center, np.full(center.shape, 0.05))
    member = model.members[0]
    lower, upper = member.lower.astype(float), member.upper.astype(float)
    found = jacobian_norm(np.zeros(n_features), lower, upper, temperature)
    bound = encoder_lipschitz_bound(model)
    assert 0.999 * np.sqrt(n_features / 2) / temperature < found <= bound
    assert bound <= np.sqrt(n_features / 2) / temperature * (1 + 1e-6)


def test_one_unit_has_one_code(rows):
    assert encoder_lipschitz_bound(DiffInt(**{**QUICK, "n_units": 1}).fit(rows).model_) == 0.0


def test_constant_features_and_those_without_values(rows):
    x = np.column_stack([rows[:, 0], np.full(len(rows), 4.0), np.full(len(rows), np.nan)])
    with pytest.warns(InputWarning):
        fitted = DiffInt(**QUICK).fit(x)
    assert 0 < encoder_lipschitz_bound(fitted.model_) <= np.sqrt(2 / 2) / 0.1 * (1 + 1e-6)


# --- Unions of soft boxes ----------------------------------------------------------------------


def depths(x, lower, upper):
    """How deep rows are inside one of the boxes, or outside all of them (negative)."""
    gap = np.minimum(x[:, None] - lower, upper - x[:, None]).min(axis=2)  # < 0: outside
    return gap.max(axis=1)


@pytest.mark.parametrize("temperature", [0.003, 0.02, 0.1])
@pytest.mark.parametrize(("n_boxes", "n_features"), [(1, 1), (5, 2), (40, 4)])
def test_the_union_is_as_near_to_its_boxes_as_stated(temperature, n_boxes, n_features):
    rng = np.random.default_rng(0)
    center = rng.uniform(-1, 1, (n_boxes, n_features))
    half_width = rng.uniform(0.01, 0.6, center.shape)
    lower, upper = center - half_width, center + half_width
    x = rng.uniform(-1.5, 1.5, (3_000, n_features))
    depth = depths(x, lower, upper)
    union = soft_union(x, lower, upper, temperature)
    assert ((union >= 0) & (union <= 1)).all()
    errors = np.abs(union - (depth >= 0))
    bounds = [soft_union_error(abs(r), n_boxes, n_features, temperature) for r in depth]
    assert (errors <= np.array(bounds) + 1e-12).all()


def test_touching_boxes_have_a_gap_that_overlapping_ones_do_not():
    face = np.array([[0.0, 0.0]])
    touching = np.array([[-1.0, -1.0], [0.0, -1.0]]), np.array([[0.0, 1.0], [1.0, 1.0]])
    for temperature in (0.1, 0.01, 0.001):
        assert soft_union(face, *touching, temperature) == pytest.approx(0.75, abs=1e-3)
    grown = touching[0] - 0.05, touching[1] + 0.05
    assert soft_union(face, *grown, 0.001) == pytest.approx(1.0)


def test_the_definition_of_the_union():
    rng = np.random.default_rng(1)
    lower = rng.uniform(-1, 0, (6, 3))
    upper, x = lower + rng.uniform(0.1, 1, lower.shape), rng.uniform(-1, 1, (50, 3))
    box = np.exp(intervals.log_box_memberships(x, lower, upper, 0.1))
    np.testing.assert_allclose(soft_union(x, lower, upper, 0.1), 1 - (1 - box).prod(axis=1))


def test_impossible_depths():
    with pytest.raises(InputError, match="depth"):
        soft_union_error(-1.0, 3, 2, 0.1)
    with pytest.raises(InputError, match="temperature"):
        soft_union_error(0.1, 3, 2, 0.0)
    assert soft_union_error(0.0, 3, 2, 0.1) == 1.0


@pytest.mark.parametrize("scaling", ["unit", "standard"])
@pytest.mark.parametrize("temperature", [0.02, 0.1, 1.0])
def test_the_bound_is_close_to_the_largest_spread_of_slopes(scaling, temperature):
    x = make_rows(150, 3, seed=1)
    settings = {**QUICK, "scaling": scaling, "temperature": temperature}
    model = DiffInt(**settings).fit(x).model_
    member = model.members[0]
    lower, upper = member.lower.astype(float), member.upper.astype(float)
    far = 30 * temperature
    spread = []
    for j in range(3):
        start, stop = lower[:, j].min() - far, upper[:, j].max() + far
        if scaling == "unit":
            start, stop = max(start, 0.0), min(stop, 1.0)
        grid = np.linspace(start, stop, 5_000)[:, None]
        logs = intervals.log_memberships(grid, lower[:, [j]], upper[:, [j]], temperature)[:, :, 0]
        slopes = np.diff(logs, axis=0) / np.diff(grid, axis=0)
        spread.append(np.ptp(slopes, axis=1).max())
    nearly = np.linalg.norm(spread) / np.sqrt(8)
    assert 0.98 * nearly <= encoder_lipschitz_bound(model) <= 1.05 * nearly


def test_units_that_are_nearly_alike_have_half_of_the_largest_possible_bound():
    """Their slopes differ most where the clamp binds for one of them, by 1/τ in each feature."""
    fitted = DiffInt(**QUICK, scaling="standard", temperature=0.02).fit(make_rows(150, 3)).model_
    center = 0.01 * np.random.default_rng(0).normal(size=(2, 3))
    model = with_intervals(fitted, center, np.full((2, 3), 0.05))
    assert encoder_lipschitz_bound(model) == pytest.approx(np.sqrt(3 / 8) / 0.02, rel=0.05)
