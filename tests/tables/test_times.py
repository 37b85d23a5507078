"""Columns of times: their parts, zones, formats, and what is not a time."""

import datetime
import json
import re

import numpy as np
import pandas as pd
import pytest

from diffint import DiffInt
from diffint.core.errors import InputError, InputTypeError, InputWarning
from diffint.core.formatting import moment_text
from diffint.explain.nearest_normal import Change, NearestNormal
from diffint.tables.times import find_times, with_time_parts

from ..conftest import QUICK
from ..show.report.tables import data_of

DAYS = "time (days since 2024-03-01)"


def make_log(n_rows=300, seed=0, days=60.0):
    """A load that is high from 8 to 18 h."""
    rng = np.random.default_rng(seed)
    time = pd.Series(
        pd.Timestamp("2024-03-01") + pd.to_timedelta(rng.uniform(0, days, n_rows), "D")
    )
    load = np.where(time.dt.hour.between(8, 18), 10.0, 1.0) + 0.3 * rng.normal(size=n_rows)
    return pd.DataFrame({"time": time.dt.floor("s"), "load": load, "heat": rng.normal(size=n_rows)})


@pytest.fixture(scope="module")
def log():
    return make_log()


@pytest.fixture(scope="module")
def detector(log):
    return DiffInt(n_units=40, epochs=60, n_members=3, random_state=0).fit(log)


def features_of(time, **frame):
    return DiffInt(**QUICK).fit(pd.DataFrame({"time": time, **frame})).model_.feature_names


def test_a_time_becomes_its_parts(detector):
    assert list(detector.model_.feature_names) == [
        *("time (hour)", "time (weekday)", DAYS, "load", "heat")
    ]
    assert list(detector.feature_names_in_) == ["time", "load", "heat"]
    hours, weekdays = (detector.model_.categories[j] for j in (0, 1))
    assert sorted(map(int, hours)) == list(range(24))
    assert "Sunday" in weekdays


@pytest.mark.parametrize(
    ("day", "weekday"),
    [
        ("1969-07-20", "Sunday"),
        ("1970-01-01", "Thursday"),
        ("2000-01-01", "Saturday"),
        ("2024-02-29", "Thursday"),
        ("2024-12-31", "Tuesday"),
    ],
)
def test_the_parts_of_known_days(day, weekday):
    times = pd.date_range(pd.Timestamp(day) - pd.Timedelta(days=400), periods=4_000, freq="5h")
    frame = pd.DataFrame({"time": [*times, pd.Timestamp(day + " 23:59:59.999")]})
    features = with_time_parts(frame, find_times(frame)).iloc[-1]
    month = datetime.date.fromisoformat(day).strftime("%B")
    assert features.iloc[:3].tolist() == ["23", weekday, month]


@pytest.mark.parametrize("shift", [0, 70, 1000])
def test_a_load_at_the_wrong_hour_is_anomalous(detector, shift):
    rows = make_log(200, seed=1)
    rows["time"] += pd.Timedelta(days=shift)
    night = rows[~rows["time"].dt.hour.between(6, 20)]
    wrong = detector.anomaly_score(night.assign(load=10.0))
    assert np.median(wrong) > np.quantile(detector.anomaly_score(night), 0.9)


@pytest.mark.parametrize("days", [10.0, 31.0, 1095.0])
def test_rows_of_other_times_are_flagged_as_rarely_as_promised(days):
    """Also if the weekdays, or months, of the last training days were others."""
    settings = {"n_units": 40, "epochs": 20, "n_members": 3, "random_state": 0}
    detector = DiffInt(**settings, false_positive_rate=0.05).fit(make_log(1000, days=days))
    rows = make_log(1000, seed=1, days=days)
    for shift in (int(days) + 1, 4000, -int(days) - 1):  # whole days, so that the hours remain
        others = rows.assign(time=rows["time"] + pd.Timedelta(days=shift))
        assert (detector.predict(others) == -1).mean() < 0.1


def test_a_missing_time_is_more_remarkable_than_a_later_one(detector, log):
    rows = log.iloc[:100]
    later = detector.anomaly_score(rows.assign(time=rows["time"] + pd.Timedelta(days=700)))
    assert (detector.anomaly_score(rows.assign(time=pd.NaT)) > later).mean() > 0.9


def test_missing_times_are_missing_cells(detector, log):
    rows = log.iloc[:5].assign(time=pd.NaT)
    assert np.isfinite(detector.anomaly_score(rows)).all()
    assert np.isfinite(detector.anomaly_score(rows.assign(time=None))).all()


@pytest.mark.parametrize(
    "written",
    [
        lambda time: time.astype(str),
        lambda time: time.dt.strftime("%Y-%m-%dT%H:%M:%S"),
        lambda time: time.astype("datetime64[s]"),
        lambda time: pd.Series(list(time.dt.to_pydatetime()), dtype=object),
        lambda time: time.astype("timestamp[ms][pyarrow]"),
    ],
)
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_every_form_of_the_same_times_gives_the_same_scores(detector, log, written):
    rows = log.assign(time=written(log["time"]))
    np.testing.assert_array_equal(detector.anomaly_score(rows), detector.anomaly_score(log))
    model = DiffInt(n_units=40, epochs=2, n_members=1, random_state=0).fit(rows).model_
    assert model.kinds.times["time"] == detector.model_.kinds.times["time"]


def test_a_file_keeps_the_times(detector, log, tmp_path):
    detector.save(tmp_path / "m.diffint")
    loaded = DiffInt.load(tmp_path / "m.diffint")
    assert loaded.model_.kinds == detector.model_.kinds
    np.testing.assert_array_equal(loaded.anomaly_score(log), detector.anomaly_score(log))


def test_only_parts_that_repeat_are_read(log):
    morning = pd.date_range("2024-03-01 06:00", periods=60, freq="5min")
    assert features_of(morning) == (DAYS,)
    days = [datetime.date(2024, 3, 1) + datetime.timedelta(days=i) for i in range(60)]
    assert features_of(days) == ("time (weekday)", DAYS)
    years = pd.date_range("2024-03-01", periods=60, freq="20D")
    assert features_of(years) == ("time (weekday)", "time (month)", DAYS)


def test_hours_are_those_of_the_training_zone(log):
    zoned = log.assign(time=log["time"].dt.tz_localize("Asia/Tokyo"))
    detector = DiffInt(**QUICK).fit(zoned)
    assert detector.model_.kinds.times["time"].zone == "Asia/Tokyo"
    elsewhere = zoned.assign(time=zoned["time"].dt.tz_convert("America/New_York"))
    np.testing.assert_array_equal(detector.anomaly_score(elsewhere), detector.anomaly_score(zoned))
    with pytest.raises(InputTypeError, match="'time' have no time zone, but had the zone"):
        detector.anomaly_score(log)


def test_texts_with_different_zones_are_converted_to_one():
    time = [f"2024-03-{day:02}T05:00:00{'+01:00' if day % 2 else '-05:00'}" for day in range(1, 31)]
    assert DiffInt(**QUICK).fit(pd.DataFrame({"time": time})).model_.kinds.times["time"].zone


@pytest.mark.parametrize(
    ("time", "message"),
    [
        (1.0, "had times in training and now has other values .such as 1.0"),
        ("yesterday", "such as 'yesterday'"),
        (pd.Timestamp("2024-03-05", tz="UTC"), "have a time zone, but had none in training"),
    ],
)
def test_other_values_at_scoring(detector, log, time, message):
    with pytest.raises(InputTypeError, match=message):
        detector.anomaly_score(log.iloc[:3].assign(time=time))


def test_an_array_cannot_have_times(detector):
    with pytest.raises(InputError, match="needs times in 'time'; pass a data frame"):
        detector.anomaly_score(np.zeros((3, 3)))
    table = pd.DataFrame({"x": np.arange(60.0), "time": pd.date_range("2024", periods=60)})
    detector = DiffInt(**QUICK).fit(table)
    with pytest.raises(InputError, match="needs times in 'time'; pass a data frame"):
        detector.anomaly_score(np.zeros((3, 2)))


def test_texts_that_are_not_all_times_are_a_category():
    time = ["2024-03-01", "2024-03-02", "unknown"] * 20
    assert features_of(time, x=np.arange(60.0)) == ("time", "x")


def test_a_column_named_as_a_category_is_no_time():
    table = pd.DataFrame({"time": ["2024-03-01", "2024-03-02"] * 30, "x": np.arange(60.0)})
    assert DiffInt(**QUICK, categories=["time"]).fit(table).model_.categories[0] == (
        *("2024-03-01", "2024-03-02"),
    )


def test_times_of_different_zones_as_objects_are_converted_to_one(log):
    zones = ["Asia/Tokyo", "UTC"] * 150
    time = [time.tz_localize(zone) for time, zone in zip(log["time"], zones, strict=True)]
    mixed = log.assign(time=pd.Series(time, dtype=object))
    assert DiffInt(**QUICK).fit(mixed).model_.kinds.times["time"].zone == "UTC"


def test_a_column_without_any_time_is_ignored_with_a_warning(log):
    nothing = log.assign(time=pd.Series([pd.NaT] * len(log), dtype="datetime64[ns]"))
    with pytest.warns(InputWarning, match="no value in the training rows and is ignored: 'time'"):
        detector = DiffInt(**QUICK).fit(nothing)
    assert np.isfinite(detector.anomaly_score(nothing)).all()


def test_blank_texts_are_missing_times(detector, log):
    rows = log.iloc[:3]
    np.testing.assert_array_equal(
        detector.anomaly_score(rows.assign(time=["", " ", None])),
        detector.anomaly_score(rows.assign(time=pd.NaT)),
    )


@pytest.mark.parametrize(
    ("names", "shown"), [([0, 1, 2], "x0"), ([5, 6, 7], "5"), ([("a", "b"), "c", 1], "('a', 'b')")]
)
def test_times_in_columns_whose_names_are_no_texts(log, names, shown):
    table = log.set_axis(pd.Index(names, tupleize_cols=False), axis=1)
    detector = DiffInt(**QUICK).fit(table)
    assert detector.model_.feature_names[0] == f"{shown} (hour)"
    np.testing.assert_array_equal(
        detector.anomaly_score(table), DiffInt(**QUICK).fit(log).anomaly_score(log)
    )


def test_a_column_with_the_name_of_a_part_of_a_time(log):
    with pytest.raises(InputError, match=r"'time \(hour\)' has the name of a feature .* 'time'"):
        DiffInt(**QUICK).fit(log.rename(columns={"heat": "time (hour)"}))


@pytest.mark.parametrize("wrong", ["yesterday", "2024-02-31"])
def test_a_few_other_texts_among_times_are_an_error(log, wrong):
    texts = log["time"].astype(str)
    texts[7] = wrong
    with pytest.raises(InputTypeError, match=f"'time' has times, but also other text .*'{wrong}'"):
        DiffInt(**QUICK).fit(log.assign(time=texts))
    named = DiffInt(**QUICK, categories=["time"])
    with pytest.warns(InputWarning):
        assert named.fit(log.assign(time=texts)).model_.feature_names[0] == "time"


def test_explanations_show_times_beyond_the_training_times_as_they_are(detector, log):
    rows = log.iloc[:2].assign(time=pd.to_datetime(["2034-03-01", "2014-03-01"]), heat=99.0)
    why = detector.explain(rows)
    j = why.feature_names.index(DAYS)
    beyond = "beyond the training times, which is not taken as odd"
    assert why.reason(0, j) == f"time = 2034-03-01, {beyond}."
    assert why.reason(1, j) == f"time = 2014-03-01, {beyond}."
    assert "time =" not in why.brief(0, n_reasons=5)
    assert "time missing" not in why.text()
    assert not any(reason.feature == j for row in (0, 1) for reason in why.reasons_of(row, 5))
    assert (0, j) not in detector.explain(log.iloc[:2]).new_texts


def test_broken_text_beside_times(log):
    names = pd.Series(["caf\udce9", "bar"] * 150, dtype=object)  # not valid Unicode
    detector = DiffInt(**QUICK).fit(log.assign(place=names))
    why = detector.explain(log.assign(place=names))
    assert "caf\\udce9" in why.reason(0, why.feature_names.index("place"))


DATE = r"\d{4}-\d\d-\d\d(?: \d\d:\d\d(?::\d\d(?:\.\d+)?)?)?"


def test_texts_have_dates(tmp_path):
    rng = np.random.default_rng(0)
    days = rng.uniform(0, 400, 900)
    sold = pd.Timestamp("2023-03-01") + pd.to_timedelta(days, unit="D")
    table = pd.DataFrame({"sold": sold, "meter": 100 * days + rng.normal(0, 200, 900)})
    table["x"] = rng.normal(size=900)
    detector = DiffInt(**QUICK, false_positive_rate=0.02).fit(table)
    rows = table.head(60).copy()
    rows["sold"] = rows["sold"].iloc[::-1].to_numpy()
    rows.loc[0, "meter"] = 90_000
    why, nearest = detector.explain(rows), detector.nearest_normal(rows)
    found = 0
    for row in np.flatnonzero(why.flagged).tolist():
        texts = [*why.reasons(row), why.brief(row), nearest.text(row)]
        assert not any("days since" in text for text in texts)
        for reason in why.reasons_of(row):
            j = reason.feature
            if why.feature_names[j].startswith("sold (days") and reason.kind.value == "range":
                found += 1
                text = why.reason(row, j)
                own, low, up = re.search(
                    rf"^sold = ({DATE}), but .* have ({DATE}) to ({DATE}) \(from", text
                ).groups()
                assert own < low or own > up
                assert str(rows["sold"].iloc[row]).startswith(own)
            for condition in reason.conditions:
                if why.feature_names[condition.feature].startswith("sold (days"):
                    found += 1
                    pattern = rf"with .*sold ({DATE}) to ({DATE}) \(here ({DATE})\)"
                    low, up, own = re.search(pattern, why.reason(row, j)).groups()
                    assert low <= own <= up
    assert found >= 3
    page = detector.report(rows, tmp_path / "page.html").read_text()
    data = data_of(page)
    assert "sold" in data["names"]
    assert "days since" not in json.dumps(data)


def test_a_change_of_a_time_is_a_moment():
    names = ("sold (days since 2023-03-01)", "x")
    change = Change(0, 3.25, 40.0, 39.5)
    nearest = NearestNormal(
        names, 0.1, np.array([1.0]), np.array([0.05]), ((change,),), 3, starts={0: "2023-03-01"}
    )
    assert nearest.text(0) == (
        "Row 0 would be normal if sold were 2023-04-10 instead of 2023-03-04."
    )


@pytest.mark.parametrize(
    ("days", "unit", "text"),
    [
        (130.99999999, "D", "2023-07-09"),
        (130.99999999, "ms", "2023-07-09 23:59:59.999"),
        (0.5, "m", "2023-03-01 12:00"),
        (-1.5, "s", "2023-02-27 12:00:00"),
        (float("nan"), "D", "missing"),
    ],
)
def test_texts_of_moments(days, unit, text):
    assert moment_text("2023-03-01", days, unit) == text


def test_times_within_a_day_and_within_seconds():
    rng = np.random.default_rng(0)
    for unit, length in (("h", 10), ("ms", 3_000)):
        at = pd.Timestamp("2024-03-01 08:00") + pd.to_timedelta(rng.uniform(0, length, 600), unit)
        place = (at - at.min()) / (at.max() - at.min())
        table = pd.DataFrame({"at": at, "x": place + rng.normal(0, 0.02, 600)})
        detector = DiffInt(**QUICK, false_positive_rate=0.02).fit(table)
        rows = table.assign(x=rng.permutation(table["x"]))
        texts = [text for i in range(200) for text in detector.explain(rows).reasons(i)]
        spans = [m for t in texts for m in re.findall(rf"({DATE}) to ({DATE})", t)]
        assert spans
        assert all(low < up for low, up in spans)
        assert not re.search(r"at +exactly", detector.patterns().text())


def test_a_time_in_days_is_not_in_another_unit():
    rng = np.random.default_rng(0)
    days = rng.uniform(0, 400, 900)
    table = pd.DataFrame({"other": 100 * days + rng.normal(0, 200, 900)})
    table["sold"] = pd.Timestamp("2023-03-01") + pd.to_timedelta(days, "D")
    detector = DiffInt(**QUICK).fit(table)
    rows = table.head(60).copy()
    rows["sold"] = pd.Timestamp("2023-03-01") + pd.to_timedelta(days[:60] / 10, "D")
    why = detector.explain(rows)
    assert not any(
        "as much" in text or " of it" in text for i in range(60) for text in why.reasons(i)
    )


def test_times_beyond_the_training_times_on_its_last_day():
    at = pd.date_range("2024-03-01 08:00", "2024-03-01 17:59", periods=300)
    detector = DiffInt(**QUICK).fit(pd.DataFrame({"at": at, "x": np.arange(300.0)}))
    why = detector.explain(pd.DataFrame({"at": [pd.Timestamp("2024-03-01 23:00")], "x": 5.0}))
    j = next(j for j, name in enumerate(why.feature_names) if "days since" in name)
    assert why.reason(0, j).startswith("at = 2024-03-01 23:00, beyond the training times")


@pytest.mark.parametrize("missing", [None, float("nan"), ""])
@pytest.mark.parametrize("kind", ["text", "date"])
def test_a_column_with_some_missing_times(missing, kind):
    days = [datetime.date(2024, 3, 1) + datetime.timedelta(days=i) for i in range(60)]
    if kind == "date" and missing == "":
        return
    cells = [
        missing if i % 9 == 4 else str(day) if kind == "text" else day for i, day in enumerate(days)
    ]
    frame = pd.DataFrame({"time": pd.Series(cells, dtype=object)})
    assert find_times(frame)["time"].parts == ("weekday",)
    found = with_time_parts(frame, find_times(frame))
    assert found["time (weekday)"].isna().tolist() == [i % 9 == 4 for i in range(60)]


@pytest.mark.parametrize(("n_texts", "is_error"), [(19, False), (20, True)])
def test_twenty_different_texts_of_which_nearly_all_are_times(n_texts, is_error):
    cells = [f"2024-03-{day:02}" for day in range(1, n_texts)] + ["unknown"]
    frame = pd.DataFrame({"time": cells * 3})
    if is_error:
        with pytest.raises(InputTypeError, match="'time' has times, but also other text"):
            find_times(frame)
    else:
        assert find_times(frame) == {}
