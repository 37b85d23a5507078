"""The threshold, the p-values, and the warnings where they promise less than asked."""

import warnings

import numpy as np
import pytest

from diffint.core.calibration import Calibration
from diffint.core.errors import CalibrationWarning
from diffint.core.flag_rule import FlagRule
from diffint.decide.thresholds import guarantee, p_values, warn_if_out_of_reach

SCORES = np.sort(np.random.default_rng(0).random(99))
ALONE = np.ones(99, dtype=np.int64)  # no row belongs to a group with others


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("rate", [0.01, 0.05, 0.3])
def test_rows_above_the_threshold_are_those_with_small_p_values(rate):
    rule = FlagRule(Calibration("holdout", SCORES, ALONE), rate)
    new = np.concatenate([SCORES, SCORES + 1e-9, [0.0, 2.0]])
    warn_if_out_of_reach(rule)
    np.testing.assert_array_equal(rule.flagged(new), p_values(rule, new) <= rate)


def warned(calibration, rate, confidence=None):
    """The threshold, after the warning."""
    rule = FlagRule(calibration, rate, confidence)
    warn_if_out_of_reach(rule)
    return rule.threshold


def test_too_few_scores_for_the_rate():
    message = "99 calibration rows are too few for a false-positive rate of 0.005, which needs"
    with pytest.warns(CalibrationWarning, match=message):
        assert warned(Calibration("holdout", SCORES, ALONE), 0.005) == SCORES[-1]
    with pytest.warns(CalibrationWarning, match="1 calibration row is too few"):
        warned(Calibration("holdout", SCORES[:1], ALONE[:1]), 0.1)
    with pytest.warns(CalibrationWarning, match="33 calibration groups are too few"):
        warned(Calibration("holdout", SCORES, np.full(99, 3)), 0.02)


@pytest.mark.parametrize("rate", [5e-324, 1e-320, 1e-200, 1e-16])
def test_a_rate_that_no_number_of_rows_reaches(rate):
    message = rf"a false-positive rate of {rate:g}, which needs at least \d.*e\+\d+:"
    with pytest.warns(CalibrationWarning, match=message):
        assert warned(Calibration("holdout", SCORES, ALONE), rate) == SCORES[-1]


def test_scores_of_training_rows_are_optimistic():
    with pytest.warns(CalibrationWarning, match="optimistic"):
        p_values(FlagRule(Calibration("training", SCORES, ALONE), 0.1), SCORES)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        p_values(FlagRule(Calibration("members", SCORES, ALONE), 0.1), SCORES)


def test_a_confidence_needs_more_rows():
    # 0.99 ** 298 > 0.05 > 0.99 ** 299
    many = np.arange(299.0)
    with pytest.warns(
        CalibrationWarning, match="with a confidence of 0.95, which needs at least 299"
    ):
        warned(Calibration("holdout", SCORES, ALONE), 0.01, 0.95)
    assert Calibration("holdout", many, np.ones(299, np.int64)).reaches(0.01, 0.95)
    assert not Calibration("holdout", many[:298], np.ones(298, np.int64)).reaches(0.01, 0.95)


@pytest.mark.parametrize(
    ("kind", "confidence", "expected"),
    [
        ("holdout", None, "proven for new rows like the training rows, on average over fits"),
        ("holdout", 0.9, "for this fit with a probability of 0.9"),
        ("members", None, "measured, not proven"),
        ("training", None, "not promised"),
    ],
)
def test_what_is_promised(kind, confidence, expected):
    assert expected in guarantee(Calibration(kind, SCORES, ALONE), confidence)
