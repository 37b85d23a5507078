"""Thresholds that hold in each segment."""

import numpy as np
import pandas as pd
import pytest

from diffint import DiffInt
from diffint.core.errors import CalibrationWarning, InputError, InputTypeError, InputWarning

QUICK = {"epochs": 10, "random_state": 0, "false_positive_rate": 0.1}


def table(n, seed, names=("calm", "wild"), index=None):
    """Rows whose spread depends on the segment."""
    rng = np.random.default_rng(seed)
    segment = rng.choice(names, size=n)
    rows = rng.normal(size=(n, 3)) * np.where(segment == "wild", 3.0, 1.0)[:, None]
    frame = pd.DataFrame(rows, columns=["a", "b", "c"], index=index)
    return frame.assign(region=segment)


@pytest.fixture(scope="module")
def detector():
    return DiffInt(**QUICK).fit(table(1500, 0), segments="region")


def shares(frame, flagged):
    return [flagged[(frame["region"] == name).to_numpy()].mean() for name in ("calm", "wild")]


def test_the_rate_holds_in_each_segment(detector):
    new = table(4000, 1)
    assert shares(new, detector.predict(new) == -1) == pytest.approx([0.1, 0.1], abs=0.04)
    plain = DiffInt(**QUICK).fit(table(1500, 0).drop(columns="region"))
    without = shares(new, plain.predict(new.drop(columns="region")) == -1)
    assert without[0] < 0.03 < 0.15 < without[1]


def test_flagged_where_p_is_at_most_the_rate(detector):
    new = table(500, 2)
    flagged = detector.p_values(new) <= 0.1
    np.testing.assert_array_equal(detector.predict(new) == -1, flagged)
    np.testing.assert_array_equal(detector.decision_function(new) < 0, flagged)
    np.testing.assert_array_equal(detector.explain(new).flagged, flagged)


def test_the_column_of_segments_is_no_feature(detector):
    assert list(detector.feature_names_in_) == ["a", "b", "c"]
    new = table(50, 3)
    scores = detector.anomaly_score(new)
    np.testing.assert_array_equal(scores, detector.anomaly_score(new.drop(columns="region")))
    np.testing.assert_array_equal(
        scores, detector.anomaly_score(new[["region", "c", "b", "a"]][list(new)])
    )


def test_labels_beside_the_table(detector):
    train, new = table(1500, 0), table(300, 4)
    rows = train.drop(columns="region").to_numpy()
    beside = DiffInt(**QUICK).fit(rows, segments=train["region"].tolist())
    labels = new["region"].to_numpy()
    np.testing.assert_array_equal(
        beside.p_values(new.drop(columns="region").to_numpy(), labels), detector.p_values(new)
    )
    with pytest.raises(InputError, match=r"pass segments=, one label per row$"):
        beside.predict(new.drop(columns="region").to_numpy())


def test_a_column_can_be_a_feature_and_the_segments():
    train, new = table(600, 0), table(100, 4)
    both = DiffInt(**QUICK).fit(train, segments=train["region"])
    assert "region" in list(both.feature_names_in_)
    assert both.segment_column_ == "region"
    assert both.predict(new).shape == (100,)


def test_explanations_use_the_threshold_of_the_segment(detector, tmp_path):
    new = table(300, 5, index=pd.RangeIndex(300))
    why, nearest = detector.explain(new), detector.nearest_normal(new)
    assert len(np.unique(why.threshold)) == 2
    assert why.threshold_of(3) == why.threshold[3]
    flagged = np.flatnonzero(why.flagged)
    assert f"above the threshold of {why.threshold[flagged[0]]:.3g}"[:30] in why.text(flagged[0])
    assert (nearest.new_score[nearest.found] <= np.asarray(nearest.threshold)[nearest.found]).all()
    assert "thresholds of their segments" in why._repr_html_()
    why.plot(int(flagged[0]))
    page = detector.report(new, tmp_path / "r.html").read_text()
    assert "above the threshold of its segment" in page
    assert f"{len(flagged)} of 300 rows are flagged" in page


def test_select_and_the_model_file(detector, tmp_path):
    new = table(300, 6)
    new.iloc[:15, 0] += 25.0
    found = detector.select(new, 0.2)
    assert found.selected[:15].all()
    assert found.n_selected < 30
    detector.save(tmp_path / "m.diffint")
    loaded = DiffInt.load(tmp_path / "m.diffint")
    assert loaded.segment_column_ == "region"
    assert sorted(loaded.model_.calibration.segment_names) == ["calm", "wild"]
    np.testing.assert_array_equal(loaded.p_values(new), detector.p_values(new))
    np.testing.assert_array_equal(loaded.select(new, 0.2).bounds, found.bounds)


def test_a_segment_that_training_does_not_have(detector):
    new = table(100, 7)
    new.loc[[0, 1], "region"] = ["mars", None]
    with pytest.warns(InputWarning, match=r"2 rows are of segments that .* \(mars\)"):
        p_values = detector.p_values(new)
    overall = detector.model_.calibration.p_values(detector.anomaly_score(new))
    np.testing.assert_array_equal(p_values[:2], overall[:2])


def test_small_segments_share_a_threshold():
    train = table(400, 0)
    train.loc[:0, "region"] = "single"
    train.loc[1:6, "region"] = "few"
    message = r"2 of 4 segments have .* the 9 .*: few \(6\) and single \(1\)"
    with pytest.warns(CalibrationWarning, match=message):
        detector = DiffInt(**QUICK).fit(train, segments="region")
    new = table(50, 1).assign(region="single")
    overall = detector.model_.calibration.p_values(detector.anomaly_score(new))
    np.testing.assert_array_equal(detector.p_values(new), overall)
    # With a higher rate, fewer rows are enough.
    detector.set_params(false_positive_rate=0.4)
    assert (detector.p_values(new.assign(region="few")) != overall).any()


def test_whole_numbers_are_the_same_segment_with_and_without_decimals():
    train = table(300, 0, names=["1", "2"])
    train["region"] = train["region"].astype(int)
    detector = DiffInt(**QUICK).fit(train, segments="region")
    new = table(50, 1, names=["1", "2"])
    expected = detector.p_values(new.assign(region=new["region"].astype(int)))
    np.testing.assert_array_equal(
        detector.p_values(new.assign(region=new["region"].astype(float))), expected
    )
    np.testing.assert_array_equal(detector.p_values(new), expected)


@pytest.mark.parametrize(
    ("segments", "error", "message"),
    [
        ("nope", InputError, "segments='nope' is not a column"),
        (["a"] * 3, InputError, "3 labels, but the table has 60 rows"),
        ([None] + ["a"] * 59, InputError, "no label for 1 row, the first of them row 0"),
        (7, InputTypeError, "one label per row"),
        (pd.Series(["a"] * 60, index=range(1, 61)), InputError, "different indexes"),
    ],
)
def test_wrong_segments(segments, error, message):
    with pytest.raises(error, match=message):
        DiffInt(**QUICK).fit(table(60, 0), segments=segments)


def test_wrong_segments_of_new_rows(detector):
    new = table(20, 1)
    with pytest.raises(InputError, match="a table with the column 'region'"):
        detector.predict(new.drop(columns="region"))
    with pytest.raises(InputTypeError, match="is the text 'region'"):
        detector.predict(new, segments="region")
    with pytest.raises(InputError, match="cannot be combined"):
        detector.p_values(new, weights="estimate")
    plain = DiffInt(**QUICK).fit(new.drop(columns="region"))
    with pytest.raises(InputError, match="fitted without them"):
        plain.predict(new.drop(columns="region"), segments=new["region"])


def test_groups_count_once_in_every_set_of_segments():
    """Subjects with a row in each of five segments: the overall threshold has 40 of them."""
    rng = np.random.default_rng(0)
    subject, segment = np.repeat(np.arange(40), 5), np.tile(np.arange(5), 40)
    rows = rng.normal(size=(200, 3)) + np.repeat(rng.normal(size=(40, 3)), 5, axis=0)
    detector = DiffInt(epochs=2, random_state=0, false_positive_rate=0.1)
    detector.fit(rows, groups=subject, segments=segment)
    calibration = detector.model_.calibration
    assert calibration.n_groups == 40
    assert [part.n_groups for part in calibration.by_segment()] == [40] * 5
    assert calibration.within(np.array([0, 1])).n_groups == 40


def test_nothing_is_proven_for_rows_that_are_not_compared_with_their_own_segment():
    train = table(3000, 0)
    train.loc[:5, "region"] = "few"
    settings = {**QUICK, "calibration": "holdout", "false_positive_rate": 0.05}
    with pytest.warns(CalibrationWarning, match="few"):
        detector = DiffInt(**settings).fit(train, segments="region")
    new = table(100, 1)
    assert detector.select(new).proven
    assert not detector.select(new.assign(region="few")).proven
    with pytest.warns(InputWarning, match="segments"):
        assert not detector.select(new.assign(region="mars")).proven
    suspicious = DiffInt(**settings, suspected_share=0.05).fit(train.drop(columns="region"))
    assert not suspicious.select(new.drop(columns="region")).proven


def test_other_labels_than_those_of_a_column_are_not_taken_from_it():
    train, new = table(400, 0), table(50, 1)
    halves = pd.cut(train["a"], [-np.inf, 0.0, np.inf], labels=["low", "high"])
    assert halves.name == "a"
    detector = DiffInt(**QUICK).fit(train[["a", "b", "c"]], segments=halves)
    with pytest.raises(InputError, match="pass segments="):
        detector.predict(new[["a", "b", "c"]])
    assert detector.fit_predict(train[["a", "b", "c"]], segments=halves).shape == (400,)


def test_labels_with_the_name_of_a_column_of_later_tables():
    train, new = table(400, 0), table(50, 1)
    detector = DiffInt(**QUICK).fit(train.drop(columns="region"), segments=train["region"])
    assert detector.segment_column_ == "region"
    expected = detector.predict(new.drop(columns="region"), segments=new["region"])
    np.testing.assert_array_equal(detector.predict(new), expected)


def test_a_rate_that_segments_cannot_show_is_said_without_a_new_fit(detector):
    with pytest.warns(CalibrationWarning, match="2 of 2 segments have fewer than the 1,999"):
        detector.set_params(false_positive_rate=0.0005).predict(table(5, 1))
    detector.set_params(false_positive_rate=0.1)


def test_unused_levels_are_no_segments():
    train = table(400, 0)
    labels = pd.Categorical(train["region"], categories=["calm", "wild", "unused"])
    detector = DiffInt(**QUICK).fit(train.drop(columns="region"), segments=labels)
    assert detector.model_.calibration.segment_names == ("calm", "wild")


def test_columns_that_are_numbers():
    train = table(400, 0).set_axis([0, 1, 2, 3], axis=1)
    named = DiffInt(**QUICK).fit(train, segments=3)
    beside = DiffInt(**QUICK).fit(train[[0, 1, 2]], segments=train[3])
    np.testing.assert_array_equal(named.predict(train), beside.predict(train))
