"""Scores of rows by members that were not trained on them."""

import numpy as np

from diffint.fit.calibrate import unseen_scores
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
