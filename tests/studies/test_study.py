"""Verdicts on differences that have a standard error."""

from __future__ import annotations

import math

import pytest

from diffint.studies.study import verdict_on_gain


@pytest.mark.parametrize(
    ("gain", "error", "paper", "expected"),
    [
        (0.10, 0.01, 0.11, "holds"),
        (0.10, 0.01, 0.30, "holds in part"),  # clear, but not the paper's
        (0.01, 0.01, 0.03, "undecided"),  # may be none, and may be the paper's
        (0.01, 0.01, 0.30, "does not hold"),
        (-0.10, 0.01, 0.03, "does not hold"),
        (0.10, 0.01, None, "holds"),
        (0.01, 0.01, None, "undecided"),
        (-0.10, 0.01, None, "does not hold"),
        (0.10, math.nan, 0.10, "undecided"),  # of one table
    ],
)
def test_a_gain_is_decided_by_two_standard_errors(gain, error, paper, expected):
    assert verdict_on_gain(gain, error, paper) == expected
