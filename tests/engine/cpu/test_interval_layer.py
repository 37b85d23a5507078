"""The fused interval layer compared with its float64 definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diffint.engine.cpu import interval_layer as fused
from diffint.engine.cpu import intervals
from diffint.engine.reference import intervals as reference


@st.composite
def layers(draw):
    """Random (x, lower, upper, temperature, upstream), float32, some cells missing."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows, units = draw(st.integers(1, 9)), draw(st.integers(1, 40))
    features = draw(st.integers(1, 13))
    scale = draw(st.sampled_from([1.0, 3.0, 1e6]))
    x = rng.uniform(-scale, scale, (rows, features))
    center = rng.uniform(-scale, scale, (units, features))
    half_width = rng.uniform(0.01, 1.0, (units, features)) * scale
    x[rng.random(x.shape) < draw(st.sampled_from([0.0, 0.2]))] = np.nan
    arrays = [x, center - half_width, center + half_width]
    upstream = rng.normal(size=(rows, units)).astype(np.float32)
    x, lower, upper = (a.astype(np.float32) for a in arrays)
    return x, lower, upper, draw(st.floats(1e-3, 10.0)), upstream


@settings(max_examples=150)
@given(layer=layers())
def test_log_box_memberships(layer):
    x, lower, upper, temperature, _ = layer
    expected = reference.log_box_memberships(x, lower, upper, temperature)
    actual = fused.log_box_memberships(x, lower, upper, temperature)
    assert np.all(np.abs(actual - expected) <= 1e-5 * np.maximum(1.0, np.abs(expected)))


@settings(max_examples=150)
@given(layer=layers())
def test_gradients(layer):
    x, lower, upper, temperature, upstream = layer
    # The gradient jumps where the membership is clamped. A value within rounding of that point may
    # be on either side, so upstream is 0 there.
    log_i = reference.log_memberships(x, lower, upper, temperature)
    at_edge = (np.abs(log_i - np.log(1e-8)) < 1e-3) & (log_i > np.log(1e-8))
    upstream = np.where(at_edge.any(axis=2), 0.0, upstream).astype(np.float32)
    d_lower, d_upper, d_x = reference.gradients(x, lower, upper, temperature, upstream)
    actual = fused.gradients(x, lower, upper, temperature, upstream)
    scale = np.abs(upstream).sum() / temperature
    np.testing.assert_allclose(actual.lower, d_lower, atol=1e-5 * scale)
    np.testing.assert_allclose(actual.upper, d_upper, atol=1e-5 * scale)
    given_x = fused.input_gradients(x, lower, upper, temperature, upstream)
    np.testing.assert_allclose(given_x, d_x, atol=1e-5 * scale)
    present = ~np.isnan(x)[:, None, :]
    memberships = np.where(present, np.exp(log_i), 0.0).sum(axis=0)
    np.testing.assert_allclose(actual.memberships, memberships, atol=1e-5 * len(x))


@pytest.mark.parametrize("shape", [(1, 1, 1), (64, 200, 36), (1000, 7, 3), (3, 50, 300)])
@pytest.mark.parametrize("far", [1.0, 5.0])
def test_shapes_and_distant_rows(shape, far):
    rows, units, features = shape
    rng = np.random.default_rng(0)
    x = rng.uniform(-far, far, (rows, features)).astype(np.float32)
    center = rng.normal(0, 0.1, (units, features)).astype(np.float32)
    expected = reference.log_box_memberships(x, center - 0.7, center + 0.7, 0.1)
    actual = fused.log_box_memberships(x, center - 0.7, center + 0.7, 0.1)
    assert np.all(np.abs(actual - expected) <= 1e-5 * np.maximum(1.0, np.abs(expected)))


def test_both_forms_agree_at_the_limit_of_the_safe_range():
    rng = np.random.default_rng(2)
    temperature = 1.0 / intervals.SAFE_EXPONENT
    x = rng.uniform(-1, 1, (20, 5)).astype(np.float32)
    center = rng.uniform(-1, 1, (9, 5)).astype(np.float32)
    by_product = fused.log_box_memberships(x, center - 0.2, center + 0.2, temperature * 1.0001)
    by_difference = fused.log_box_memberships(x, center - 0.2, center + 0.2, temperature * 0.9999)
    np.testing.assert_allclose(by_product, by_difference, rtol=1e-3, atol=1e-3)


def test_read_only_arrays_are_accepted():
    x = np.zeros((4, 2), dtype=np.float32)
    bounds = np.full((3, 2), 0.5, dtype=np.float32)
    for a in (x, bounds):
        a.flags.writeable = False
    assert fused.log_box_memberships(x, -bounds, bounds, 0.1).shape == (4, 3)
