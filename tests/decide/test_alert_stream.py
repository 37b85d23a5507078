"""Alerts of a stream: control of false ones, batches, files, warnings and bad input."""

import itertools
import json
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from diffint import AlertStream, CalibrationWarning, DiffInt, DiffIntError, InputError
from diffint.core.calibration import Calibration

from ..conftest import QUICK
from ..operations import calls_in


class GivenScores(BaseEstimator):
    """A detector whose scores are the only column of the table."""

    def fit(self, scores, group_size=1):
        scores = np.sort(np.asarray(scores, dtype=np.float64))
        sizes = np.full(len(scores), group_size)
        calibration = Calibration("holdout", scores, sizes)
        self.model_ = SimpleNamespace(calibration=calibration, members=(), accepted=())
        return self

    def anomaly_score(self, X):
        return np.asarray(X, dtype=np.float64)[:, 0]

    def _rule_for(self, X, **_):
        raise AssertionError("no rows are accepted")


def normal_detector(n_rows, seed=0):
    return GivenScores().fit(np.random.default_rng(seed).normal(size=n_rows))


def stream_rows(n_rows, share, seed, shift=4.0):
    """Scores of new rows (rows, 1), and which of them are anomalies (rows,)."""
    rng = np.random.default_rng(seed)
    anomalous = rng.random(n_rows) < share
    return (rng.normal(size=n_rows) + shift * anomalous)[:, np.newaxis], anomalous


# --- Control and power -----------------------------------------------------------------------


@pytest.mark.parametrize(("share", "least_power"), [(0.0, 0.0), (0.01, 0.0), (0.1, 0.5)])
def test_the_expected_share_of_false_alerts_is_controlled(share, least_power):
    false_shares, powers = [], []
    for seed in range(150):
        rows, anomalous = stream_rows(2_000, share, 1_000 + seed)
        alerts = AlertStream(normal_detector(1_500, seed)).select(rows)
        false_shares.append((alerts & ~anomalous).sum() / max(alerts.sum(), 1))
        powers.append(alerts[anomalous].sum() / max(anomalous.sum(), 1))
    assert np.mean(false_shares) < 0.1
    assert np.mean(powers) >= least_power


def test_ordinary_conformal_p_values_would_not_do():
    """One calibration set in three gives p-values that are too small throughout the stream."""
    rows, _ = stream_rows(100_000, 0.0, 0)
    rates, conditional = [], []
    for seed in range(100):
        scores = np.sort(np.random.default_rng(seed).normal(size=300))
        smallest = AlertStream(GivenScores().fit(scores)).level
        above_all = (rows[:, 0] > scores[-1]).mean()
        rates.append(above_all > 1 / 301)
        conditional.append(above_all > smallest)
    assert np.mean(rates) > 0.25
    assert np.mean(conditional) < 0.05


def test_levels_obey_the_conditions_of_the_theorem():
    """Sum of levels ≤ rate · max(alerts, 1); another alert never lowers a later level."""
    detector = normal_detector(200)  # one alert pays for 5 rows

    def levels_after(alerts):
        stream = AlertStream(detector)
        levels = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalibrationWarning)
            for alert in alerts:
                levels.append(stream.level)
                # A row far above all calibration rows is an alert whenever one is possible.
                stream.select([[9.0 if alert else -9.0]])
                total = sum(levels)
                assert total <= 0.1 * max(stream.n_alerts, 1) + 1e-12
        return [*levels, stream.level]

    n_rows = 10
    levels = {a: levels_after(a) for a in itertools.product([False, True], repeat=n_rows)}
    for alerts, found in levels.items():
        for row in range(n_rows):
            if not alerts[row]:
                more = levels[(*alerts[:row], True, *alerts[row + 1 :])]
                assert all(a <= b for a, b in zip(found, more, strict=True))


def test_levels_rise_with_many_alerts_and_obvious_anomalies_are_found_to_the_end():
    stream = AlertStream(normal_detector(3_000))
    first = stream.level
    rows, anomalous = stream_rows(50_000, 0.1, 3, shift=6.0)
    alerts = stream.select(rows)
    assert stream.level > 5 * first
    assert alerts[-5_000:][anomalous[-5_000:]].mean() > 0.95
    assert stream.n_rows == 50_000
    assert stream.n_alerts == alerts.sum()


def test_no_level_is_above_the_rate():
    stream = AlertStream(normal_detector(300))
    levels = []
    for _ in range(300):
        stream.select([[9.0]] * 5)
        levels.append(stream.level)
    assert 0.09 < max(levels) <= 0.1


def test_alerts_of_a_fitted_detector():
    rng = np.random.default_rng(0)
    detector = DiffInt(**QUICK, calibration="holdout").fit(rng.normal(size=(3_000, 3)))
    anomalous = np.arange(400) % 10 == 5
    rows = rng.normal(size=(400, 3)) + 20.0 * anomalous[:, np.newaxis]
    alerts = AlertStream(detector).select(rows)
    assert alerts[anomalous].all()
    assert (alerts & ~anomalous).sum() < 10


def test_a_score_equal_to_the_highest_of_normal_rows_is_not_above_it():
    detector = normal_detector(200)
    highest = detector.model_.calibration.scores[-1]
    stream = AlertStream(detector)  # begins with the smallest level that has any use
    np.testing.assert_array_equal(stream.select([[highest], [highest + 1e-9]]), [False, True])


def test_groups_count_once():
    scores = np.repeat(np.random.default_rng(0).normal(size=400), 5)
    copied, once = GivenScores().fit(scores, 5), GivenScores().fit(scores[::5])
    rows, _ = stream_rows(300, 0.2, 1)
    streams = AlertStream(copied), AlertStream(once)
    np.testing.assert_array_equal(streams[0].select(rows), streams[1].select(rows))
    assert streams[0].level == streams[1].level > 0


# --- Batches -----------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [1, 7, 500])
def test_where_the_stream_is_cut_makes_no_difference(batch):
    rows, _ = stream_rows(1_500, 0.1, 5)
    whole, cut = AlertStream(normal_detector(2_000)), AlertStream(normal_detector(2_000))
    parts = [cut.select(rows[start : start + batch]) for start in range(0, len(rows), batch)]
    np.testing.assert_array_equal(np.concatenate(parts), whole.select(rows))
    assert (cut.level, cut.n_rows, cut.n_alerts) == (whole.level, whole.n_rows, whole.n_alerts)
    assert whole.n_alerts > 50


@pytest.mark.parametrize("empty", [[], np.empty((0, 5))])
def test_an_empty_batch_changes_nothing(fitted, empty):
    stream = AlertStream(fitted)
    level = stream.level
    alerts = stream.select(empty)
    assert alerts.shape == (0,)
    assert alerts.dtype == bool
    assert (stream.n_rows, stream.n_alerts, stream.level) == (0, 0, level)


def test_a_batch_that_cannot_be_scored_changes_nothing(fitted, rows):
    stream = AlertStream(fitted)
    stream.select(rows[:3])
    with pytest.raises(ValueError, match="features"):
        stream.select(rows[:, :2])
    assert stream.n_rows == 3


def test_the_work_for_a_row_does_not_grow():
    rows, _ = stream_rows(100_000, 0.05, 8)
    stream = AlertStream(normal_detector(30_000))
    found = []
    assert calls_in(lambda: found.append(stream.select(rows))) < 3 * len(rows)
    assert found[0].sum() > 3_000


# --- Too few calibration rows ------------------------------------------------------------------


def test_too_few_calibration_rows_for_any_alert():
    message = "20 calibration rows cannot give any alert .* at least about 36,"
    with pytest.warns(CalibrationWarning, match=message):
        stream = AlertStream(normal_detector(20))
    assert stream.level == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not stream.select([[99.0]]).any()
        AlertStream(normal_detector(40))  # enough for a first level
    with pytest.warns(CalibrationWarning, match="4 calibration groups"):
        AlertStream(GivenScores().fit(np.arange(20.0), 5))


def test_the_end_of_the_alerts_is_said_once():
    stream = AlertStream(normal_detector(500))
    message = "after 100 rows and 0 alerts .* 500 calibration rows, .* one in about 14 rows"
    with pytest.warns(CalibrationWarning, match=message):
        stream.select(np.full((100, 1), -9.0))
    assert stream.level == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not stream.select([[99.0]]).any()
    assert stream.n_rows == 101


# --- Files -------------------------------------------------------------------------------------


@pytest.fixture
def saved(fitted, rows, tmp_path):
    stream = AlertStream(fitted, 0.4, 0.9)
    stream.select(rows[:2] + 1e6)
    stream.save(tmp_path / "alerts.json")
    return tmp_path / "alerts.json"


def test_a_saved_stream_goes_on_as_if_it_had_not_stopped(tmp_path):
    detector, path = normal_detector(2_000), tmp_path / "alerts.json"
    rows, _ = stream_rows(2_000, 0.1, 6)
    whole, first = AlertStream(detector, 0.2, 0.9), AlertStream(detector, 0.2, 0.9)
    expected = whole.select(rows)
    alerts = first.select(rows[:900])
    first.save(path)
    second = AlertStream.load(path, detector)
    assert (second.n_rows, second.n_alerts, second.level) == (900, first.n_alerts, first.level)
    np.testing.assert_array_equal(np.append(alerts, second.select(rows[900:])), expected)
    assert path.stat().st_size < 1_000


def test_a_stream_goes_on_with_the_saved_model(fitted, saved, tmp_path):
    fitted.save(tmp_path / "model.diffint")
    stream = AlertStream.load(saved, DiffInt.load(tmp_path / "model.diffint"))
    assert (stream.n_rows, stream.n_alerts) == (2, 2)
    assert (stream.false_discovery_rate, stream.confidence) == (0.4, 0.9)


def test_the_file_of_another_model(saved, rows):
    other = DiffInt(**{**QUICK, "random_state": 1}).fit(rows)
    with pytest.raises(DiffIntError, match=r"alerts.json'.*belongs to another model"):
        AlertStream.load(saved, other)


def test_every_damaged_byte_is_found(saved, fitted):
    content = saved.read_bytes()
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1
        saved.write_bytes(damaged)
        with pytest.raises(DiffIntError, match=r"alerts\.json'"):
            AlertStream.load(saved, fitted)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"3", b"{}", b"\xff\xfe", b"[" * 9_000, b"0" * 20_000]
)
def test_other_files(saved, fitted, content):
    saved.write_bytes(content)
    with pytest.raises(DiffIntError, match="not an alert stream"):
        AlertStream.load(saved, fitted)


def test_files_that_are_cut_off_or_of_another_version(saved, fitted):
    content = saved.read_bytes()
    saved.write_bytes(content[:-20])
    with pytest.raises(DiffIntError, match="not an alert stream"):
        AlertStream.load(saved, fitted)
    state = json.loads(content)
    saved.write_text(json.dumps({**state, "diffint_alert_stream": 2}))
    with pytest.raises(DiffIntError, match="format version 2"):
        AlertStream.load(saved, fitted)
    saved.write_text(json.dumps({**state, "n_alerts": 0}, indent=1) + "\n")
    with pytest.raises(DiffIntError, match="damaged or changed"):
        AlertStream.load(saved, fitted)


def test_a_file_that_is_not_there_or_cannot_be_written(saved, fitted, tmp_path):
    with pytest.raises(FileNotFoundError):
        AlertStream.load(tmp_path / "none.json", fitted)
    with pytest.raises(IsADirectoryError):
        AlertStream.load(tmp_path, fitted)
    with pytest.raises(FileNotFoundError, match="does not exist; create it first"):
        AlertStream(fitted).save(tmp_path / "none" / "alerts.json")
    assert [path.name for path in tmp_path.iterdir()] == ["alerts.json"]


# --- Bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0, 1, -0.1, 1.5, float("nan"), None, "0.1", True])
def test_rates_out_of_range(fitted, rate):
    with pytest.raises(InputError, match="false_discovery_rate="):
        AlertStream(fitted, rate)


@pytest.mark.parametrize("confidence", [0, 1, 0.99995, 95, float("nan"), "high"])
def test_confidences_out_of_range(fitted, confidence):
    with pytest.raises(InputError, match="confidence="):
        AlertStream(fitted, confidence=confidence)


def test_detectors_that_cannot_be_used(rows, saved):
    with pytest.raises(NotFittedError):
        AlertStream(DiffInt())
    with pytest.raises(NotFittedError):
        AlertStream.load(saved, DiffInt())
    with pytest.raises(InputError, match="needs a fitted DiffInt, not ndarray"):
        AlertStream(rows)
    trained = DiffInt(**QUICK, calibration="training").fit(rows)
    with pytest.raises(DiffIntError, match=r"training rows.*fit a DiffInt with calibration="):
        AlertStream(trained)


def test_accepted_rows_are_passed_over(tmp_path):
    """Also if they are accepted after the stream began."""
    normal = np.random.default_rng(0).normal(size=(2000, 3))
    detector = DiffInt(**QUICK, calibration="holdout").fit(normal)
    odd = [0.0, 0.0, 30.0]
    batch = np.vstack([np.zeros((5, 3)), [odd, odd]])
    plain, stream = AlertStream(detector), AlertStream(detector)
    assert list(np.flatnonzero(plain.select(batch))) == [5, 6]
    detector.accept([odd])
    assert not stream.select(batch).any()
    assert not detector.select(batch).selected.any()
    assert stream.n_rows == 7
    stream.save(tmp_path / "stream.json")
    detector.withdraw([0])
    assert AlertStream.load(tmp_path / "stream.json", detector).select([odd]).all()
    assert stream.select([odd]).all()


def test_a_detector_that_is_fitted_again(rows):
    detector = DiffInt(**QUICK).fit(rows)
    stream = AlertStream(detector)
    detector.fit(rows)
    with pytest.raises(DiffIntError, match="fitted again"):
        stream.select(rows)
    assert stream.n_rows == 0
