"""`refresh` and `compare`: the same patterns on recent rows, and what has moved."""

import numpy as np
import pandas as pd
import pytest

from diffint import CalibrationWarning, DiffInt, InputError
from diffint.fit.unit_matching import match_units

SMALL = {"n_units": 30, "n_members": 2, "epochs": 40, "random_state": 0}


def table(n_rows=600, seed=0, shift=0.0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, 3))
    return pd.DataFrame(
        {"a": x[:, 0] + 3 * shift, "b": x[:, 0] + 0.3 * x[:, 1], "c": 10 + 2 * x[:, 2]}
    )


def with_city(frame, cities, seed=0):
    rng = np.random.default_rng(seed)
    place = np.digitize(frame["b"], np.quantile(frame["b"], np.linspace(0, 1, len(cities) + 1)))
    codes = np.clip(place - 1, 0, len(cities) - 1)
    codes = np.where(rng.random(len(frame)) < 0.1, rng.integers(0, len(cities), len(frame)), codes)
    return frame.assign(city=np.array(cities, dtype=object)[codes])


@pytest.fixture(scope="module")
def fitted():
    return DiffInt(**SMALL).fit(table())


@pytest.fixture
def detector(fitted, tmp_path):
    fitted.save(tmp_path / "m.diffint")
    detector = DiffInt.load(tmp_path / "m.diffint")
    return detector.set_params(random_state=0)


def test_units_stay_the_same_and_the_report_says_what_moved(detector):
    former = detector.model_
    found = detector.refresh(table(seed=1, shift=1.0))
    assert detector.model_ is not former
    for before, now in zip(former.members, detector.model_.members, strict=True):
        match = match_units((before.center, before.half_width), (now.center, now.half_width))
        assert (match == np.arange(30)).all()
    moved = found.features[0]
    assert moved.feature == "a"
    assert moved.median == pytest.approx(3.0, abs=0.3)
    frame = found.to_frame()
    assert list(frame.columns[:6]) == [
        *("pattern", "feature", "was_lower", "was_upper", "lower", "upper"),
    ]
    assert (frame["feature"] == "a").mean() > 0.8
    assert frame.loc[frame["feature"] == "a", "shift_sd"].median() == pytest.approx(3.0, abs=1.0)
    assert found.was_flagged > 0.9
    assert found.flagged < 0.1
    assert "a: median" in found.text()
    assert found.to_dict()["ranges"][0]["feature"] == "a"
    assert "<table>" in found._repr_html_()


def test_rows_that_did_not_move_hardly_move_ranges(detector):
    found = detector.refresh(table(seed=1))
    assert len(found.ranges) < 0.01 * found.n_ranges
    assert "No feature has moved much." in found.text()


def test_a_refresh_takes_fewer_epochs_and_can_be_repeated_and_saved(detector, tmp_path):
    first = detector.model_
    detector.refresh(table(seed=1))
    detector.refresh(table(seed=2))
    assert detector.model_.training.epochs == 4
    assert detector.model_.refreshed_from[1] == first.identity
    detector.save(tmp_path / "new.diffint")
    again = DiffInt.load(tmp_path / "new.diffint")
    assert again.model_.refreshed_from == detector.model_.refreshed_from
    old = DiffInt.load(tmp_path / "m.diffint")
    assert again.compare(old).same_units
    assert again.compare(detector).identical
    other = DiffInt(**SMALL).fit(table(seed=3))
    assert not other.compare(old).same_units
    assert "not related" in other.compare(old).text()


def test_the_same_seed_gives_the_same_model(fitted, tmp_path):
    fitted.save(tmp_path / "m")
    two = [DiffInt.load(tmp_path / "m").set_params(random_state=5) for _ in range(2)]
    for one in two:
        one.refresh(table(seed=1))
    assert (
        two[0].anomaly_score(table(seed=2)).tolist() == two[1].anomaly_score(table(seed=2)).tolist()
    )


@pytest.mark.parametrize(
    "options",
    [{"decoder": "certified"}, {"scaling": "standard"}, {"calibration": "holdout"}],
)
def test_other_settings(options):
    detector = DiffInt(**SMALL, **options).fit(table())
    detector.refresh(table(seed=1, shift=0.3))
    assert detector.predict(table(500, seed=2, shift=0.3)).mean() > 0.9
    assert detector.model_.config == DiffInt(**SMALL, **options).fit(table()).model_.config


def test_values_of_categories_keep_their_order_and_new_ones_are_learned():
    old = with_city(table(), ["Bern", "Lyon", "Oslo", "Rome"])
    detector = DiffInt(**SMALL).fit(old)
    before = detector.model_.categories[3]
    detector.accept(old[:1].assign(a=40.0))
    detector.accept(old[:1].assign(c=-200.0, city="Rome"))
    recent = with_city(table(seed=1), ["Bern", "Kyiv", "Oslo", "Rome"])
    found = detector.refresh(recent)
    now = detector.model_.categories[3]
    assert set(now) == {"Bern", "Kyiv", "Oslo", "Rome"}
    assert [v for v in before if v in now] == [v for v in now if v in before]
    city = next(change for change in found.features if change.feature == "city")
    assert (city.new_values, city.lost_values) == (("Kyiv",), ("Lyon",))
    assert "new: Kyiv" in found.text()
    # Accepted rows are still accepted, with the codes that their values have now.
    first = old["city"][0]
    assert detector.accepted["city"].tolist() == [first if first in now else "a new value", "Rome"]


def test_only_new_values():
    detector = DiffInt(**SMALL).fit(with_city(table(), ["Bern", "Lyon", "Oslo"]))
    found = detector.refresh(with_city(table(seed=1), ["Kyiv", "Riga"]))
    assert found.was_flagged > 0.5
    assert found.flagged < 0.2
    assert set(detector.model_.categories[3]) == {"Kyiv", "Riga"}


def test_times_keep_their_features():
    def timed(seed, start):
        times = pd.date_range(start, periods=600, freq="h")
        return table(seed=seed).assign(when=times)

    detector = DiffInt(**SMALL).fit(timed(0, "2024-01-01"))
    names = detector.model_.feature_names
    detector.refresh(timed(1, "2024-02-01"))
    assert detector.model_.feature_names == names
    assert detector.model_.kinds.times["when"].days == pytest.approx(31 + 25, abs=0.1)


def test_segments_and_marks(tmp_path):
    rows = table().assign(shop=np.resize(["x", "y"], 600))
    detector = DiffInt(**SMALL, false_positive_rate=0.1).fit(rows, segments="shop")
    recent = table(seed=1, shift=1.0).assign(shop=np.resize(["x", "y", "z"], 600))
    with pytest.warns(UserWarning, match="segments that the training rows do not have"):
        detector.refresh(recent, anomalies=np.arange(600) < 20, groups=np.arange(600))
    assert detector.model_.calibration.segment_names == ("x", "y", "z")
    assert detector.model_.training.n_known_anomalies == 20
    assert detector.segment_column_ == "shop"
    assert len(detector.predict(recent)) == 600


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda t: t.drop(columns="a"), "a"),
        (lambda t: t.rename(columns={"a": "z"}), "z"),
        (lambda t: t[:0], "0 sample|minimum of 1"),
        (lambda t: t[:1], "at least 2"),
        (lambda t: t * np.nan, "any value"),
        (lambda t: t.assign(a="text"), "text"),
        (lambda t: t.assign(a=np.inf), "infinity"),
        (lambda t: t.to_numpy()[:, :2], "features"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_bad_tables_keep_the_former_model(detector, wrong, message):
    former, scores = detector.model_, detector.anomaly_score(table(20, seed=5))
    recent = wrong(table(seed=1))
    with pytest.raises(ValueError, match=message):
        detector.refresh(recent)
    assert detector.model_ is former
    assert detector.anomaly_score(table(20, seed=5)).tolist() == scores.tolist()


def test_an_interrupt_keeps_the_former_model(detector, monkeypatch):
    detector.predict(table(20, seed=2))
    former, state = detector.model_, set(vars(detector))

    def interrupt(*_):
        raise KeyboardInterrupt

    # Before the model is made, and after.
    for place in ("fit.pipeline.calibrate", "explain.comparison.compare_models"):
        with monkeypatch.context() as patch:
            patch.setattr(f"diffint.{place}", interrupt)
            with pytest.raises(KeyboardInterrupt):
                detector.refresh(table(seed=1))
    assert detector.model_ is former
    assert set(vars(detector)) == state
    assert len(detector.predict(table(seed=2))) == 600


def test_before_a_fit():
    with pytest.raises(ValueError, match="not fitted"):
        DiffInt().refresh(table())


@pytest.mark.parametrize("part", [slice(None), slice(100, 600)])
@pytest.mark.filterwarnings("error::diffint.core.errors.CalibrationWarning")
def test_rows_that_the_model_has_seen_are_recognised(detector, part):
    with pytest.warns(CalibrationWarning, match="rows that the model was trained on"):
        detector.refresh(table()[part])


@pytest.mark.filterwarnings("error::diffint.core.errors.CalibrationWarning")
def test_new_rows_are_not_taken_for_known_ones(detector):
    detector.refresh(table(seed=1))


def test_few_rows(detector):
    detector.refresh(table(30, seed=1))
    assert detector.model_.training.n_rows == 30


def test_compare_names_features_and_settings(fitted):
    other = DiffInt(**{**SMALL, "n_units": 20}).fit(table().rename(columns={"a": "new"}))
    found = other.compare(fitted)
    assert (found.added, found.removed) == (("new",), ("a",))
    assert found.settings == {"n_units": (30, 20)}
    assert "Features added: new." in found.text()
    assert fitted.compare(fitted).text() == "The two models are the same."
    with pytest.raises((ValueError, InputError)):
        fitted.compare(DiffInt())
    with pytest.raises(InputError, match="load the file of a model with DiffInt"):
        fitted.compare("former.diffint")


def test_a_constant_that_varies_is_named():
    detector = DiffInt(**SMALL).fit(table().assign(c=5.0))
    assert "c: 5–95 % range 5 → " in detector.refresh(table(seed=1)).text()
    assert "c: median" in detector.refresh(table(seed=2).assign(c=5.0)).text()


def odd_table(n_rows, seed, cities=("Bern", "Lyon", "Oslo")):
    """Whole numbers, a column that is mostly zero, a long tail and a category."""
    rng = np.random.default_rng(seed)
    hour = rng.integers(1, 13, n_rows)
    rain = np.where(rng.random(n_rows) < 0.94, 0.0, rng.integers(1, 40, n_rows) / 100)
    delay = np.exp(rng.normal(size=n_rows)) * hour
    city = np.array(cities, dtype=object)[rng.integers(0, len(cities), n_rows)]
    return pd.DataFrame({"hour": hour, "rain": rain, "delay": delay, "city": city})


@pytest.fixture(scope="module")
def odd():
    return DiffInt(**SMALL).fit(odd_table(1200, 0))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_nothing_is_reported_of_rows_like_the_former_ones(odd, tmp_path, seed):
    odd.save(tmp_path / "m.diffint")
    detector = DiffInt.load(tmp_path / "m.diffint").set_params(random_state=0)
    found = detector.refresh(odd_table(1200, seed))
    assert "No feature has moved much." in found.text()
    assert not any(change.moved for change in found.features)
    assert len(found.ranges) <= 0.05 * found.n_ranges
    assert "pattern " not in found.text()
    for shift in found.ranges:
        assert shift.was_values != shift.values or not shift.values


def test_new_values_in_many_rows_are_named_with_their_share_before_small_shifts(odd, tmp_path):
    odd.save(tmp_path / "m.diffint")
    detector = DiffInt.load(tmp_path / "m.diffint").set_params(random_state=0)
    recent = odd_table(1200, 4)
    recent["hour"] += 1
    recent.loc[recent["city"] == "Oslo", "city"] = "Kyiv"
    found = detector.refresh(recent)
    share = (recent["city"] == "Kyiv").mean()
    first = found.features[0]
    assert (first.feature, first.new_values, first.lost_values) == ("city", ("Kyiv",), ("Oslo",))
    assert first.new_share == pytest.approx(share)
    assert f"city: new: Kyiv ({share:.0%}".replace("%", " %") in found.text()
    # The ranges of features that moved come before all others.
    moved = [change.feature for change in found.features if change.moved]
    places = [shift.feature in moved for shift in found.ranges]
    assert places == sorted(places, reverse=True)


def test_former_groups_that_are_not_named_again_give_a_warning():
    rows = table()
    detector = DiffInt(**SMALL, false_positive_rate=0.1).fit(rows, groups=np.arange(600) // 20)
    with pytest.warns(CalibrationWarning, match="former model came in groups of about 20"):
        detector.refresh(table(seed=1))


def test_other_shares_of_values_are_named(odd, tmp_path):
    odd.save(tmp_path / "m.diffint")
    detector = DiffInt.load(tmp_path / "m.diffint").set_params(random_state=0)
    before, recent = odd_table(1200, 0), odd_table(1200, 5)
    recent.loc[recent.index % 2 == 0, "city"] = "Lyon"
    first = detector.refresh(recent).features[0]
    assert (first.feature, first.shares[0].value, first.moved) == ("city", "Lyon", True)
    assert first.shares[0].was_share == pytest.approx((before["city"] == "Lyon").mean())
    assert first.shares[0].share == pytest.approx((recent["city"] == "Lyon").mean())
    odd.save(tmp_path / "old.diffint")
    text = detector.compare(DiffInt.load(tmp_path / "old.diffint")).text()
    shown = [f"{(t['city'] == 'Lyon').mean():.0%}".replace("%", " %") for t in (before, recent)]
    assert f"city: Lyon {' → '.join(shown)}" in text


def test_columns_with_few_values_count_these_and_not_the_rows(tmp_path):
    def sparse(seed):
        frame, rng = table(1500, seed), np.random.default_rng(seed + 50)
        frame["c"] = np.where(rng.random(1500) < 0.97, np.nan, np.exp(rng.normal(size=1500)))
        return frame

    detector = DiffInt(**SMALL).fit(sparse(0))
    for seed in (1, 2, 3):
        found = detector.refresh(sparse(seed))
        assert not any(change.moved for change in found.features)
