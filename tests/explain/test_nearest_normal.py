"""The smallest changes that make flagged rows normal."""

import numpy as np
import pandas as pd
import pytest

from diffint import DiffInt, InputError

from ..conftest import QUICK
from .test_explanations import make_records


@pytest.fixture(scope="module")
def detector():
    records = make_records()
    return DiffInt(random_state=0, epochs=30, n_units=60, false_positive_rate=0.05).fit(records)


@pytest.fixture(scope="module")
def suspects():
    frame = make_records(60, seed=1).astype({"member": float, "version": float})
    frame.loc[0, "amount"] = 9_000
    frame.loc[1, "visits"] = 40
    frame.loc[2, ["amount", "visits"]] = [9_000, 40]
    frame.loc[3, :] = [10_000, -50_000, 400, 1, 7, 900]
    frame.loc[4, ["amount", "visits"]] = [9_000, np.nan]
    return frame


def test_suggestions_make_rows_normal(detector, suspects):
    nearest = detector.nearest_normal(suspects)
    flagged = detector.predict(suspects) == -1
    np.testing.assert_array_equal(nearest.flagged, flagged)
    assert flagged[:5].all()
    changed = suspects.copy()
    for line in nearest.to_frame().itertuples():
        assert changed.loc[line.row, line.feature] == line.value
        changed.loc[line.row, line.feature] = line.suggested
    again = detector.predict(changed)
    np.testing.assert_array_equal(again[nearest.found], 1)
    scores = detector.anomaly_score(changed)[nearest.found]
    np.testing.assert_allclose(nearest.new_score[nearest.found], scores, atol=1e-9)


def test_only_the_wrong_features_are_changed(detector, suspects):
    nearest = detector.nearest_normal(suspects)
    features = [{suspects.columns[c.feature] for c in row} for row in nearest.changes[:5]]
    assert features[0] == {"amount"}
    assert features[1] == {"visits"}
    assert features[2] == {"amount", "visits"}
    assert "visits" not in features[4]  # missing: there is nothing to change


def test_the_least_change_is_not_larger_than_needed(detector, suspects):
    nearest = detector.nearest_normal(suspects)
    (change,) = nearest.changes[0]
    assert change.suggested <= change.least < change.value
    nearer = suspects.iloc[[0]].copy()
    for amount, verdict in ((change.least, 1), (change.least * 1.01, -1)):
        nearer["amount"] = amount
        assert detector.predict(nearer)[0] == verdict


def test_suggested_values_are_plausible():
    """Not at the edge of what is flagged, but where rows are that agree with the rest."""
    rng = np.random.default_rng(0)
    length = rng.normal(200, 15, 600)
    mass = 50 * length - 5_800 + rng.normal(0, 300, 600)
    table = pd.DataFrame({"length": length, "mass": mass, "other": rng.normal(size=600)})
    detector = DiffInt(random_state=0, epochs=40, n_units=60).fit(table.iloc[:500])
    wrong = table.iloc[500:].assign(mass=mass[500:] / 1000)
    nearest = detector.nearest_normal(wrong, max_changes=1)
    explained = detector.explain(wrong)
    checked = 0
    for row, changes in enumerate(nearest.changes):
        for change in changes:
            assert change.feature == 1
            assert change.suggested == pytest.approx(mass[500 + row], abs=1_500)
            assert explained.reasons_of(row)[0].lower <= change.suggested
            checked += 1
    assert checked > 80
    off = [c[0].suggested - mass[500 + i] for i, c in enumerate(nearest.changes) if c]
    assert np.abs(off).mean() < 450  # as exact as the other columns allow


def test_whole_numbers_stay_whole(detector, suspects):
    frame = detector.nearest_normal(suspects).to_frame()
    visits = frame[frame["feature"].isin(["visits", "member", "version"])]["suggested"]
    assert len(visits)
    assert (visits == visits.round()).all()


def test_when_no_change_is_found(detector, suspects):
    nearest = detector.nearest_normal(suspects, max_changes=1)
    assert not nearest.found[3]
    assert nearest.changes[3] == ()
    assert np.isnan(nearest.new_score[3])
    assert nearest.text(3) == (
        "Row 3: no change of up to 1 feature was found that makes it normal."
    )
    assert not nearest.found[2]
    assert detector.nearest_normal(suspects, max_changes=2).found[2]


def test_text(detector, suspects):
    nearest = detector.nearest_normal(suspects)
    frame = nearest.to_frame()
    line = frame[frame["row"] == 1].iloc[0]
    assert nearest.text(1) == (
        f"Row 1 would be normal if visits were {line.suggested:.0f} instead of 40; the least "
        f"change is visits to {line.least:.0f}."
    )
    assert nearest.text(2).count(" instead of ") == 2
    normal = int(np.flatnonzero(~nearest.flagged)[0])
    assert nearest.text(normal) == f"Row {normal} is not flagged: nothing needs to change."
    *flagged, rest = nearest.text().split("\n")
    assert flagged == [nearest.text(int(row)) for row in np.flatnonzero(nearest.flagged)]
    assert rest == f"{60 - len(flagged)} rows are not flagged: nothing needs to change."


def test_nothing_flagged_and_one_feature():
    rows = np.random.default_rng(0).normal(size=(200, 1))
    detector = DiffInt(random_state=0, epochs=10, n_units=20, n_members=2).fit(rows)
    nearest = detector.nearest_normal(rows.mean(axis=0, keepdims=True))
    assert nearest.to_frame().empty
    assert list(nearest.to_frame().columns)[:4] == ["row", "feature", "value", "suggested"]
    far = detector.nearest_normal([[50.0]])
    assert far.found[0]
    assert far.changes[0][0].suggested < 5


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, None])
def test_bad_number_of_changes(detector, suspects, bad):
    with pytest.raises(InputError, match="max_changes"):
        detector.nearest_normal(suspects, max_changes=bad)


def test_frame_has_numeric_columns(detector, suspects):
    frame = detector.nearest_normal(suspects).to_frame()
    assert all(pd.api.types.is_numeric_dtype(frame[c]) for c in frame.columns if c != "feature")


def test_values_with_a_large_offset():
    rng = np.random.default_rng(0)
    rows = np.column_stack([1013 + rng.normal(0, 0.05, 500), rng.normal(size=500)])
    detector = DiffInt(random_state=0, epochs=10, n_units=30, false_positive_rate=0.05).fit(rows)
    nearest = detector.nearest_normal([[1013.3, 0.0]])
    (change,) = nearest.changes[0]
    assert change.feature == 0
    assert change.suggested == pytest.approx(1013, abs=0.1)
    assert 1013 < change.least < 1013.3
    assert f"x0 were {change.suggested} instead of 1013.3" in nearest.text(0)


def test_more_changes_than_candidates():
    rows = np.random.default_rng(0).normal(size=(200, 12))
    detector = DiffInt(random_state=0, epochs=5, n_units=20, n_members=2).fit(rows)
    assert "among its 8 most doubted" in detector.nearest_normal(
        np.full((1, 12), 50.0), max_changes=12
    ).text(0)


def test_a_value_that_all_similar_rows_miss():
    """Gusts are recorded in strong winds only, but here in a calm."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 3))
    x[x[:, 0] < 1.0, 2] = np.nan
    detector = DiffInt(**QUICK, false_positive_rate=0.05).fit(x)
    calm = np.column_stack([np.full((20, 2), -1.0), np.full(20, 50.0)])
    assert (detector.predict(calm) == -1).all()
    changes = detector.nearest_normal(calm)
    assert np.isfinite(changes.new_score[changes.found]).all()
