"""Drift: false alarms, changes that are found and named, batches, files, bad input."""

import json
import multiprocessing
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from diffint import DiffInt, DiffIntError, DriftMonitor, InputError
from diffint.decide.drift_file import decoded, encoded
from diffint.decide.drift_statistics import DriftStatistics

from ..conftest import QUICK
from ..waiting import LIMIT

SETTINGS = {**QUICK, "epochs": 2, "calibration": "holdout"}


def draw(n_rows, seed, r=0.6):
    """Four numbers, the first two of them correlated."""
    z = np.random.default_rng(seed).normal(size=(n_rows, 4))
    z[:, 1] = r * z[:, 0] + np.sqrt(1 - r * r) * z[:, 1]
    return z * [1.0, 10.0, 0.1, 100.0] + [0.0, 5.0, 3.0, -7.0]


def draw_mixed(n_rows, seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(draw(n_rows, seed)[:, :2], columns=["size", "weight"])
    frame["colour"] = rng.choice(["red", "green", "blue"], n_rows, p=[0.6, 0.3, 0.1])
    frame.loc[rng.random(n_rows) < 0.05, "size"] = np.nan
    return frame


@pytest.fixture(scope="module")
def detector():
    return DiffInt(**SETTINGS).fit(draw(5_000, 0))


@pytest.fixture(scope="module")
def mixed():
    return DiffInt(**SETTINGS).fit(draw_mixed(5_000, 0))


# --- Alarms ------------------------------------------------------------------------------------


def test_streams_without_drift_rarely_alarm():
    """Each with a detector of its own: the rate is an average over calibration rows too."""
    p_values = []
    for seed in range(8):
        detector = DiffInt(**{**SETTINGS, "epochs": 1}).fit(draw(1_000, 100 + seed))
        state = DriftMonitor(detector).update(draw(4_000, 200 + seed))
        assert state.p_value <= 1
        p_values.append(state.p_value)
    assert min(p_values) > 0.01
    assert np.mean(np.array(p_values) <= 0.5) <= 0.5


def changed(rows, change):
    rows = rows.copy()
    if change == "location":
        rows[:, 3] += 50.0
    elif change == "spread":
        rows[:, 3] = -7.0 + 1.5 * (rows[:, 3] + 7.0)
    elif change == "missing":
        rows[np.arange(len(rows)) % 10 == 3, 3] = np.nan
    return rows


@pytest.mark.parametrize("before", [0, 3_000])
@pytest.mark.parametrize("change", ["location", "spread", "missing"])
def test_a_change_of_one_feature_is_found_and_named(detector, change, before):
    monitor = DriftMonitor(detector)
    monitor.update(draw(before, 1))
    assert not monitor.drifted
    state = monitor.update(changed(draw(1_000, 2), change))
    assert state.drifted
    assert before <= state.alarm_row < before + 500
    assert state.features == ("x3",)
    first = state.changes[0]
    assert (first.what, first.features) == (change, ("x3",))
    assert abs(first.since - before) < 150
    assert state.text().startswith("The rows have moved: alarm at row")
    line = monitor.to_frame().iloc[0]
    assert (line.feature, line.what, line.since) == ("x3", change, first.since)
    assert line.p_value == state.p_value <= 0.01


def test_a_change_of_a_correlation_alone_is_found(detector):
    monitor = DriftMonitor(detector)
    monitor.update(draw(2_000, 1))
    state = monitor.update(draw(1_500, 2, r=0.0))
    assert state.drifted
    assert set(state.features) == {"x0", "x1"}
    assert state.changes[0].what == "correlation"
    assert "the correlation of x0 and x1" in state.text()


def test_a_feature_that_lost_its_correlations_comes_before_those_it_was_correlated_with():
    def related(n_rows, seed):
        rng = np.random.default_rng(seed)
        return rng.normal(size=(n_rows, 1)) + 0.5 * rng.normal(size=(n_rows, 5))

    detector = DiffInt(**SETTINGS).fit(related(3_000, 0))
    for seed in range(10):
        rows, j = related(600, 1 + seed), seed % 5
        rows[:, j] = np.random.default_rng(100 + seed).permutation(rows[:, j])
        assert DriftMonitor(detector).update(rows).features[0] == f"x{j}"


def test_a_new_value_of_a_category_and_a_change_of_shares(mixed):
    rows = draw_mixed(1_000, 3)
    new = rows.assign(colour=rows.colour.where(np.arange(1_000) % 20 != 7, "violet"))
    state = DriftMonitor(mixed).update(new)
    assert state.features[0] == "colour"
    assert state.changes[0].what == "new value"
    assert "share of new values of colour" in state.text()
    other = rows.assign(colour=np.where(np.arange(1_000) % 5 == 0, "blue", rows.colour))
    state = DriftMonitor(mixed).update(other)
    assert state.features[0] == "colour"
    assert state.changes[0].value in {"red", "green", "blue"}


def test_listed_values_of_a_category_are_not_new(mixed):
    """Bin 0 says yes, 1 no, −1 nothing: that a value is new, which it is, or that it is missing."""
    statistics = DriftStatistics(mixed.model_)
    values = mixed.model_.categories[2]
    table = np.array([[0.0, 0.0, code] for code in (0, 1, 2, 3, np.nan)])
    bins = statistics.bins(table, None)
    found = {
        (statistic.what, values[statistic.value] if statistic.what == "value" else ""): bins[:, s]
        for s, statistic in enumerate(statistics.statistics)
        if statistic.features == (2,)
    }
    assert found[("new value", "")].tolist() == [1, 1, 1, 0, -1]
    assert found[("missing", "")].tolist() == [1, 1, 1, 1, 0]
    for code, value in enumerate(values):
        is_value = [0 if code == other else 1 for other in range(3)]
        assert found[("value", value)].tolist() == [*is_value, -1, -1]
    counts = statistics.counts[[s.what for s in statistics.statistics].index("new value")]
    blank = statistics.bins(np.full((1, 3), np.nan), None)[0]  # no training row was so
    assert blank[[s.what == "missing" for s in statistics.statistics]].tolist() == [0, 0, 0]
    assert counts[:2].tolist() == [0, 750]  # reference rows, which have only listed values


def test_a_quarter_of_the_stored_rows_chooses_the_bins():
    for n_rows, n_stored in ((20, 4), (35, 7), (200, 40)):
        detector = DiffInt(**SETTINGS).fit(draw(n_rows, 0))
        assert len(detector.model_.calibration.sample) == n_stored
        counts = DriftStatistics(detector.model_).counts.sum(axis=1)
        assert set(counts) == {n_stored - n_stored // 4}


def test_only_new_categories_and_only_missing_values(mixed):
    only_new = DriftMonitor(mixed).update(draw_mixed(50, 4).assign(colour="violet"))
    assert only_new.drifted
    assert only_new.features[0] == "colour"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        blank = DriftMonitor(mixed).update(draw_mixed(50, 4).assign(colour=None, size=np.nan))
    assert blank.drifted
    assert set(blank.features[:2]) <= {"colour", "size"}


def test_a_constant_number_that_changes():
    rows = draw(1_000, 0)
    rows[:, 2] = 3.0
    later = draw(300, 1)
    later[:, 2] = 3.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        monitor = DriftMonitor(DiffInt(**SETTINGS).fit(rows))
        assert not monitor.update(later).drifted
        later[:, 2] = 3.1
        assert monitor.update(later).features[0] == "x2"


def test_rows_in_single_precision_are_the_same_rows():
    """Decimals rounded to single precision are not other values."""
    detector = DiffInt(**SETTINGS).fit(np.round(draw(1_000, 0), 1))
    rows = np.round(draw(2_000, 1), 1)
    state = DriftMonitor(detector).update(rows.astype(np.float32))
    assert state.p_value == pytest.approx(DriftMonitor(detector).update(rows).p_value, rel=0.5)
    assert not state.drifted


def test_scores_that_another_processor_rounds_differently(monkeypatch):
    """Rows of a few kinds have scores of a few values, which are the same there too."""

    def draw_few(n_rows, seed):
        return (np.random.default_rng(seed).random((n_rows, 3)) < [0.2, 0.5, 0.7]) * 1.0

    detector = DiffInt(**SETTINGS).fit(draw_few(2_000, 0), groups=np.arange(2_000))
    scores = detector._scores
    monkeypatch.setattr(detector, "_scores", lambda table: scores(table) * (1 + 1e-7))
    monitor = DriftMonitor(detector)
    assert monitor._statistics.counts[0].any()
    assert not monitor.update(draw_few(1_000, 1)).drifted


def test_features_of_times_are_not_watched():
    rng = np.random.default_rng(0)
    day = pd.Timestamp("2024-01-01")
    hours = np.sort(rng.uniform(0, 24 * 60, 1_500))
    table = pd.DataFrame({"when": day + pd.to_timedelta(hours, "h"), "x": rng.normal(size=1_500)})
    monitor = DriftMonitor(DiffInt(**SETTINGS).fit(table))
    later = pd.DataFrame(
        {"when": pd.date_range("2025-06-01", periods=500), "x": rng.normal(size=500)}
    )
    assert not monitor.update(later).drifted
    assert monitor.to_frame().feature.tolist() == ["x"]


def test_without_comparable_calibration_rows_the_stream_is_compared_with_itself():
    """Suspects were left out, so that later rows are not like the calibration rows."""
    rows = draw(1_500, 0)
    rows[::20] *= 30.0
    detector = DiffInt(**{**SETTINGS, "suspected_share": 0.05}).fit(rows)
    assert detector.model_.calibration.cleaned
    assert not DriftStatistics(detector.model_).counts.any()
    later = draw(2_000, 1)
    later[::20] *= 30.0
    monitor = DriftMonitor(detector)
    assert not monitor.update(later).drifted
    assert monitor.update(changed(draw(1_000, 2), "location")).features[0] == "x3"


def test_rows_without_any_value_are_passed_over_if_training_rows_had_some():
    def draw_some_blank(n_rows, seed):
        rows = draw(n_rows, seed)
        rows[::10] = np.nan
        return rows

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        monitor = DriftMonitor(DiffInt(**SETTINGS).fit(draw_some_blank(1_000, 0)))
        state = monitor.update(draw_some_blank(1_000, 1))
    assert (state.drifted, state.n_rows) == (False, 1_000)


def test_tables_with_segments_identifiers_and_one_feature():
    rows = draw_mixed(1_000, 0).assign(store=["a", "b"] * 500)
    rows["id"] = [f"row {i}" for i in range(1_000)]
    later = draw_mixed(300, 1).assign(store="a", id="row 7")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        monitor = DriftMonitor(DiffInt(**SETTINGS).fit(rows, segments="store"))
        assert not monitor.update(later).drifted
        assert sorted(monitor.to_frame().feature) == ["colour", "size", "weight"]
        single = DriftMonitor(DiffInt(**SETTINGS).fit(draw(500, 0)[:, :1]))
        assert single.update(draw(300, 1)[:, :1] + 1.0).features == ("x0",)


def test_members_do_not_compare_scores_with_those_of_fewer_members(rows):
    detector = DiffInt(**QUICK, calibration="members").fit(rows)
    statistics = DriftStatistics(detector.model_)
    assert statistics.statistics[0].what == "score"
    assert not statistics.counts[0].any()
    assert statistics.counts[1:].any()


def test_weights_are_the_whole_rate(detector, mixed):
    for fitted in (detector, mixed):
        weights = [s.weight for s in DriftStatistics(fitted.model_).statistics]
        assert sum(weights) == pytest.approx(1.0)
        assert min(weights) > 0


def test_features_have_equal_shares_of_the_rate(mixed):
    weights = dict.fromkeys(range(3), 0.0)
    for statistic in DriftStatistics(mixed.model_).statistics:
        if statistic.what not in ("score", "correlation"):
            weights[statistic.features[0]] += statistic.weight
    np.testing.assert_allclose(list(weights.values()), 0.2)


# --- Batches -----------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [1, 37, 250])
def test_where_the_stream_is_cut_makes_no_difference(detector, batch):
    rows = np.concatenate([draw(150, 5), changed(draw(100, 6), "location")])
    whole, cut = DriftMonitor(detector), DriftMonitor(detector)
    expected = whole.update(rows)
    for start in range(0, len(rows), batch):
        state = cut.update(rows[start : start + batch])
    assert state == expected
    assert cut.n_rows == 250


def test_an_empty_batch_or_one_that_cannot_be_read_changes_nothing(detector, mixed):
    monitor = DriftMonitor(detector)
    before = monitor.update(draw(20, 1))
    assert monitor.update([]) == before
    assert monitor.update(np.empty((0, 4))) == before
    with pytest.raises(ValueError, match="features"):
        monitor.update(draw(20, 1)[:, :2])
    with pytest.raises(ValueError, match="colour"):
        DriftMonitor(mixed).update(draw_mixed(5, 0).drop(columns="colour"))
    assert monitor.state == before


def test_the_state_is_small_and_cannot_be_changed(detector):
    state = DriftMonitor(detector).update(draw(1, 1))
    assert (state.n_rows, state.drifted, state.features, state.alarm_row) == (1, False, (), None)
    assert 0 < state.e_value < 1.5
    assert state.text() == f"No drift in 1 row (p = {state.p_value:.2g}; an alarm needs 0.01)."
    with pytest.raises(FrozenInstanceError):
        state.drifted = True


def test_a_long_drift_does_not_overflow(detector):
    monitor = DriftMonitor(detector)
    monitor.update(draw(5_000, 1))
    state = monitor.update(draw(4_000, 2) + 1e9)
    assert state.p_value < 1e-300
    assert np.isfinite(state.e_value)
    assert np.isfinite(monitor.to_frame().evidence).all()
    assert monitor.to_frame().evidence.max() > 1_000


# --- Files -------------------------------------------------------------------------------------


@pytest.fixture
def saved(detector, tmp_path):
    monitor = DriftMonitor(detector, 0.05)
    monitor.update(draw(100, 1))
    monitor.save(tmp_path / "drift.json")
    return tmp_path / "drift.json"


def test_a_saved_monitor_goes_on_as_if_it_had_not_stopped(detector, saved, tmp_path):
    whole = DriftMonitor(detector, 0.05)
    expected = whole.update(np.concatenate([draw(100, 1), changed(draw(300, 2), "spread")]))
    detector.save(tmp_path / "model.diffint")
    monitor = DriftMonitor.load(saved, DiffInt.load(tmp_path / "model.diffint"))
    assert monitor.n_rows == 100
    assert monitor.update(changed(draw(300, 2), "spread")) == expected
    assert saved.stat().st_size < 100_000


def test_a_file_is_updated_in_place_and_begun_if_there_is_none(detector, tmp_path):
    path = tmp_path / "drift.json"
    first = DriftMonitor.update_file(path, detector, draw(100, 1), false_alarm_rate=0.05)
    assert (first.n_rows, first.false_alarm_rate) == (100, 0.05)
    second = DriftMonitor.update_file(path, detector, changed(draw(300, 2), "location"))
    expected = DriftMonitor(detector, 0.05)
    expected.update(draw(100, 1))
    assert second == expected.update(changed(draw(300, 2), "location"))
    with pytest.raises(DiffIntError, match=r"rate of 0.05, not 0.01"):
        DriftMonitor.update_file(path, detector, draw(5, 1), false_alarm_rate=0.01)
    content = path.read_bytes()
    with pytest.raises(ValueError, match="features"):
        DriftMonitor.update_file(path, detector, draw(5, 1)[:, :2])
    assert path.read_bytes() == content


def test_threads_and_processes_take_turns(detector, tmp_path):
    path, batches = tmp_path / "drift.json", [draw(10, seed) for seed in range(12)]
    with ThreadPoolExecutor(4) as pool:
        states = pool.map(lambda rows: DriftMonitor.update_file(path, detector, rows), batches)
    assert sorted(state.n_rows for state in states) == list(range(10, 130, 10))
    if "fork" in multiprocessing.get_all_start_methods():
        context = multiprocessing.get_context("fork")
        processes = [
            context.Process(target=DriftMonitor.update_file, args=(path, detector, rows))
            for rows in batches[:4]
        ]
        for process in processes:
            process.start()
        for process in processes:
            process.join(LIMIT)
        assert [process.exitcode for process in processes] == [0] * 4
        assert DriftMonitor.load(path, detector).n_rows == 160


def test_the_file_of_another_model(saved):
    other = DiffInt(**SETTINGS).fit(draw(1_000, 9))
    with pytest.raises(DiffIntError, match=r"drift.json'.*belongs to another model"):
        DriftMonitor.load(saved, other)
    with pytest.raises(DiffIntError, match=r"drift.json'.*belongs to another model"):
        DriftMonitor.update_file(saved, other, draw(5, 1))


def test_damaged_files(saved, detector):
    content = saved.read_bytes()
    for place in [
        *range(0, len(content), 2_999),
        *range(0, 60, 3),
        *range(len(content) - 30, len(content)),
    ]:
        damaged = bytearray(content)
        damaged[place] ^= 1
        saved.write_bytes(damaged)
        with pytest.raises(DiffIntError, match=r"drift\.json'"):
            DriftMonitor.load(saved, detector)
        saved.write_bytes(content[:place])
        with pytest.raises(DiffIntError, match=r"drift\.json'.*(not a|the) drift monitor"):
            DriftMonitor.update_file(saved, detector, draw(5, 1))
        assert saved.read_bytes() == content[:place]


def with_fewer_reference_rows(counts, detector):
    """The counts with one reference row in another bin: as many rows, but fewer in one of them."""
    found = decoded(counts, DriftStatistics(detector.model_).counts)
    s, place = np.argwhere(found > 10)[0]
    found[s, place] = 0
    found[s, place + 1] += decoded(counts, found)[s, place]
    return encoded(found)


def test_a_file_whose_checksum_was_computed_again(saved, detector):
    from diffint.decide.drift_file import STATE_FILE

    state = STATE_FILE.read(saved)
    for name, value in [
        *(("n_rows", -1), ("n_rows", 2.0), ("false_alarm_rate", 1), ("counts", "")),
        *(("counts", state["counts"][:-4]), ("money", "?" * len(state["money"])), ("seen", None)),
        ("counts", state["begun"]),
        ("counts", with_fewer_reference_rows(state["counts"], detector)),
    ]:
        STATE_FILE.write(saved, {**state, name: value})
        with pytest.raises(DiffIntError, match="damaged or changed"):
            DriftMonitor.load(saved, detector)
    newer = json.loads(saved.read_text())
    saved.write_text(json.dumps({**newer, "diffint_drift_monitor": 2}))
    with pytest.raises(DiffIntError, match="format version 2"):
        DriftMonitor.load(saved, detector)


def test_files_that_are_not_there_or_cannot_be_written(detector, tmp_path):
    with pytest.raises(FileNotFoundError):
        DriftMonitor.load(tmp_path / "none.json", detector)
    with pytest.raises(IsADirectoryError):
        DriftMonitor.load(tmp_path, detector)
    with pytest.raises(FileNotFoundError, match="create it first"):
        DriftMonitor.update_file(tmp_path / "none" / "drift.json", detector, draw(5, 1))
    assert not list(tmp_path.iterdir())


# --- Bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0, 1, -0.1, 1.5, float("nan"), None, "0.1", True])
def test_rates_out_of_range(detector, rate):
    with pytest.raises(InputError, match="false_alarm_rate="):
        DriftMonitor(detector, rate)


def test_detectors_that_cannot_be_used(rows, saved):
    with pytest.raises(NotFittedError):
        DriftMonitor(DiffInt())
    with pytest.raises(NotFittedError):
        DriftMonitor.load(saved, DiffInt())
    with pytest.raises(InputError, match="needs a fitted DiffInt, not ndarray"):
        DriftMonitor(rows)
    with pytest.raises(InputError, match=r"training rows.*calibration="):
        DriftMonitor(DiffInt(**QUICK, calibration="training").fit(rows))
    with pytest.raises(InputError, match=r"stores no rows.*kept_rows=0"):
        DriftMonitor(DiffInt(**QUICK, kept_rows=0).fit(rows))
    with pytest.raises(InputError, match=r"calibration rows?, but .* at least 20"):
        DriftMonitor(DiffInt(**QUICK, calibration="holdout").fit(rows[:30]))


def test_accepting_rows_changes_nothing(tmp_path):
    detector = DiffInt(**SETTINGS).fit(draw(1_000, 0))
    expected, monitor = DriftMonitor(detector), DriftMonitor(detector)
    odd = draw(10, 1) + np.array([50.0, 0.0, 0.0, 0.0])
    expected.update(odd)
    monitor.save(tmp_path / "m.json")
    detector.accept(odd)
    assert (detector.predict(odd) == 1).all()
    assert monitor.update(odd) == expected.state
    assert DriftMonitor.update_file(tmp_path / "m.json", detector, odd) == expected.state
    detector.withdraw([0])
    monitor.update(odd)


def test_a_detector_that_is_fitted_again(rows):
    detector = DiffInt(**QUICK).fit(rows)
    monitor = DriftMonitor(detector)
    detector.fit(rows)
    with pytest.raises(DiffIntError, match="fitted again"):
        monitor.update(rows)
    assert monitor.n_rows == 0
