"""Curves of features with long tails: in order, invertible, and not set by single cells."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from diffint.core.scaling import fit_scaler
from diffint.core.scaling.curves import LIMIT, category_curve

RNG = np.random.default_rng(0)
MOSTLY_3 = np.full(20_000, 3.0)


def some(n, *values):
    """A column of 3 with other values in front."""
    column = MOSTLY_3[:n].copy()
    column[: len(values)] = values
    return column


CURVED = {
    "lognormal": RNG.lognormal(0, 2, 1_000),
    "negative lognormal": -RNG.lognormal(0, 2, 1_000),
    "Cauchy": RNG.standard_cauchy(1_000),
    "counts": np.round(RNG.lognormal(0, 1, 1_000)),
    "codes and one other": np.append(RNG.integers(0, 5, 500), 99.0),
    "missing cells": np.where(RNG.random(1_000) < 0.5, np.nan, RNG.lognormal(0, 2, 1_000)),
    "one extreme cell": np.append(RNG.normal(size=500), 1e9),
    "extreme cells on both sides": np.append(RNG.normal(size=500), [1e9, -1e9, 2e9, 3e9]),
    "99.95 % one value": some(20_000, *[5.0] * 10),
    "others on both sides": some(20_000, *[5.0] * 5, *[-7.0] * 5),
    "others far and near": some(20_000, 1e9, -1e-3, 3.1, 3.0001, 2.9, -1e12),
    "the next float": some(1_000, np.nextafter(3.0, 4.0)),
    "one other": some(1_000, 4.0),
    "far from 0": 1e15 + RNG.lognormal(0, 3, 1_000),
    "tiny": RNG.lognormal(0, 2, 1_000) * 1e-285,
    "huge": np.clip(RNG.standard_cauchy(1_000) * 1e301, -1e303, 1e303),
    "the ends of what is allowed": np.where(np.arange(1_000) < 3, 1e303, -1e303),
    "20 cells": RNG.lognormal(0, 3, 20),
}
LINEAR = {
    "uniform": RNG.random(1_000),
    "codes": RNG.integers(0, 5, 1_000).astype(float),
    "two values": (RNG.random(1_000) < 0.3).astype(float),
    "19 cells": RNG.lognormal(0, 3, 19),
    "few cells": np.where(np.arange(1_000) < 10, RNG.lognormal(0, 3, 1_000), np.nan),
    "too tiny for a curve": RNG.lognormal(0, 2, 1_000) * 1e-300,
    "one subnormal cell": np.append(np.zeros(999), 5e-324),
}


def fit(column):
    scaler = fit_scaler(np.asarray(column)[:, None], "adaptive")
    assert scaler.is_possible()
    return scaler


def around(scaler, column):
    """Ascending values: training cells, knots and their neighbours, others, and the extremes."""
    cells = column[~np.isnan(column)]
    values = [cells, cells / 3, -cells, [0.0, 1e308, -1e308, 1e-308]]
    for curve in scaler.curves.values():
        knots = curve.values
        values += [knots, np.nextafter(knots, -np.inf), np.nextafter(knots, np.inf)]
        values += [low + (high - low) * RNG.random(20) for low, high in pairwise(knots)]
    return np.sort(np.concatenate(values))


@pytest.mark.parametrize("name", CURVED)
def test_features_with_long_tails_are_curved(name):
    assert fit(CURVED[name]).curves


@pytest.mark.parametrize("name", LINEAR)
def test_other_features_are_not(name):
    column = LINEAR[name]
    adaptive, linear = fit(column), fit_scaler(column[:, None], "minmax")
    assert not adaptive.curves
    for found, expected in zip(
        adaptive.transform(column[:, None]), linear.transform(column[:, None]), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("n_rows", [50, 200, 5_000])
def test_the_map_of_a_normal_distribution_is_nearly_linear(n_rows):
    column = np.random.default_rng(1).normal(5.0, 2.0, n_rows)
    scaled = fit(column).transform(column[:, None])[1][:, 0]
    assert np.corrcoef(scaled, column)[0, 1] > 0.99


@pytest.mark.parametrize("name", CURVED | LINEAR)
def test_the_map_keeps_the_order(name):
    column = (CURVED | LINEAR)[name]
    scaler = fit(column)
    values = around(scaler, column)
    for scaled in scaler.transform(values[:, None]):
        assert (np.diff(scaled[:, 0]) >= 0).all()
        assert np.abs(scaled).max() <= LIMIT
    cells = np.unique(column[~np.isnan(column)])
    assert (np.diff(scaler.scaled(cells[:, None])[:, 0]) >= 0).all()


@pytest.mark.parametrize("name", CURVED)
def test_scaled_values_in_original_units(name):
    column = CURVED[name]
    scaler = fit(column)
    curve = scaler.curves[0]
    values = around(scaler, column)
    values = values[(values >= curve.values[0]) & (values <= curve.values[-1])]
    scaled = scaler.scaled(values[:, None])
    back = scaler.to_original(scaled)
    np.testing.assert_allclose(scaler.scaled(back), scaled, rtol=0, atol=1e-12)
    # In original units, rounding is relative to the segment of the curve and to the value.
    segment = np.clip(np.searchsorted(curve.values, values) - 1, 0, len(curve.values) - 2)
    tolerance = 1e-12 * (np.abs(np.diff(curve.values)[segment]) + np.abs(values))
    assert (np.abs(back[:, 0] - values) <= tolerance).all()
    np.testing.assert_array_equal(scaler.to_original(curve.scaled[:, None])[:, 0], curve.values)


@pytest.mark.parametrize("name", CURVED)
def test_training_values_that_differ_stay_apart(name):
    column = CURVED[name]
    curve = fit(column).curves[0]
    cells = np.unique(column[~np.isnan(column)])
    inner = cells[(cells >= curve.values[1]) & (cells <= curve.values[-2])]
    scaled = fit(column).scaled(inner[:, None])[:, 0]
    assert (np.diff(scaled) > 0).mean() > 0.99


def test_a_value_that_nearly_all_cells_have_is_far_from_all_others():
    for name in ("99.95 % one value", "others on both sides", "one other", "others far and near"):
        scaler = fit(CURVED[name])
        near = np.array([[3.0], [3.0 + 1e-9], [3.0 - 1e-9]])
        same, above, below = scaler.scaled(near)[:, 0]
        others = CURVED[name][CURVED[name] != 3.0]
        if others.max() > 3.0:
            assert above - same > 0.4
        if others.min() < 3.0:
            assert same - below > 0.4


@pytest.mark.parametrize("extreme", [1e9, -1e9, 1e300])
@pytest.mark.parametrize("n_rows", [20, 200, 2_000])
def test_no_single_cell_sets_the_range(extreme, n_rows):
    column = np.random.default_rng(2).normal(size=n_rows)
    changed = column.copy()
    changed[7] = extreme
    others = np.delete(column, 7)
    scaled = fit(changed).transform(others[:, None])[0][:, 0]
    plain = fit(column).transform(others[:, None])[0][:, 0]
    assert np.ptp(scaled) > 0.4 * np.ptp(plain)
    assert np.corrcoef(scaled, plain)[0, 1] > 0.95


@settings(max_examples=60)
@given(
    arrays(
        np.float64,
        st.integers(20, 80),
        elements=st.floats(-1e303, 1e303) | st.sampled_from([0.0, 1.0, 1e-300, -5e-324, 1e9]),
    )
)
def test_any_column(column):
    scaler = fit(column)
    values = around(scaler, column)[:, None]
    for scaled in scaler.transform(values):
        if scaler.varies[0]:
            assert (np.diff(scaled[:, 0]) >= 0).all()
        assert np.isfinite(scaled).all()
    assert np.isfinite(scaler.to_original(np.linspace(-9, 9, 40)[:, None])).all()


def test_values_of_a_category_take_as_much_of_the_range_as_they_have_rows():
    curve = category_curve(np.array([0.5, 0.3, 0.2]), 0.6)
    assert curve.values.tolist() == [-1, 0, 1, 2, 3]
    np.testing.assert_allclose(curve.scaled, [-LIMIT, -0.3, 0.18, 0.48, LIMIT])
    assert category_curve(np.ones(1), 0.6) is None
    weak = category_curve(np.full(2, 0.5), 0.0)  # the positions stay apart
    np.testing.assert_allclose(weak.scaled, [-LIMIT, -0.05, 0.05, LIMIT])


def test_a_value_that_hardly_any_row_has_takes_a_ten_thousandth_of_the_range():
    share = np.array([0.5, 0.0, 0.0, 0.5 - 1e-6, 1e-6])
    curve = category_curve(share, 1.0)
    width = np.array([0.5, 1e-4, 1e-4, 0.5 - 1e-6, 1e-4])
    ends = 2 * np.append(0, np.cumsum(width)) / width.sum() - 1
    np.testing.assert_allclose(curve.scaled[1:-1], (ends[1:] + ends[:-1]) / 2, atol=1e-12)
    assert (np.diff(curve.scaled) > 0.9e-4).all()


def test_knots_that_no_fit_returns_are_not_possible():
    scaler = fit(CURVED["lognormal"])
    count = len(scaler.curves[0].values)

    def changed(place, value):
        knots = scaler.knots.copy()
        knots[place] = value
        return replace(scaler, knots=knots)

    assert changed((0, 0, 0), scaler.knots[0, 0, 0]).is_possible()
    for place, value in [
        ((0, 0, 3), np.inf),
        ((0, 0, 3), np.nan),
        ((0, 1, 3), np.nan),
        ((0, 0, 3), scaler.knots[0, 0, 4]),  # two equal values
        ((0, 1, 3), scaler.knots[0, 1, 4]),
        ((0, 0, 3), scaler.knots[0, 0, 5]),  # not in order
        ((0, 0, 0), -1e305),
        ((0, 1, 0), -2.9),
        ((0, 1, count - 1), 3.1),
        ((0, slice(None), 2), np.nan),  # a gap
        ((0, 0, count), 1e300),  # a value without its scaled value
        ((0, slice(None), slice(2, None)), np.nan),  # two knots
    ]:
        assert not changed(place, value).is_possible(), (place, value)
    assert not replace(scaler, divisor=np.zeros(1)).is_possible()  # the feature does not vary
    constant = replace(scaler, divisor=np.zeros(1), constant=np.ones(1))
    assert not constant.is_possible()
