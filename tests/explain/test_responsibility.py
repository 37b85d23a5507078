"""Responsibilities: planted errors rank first; the compiled version equals the definition."""

import numpy as np
import pytest

from diffint import DiffInt
from diffint.engine.cpu import explain_kernel
from diffint.engine.reference.robust import expected_and_responsibility
from diffint.explain.responsibility import responsibilities
from diffint.score.prepared import PreparedModel

from ..conftest import QUICK


def factor_rows(n_rows, seed, n_features=8):
    """Rows generated from two hidden factors, so that features are correlated."""
    rng = np.random.default_rng(seed)
    loadings = np.random.default_rng(7).normal(size=(2, n_features))
    hidden = rng.uniform(-1, 1, size=(n_rows, 2))
    noise = rng.normal(0, 0.05, size=(n_rows, n_features))
    return (hidden @ loadings + noise) * 10.0 ** np.arange(n_features) + 5.0


@pytest.fixture(scope="module")
def train():
    return factor_rows(600, seed=0)


@pytest.fixture(scope="module")
def model(train):
    return DiffInt(n_members=2, random_state=0).fit(train).model_


@pytest.mark.parametrize("decoder", ["free", "certified"])
@pytest.mark.parametrize("scaling", ["minmax", "standard", "none"])
@pytest.mark.parametrize("temperature", [0.02, 0.1, 2.0])
def test_equals_the_definition(decoder, scaling, temperature):
    rng = np.random.default_rng(0)
    settings = {"decoder": decoder, "scaling": scaling, "temperature": temperature}
    model = DiffInt(**QUICK, **settings).fit(rng.normal(size=(150, 37))).model_
    x = rng.normal(0, 2, size=(70, 37))
    x[::5, 2] = np.nan
    expected = expected_and_responsibility(model, x)[1]
    np.testing.assert_allclose(
        responsibilities(PreparedModel(model), x), expected, rtol=2e-4, atol=1e-4
    )


@pytest.mark.parametrize("kind", ["out of range", "in range"])
def test_a_planted_feature_ranks_first(model, train, kind):
    x = factor_rows(300, seed=1)
    rng = np.random.default_rng(2)
    rows, planted = np.arange(len(x)), rng.integers(0, x.shape[1], size=len(x))
    low, high = train.min(axis=0)[planted], train.max(axis=0)[planted]
    if kind == "out of range":
        x[rows, planted] = high + 0.2 * (high - low)
    else:  # the end of the range that is farther from the row's own value
        value = x[rows, planted]
        x[rows, planted] = np.where(high - value > value - low, high, low)
    first = responsibilities(PreparedModel(model), x).argmax(axis=1)
    assert (first == planted).mean() >= 0.97


def test_three_planted_features_rank_first(model, train):
    x = factor_rows(200, seed=3)
    x[:, [1, 4, 6]] = train.max(axis=0)[[1, 4, 6]] + 0.3 * np.ptp(train, axis=0)[[1, 4, 6]]
    first = np.sort(np.argsort(-responsibilities(PreparedModel(model), x), axis=1)[:, :3], axis=1)
    assert (first == [1, 4, 6]).all(axis=1).mean() >= 0.97


def test_missing_cells_have_responsibility_0(model):
    x = factor_rows(50, seed=4)
    whole = responsibilities(PreparedModel(model), x)
    x[::2, 3] = np.nan
    x[7] = np.nan
    result = responsibilities(PreparedModel(model), x)
    assert np.isfinite(result).all()
    assert (result >= 0).all()
    assert (result[::2, 3] == 0).all()
    assert (result[7] == 0).all()
    np.testing.assert_array_equal(result[1:7:2], whole[1:7:2])


def test_a_changed_constant_ranks_first(train):
    x = train.copy()
    x[:, 2] = 4.0
    model = DiffInt(**QUICK).fit(x).model_
    x[:, 2] = np.where(np.arange(len(x)) % 2, 4.0, 4.1)
    first = responsibilities(PreparedModel(model), x).argmax(axis=1)
    assert (first[::2] == 2).all()
    assert (first[1::2] == 2).mean() < 0.05


def test_an_empty_column_has_responsibility_0(train):
    x = train.copy()
    x[:, 5] = np.nan
    with pytest.warns(UserWarning, match="."):
        model = DiffInt(**QUICK).fit(x).model_
    result = responsibilities(PreparedModel(model), train)
    assert (result[:, 5] == 0).all()
    assert np.isfinite(result).all()


def test_one_feature():
    x = np.random.default_rng(0).normal(size=(200, 1))
    model = DiffInt(**QUICK).fit(x).model_
    result = responsibilities(PreparedModel(model), np.array([[0.0], [9.0], [np.nan]]))
    assert result.shape == (3, 1)
    assert result[1, 0] > result[0, 0] >= 0
    assert result[2, 0] == 0


def test_rows_do_not_depend_on_other_rows_or_on_threads(model):
    x = factor_rows(2_500, seed=5)
    x[::3, 1] *= 2
    expected = responsibilities(PreparedModel(model), x)
    order = np.random.default_rng(0).permutation(len(x))
    np.testing.assert_array_equal(responsibilities(PreparedModel(model), x[order]), expected[order])
    np.testing.assert_array_equal(responsibilities(PreparedModel(model), x, n_jobs=2), expected)
    np.testing.assert_allclose(
        responsibilities(PreparedModel(model), x[:1]), expected[:1], atol=1e-9
    )
    assert responsibilities(PreparedModel(model), x[:0]).shape == (0, x.shape[1])


def test_few_evaluations_per_row(model, monkeypatch):
    passed = []
    original = explain_kernel.explain_rows

    def counting(address, n_rows, *others):
        passed.append(n_rows)
        original(address, n_rows, *others)

    monkeypatch.setattr(explain_kernel, "explain_rows", counting)
    responsibilities(PreparedModel(model), factor_rows(1_500, seed=6))
    assert sum(passed) == 1_500  # each with every member, once
