"""Ends of ranges for display."""

import numpy as np
import pytest

from diffint import DiffInt
from diffint.core.model import FeatureSummary
from diffint.explain.constraints import BoxEnds, readable, readable_for


class TestReadable:
    def summary(self, whole):
        quantiles = np.array([[0.0, 10.0]])
        nothing = np.zeros((1, 1))
        return FeatureSummary(
            np.array([0.0, 1.0]), quantiles, nothing, nothing, nothing[0], np.array([whole])
        )

    @pytest.mark.parametrize(
        ("lower", "upper", "whole", "value", "expected"),
        [
            (2.2, 7.7, False, 5.0, (2.2, 7.7, True, True)),
            (-3.0, 7.7, False, 5.0, (0.0, 7.7, False, True)),
            (-3.0, 30.0, False, 5.0, (0.0, 10.0, False, False)),
            # The value is beyond the training range but inside the box.
            (-3.0, 30.0, False, 20.0, (0.0, 30.0, False, False)),
            (-3.0, 30.0, False, np.nan, (0.0, 10.0, False, False)),
            (2.2, 7.7, True, 5.0, (3.0, 7.0, True, True)),
            (2.2, 7.7, True, 2.5, (2.2, 7.7, True, True)),  # the value is not whole
            (2.2, 2.7, True, 5.0, (2.2, 2.7, True, True)),  # no whole number between the ends
            (2.999999, 3.0000001, True, 3.0, (3.0, 3.0, True, True)),
            (12.0, 15.0, False, 5.0, (12.0, 15.0, True, False)),  # outside the training range
        ],
    )
    def test_ends(self, lower, upper, whole, value, expected):
        ends = (lower, upper, lower - 2e-5, upper + 2e-5)
        boxes, features = BoxEnds(*(np.array([[end]]) for end in ends)), self.summary(whole)
        unit = np.array([0])
        ends = readable_for(np.array([[value]]), readable(boxes, features), boxes, unit, features)
        found = (ends.lower, ends.upper, ends.binds_below, ends.binds_above)
        assert tuple(a.item() for a in found) == expected


def test_values_that_are_outside_by_a_rounding_error_are_shown_outside():
    """The ends of codes are rounded to whole numbers, but not onto a value beyond them."""
    for seed in (0, 1, 2, 3, 4, 5, 6, 7):
        rng = np.random.default_rng(seed)
        x = np.column_stack(
            [
                rng.integers(0, 4, 150),
                rng.integers(0, 4, 150),
                np.full(150, 3.0),
                np.round(rng.lognormal(3, 3, 150)),
            ]
        ).astype(float)
        settings = {"n_units": 25, "hidden_width": 8, "epochs": 3, "n_members": 2}
        detector = DiffInt(**settings, random_state=seed).fit(x)
        explanation = detector.explain(x)
        frame = explanation.to_frame().query("feature != 'x2'")
        assert (frame["lower"] <= frame["upper"]).all()
        above, below = (frame[frame["side"] == side] for side in ("above", "below"))
        assert (above["value"] > above["upper"]).all()
        assert (below["value"] < below["lower"]).all()
        for row in range(0, 150, 10):  # never "3, but was 3 in every training row"
            assert explanation.reason(row, 2).startswith("x2 = 3, as in every training row")
