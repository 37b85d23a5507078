"""The scikit-learn estimator: scores, determinism, missing values, unusual tables, errors."""

import copy
import itertools
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import diffint
from diffint import (
    CalibrationWarning,
    DiffInt,
    InputError,
    InputWarning,
    TrainingError,
    TrainingWarning,
)
from diffint.engine.cpu import training as cpu_training

from .conftest import QUICK, make_rows
from .show.report.tables import data_of


def test_check_estimator():
    small = {**QUICK, "n_units": 8, "epochs": 3, "false_positive_rate": 0.1, "device": "cpu"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(DiffInt(**small), on_fail=None)
    failed = [r["check_name"] for r in results if r["status"] not in ("passed", "skipped")]
    assert not failed
    assert len([r for r in results if r["status"] == "passed"]) > 40


def test_presets():
    paper = DiffInt.paper(epochs=7)
    assert (paper.epochs, paper.n_members, paper.init) == (7, 1, "gaussian")
    assert DiffInt.paper().learning_rate == 5e-5
    assert (DiffInt().n_members, DiffInt().init) == ("auto", "data")


def test_anomalies_score_higher(fitted, rows):
    anomalies = rows[:50].copy()
    anomalies[:, 2] = rows[:, 2].max() + np.ptp(rows[:, 2])
    assert fitted.anomaly_score(anomalies).mean() > 2 * fitted.anomaly_score(rows).mean()
    assert (fitted.predict(anomalies) == -1).mean() > 0.9


def test_scores_decisions_and_labels_agree(fitted, rows):
    scores = fitted.anomaly_score(rows)
    np.testing.assert_array_equal(fitted.score_samples(rows), -scores)
    np.testing.assert_array_equal(fitted.decision_function(rows), -scores - fitted.offset_)
    np.testing.assert_array_equal(fitted.predict(rows) == -1, fitted.decision_function(rows) < 0)


@pytest.mark.parametrize("rate", [0.01, 0.05, 0.2, 0.5])
def test_the_rate_can_be_changed_without_a_refit(fitted, rate):
    detector = pickle.loads(pickle.dumps(fitted))
    detector.set_params(false_positive_rate=rate)
    x = make_rows(500, seed=1)
    np.testing.assert_array_equal(detector.predict(x) == -1, detector.p_values(x) <= rate)


def test_p_values_of_the_paper_configuration_warn(rows):
    detector = DiffInt.paper(**{**QUICK, "n_members": 1}).fit(rows)
    with pytest.warns(CalibrationWarning, match="optimistic"):
        detector.p_values(rows)


@pytest.mark.parametrize("calibration", ["members", "holdout"])
def test_false_positive_rate_on_new_inliers(calibration):
    shares = []
    for seed in range(5):
        x = make_rows(1000, seed=3)
        np.random.default_rng(seed).shuffle(x)
        settings = {**QUICK, "random_state": seed, "calibration": calibration}
        detector = DiffInt(**settings).fit(x[:600])
        shares.append((detector.p_values(x[600:]) <= 0.1).mean())
    assert np.mean(shares) <= 0.1 + 2 * np.std(shares, ddof=1) / np.sqrt(5) + 0.01


def test_known_anomalies_are_left_out(rows):
    mixed = np.vstack([rows, rows[:20] + 1e6])
    mask = np.r_[np.zeros(len(rows)), np.ones(20)]
    assert DiffInt(**QUICK).fit(mixed, anomalies=mask).model_.training.n_known_anomalies == 20
    clean = DiffInt(**QUICK).fit(rows)
    np.testing.assert_array_equal(
        DiffInt(**QUICK).fit(mixed, anomalies=mask).anomaly_score(rows),
        clean.anomaly_score(rows),
    )


def test_labels_are_ignored(rows):
    a = DiffInt(**QUICK).fit(rows, np.ones(len(rows))).anomaly_score(rows)
    np.testing.assert_array_equal(a, DiffInt(**QUICK).fit(rows).anomaly_score(rows))


class TestDeterminism:
    @pytest.mark.parametrize("settings", [{}, {"decoder": "certified"}, {"init": "gaussian"}])
    def test_same_seed_same_bits(self, rows, settings):
        first = DiffInt(**QUICK, **settings, n_jobs=1)
        scores = first.fit(rows).anomaly_score(rows)
        np.testing.assert_array_equal(first.fit(rows).anomaly_score(rows), scores)
        second = DiffInt(**QUICK, **settings, n_jobs=2).fit(rows)
        np.testing.assert_array_equal(second.anomaly_score(rows), scores)

    def test_other_seeds_differ(self, rows):
        a, b = (DiffInt(**{**QUICK, "random_state": s}).fit(rows) for s in (0, 1))
        assert not np.array_equal(a.anomaly_score(rows), b.anomaly_score(rows))

    def test_no_seed_gives_different_fits(self, rows):
        a, b = (DiffInt(**{**QUICK, "random_state": None}).fit(rows) for _ in range(2))
        assert not np.array_equal(a.anomaly_score(rows), b.anomaly_score(rows))

    @pytest.mark.parametrize("random_state", [0, None])
    def test_global_state_is_unchanged(self, rows, random_state):
        import torch

        torch.manual_seed(5)
        np.random.seed(5)  # noqa: NPY002
        before = (np.random.get_state()[1].copy(), torch.get_rng_state().clone())  # noqa: NPY002
        threads, dtype = torch.get_num_threads(), torch.get_default_dtype()
        DiffInt(**{**QUICK, "random_state": random_state}).fit(rows).predict(rows)
        np.testing.assert_array_equal(np.random.get_state()[1], before[0])  # noqa: NPY002
        assert torch.equal(torch.get_rng_state(), before[1])
        assert (torch.get_num_threads(), torch.get_default_dtype()) == (threads, dtype)

    def test_a_score_does_not_depend_on_other_rows(self, fitted):
        x = make_rows(10_007, seed=2)
        x[::7, 1] = np.nan
        scores = fitted.anomaly_score(x)
        order = np.random.default_rng(0).permutation(len(x))
        np.testing.assert_array_equal(fitted.anomaly_score(x[order]), scores[order])
        alone = np.array([fitted.anomaly_score(x[i : i + 1])[0] for i in range(0, len(x), 501)])
        np.testing.assert_allclose(alone, scores[::501], rtol=0, atol=1e-9)


@pytest.fixture(scope="module")
def with_missing():
    x = make_rows(400, seed=4)
    x[np.random.default_rng(1).random(x.shape) < 0.1] = np.nan
    return x


class TestMissingValues:
    def test_fit_and_score(self, with_missing):
        detector = DiffInt(**QUICK).fit(with_missing)
        assert np.isfinite(detector.anomaly_score(with_missing)).all()
        np.testing.assert_allclose(
            detector.model_.features.missing_share, np.isnan(with_missing).mean(axis=0)
        )

    @pytest.mark.parametrize("missing", ["signal", "ignored"])
    def test_the_part_of_a_missing_cell(self, missing, rows):
        from diffint.score.parts import feature_parts

        detector = DiffInt(**QUICK, missing=missing).fit(rows)
        x = rows[:20].copy()
        x[:, 3] = np.nan
        parts = feature_parts(detector.prepared, x)
        assert ((parts[:, 3] > 0) == (missing == "signal")).all()
        np.testing.assert_allclose(parts.sum(axis=1), detector.anomaly_score(x), rtol=1e-12)

    def test_a_blank_row_scores_above_nearly_all_others(self, fitted, rows):
        x = np.vstack([rows, np.full((1, rows.shape[1]), np.nan)])
        scores = fitted.anomaly_score(x)
        assert scores[-1] > np.quantile(scores[:-1], 0.99)

    def test_a_blank_row_scores_zero_if_missing_cells_are_ignored(self, rows):
        detector = DiffInt(**QUICK, missing="ignored").fit(rows)
        x = np.vstack([rows[:2], np.full((1, rows.shape[1]), np.nan)])
        with pytest.warns(InputWarning, match="1 row has no value in any column"):
            scores = detector.anomaly_score(x)
        assert scores[2] == 0.0
        assert (scores[:2] > 0).all()

    def test_blank_rows_and_columns_in_training(self, with_missing):
        x = with_missing.copy()
        x[:3] = np.nan
        x[:, 2] = np.nan
        with pytest.warns(InputWarning) as caught:
            detector = DiffInt(**QUICK).fit(x)
        messages = " ".join(str(w.message) for w in caught)
        assert "3 rows without any value were left out" in messages
        assert "'x2'" in messages
        assert detector.model_.training.n_blank_rows == 3
        changed = x[3:].copy()
        changed[:, 2] = 1e9
        np.testing.assert_array_equal(
            detector.anomaly_score(changed), detector.anomaly_score(x[3:])
        )


MAX = np.finfo(float).max


class TestUnusualTables:
    @pytest.mark.parametrize("scale", [1e300, 1e-300])
    def test_huge_and_tiny_values(self, rows, scale):
        scores = (
            DiffInt(**QUICK)
            .fit(rows / np.abs(rows).max() * scale)
            .anomaly_score(rows / np.abs(rows).max() * scale)
        )
        assert np.isfinite(scores).all()
        assert scores.std() > 0

    @pytest.mark.filterwarnings("error::RuntimeWarning")
    @pytest.mark.parametrize("decoder", ["free", "certified"])
    @pytest.mark.parametrize("scaling", ["minmax", "unit", "standard"])
    def test_the_widest_and_narrowest_columns(self, tmp_path, scaling, decoder):
        """Whatever is fitted can be saved, scored, explained and certified."""
        base = np.random.default_rng(0).normal(size=60)
        huge = base / np.abs(base).max() * 1e303
        x = np.column_stack(
            [huge, base * 1e-310, np.where(base > 0, 5e-324, 0.0), 1e303 + 0 * base]
        )
        DiffInt(**QUICK, scaling=scaling, decoder=decoder).fit(x).save(tmp_path / "m")
        detector = DiffInt.load(tmp_path / "m")
        new = np.vstack([x, -x, np.full((1, 4), MAX), np.full((1, 4), -MAX)])
        scores = detector.anomaly_score(new)
        explained, learned = detector.explain(new), detector.explain_global()
        for values in (scores, detector.reconstruct(new), learned.lower, learned.upper):
            assert np.isfinite(values).all()
        for name in ("lower", "upper", "distance", "expected", "responsibility"):
            assert np.isfinite(getattr(explained, name)).all(), name
        assert explained.text()
        nearest = detector.set_params(false_positive_rate=0.2).nearest_normal(new)
        assert np.isfinite(nearest.to_frame()["suggested"]).all()
        region = detector.certify_region(x.min(axis=0), x.max(axis=0), splits=4)
        assert region.lower <= scores[: len(x)].min()
        assert scores[: len(x)].max() <= region.upper

    @pytest.mark.parametrize("value", [MAX, -MAX, 1.1e303])
    def test_values_with_which_differences_overflow(self, value):
        x = np.random.default_rng(0).normal(size=(30, 2))
        x[7, 1] = value
        frame = pd.DataFrame(x, columns=["a", "b"])
        with pytest.raises(InputError, match=r"column 'b'.*row 7.*NaN.*divide the column"):
            DiffInt(**QUICK).fit(frame)
        DiffInt(**QUICK).fit(frame, anomalies=np.abs(x[:, 1]) > 1e9)  # not trained on

    @pytest.mark.parametrize("rate", [5e-324, 1e-300])
    def test_the_smallest_rates(self, rows, tmp_path, rate):
        detector = DiffInt(**QUICK, false_positive_rate=rate)
        with pytest.warns(CalibrationWarning, match="too few for a false-positive rate"):
            detector.fit(rows)
        detector.save(tmp_path / "m")
        assert DiffInt.load(tmp_path / "m").predict(rows).max() == 1

    @pytest.mark.parametrize("dtype", [np.int64, np.uint8, bool, np.float32])
    def test_dtypes(self, dtype):
        x = np.random.default_rng(0).integers(0, 2, (100, 4)).astype(dtype)
        assert np.isfinite(DiffInt(**QUICK).fit(x).anomaly_score(x)).all()

    def test_big_integers(self):
        x = np.random.default_rng(0).integers(2**60, 2**62, (100, 2))
        assert np.isfinite(DiffInt(**QUICK).fit(x).anomaly_score(x)).all()

    def test_one_column(self):
        x = np.random.default_rng(0).normal(size=(100, 1))
        detector = DiffInt(**QUICK).fit(x)
        assert detector.anomaly_score([[9.0]])[0] > np.median(detector.anomaly_score(x))

    def test_constant_table(self):
        with pytest.warns(InputWarning, match="constant"):
            detector = DiffInt(**{**QUICK, "epochs": 30}).fit(np.full((50, 2), 3.0))
        same, other = detector.anomaly_score([[3.0, 3.0], [3.0, 4.0]])
        assert other > same

    @pytest.mark.parametrize("n_rows", [2, 3, 5, 10])
    def test_few_rows_give_a_warning(self, rows, n_rows):
        with pytest.warns(CalibrationWarning):
            detector = DiffInt(**QUICK).fit(rows[:n_rows])
        assert np.isfinite(detector.anomaly_score(rows)).all()

    def test_fewer_rows_than_a_batch(self, rows):
        assert DiffInt(**QUICK, batch_size=1000).fit(rows).model_.training.batch_size == 1000

    @pytest.mark.parametrize("scaling", ["minmax", "unit", "standard", "none"])
    @pytest.mark.parametrize("temperature", [1e-9, 0.001, 0.1, 10.0, 9e8])
    def test_scalings_and_temperatures(self, scaling, temperature):
        x = np.random.default_rng(0).normal(size=(80, 3)) * 5
        detector = DiffInt(**QUICK, scaling=scaling, temperature=temperature).fit(x)
        assert np.isfinite(detector.anomaly_score(x * 100)).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_units": 0}, "n_units"),
        ({"temperature": -1}, "temperature"),
        ({"false_positive_rate": 1.0}, "false_positive_rate"),
        ({"device": "tpu"}, "device='tpu'"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"random_state": "x"}, "random_state"),
        ({"random_state": -1}, "random_state"),
        ({"decoder": "deep"}, "decoder"),
    ],
)
def test_bad_settings_raise_in_fit(rows, settings, message):
    with pytest.raises(InputError, match=message):
        DiffInt(**{**QUICK, **settings}).fit(rows)


def test_a_missing_gpu_is_an_error(rows):
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(InputError, match="device='cuda' cannot be used"):
        DiffInt(**QUICK, device="cuda").fit(rows)


@pytest.mark.parametrize(
    "method", ["predict", "anomaly_score", "score_samples", "p_values", "reconstruct"]
)
def test_unfitted_use(method):
    with pytest.raises(NotFittedError, match="not fitted"):
        getattr(DiffInt(), method)(np.ones((2, 2)))
    with pytest.raises(NotFittedError):
        _ = DiffInt().offset_


def test_reconstruction_is_in_original_units(rows):
    detector = DiffInt(**{**QUICK, "epochs": 100}).fit(rows)
    error = np.abs(detector.reconstruct(rows) - rows) / np.ptp(rows, axis=0)
    assert error.mean() < 0.1


class TestTraining:
    def test_history_and_movement(self, fitted):
        assert fitted.history_.shape == (QUICK["epochs"],)
        assert fitted.history_[-1] < fitted.history_[0]
        assert all(m.center_movement > 0 for m in fitted.model_.members)

    def test_warning_if_intervals_did_not_move(self, rows):
        with pytest.warns(TrainingWarning, match="hardly moved"):
            DiffInt(**QUICK, learning_rate=1e-9).fit(rows)

    def test_warning_if_the_decoder_hardly_follows_the_rows(self):
        x = np.sign(np.random.default_rng(0).normal(size=(200, 40)))  # needs a steep decoder
        settings = {**QUICK, "epochs": 60}
        with pytest.warns(TrainingWarning, match="spectral decoder hardly follows"):
            DiffInt(**settings, decoder="spectral").fit(x)
        with warnings.catch_warnings():
            warnings.simplefilter("error", TrainingWarning)
            DiffInt(**settings, decoder="free").fit(x)

    def test_warning_if_the_loss_did_not_fall(self, rows):
        with pytest.warns(TrainingWarning, match="did not fall"):
            DiffInt(**QUICK, learning_rate=1e-30).fit(rows)

    @pytest.fixture
    def interrupted_training(self, monkeypatch):
        """Ctrl-C in the tenth epoch."""
        calls, of_a_run = itertools.count(), cpu_training.epoch_orders

        def interrupting(*arguments):
            for order in of_a_run(*arguments):
                if next(calls) == 10:
                    os.kill(os.getpid(), signal.SIGINT)
                yield order

        monkeypatch.setattr(cpu_training, "epoch_orders", interrupting)

    @pytest.mark.usefixtures("interrupted_training")
    def test_an_interrupted_fit_stops_at_once_and_is_unfitted(self, rows):
        detector = DiffInt(**{**QUICK, "epochs": 10_000_000, "n_jobs": 2})
        with pytest.raises(KeyboardInterrupt):
            detector.fit(rows)  # else it would not end
        assert not hasattr(detector, "model_")

    @pytest.mark.usefixtures("interrupted_training")
    def test_an_interrupted_refit_does_not_keep_the_old_model(self, rows, fitted):
        detector = copy.deepcopy(fitted).set_params(epochs=10_000_000)
        with pytest.raises(KeyboardInterrupt):
            detector.fit(rows)
        assert not hasattr(detector, "model_")

    def test_no_output_unless_asked_for(self, rows, capfd):
        DiffInt(**QUICK).fit(rows)
        assert capfd.readouterr() == ("", "")


class TestFailedFits:
    def test_the_old_model_is_removed(self, rows):
        detector = DiffInt(**QUICK).fit(rows)
        with pytest.raises(InputError):
            detector.fit(np.array([[1.0], [np.inf], [2.0]]))
        with pytest.raises(NotFittedError):
            detector.anomaly_score(rows[:, :1])

    def test_divergence_is_an_error(self, rows):
        with pytest.raises(TrainingError, match=r"diverged.*smaller learning_rate"):
            DiffInt(**{**QUICK, "epochs": 1}, learning_rate=1e20, batch_size=1000).fit(rows)


def test_settings_may_be_numpy_scalars(rows, tmp_path):
    settings = {**QUICK, "n_units": np.int64(8), "temperature": np.float32(0.1)}
    detector = DiffInt(**settings, false_positive_rate=np.float64(0.05)).fit(rows)
    detector.save(tmp_path / "m")
    assert DiffInt.load(tmp_path / "m").n_units == 8


def test_warning_if_the_rate_is_too_small_for_the_calibration_rows(fitted, rows):
    detector = pickle.loads(pickle.dumps(fitted))
    detector.false_positive_rate = 1e-4
    with pytest.warns(CalibrationWarning, match="too few for a false-positive rate of 0.0001"):
        detector.predict(rows)


def test_reconstruction_of_a_feature_that_only_some_members_trained_on():
    x = make_rows(60)
    x[1:, 2] = np.nan
    for seed in range(4):
        detector = DiffInt(**{**QUICK, "n_members": 3, "random_state": seed}).fit(x)
        known = any(not np.isnan(m.scaler.constant[2]) for m in detector.model_.members)
        assert np.isfinite(detector.reconstruct(x[:1])[0, 2]) == known


def test_very_different_ranges_between_members():
    x = np.random.default_rng(0).normal(size=(60, 2)) * 1e-160
    x[0, 0] = 1e160
    for seed in range(3):
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            detector = DiffInt(**{**QUICK, "n_members": 3, "random_state": seed}).fit(x)
        assert np.isfinite(detector.anomaly_score(x)).all()


def test_a_fitted_model_cannot_be_changed(fitted):
    for model in (fitted.model_, pickle.loads(pickle.dumps(fitted.model_))):
        member = model.members[0]
        for array in (member.center, member.scaler.offset, model.calibration.scores):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0


class TestScikitLearnTools:
    def test_pipeline_and_clone(self, rows):
        pipeline = clone(make_pipeline(StandardScaler(), DiffInt(**QUICK)))
        assert set(pipeline.fit_predict(rows)) <= {-1, 1}

    def test_grid_search(self, rows):
        x = np.vstack([rows, rows[:60] * 3])
        y = np.r_[np.zeros(300), np.ones(60)]

        def auroc(estimator, X, y):
            return roc_auc_score(y, estimator.anomaly_score(X))

        folds = StratifiedKFold(2)
        search = GridSearchCV(
            DiffInt(**QUICK), {"temperature": [0.05, 0.1]}, scoring=auroc, cv=folds
        )
        assert search.fit(x, y).best_score_ > 0.5

    def test_joblib(self, rows):
        jobs = [joblib.delayed(DiffInt(**QUICK).fit)(rows) for _ in range(2)]
        a, b = joblib.Parallel(n_jobs=2)(jobs)
        np.testing.assert_array_equal(a.anomaly_score(rows), b.anomaly_score(rows))

    def test_data_frames(self, rows):
        frame = pd.DataFrame(rows, columns=list("abcde"))
        detector = DiffInt(**QUICK).fit(frame)
        np.testing.assert_array_equal(
            detector.anomaly_score(frame), DiffInt(**QUICK).fit(rows).anomaly_score(rows)
        )
        assert detector.model_.feature_names == tuple("abcde")


def test_importing_and_fitting_need_no_torch():
    script = """
    import sys
    class NoTorch:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] == "torch":
                raise ImportError("torch is blocked")
    sys.meta_path.insert(0, NoTorch())
    import numpy as np, diffint
    heavy = {"numba", "matplotlib", "rich", "safetensors"} & set(sys.modules)
    assert not heavy, heavy
    x = np.random.default_rng(0).normal(size=(60, 3))
    d = diffint.DiffInt(n_units=8, epochs=2, hidden_width=8, random_state=0).fit(x)
    assert np.isfinite(d.anomaly_score(x)).all()
    """
    subprocess.run([sys.executable, "-W", "ignore", "-c", textwrap.dedent(script)], check=True)


def test_version():
    from importlib.metadata import version

    assert diffint.__version__ == version("diffint-ad")


class TestReport:
    def test_flagged_rows_are_named_by_the_index(self, fitted, rows, tmp_path):
        frame = pd.DataFrame(rows[:20], index=[f"row-{i}" for i in range(20)])
        frame.iloc[3] += 1e6
        detector = DiffInt(**QUICK, false_positive_rate=0.05).fit(pd.DataFrame(rows))
        detector.report(frame, tmp_path / "page.html")
        page = (tmp_path / "page.html").read_text()
        assert page.startswith("<!doctype html>")
        assert "row-3" in page

    def test_rows_of_an_array_are_numbered(self, fitted, rows, tmp_path):
        fitted.report(rows * 3, tmp_path / "page.html", max_rows=1)
        scores = fitted.anomaly_score(rows * 3)
        assert f'[["{scores.argmax()}",' in (tmp_path / "page.html").read_text()

    def test_the_path_is_returned_and_more_columns_are_shown(self, rows, tmp_path):
        names = [f"text {i} of its own" for i in range(len(rows))]
        frame = pd.DataFrame(rows, columns=list("abcde")).assign(name=names)
        with pytest.warns(UserWarning, match="name"):  # ignored by the fit
            detector = DiffInt(**QUICK, false_positive_rate=0.3).fit(frame)
        more = pd.DataFrame({"shop": ["north", None] * 150, 7: np.arange(300)})
        path = detector.report(frame, str(tmp_path / "page.html"), kept=more)
        assert path == tmp_path / "page.html"
        data = data_of(path.read_text())
        assert data["kept"] == ["shop", "7", "name"]
        for row in data["rows"]:
            i = int(row[0])
            assert row[-1] == ["north" if i % 2 == 0 else "", str(i), names[i]]

    def test_bad_requests_write_nothing(self, fitted, rows, tmp_path):
        with pytest.raises(InputError, match="the kept column 'shop' has length 2 and X 300"):
            fitted.report(rows, tmp_path / "page.html", kept={"shop": ["a", "b"]})
        with pytest.raises(InputError, match="cannot be shown"):
            fitted.report(rows, tmp_path / "page.html", max_rows=0)
        with pytest.raises(OSError, match="nowhere"):
            fitted.report(rows, tmp_path / "nowhere" / "page.html")
        for kept in ("shop", ["shop"], 5):
            with pytest.raises(InputError, match="pass a DataFrame, such as"):
                fitted.report(rows, tmp_path / "page.html", kept=kept)
        for cells in ({1, 2}, np.zeros((300, 2))):
            with pytest.raises(InputError, match="the kept column 'k' is no column"):
                fitted.report(rows, tmp_path / "page.html", kept={"k": cells})
        for path in (None, 5, b"page.html"):
            with pytest.raises(InputError, match="must be the name of a file"):
                fitted.report(rows, path)
        assert not list(tmp_path.iterdir())


def test_files_that_were_read_are_not_overwritten(rows, tmp_path):
    np.save(tmp_path / "t.npy", rows)
    table = np.load(tmp_path / "t.npy", mmap_mode="r")
    detector = DiffInt(**QUICK).fit(table)
    detector.save(tmp_path / "m.diffint")
    loaded = DiffInt.load(tmp_path / "m.diffint")
    (tmp_path / "link").symlink_to(tmp_path / "t.npy")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for write in (
        lambda: detector.save(tmp_path / "t.npy"),
        lambda: detector.report(rows, tmp_path / "t.npy"),
        lambda: loaded.report(table, tmp_path / "link"),
        lambda: loaded.report(rows, tmp_path / "m.diffint"),
    ):
        with pytest.raises(InputError, match="is also an input and would be overwritten"):
            write()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    loaded.save(tmp_path / "m.diffint")  # a model may replace its own file
    loaded.report(rows, tmp_path / "r.html")
