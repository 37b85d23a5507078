from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from diffint.core.scaling import fit_scaler

KINDS = ["adaptive", "minmax", "unit", "standard", "none"]
VALUES = st.floats(-1e6, 1e6, width=32)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=50)
@given(x=arrays(np.float64, (7, 3), elements=VALUES))
def test_to_original_inverts_transform(kind, x):
    scaler = fit_scaler(x, kind)
    clipped, unclipped = scaler.transform(x)
    tolerance = 1e-5 * max(1.0, np.abs(x).max())
    np.testing.assert_allclose(scaler.to_original(clipped), x, atol=tolerance)
    np.testing.assert_array_equal(clipped, unclipped)


@pytest.mark.parametrize(("kind", "low", "high"), [("minmax", -1, 1), ("unit", 0, 1)])
def test_range_clipping_and_bounded_excess(kind, low, high):
    scaler = fit_scaler(np.array([[0.0], [10.0]]), kind)
    clipped, unclipped = scaler.transform(np.array([[0.0], [10.0], [12.0], [-1e9], [1e300]]))
    span = high - low
    np.testing.assert_allclose(clipped[:, 0], [low, high, high, low, high], atol=1e-6)
    beyond = [low, high, high + 0.2 * span, low - span, high + span]
    np.testing.assert_allclose(unclipped[:, 0], beyond, atol=1e-6)


@pytest.mark.parametrize("kind", ["standard", "none"])
def test_the_other_scalers_do_not_clip(kind):
    scaler = fit_scaler(np.array([[0.0], [10.0]]), kind)
    clipped, unclipped = scaler.transform(np.array([[100.0]]))
    assert clipped[0, 0] > scaler.upper[0]
    assert clipped[0, 0] == unclipped[0, 0]


def test_a_constant_feature_and_values_that_differ_from_it():
    scaler = fit_scaler(np.full((4, 1), 7.0), "minmax")
    clipped, unclipped = scaler.transform(np.array([[7.0], [8.0], [6.0], [np.nan]]))
    np.testing.assert_array_equal(clipped[:, 0], [-1, 1, 1, np.nan])
    np.testing.assert_array_equal(unclipped[:, 0], [-1, 3, -3, np.nan])
    assert scaler.to_original(np.array([[0.3]]))[0, 0] == 7.0


def test_missing_cells_stay_missing_and_do_not_change_the_scaler():
    x = np.array([[1.0, np.nan], [np.nan, np.nan], [3.0, np.nan]])
    scaler = fit_scaler(x, "minmax")
    clipped, _ = scaler.transform(np.array([[2.0, 5.0]]))
    assert clipped[0, 0] == 0.0
    assert np.isnan(clipped[0, 1])  # no value in training


@pytest.mark.parametrize("scale", [1e300, 1e-300, 1e-310])
@pytest.mark.parametrize("kind", ["minmax", "unit"])
def test_huge_and_tiny_ranges(kind, scale):
    x = np.array([[-1.0], [0.0], [1.0]]) * scale
    clipped, _ = fit_scaler(x, kind).transform(x)
    span = np.ptp(clipped)
    np.testing.assert_allclose(np.diff(clipped[:, 0]) / span, [0.5, 0.5], atol=1e-3)


def test_the_widest_range_of_floats():
    x = np.array([[-1.7e308], [0.0], [1.7e308]])
    np.testing.assert_allclose(fit_scaler(x, "minmax").transform(x)[0][:, 0], [-1, 0, 1])


@pytest.mark.parametrize("kind", ["standard", "none"])
@pytest.mark.parametrize("constant", [0.0, 1e-9, 7.0])
def test_values_that_differ_from_a_constant_have_a_fixed_distance(kind, constant):
    scaler = fit_scaler(np.full((4, 1), constant), kind)
    same, near, far = scaler.transform(np.array([[constant], [constant + 1e-9], [-1e9]]))[0][:, 0]
    assert near - same == pytest.approx(2.0)
    assert far - same == pytest.approx(-2.0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [5e-324, 1e-323, 1e-310])
def test_a_range_of_subnormal_values_is_a_range(kind, value):
    scaler = fit_scaler(np.array([[0.0], [0.0], [value]]), kind)
    assert scaler.varies.all()
    assert scaler.is_possible()
    assert np.isfinite(scaler.transform(np.array([[0.0], [value], [1e300], [-1.0]]))[1]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_what_fit_returns_is_possible(kind):
    x = np.array([[-1e303, 7.0, np.nan, 1e-320], [1e303, 7.0, np.nan, 0.0]])
    scaler = fit_scaler(x, kind)
    assert scaler.is_possible()
    assert np.isfinite(scaler.to_original(np.full((1, 4), 1e30))[0, [0, 1, 3]]).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("constant", 7.0),  # of a feature that varies
        ("constant", np.inf),
        ("divisor", -1.0),
        ("divisor", np.nan),
        ("offset", 1e305),
        ("lower", 1e16),
        ("upper", np.nan),
    ],
)
def test_what_fit_cannot_return_is_not_possible(kind, name, value):
    scaler = fit_scaler(np.array([[0.0], [3.0]]), kind)
    assert not replace(scaler, **{name: np.array([value])}).is_possible()
