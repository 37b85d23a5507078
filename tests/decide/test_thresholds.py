"""The threshold, the p-values, and the warnings where they promise less than asked."""

import warnings

import numpy as np
import pytest

from diffint.core.calibration import Calibration
from diffint.core.errors import CalibrationWarning
from diffint.decide.thresholds import p_values, threshold

SCORES = np.sort(np.random.default_rng(0).random(99))
ALONE = np.ones(99, dtype=np.int64)  # no row belongs to a group with others


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("rate", [0.01, 0.05, 0.3])
def test_rows_above_the_threshold_are_those_with_small_p_values(rate):
    calibration = Calibration("holdout", SCORES, ALONE)
    new = np.concatenate([SCORES, SCORES + 1e-9, [0.0, 2.0]])
    flagged = new > threshold(calibration, rate)
    np.testing.assert_array_equal(flagged, p_values(calibration, new) <= rate)


def test_too_few_scores_for_the_rate():
    message = "99 calibration rows are too few for a false-positive rate of 0.005, which needs"
    with pytest.warns(CalibrationWarning, match=message):
        assert threshold(Calibration("holdout", SCORES, ALONE), 0.005) == SCORES[-1]
    with pytest.warns(CalibrationWarning, match="1 calibration row is too few"):
        threshold(Calibration("holdout", SCORES[:1], ALONE[:1]), 0.1)
    with pytest.warns(CalibrationWarning, match="33 calibration groups are too few"):
        threshold(Calibration("holdout", SCORES, np.full(99, 3)), 0.02)


@pytest.mark.parametrize("rate", [5e-324, 1e-320, 1e-200, 1e-16])
def test_a_rate_that_no_number_of_rows_reaches(rate):
    message = rf"a false-positive rate of {rate:g}, which needs at least \d.*e\+\d+:"
    with pytest.warns(CalibrationWarning, match=message):
        assert threshold(Calibration("holdout", SCORES, ALONE), rate) == SCORES[-1]


def test_scores_of_training_rows_are_optimistic():
    with pytest.warns(CalibrationWarning, match="optimistic"):
        p_values(Calibration("training", SCORES, ALONE), SCORES)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        p_values(Calibration("members", SCORES, ALONE), SCORES)
