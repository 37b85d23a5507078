import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diffint.core.calibration import Calibration

SCORES = st.lists(st.integers(0, 20), min_size=1, max_size=60)


def calibration(scores):
    return Calibration("holdout", np.sort(np.array(scores, dtype=float)))


@settings(deadline=None)
@given(calibrating=SCORES, scores=SCORES)
def test_p_values_match_their_definition(calibrating, scores):
    expected = [(1 + sum(c >= s for c in calibrating)) / (1 + len(calibrating)) for s in scores]
    np.testing.assert_allclose(calibration(calibrating).p_values(np.array(scores)), expected)


@settings(deadline=None, max_examples=300)
@given(calibrating=SCORES, rate=st.floats(0.001, 0.999))
def test_flagged_exactly_where_p_is_at_most_the_rate(calibrating, rate):
    c = calibration(calibrating)
    scores = np.arange(-1, 23) + 0.5 * np.arange(24) % 1
    above = scores > c.threshold(rate)
    if c.reaches(rate):
        np.testing.assert_array_equal(above, c.p_values(scores) <= rate)
    else:
        assert 1 / (1 + len(calibrating)) > rate
        assert c.threshold(rate) == max(calibrating)


@pytest.mark.parametrize(("n", "rate", "reached"), [(99, 0.01, True), (98, 0.01, False)])
def test_number_of_scores_that_a_rate_needs(n, rate, reached):
    assert calibration(range(n)).reaches(rate) is reached
