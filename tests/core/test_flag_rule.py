"""Thresholds of segments, and where segments are pooled."""

import numpy as np
import pytest

from diffint.core.calibration import Calibration
from diffint.core.flag_rule import FlagRule


def rule_of(sizes, rate=0.1, **others):
    """Segment k has scores k + 0, 1/size, 2/size, …"""
    scores = np.concatenate([k + np.arange(n) / max(n, 1) for k, n in enumerate(sizes)])
    codes = np.repeat(np.arange(len(sizes)), sizes)
    order = np.argsort(scores, kind="stable")
    names = tuple(f"s{k}" for k in range(len(sizes)))
    ones = np.ones(len(scores), np.int64)
    alone = np.arange(len(scores))  # each row is a group of its own
    calibration = Calibration("holdout", scores[order], ones, codes[order], alone, names)
    return FlagRule(calibration, rate, **others)


def test_each_segment_is_compared_with_its_own_rows():
    rule = rule_of([20, 40]).for_rows(np.array([0, 1, 0]))
    own = [
        Calibration("holdout", k + np.arange(n) / n, np.ones(n, int)) for k, n in ((0, 20), (1, 40))
    ]
    np.testing.assert_array_equal(rule.threshold, [own[k].threshold(0.1) for k in (0, 1, 0)])
    scores = np.array([0.96, 0.96, 0.5])
    expected = [own[k].p_values(scores[[i]])[0] for i, k in enumerate((0, 1, 0))]
    np.testing.assert_array_equal(rule.p_values(scores), expected)
    np.testing.assert_array_equal(rule.flagged(scores), [True, False, False])


@pytest.mark.parametrize(
    ("sizes", "own", "pool"),
    [
        ([20, 40], [0, 1], None),
        ([20, 4, 5], [0], (1, 2)),  # 9 together are enough for 0.1
        ([20, 4, 4], [0], "all"),  # 8 are not
        ([20, 0, 0], [0], "all"),
        ([1, 1], [], "all"),
    ],
)
def test_small_segments_are_pooled(sizes, own, pool):
    rule = rule_of(sizes)
    assert rule.own_segments == own
    for code in set(range(len(sizes))) - set(own):
        part = rule.part(code)
        if pool == "all":
            assert part is rule.calibration
        else:
            np.testing.assert_array_equal(
                part.scores, rule.calibration.within(np.array(pool)).scores
            )


def test_a_new_segment_is_compared_with_all_rows():
    rule = rule_of([20, 40]).for_rows(np.array([-1]))
    assert rule.part(-1) is rule.calibration
    assert rule.threshold[0] == rule.calibration.threshold(0.1)


@pytest.mark.parametrize("limit", [0.0, 0.05, 0.2])
def test_a_limit_flags_exactly_the_rows_with_p_values_up_to_it(limit):
    rule = rule_of([20, 40, 3], limit=limit).for_rows(np.repeat([0, 1, 2, -1], 50))
    scores = np.tile(np.linspace(-1, 4, 50), 4)
    np.testing.assert_array_equal(rule.flagged(scores), rule.p_values(scores) <= limit)


def test_some_rows_of_a_rule():
    rule = rule_of([20, 40]).for_rows(np.array([0, 1, 1]))
    np.testing.assert_array_equal(rule.take([2, 0]).threshold, rule.threshold[[2, 0]])
    assert rule_of([20]).take([0]).codes is None
