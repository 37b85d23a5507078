"""Ranges of features with long tails: in original units, and true of the training rows."""

import numpy as np
import pandas as pd
import pytest

from diffint import DiffInt


@pytest.fixture(scope="module")
def table():
    """Three kinds of customers; whole and fractional amounts, each with a few extreme cells."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 3, 500)
    frame = pd.DataFrame(
        {
            "visits": rng.poisson(3 + 4 * kind).astype(float),
            "income": np.round(rng.lognormal(3 + kind, 0.4)),
            "amount": rng.lognormal(kind, 0.5),
            "kind": kind + rng.normal(0, 0.1, 500),
        }
    )
    frame.loc[5, "visits"] = 1e7
    frame.loc[[6, 7], "income"] = 1e9, 5e8
    frame.loc[8, "amount"] = 1e12
    return frame


@pytest.fixture(scope="module")
def detector(table):
    settings = {"n_units": 40, "epochs": 40, "n_members": 2, "random_state": 0}
    return DiffInt(**settings, false_positive_rate=0.05).fit(table)


def test_values_lie_where_the_explanation_says(detector, table):
    frame = detector.explain(table).to_frame()
    below, inside, above = (frame[frame["side"] == s] for s in ("below", "inside", "above"))
    assert min(map(len, (below, inside, above))) > 10
    assert (below["value"] < below["lower"]).all()
    assert (above["value"] > above["upper"]).all()
    assert inside["value"].between(inside["lower"], inside["upper"]).all()
    assert (below["distance"] > 0).all()
    assert (above["distance"] > 0).all()


def test_ranges_cover_the_share_of_rows_that_they_say(detector, table):
    """An extreme cell must not widen the ranges of whole numbers."""
    ranges = detector.explain_global().to_frame(n_units=80, n_constraints=4)
    assert {"visits", "income", "amount"} <= set(ranges["feature"])
    for line in ranges.itertuples():
        lower = line.lower if line.binds_below else -np.inf
        upper = line.upper if line.binds_above else np.inf
        share = table[line.feature].between(lower, upper).mean()
        assert abs(share - line.coverage) < 0.25, line  # of 100 held-out rows
        assert line.lower >= table[line.feature].min()
        assert line.upper <= table[line.feature].max()


def test_counts_of_rows_inside_a_box_can_be_recounted_from_its_ranges(detector, table):
    explanation = detector.explain_global()
    inside = [
        int(((table >= low) & (table <= up)).all(axis=1).sum())
        for low, up in zip(explanation.lower, explanation.upper, strict=True)
    ]
    np.testing.assert_allclose(inside, explanation.box_rows, atol=2)  # float32 at the ends


def test_expected_values_are_in_original_units(detector, table):
    expected = detector.explain(table).expected
    usual = table.drop(index=[5, 6, 7, 8])
    for j, name in enumerate(table.columns):
        assert expected[usual.index, j].max() < 3 * usual[name].max()
        assert np.corrcoef(expected[usual.index, j], usual[name])[0, 1] > 0.7


def test_a_changed_value_that_is_normal_elsewhere_is_found(detector, table):
    new = table.iloc[20:60].copy()
    small = new["kind"] < 0.5
    new.loc[small, "income"] = 900.0  # an ordinary income of the last kind
    explanation = detector.explain(new)
    first = np.array(new.columns)[explanation.order[:, 0]]
    assert (first[small] == "income").mean() > 0.9


def test_suggested_values_are_usual_ones(detector, table):
    """An extreme training cell sets neither their rounding nor the steps of their search."""
    new = table.iloc[20:60].copy()
    new["amount"] = 1e12
    found = detector.nearest_normal(new, max_changes=1)
    amounts = [c.suggested for changes in found.changes for c in changes if c.feature == 2]
    assert len(amounts) > 30
    usual = table["amount"].drop(8)
    assert min(amounts) >= usual.min()
    assert max(amounts) <= 2 * usual.max()
    assert len(set(amounts)) > 10
    # The least change: a little less would be flagged.
    for row, changes in enumerate(found.changes[:10]):
        if changes:
            tried = new.iloc[[row]].copy()
            tried["amount"] = changes[0].least
            assert detector.anomaly_score(tried)[0] <= found.threshold
            tried["amount"] = changes[0].least * 1.3 + 0.5
            assert detector.anomaly_score(tried)[0] > found.threshold
