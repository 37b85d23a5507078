"""The PyOD interface of the detector."""

import warnings

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("pyod")

from pyod.models.base import BaseDetector
from pyod.models.combination import average, maximization
from pyod.models.feature_bagging import FeatureBagging
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from diffint import CalibrationWarning, DiffInt
from diffint.core.errors import InputError
from diffint.pyod_detector import DiffIntDetector

from .conftest import make_rows
from .show.report.tables import data_of

QUICK = {"n_units": 16, "hidden_width": 16, "epochs": 5, "n_members": 2, "random_state": 0}


@pytest.fixture(scope="module")
def detector():
    return DiffIntDetector(contamination=0.1, **QUICK).fit(make_rows())


def test_is_a_pyod_detector(detector):
    assert isinstance(detector, BaseDetector)
    assert isinstance(clone(detector), DiffIntDetector)
    assert clone(detector).n_units == 16


def test_contamination_is_the_share_of_flagged_training_rows(detector):
    assert detector.decision_scores_.shape == (300,)
    assert detector.labels_.sum() == pytest.approx(30, abs=1)
    np.testing.assert_array_equal(
        detector.labels_, (detector.decision_scores_ > detector.threshold_).astype(int)
    )


def test_scores_equal_those_of_diffint(detector):
    x = make_rows(50, seed=2)
    expected = DiffInt(**QUICK, calibration="training").fit(make_rows()).anomaly_score(x)
    np.testing.assert_array_equal(detector.decision_function(x), expected)
    np.testing.assert_array_equal(
        detector.decision_function(make_rows()), detector.decision_scores_
    )


def test_columns_of_text_are_categories():
    table = pd.DataFrame(make_rows(), columns=list("abcde")).assign(kind=["x", "y"] * 150, code=7)
    names = ["kind", "code"]
    detector = DiffIntDetector(**QUICK, categories=names).fit(table)
    found = detector.detector_.model_.categories
    assert (set(found[5]), found[6]) == ({"x", "y"}, ("7",))
    new = detector.decision_function(table.iloc[:5].assign(kind="z"))
    assert (new > detector.threshold_).all()


def test_methods_inherited_from_pyod(detector):
    x = make_rows(50, seed=2)
    assert set(detector.predict(x)) <= {0, 1}
    probability = detector.predict_proba(x)
    assert probability.shape == (50, 2)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    _, confidence = detector.predict(x, return_confidence=True)
    assert ((confidence >= 0) & (confidence <= 1)).all()
    np.testing.assert_array_equal(confidence, detector.predict_confidence(x))
    assert detector.predict_proba(x, method="unify").shape == (50, 2)


def test_combination_and_ensemble_helpers():
    x = make_rows()
    detectors = [DiffIntDetector(**{**QUICK, "random_state": s}).fit(x) for s in range(2)]
    scores = np.column_stack([d.decision_scores_ for d in detectors])
    assert average(scores).shape == maximization(scores).shape == (300,)
    bagging = FeatureBagging(DiffIntDetector(**QUICK), n_estimators=2, random_state=0).fit(x)
    assert np.isfinite(bagging.decision_scores_).all()


def test_unfitted_use():
    with pytest.raises(NotFittedError):
        DiffIntDetector().decision_function(make_rows())


@pytest.mark.parametrize("contamination", [0.0, 0.7])
def test_bad_contamination(contamination):
    with pytest.raises(ValueError, match="contamination"):
        DiffIntDetector(contamination=contamination)


def test_a_failed_fit_does_not_keep_the_old_model():
    detector = DiffIntDetector(**QUICK).fit(make_rows())
    with pytest.raises(ValueError, match="infinity"):
        detector.fit(np.full((5, 5), np.inf))
    with pytest.raises(NotFittedError):
        detector.decision_function(make_rows())


def test_no_calibration_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error", CalibrationWarning)
        DiffIntDetector(**QUICK).fit(make_rows(40))


def test_every_setting_can_be_given():
    from diffint.core.config import Config

    assert set(Config.names()) <= set(DiffIntDetector().get_params())


def test_select_with_rows_scored_by_members_that_left_them_out():
    rng = np.random.default_rng(0)
    train, new = rng.normal(size=(400, 3)), rng.normal(size=(100, 3))
    new[:10] += 8.0
    with warnings.catch_warnings():
        warnings.simplefilter("error", CalibrationWarning)
        detector = DiffIntDetector(**QUICK, calibration="members", contamination=0.05).fit(train)
        found, p_values = detector.select(new, 0.2), detector.p_values(new)
    assert found.selected[:10].all()
    assert found.n_selected < 16
    np.testing.assert_array_equal(p_values, found.p_values)
    # PyOD's threshold is that of rows which their members have not seen.
    assert detector.decision_scores_.shape == (400,)
    assert detector.labels_.mean() == pytest.approx(0.05, abs=0.01)
    assert (detector.predict(rng.normal(size=(1000, 3))) == 1).mean() < 0.1


def test_select_needs_rows_that_are_left_out(detector):
    with pytest.raises(InputError, match="calibration='members'"):
        detector.select(make_rows(5))
    with pytest.raises(InputError, match="calibration='holdout' is not one of"):
        DiffIntDetector(calibration="holdout").fit(make_rows(40))
    with pytest.raises(InputError, match="n_members of at least 2"):
        DiffIntDetector(calibration="members", n_members=1).fit(make_rows(40))


def test_explanations_use_the_threshold_of_pyod(detector):
    x = pd.DataFrame(make_rows()[:50], index=[f"r{i}" for i in range(50)])
    why, nearest = detector.explain(x), detector.nearest_normal(x)
    assert why.threshold == nearest.threshold == detector.threshold_
    flagged = detector.predict(x)
    np.testing.assert_array_equal(why.flagged, flagged == 1)
    assert 0 < flagged.sum() < 50
    inner = detector.detector_.explain(x)
    np.testing.assert_array_equal(why.share, inner.share)
    np.testing.assert_array_equal(why.unit, detector.match(x)["unit"])
    assert why.text(3).startswith("Row 'r3': score")
    np.testing.assert_array_less(nearest.new_score[nearest.found] - 1e-12, detector.threshold_)
    assert detector.explain_global().text() == detector.detector_.explain_global().text()
    with pytest.warns(CalibrationWarning, match="optimistic"):
        p_values = detector.p_values(x)
    np.testing.assert_array_equal(p_values, why.p_value)


@pytest.mark.parametrize("name", ["explain", "nearest_normal", "match", "p_values"])
def test_explanations_need_a_fit(name):
    with pytest.raises(NotFittedError):
        getattr(DiffIntDetector(), name)(make_rows(3))
    with pytest.raises(NotFittedError):
        DiffIntDetector().explain_global()


def test_report_has_the_rows_above_the_threshold(detector, tmp_path):
    rows = make_rows() * 1.2
    path = detector.report(rows, tmp_path / "page.html", kept={"half": np.arange(300) // 150})
    n_flagged = int((detector.decision_function(rows) > detector.threshold_).sum())
    page = path.read_text()
    assert f"{n_flagged} of 300 rows are flagged" in page
    assert data_of(page)["kept"] == ["half"]
    assert len(data_of(page)["rows"]) == n_flagged
