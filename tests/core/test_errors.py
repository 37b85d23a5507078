"""Errors are what users already catch; warnings point at the line that called."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import diffint
from diffint import DiffInt

from ..conftest import QUICK


@pytest.mark.parametrize(
    ("error", "caught"),
    [
        (diffint.InputError, ValueError),
        (diffint.ModelFileError, ValueError),
        (diffint.TrainingError, RuntimeError),
    ],
)
def test_errors_that_users_can_correct_have_one_base(error, caught):
    assert issubclass(error, diffint.DiffIntError)
    assert issubclass(error, caught)


def test_an_estimator_that_is_not_fitted(rows):
    with pytest.raises(NotFittedError):
        DiffInt().explain(rows)


def test_warnings_point_at_the_callers_line(rows):
    detector = DiffInt(**QUICK, calibration="training")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        detector.fit(np.where(rows[:, :1] > np.median(rows[:, 0]), np.nan, rows))
        detector.p_values(rows)
        detector.explain(rows[:3])
    assert len(caught) >= 1
    assert {warning.filename for warning in caught} == {__file__}
