"""Bounds on regions hold where float32 rounds: one test for each margin, which fails without it.

The weights are made so that one step of scoring rounds in a known way and all others are exact, and
the region is so narrow that its bounds differ from the exact score by the margins only.
"""

from dataclasses import replace

import numpy as np
import pytest

from diffint import DiffInt
from diffint.certify.reference_bounds import ReferenceBounds
from diffint.engine.reference import score as reference

from ..conftest import QUICK

QUARTER = 2.0**-25  # of the distance from 1 to the next float32: added to 1, it is lost


def detector_of(center, half_width, hidden, output, temperature=0.1, kept=()):
    """A detector whose scaled values are the values.

    center, half_width: (units, features); hidden, output: weights and biases of the two maps
    """
    units, features = center.shape
    settings = {"scaling": "unit", "decoder": "certified", "missing": "ignored", "epochs": 1}
    members = {"n_members": 1, "n_units": units, "hidden_width": 1, "kept_rows": len(kept)}
    detector = DiffInt(**{**QUICK, **settings, **members, "temperature": temperature})
    detector.fit(np.tile([[0.0], [1.0]], (10, features)))
    (member,) = detector.model_.members
    decoder = replace(
        member.decoder,
        hidden_weight=np.float32(hidden[0])[:, None],
        hidden_bias=np.float32([hidden[1]]),
        output_weight=np.full((1, features), output[0], dtype=np.float32),
        output_bias=np.full(features, output[1], dtype=np.float32),
    )
    member = replace(
        member, center=np.float32(center), half_width=np.float32(half_width), decoder=decoder
    )
    if len(kept):
        kept = np.float32(kept)
        member = replace(member, kept_rows=kept, distance_weight=1.0)
    detector.model_ = replace(detector.model_, members=(member,))
    return detector


def check(detector, row, least_error):
    """The score differs from the exact one by some rounding, and is inside the bounds."""
    score, exact = (
        detector.anomaly_score(row[None])[0],
        reference.scores(detector.model_, row[None]),
    )
    assert abs(score - exact[0]) > least_error
    assert row[0] == 0.0
    end = row.copy()
    end[0] = 1e-20  # not a single row, whose score itself is the bound
    region = detector.certify_region(row, end, splits=0)
    assert region.lower <= score <= region.upper
    assert region.upper - region.lower < 0.01
    low, high = ReferenceBounds(detector.model_).bounds(row, end, steps=2)
    assert low <= score <= high
    assert high - low < 2 * (region.upper - region.lower)


def wide(units):
    """Intervals so wide that no membership is below 1, for two features."""
    return np.full((units, 2), 0.5), np.full((units, 2), 8.0)


def test_the_sum_of_an_output():
    detector = detector_of(*wide(1), hidden=([0.0], QUARTER), output=(1.0, 1.0))
    check(detector, np.zeros(2), 0.9 * QUARTER)


def test_the_sum_of_a_hidden_value():
    """Of 64 units with a code of 1/64 each; whichever codes they have, the exact sum is one."""
    detector = detector_of(*wide(64), hidden=([64 * QUARTER] * 64, 1.0), output=(1.0, 0.0))
    check(detector, np.zeros(2), 60 * QUARTER)


def test_the_nearest_kept_row_by_rounded_distances():
    """Three rows are equally near, but one of them is nearer without rounding."""
    kept = [[1.0, QUARTER], [1.0, 0.0], [1.0, QUARTER]]
    detector = detector_of(*wide(1), hidden=([0.0], 0.0), output=(0.0, 0.0), kept=kept)
    check(detector, np.zeros(2), 0.4 * QUARTER)


def two_units(low, high, temperature, n_features):
    """One unit with values from `low`, one with values up to `high`; the output is 2·code."""
    center, half_width = np.full((2, n_features), 0.5), np.full((2, n_features), 8.0)
    half_width[:, 1:] = 4.0
    center[:, 1:] = np.array([[low + 4.0], [high - 4.0]])
    hidden = ([1.0, -1.0], 1.0)
    return detector_of(center, half_width, hidden, (1.0, 0.0), temperature)


@pytest.mark.parametrize("gap", [0.1, 0.3])
def test_the_exponentials_of_a_value_and_an_end(gap):
    """Equal values have equal errors, which add up; that of some values is large."""
    detector = two_units(0.95 + gap, 0.95 - gap, 0.034, n_features=101)
    rows = np.tile(np.linspace(0.948, 0.952, 400)[:, None], 101)
    rows[:, 0] = 0.0
    error = np.abs(detector.anomaly_score(rows) - reference.scores(detector.model_, rows))
    check(detector, rows[error.argmax()], 7e-5)


def test_the_sum_and_the_product_of_factors():
    """1 + 2⁻²⁵ is 1 in each of 1,000 features."""
    temperature = 0.05
    detector = two_units(0.0, 4.5, temperature, n_features=1_001)
    row = np.full(1_001, -temperature * np.log(QUARTER))
    row[0] = 0.0
    check(detector, row, 1e-5)
