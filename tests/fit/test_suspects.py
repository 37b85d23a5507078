"""Suspects, through the public interface."""

import numpy as np
import pytest

import diffint.fit.suspects
from diffint import DiffInt, InputError

QUICK = {"n_units": 12, "hidden_width": 8, "epochs": 5, "random_state": 0}


@pytest.fixture(scope="module")
def dirty():
    """300 ordinary rows, and 20 of another kind that are close to each other."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(320, 3))
    x[:20] = 6 + 0.1 * rng.normal(size=(20, 3))
    return x


def scores(x, **settings):
    return DiffInt(**{**QUICK, **settings}).fit(x).anomaly_score(x)


def test_by_default_no_row_is_a_suspect(dirty):
    detector = DiffInt(**QUICK).fit(dirty)
    assert not detector.suspects_.any()
    assert detector.model_.training.n_suspects == 0


@pytest.mark.parametrize("share", [20 / 320, "auto"])
def test_similar_anomalies_are_found_and_left_out(dirty, share):
    detector = DiffInt(**QUICK, suspected_share=share).fit(dirty)
    assert detector.suspects_.shape == (320,)
    assert detector.suspects_[:20].all()
    assert detector.suspects_[20:].mean() < 0.03
    training = detector.model_.training
    assert training.n_suspects == detector.suspects_.sum()
    assert training.n_rows == 320 - training.n_suspects
    assert detector.model_.features.quantiles.max() < 5  # the ranges do not include them
    # No member keeps them: their scores are high.
    assert detector.anomaly_score(dirty)[:20].min() > detector.anomaly_score(dirty)[20:].max()


def test_a_number_is_the_share_that_is_left_out(dirty):
    assert DiffInt(**QUICK, suspected_share=0.25).fit(dirty).suspects_.sum() == 80


def test_nothing_changes_where_nothing_is_found():
    x = np.random.default_rng(1).random((60, 3))
    share = 0.001  # of 60 rows: none
    assert not DiffInt(**QUICK, suspected_share=share).fit(x).suspects_.any()
    assert np.array_equal(scores(x, suspected_share=share), scores(x))


def test_the_same_seed_finds_the_same_rows(dirty):
    first, second = (DiffInt(**QUICK, suspected_share=0.1, n_jobs=n).fit(dirty) for n in (1, 2))
    assert np.array_equal(first.suspects_, second.suspects_)
    assert np.array_equal(first.anomaly_score(dirty), second.anomaly_score(dirty))


def test_known_anomalies_and_blank_rows_are_not_suspects(dirty):
    x = dirty.copy()
    x[20:25] = np.nan
    marked = np.arange(320) < 10
    detector = DiffInt(**QUICK, suspected_share=0.1).fit(x, anomalies=marked)
    assert not detector.suspects_[:10].any()
    assert detector.suspects_[10:20].all()
    assert not detector.suspects_[20:25].any()
    training = detector.model_.training
    assert (training.n_known_anomalies, training.n_suspects) == (10, round(0.1 * 305))


def test_copies_of_an_anomaly_do_not_vouch_for_each_other():
    x = np.repeat(np.random.default_rng(0).normal(size=(100, 3)), 2, axis=0)
    x[:2] = 9.0
    assert DiffInt(**QUICK, suspected_share=0.01).fit(x).suspects_[:2].all()


@pytest.mark.parametrize("calibration", ["members", "holdout", "training"])
def test_every_calibration(dirty, calibration):
    detector = DiffInt(**QUICK, suspected_share=0.1, calibration=calibration).fit(dirty)
    assert detector.model_.calibration.kind == calibration
    assert (detector.predict(dirty[:20]) == -1).all()


def test_large_tables_are_searched_by_trained_members(dirty, monkeypatch):
    monkeypatch.setattr(diffint.fit.suspects, "SMALL_TABLE", 100)
    x = dirty.copy()
    x[:2], x[2:20] = [[9, -9, 9], [-9, 9, 9]], x[300:318]
    detector = DiffInt(**QUICK, suspected_share="auto").fit(x)
    assert detector.suspects_[:2].all()
    assert detector.suspects_.sum() < 6


@pytest.mark.parametrize("share", [-0.1, 0.5, 1, np.nan, np.inf, "many", None, True, [0.1]])
def test_impossible_shares(dirty, share):
    with pytest.raises(InputError, match=r"suspected_share=.*below 0.5, or 'auto'"):
        DiffInt(**QUICK, suspected_share=share).fit(dirty)


def test_too_few_rows():
    x = np.random.default_rng(0).normal(size=(9, 2))
    with pytest.raises(InputError, match="9 rows are too few to find suspects"):
        DiffInt(**QUICK, suspected_share=0.1).fit(x)
    marked = np.arange(12) < 5
    with pytest.raises(InputError, match="7 rows are too few"):
        DiffInt(**QUICK, suspected_share="auto").fit(np.ones((12, 2)), anomalies=marked)


def test_the_largest_share_leaves_most_rows():
    x = np.random.default_rng(0).normal(size=(10, 2))
    assert DiffInt(**QUICK, suspected_share=0.4999).fit(x).suspects_.sum() == 5


@pytest.mark.parametrize("share", [0.2, "auto"])
def test_constant_columns_and_equal_rows(share):
    rng = np.random.default_rng(0)
    x = np.column_stack([np.ones(50), rng.normal(size=50), np.full(50, np.nan)])
    assert DiffInt(**QUICK, suspected_share=share).fit(x).suspects_.sum() <= 10
    equal = np.ones((50, 3))
    n_suspects = DiffInt(**QUICK, suspected_share=share).fit(equal).suspects_.sum()
    assert n_suspects == (0 if share == "auto" else 10)
    equal[3] = 5.0
    assert DiffInt(**QUICK, suspected_share=0.02).fit(equal).suspects_[3]


def test_suspects_of_an_earlier_fit_do_not_stay(dirty):
    detector = DiffInt(**QUICK, suspected_share=0.1).fit(dirty)
    detector.suspected_share = 2
    with pytest.raises(InputError):
        detector.fit(dirty)
    assert not hasattr(detector, "suspects_")
