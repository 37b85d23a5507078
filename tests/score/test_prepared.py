"""Derived values are computed once per prepared model, which threads can share."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import diffint
from diffint import DiffInt
from diffint.core.config import Config
from diffint.engine.reference.score import scores
from diffint.score.prepared import PreparedModel
from diffint.score.scoring import anomaly_scores

from ..conftest import QUICK


def test_each_value_is_computed_once_per_member(fitted):
    made = []

    def make(config, member):
        made.append(member)
        return len(made)

    prepared = PreparedModel(fitted.model_)
    assert prepared.derived(make) == prepared.derived(make) == (1, 2)
    assert len(made) == len(fitted.model_.members)


def test_concurrent_threads_get_the_same_value(fitted):
    prepared = PreparedModel(fitted.model_)

    def make(config, member):
        return object()

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: prepared.derived(make), range(64)))
    assert all(result is results[0] for result in results)


def test_the_same_members_with_another_configuration_score_differently(fitted, rows):
    """Derived values depend on the configuration, not on the member alone."""
    other = replace(fitted.model_, config=replace(fitted.model_.config, temperature=0.5))
    for model in (fitted.model_, other, fitted.model_):
        actual = anomaly_scores(PreparedModel(model), rows)
        np.testing.assert_allclose(actual, scores(model, rows), rtol=1e-4, atol=1e-6)
    first, second = (anomaly_scores(PreparedModel(m), rows) for m in (fitted.model_, other))
    assert np.abs(first - second).max() > 1e-3


def test_an_estimator_uses_its_current_model(rows):
    detector = DiffInt(**QUICK).fit(rows)
    before = detector.anomaly_score(rows)
    other = DiffInt(**{**QUICK, "random_state": 1}).fit(rows)
    detector.model_ = other.model_
    np.testing.assert_array_equal(detector.anomaly_score(rows), other.anomaly_score(rows))
    assert np.abs(before - detector.anomaly_score(rows)).max() > 0


def test_derived_values_are_not_pickled(fitted, rows):
    expected = fitted.anomaly_score(rows)
    assert "_prepared_model" not in fitted.__getstate__()
    copy = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copy.anomaly_score(rows), expected)
    prepared = pickle.loads(pickle.dumps(fitted.prepared))
    np.testing.assert_array_equal(anomaly_scores(prepared, rows), expected)
    assert isinstance(prepared.config, Config)


def test_rows_of_another_width_are_refused(fitted, rows):
    """The kernels trust the shape: other shapes would be read and written out of bounds."""
    wide = DiffInt(**QUICK).fit(np.hstack([rows, rows]))
    for ask in (
        lambda x: wide.prepared.packed.scores(x),
        lambda x: wide.prepared.packed.parts(x),
        lambda x: wide.prepared.packed.explained(x),
        lambda x: wide.prepared.packed.reconstructions(x),
    ):
        with pytest.raises(diffint.InputError, match="but the model has 10 features"):
            ask(rows)
    detector = DiffInt(**QUICK).fit(rows)
    detector.model_ = wide.model_
    with pytest.raises(diffint.InputError, match="but the model has 10 features"):
        detector.match(rows)
