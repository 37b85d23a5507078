import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diffint.core.calibration import Calibration

SCORES = st.lists(st.integers(0, 20), min_size=1, max_size=60)


def calibration(scores, groups=None):
    """A calibration of scores, each in a group of its own unless `groups` says otherwise."""
    order = np.argsort(scores, kind="stable")
    groups = np.arange(len(scores)) if groups is None else np.asarray(groups)
    sizes = np.bincount(groups)[groups]
    return Calibration("holdout", np.array(scores, dtype=float)[order], sizes[order])


@given(calibrating=SCORES, scores=SCORES)
def test_p_values_match_their_definition(calibrating, scores):
    expected = [(1 + sum(c >= s for c in calibrating)) / (1 + len(calibrating)) for s in scores]
    np.testing.assert_allclose(calibration(calibrating).p_values(np.array(scores)), expected)


GROUPED = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 8)), min_size=1, max_size=60)


@given(calibrating=GROUPED, scores=SCORES)
def test_in_groups_each_group_counts_once(calibrating, scores):
    c = calibration(*zip(*calibrating, strict=True))
    names = {group for _, group in calibrating}
    assert c.n_groups == len(names)
    for score, p_value in zip(scores, c.p_values(np.array(scores)), strict=True):
        shares = [np.mean([s >= score for s, g in calibrating if g == name]) for name in names]
        assert p_value == pytest.approx((1 + sum(shares)) / (1 + len(names)))


@settings(max_examples=300)
@given(calibrating=GROUPED, grouped=st.booleans(), rate=st.floats(0.001, 0.999))
def test_flagged_exactly_where_p_is_at_most_the_rate(calibrating, grouped, rate):
    calibrating, groups = zip(*calibrating, strict=True)
    c = calibration(calibrating, groups if grouped else None)
    scores = np.arange(-1, 23) + 0.5 * np.arange(24) % 1
    above = scores > c.threshold(rate)
    if c.reaches(rate):
        np.testing.assert_array_equal(above, c.p_values(scores) <= rate)
    else:
        assert 1 / (1 + c.n_groups) > rate
        assert c.threshold(rate) == max(calibrating)


@pytest.mark.parametrize(("n", "rate", "reached"), [(99, 0.01, True), (98, 0.01, False)])
def test_number_of_scores_that_a_rate_needs(n, rate, reached):
    assert calibration(range(n)).reaches(rate) is reached


@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("rate", [0.05, 0.2])
def test_with_a_confidence_the_rate_holds_for_nearly_every_calibration(groups, rate):
    """Scores are uniform, so that the share of normal rows above a threshold is known."""
    rng = np.random.default_rng(0)
    above, plain = [], []
    for _ in range(400):
        middles = rng.random(100)  # the scores of a group are alike
        scores = np.repeat(middles, groups) if groups > 1 else middles
        c = calibration(scores, np.repeat(np.arange(100), groups) if groups > 1 else None)
        above.append(1.0 - c.threshold(rate, 0.9))
        plain.append(1.0 - c.threshold(rate))
    assert np.mean(np.array(above) <= rate) >= 0.87  # two standard errors below 0.9
    assert np.mean(plain) <= rate + 0.01
    assert np.mean(np.array(plain) <= rate) < 0.75  # on average only
    # Not much stricter than it has to be
    assert np.mean(above) > rate / 4


@settings(max_examples=200)
@given(calibrating=GROUPED, grouped=st.booleans(), rate=st.floats(0.001, 0.999))
def test_with_a_confidence_flagged_exactly_where_p_is_at_most_the_rate(calibrating, grouped, rate):
    calibrating, groups = zip(*calibrating, strict=True)
    c = calibration(calibrating, groups if grouped else None)
    scores = np.arange(-1, 23) + 0.5 * np.arange(24) % 1
    p_values = c.p_values(scores, 0.95)
    assert (np.diff(p_values[np.argsort(scores)]) <= 1e-12).all()
    assert (p_values >= c.p_values(scores) - 1 / (1 + c.n_groups)).all()
    if c.reaches(rate, 0.95):
        np.testing.assert_array_equal(scores > c.threshold(rate, 0.95), p_values <= rate)
