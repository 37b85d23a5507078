"""Scores of rows by members that were not trained on them."""

from types import SimpleNamespace

import numpy as np
import pytest

from diffint.fit.calibrate import calibrate, unseen_scores
from diffint.fit.task import Split
from diffint.score.prepared import PreparedModel


def test_scores_of_unseen_rows(fitted, rows):
    """The mean over the members that left a row out; NaN if none did."""
    prepared = PreparedModel(fitted.model_)
    none = np.empty(0, dtype=np.intp)
    train = [np.arange(0, 200), np.arange(100, 300)]
    split = Split("members", train, [none, none], np.arange(300), none)
    found = unseen_scores(prepared, rows, split, n_jobs=1)
    first, second = (prepared.packed.member_scores(rows, i, 1) for i in range(2))
    np.testing.assert_array_equal(found[:100], second[:100])
    assert np.isnan(found[100:200]).all()
    np.testing.assert_array_equal(found[200:], first[200:])
    split = Split("members", [train[0][:100]] * 2, [none, none], np.arange(300), none)
    found = unseen_scores(prepared, rows, split, n_jobs=1)
    np.testing.assert_allclose(found[100:], (first + second)[100:] / 2)


@pytest.mark.parametrize(("n_features", "n_stored"), [(1, 30), (5_000, 20), (9_091, 10)])
def test_a_model_stores_at_most_100_000_cells_of_calibration_rows(n_features, n_stored):
    rng = np.random.default_rng(0)
    x, marks = rng.normal(size=(30, n_features)), np.zeros(30, dtype=bool)
    scores = SimpleNamespace(member_scores=lambda rows, member, n_jobs: rows[:, 0] ** 2)
    prepared = SimpleNamespace(packed=scores, members=[SimpleNamespace(kept_rows=x[:1])])
    task = SimpleNamespace(
        x=x,
        left_out=marks,
        anomalies=marks,
        kinds=SimpleNamespace(categories={}),
        segments=None,
        segment_names=(),
    )
    split = Split("members", [], [np.arange(20), np.arange(10, 30)], np.arange(30), np.arange(0))
    found = calibrate(prepared, task, split, 1, rng)
    assert found.sample.shape == (n_stored, n_features)
    # Both are raised alike where members may disagree, among the three highest in ten.
    assert (found.sample_scores >= found.sample[:, 0] ** 2).all()
    assert np.isin(found.sample_scores, found.scores).all()
    np.testing.assert_array_equal(found.scores[:20], np.sort(x[:, 0] ** 2)[:20])
