from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from diffint.bench.baselines import (
    METHODS,
    absent_methods,
    anomaly_scores,
    chosen_methods,
    plugin_method,
)
from diffint.bench.protocol import make_trial, scale_trial
from diffint.bench.rivals.tccm import TCCM
from diffint.bench.worker import Job, estimated_one_core_seconds, run_job, run_on_gpu
from diffint.core.errors import InputError
from diffint.tables.datasets import LabelledTable, read_adbench

DEEPOD = ("ICL", "SLAD", "NeuTraL", "GOAD")
NEW_ON_INLIERS = {"DTE-C", "MCM", *DEEPOD}


def test_methods_are_those_of_the_paper_and_others() -> None:
    assert sum(method.in_paper for method in METHODS.values()) == 23
    clean = {name for name, m in METHODS.items() if m.rows_for("paper") == "inliers"}
    assert clean == {"DiffInt", "DiffInt-paper", "TCCM", "AutoEncoder", "VAE", *NEW_ON_INLIERS}
    assert {m.rows_for("fair") for m in METHODS.values()} == {"inliers"}


def test_the_scaling_of_each_method() -> None:
    by_distance = {"KNN", "LOF", "CBLOF", "ABOD", "KDE", "KPCA", "OCSVM", "Sampling", "LUNAR"}
    standard = {name for name, method in METHODS.items() if method.scaling == "standard"}
    assert standard == {"DTE-C", "MCM", "SLAD", *(f"{name}-standard" for name in by_distance)}
    assert by_distance <= set(METHODS)
    assert {n for n, m in METHODS.items() if m.scaling == "none"} == {"DiffInt", "DiffInt-paper"}


@pytest.mark.parametrize("name", METHODS)
def test_the_guide_describes_every_method(name: str) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "benchmark.md").read_text()
    assert METHODS[name].description
    assert f"| {name} | {METHODS[name].description} |" in guide


def test_rows_reach_a_detector_in_its_scaling(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, np.ndarray] = {}

    class Recorder:
        def fit(self, X: np.ndarray) -> None:
            seen["train"] = X

        def anomaly_score(self, X: np.ndarray) -> np.ndarray:
            return X[:, 0]

    for scaling in ("minmax", "standard", "none"):
        method = replace(METHODS["KNN"], scaling=scaling, make=lambda seed, n_rows: Recorder())
        monkeypatch.setitem(METHODS, "KNN", method)
        run_job(Job("1_easy", path, "KNN", None, "inliers", (0,)))
        expected = scale_trial(make_trial(_table(), 0, "inliers"), scaling).train  # type: ignore[arg-type]
        np.testing.assert_array_equal(seen["train"], expected)


def _table() -> LabelledTable:
    rng = np.random.default_rng(1)
    y = (np.arange(150) % 10 == 0).astype(np.int64)
    x = rng.normal(size=(150, 5)) * 0.3 + 2.5 * y[:, None]
    return LabelledTable(x, y, list("abcde"))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("table") / "1_easy.npz"
    np.savez(file, X=_table().x, y=_table().y)
    return file


@pytest.mark.parametrize("name", METHODS)
def test_every_method_runs(name: str, path: Path) -> None:
    if name not in ("DiffInt", "DiffInt-paper"):
        pytest.importorskip("pyod")
    if name in NEW_ON_INLIERS:
        pytest.skip("takes up to 20 s; tested with fewer epochs")
    (outcome,) = run_job(Job("1_easy", path, name, None, "inliers", (3,)))
    assert outcome.n_test == 60
    assert 0.0 <= outcome.average_precision <= 1.0
    if name not in ("SO_GAAL", "MO_GAAL", "LMDD", "DIF"):  # fail on this table with their defaults
        assert outcome.roc_auc > 0.9


@pytest.mark.parametrize("name", ["IForest", "AutoEncoder", "DiffInt", "SO_GAAL"])
def test_the_same_seed_gives_the_same_scores(name: str, path: Path) -> None:
    job = Job("1_easy", path, name, None, "everything", (1,))
    (first,), (second,) = run_job(job), run_job(job)
    assert first.roc_auc == second.roc_auc
    assert first.average_precision == second.average_precision


def test_tccm_learns_the_contraction() -> None:
    trial = scale_trial(make_trial(_table(), 0, "inliers"))
    scores = TCCM(steps=300, random_state=0).fit(trial.train).decision_function(trial.test)
    assert scores.shape == (60,)
    assert roc_auc_score(trial.test_labels, scores) > 0.95
    # f(x, 1) is close to −x on the training rows.
    again = TCCM(steps=300, random_state=0).fit(trial.train)
    np.testing.assert_array_equal(again.decision_function(trial.test), scores)
    trained = again.decision_function(trial.train)
    assert trained.mean() < 0.15 * np.linalg.norm(trial.train, axis=1).mean()


@pytest.mark.parametrize("name", DEEPOD)
def test_methods_of_deepod(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("deepod", reason="DeepOD is not a dependency")
    trial = scale_trial(make_trial(_table(), 0, "inliers"), "standard")
    scores = []
    for _ in range(2):
        detector = METHODS[name].make(0, 150)
        detector.epochs = 2
        detector.n_trans = 8  # GOAD has 256 and takes long
        detector.fit(trial.train)
        scores.append(anomaly_scores(detector, trial.test))
    np.testing.assert_array_equal(*scores)
    assert np.isfinite(scores[0]).all()
    assert np.ptp(scores[0]) > 0.0
    assert capsys.readouterr() == ("", "")


def test_icl_compares_representations_of_length_1() -> None:
    pytest.importorskip("deepod", reason="DeepOD is not a dependency")
    torch = pytest.importorskip("torch")
    detector = METHODS["ICL"].make(0, 150)
    detector.epochs = 1
    detector.fit(_table().x)
    for vectors in detector.net(torch.randn(20, 5)):
        assert vectors.shape[:2] == (20, 4)
        torch.testing.assert_close(vectors.norm(dim=2), torch.ones(20, 4))


def test_methods_without_their_package(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in DEEPOD:
        monkeypatch.setitem(METHODS, name, replace(METHODS[name], package="no_such_package"))
    assert absent_methods() == list(DEEPOD)
    assert list(chosen_methods([])) == [name for name in METHODS if name not in DEEPOD]
    with pytest.raises(InputError, match="ICL, GOAD need DeepOD; install it with pip install"):
        chosen_methods(["goad", "KNN", "ICL"])


def test_plugins_by_name() -> None:
    method = plugin_method("tests.bench.plugins:Distance")
    assert (method.name, method.trains_on, method.in_paper) == ("Distance", "everything", False)
    assert plugin_method("mine=tests.bench.plugins:OnInliers").trains_on == "inliers"
    assert plugin_method("mine=tests.bench.plugins:OnInliers").name == "mine"
    assert plugin_method("tests.bench.plugins:Seeded").make(5, 10).rng is not None
    methods = chosen_methods(["knn"], ["tests.bench.plugins:Distance"])
    assert list(methods) == ["KNN", "Distance"]
    assert list(chosen_methods([], ["tests.bench.plugins:Distance"])) == ["Distance"]
    assert list(chosen_methods([])) == [name for name in METHODS if METHODS[name].installed]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("nonsense", "must look like"),
        ("=a:b", "must look like"),
        ("a:", "must look like"),
        ("no.such.module:x", "cannot be imported"),
        ("tests.bench.plugins:Unknown", "cannot be imported"),
        ("tests.bench.plugins:np.pi", "not a class or function"),
        ("KNN=tests.bench.plugins:Distance", "name of another method"),
        ("knn=tests.bench.plugins:Distance", "name of another method"),
        (" =tests.bench.plugins:Distance", "must look like"),
        ("a\nb=tests.bench.plugins:Distance", "must look like"),
        ("tests.bench.broken:Distance", "cannot be imported: ZeroDivisionError"),
    ],
)
def test_invalid_plugins(source: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        chosen_methods([], [source])


def test_two_plugins_with_the_same_name() -> None:
    with pytest.raises(InputError, match="name of another method"):
        chosen_methods([], ["tests.bench.plugins:Distance", "distance=tests.bench.plugins:Column"])


def test_unknown_methods_are_named() -> None:
    with pytest.raises(InputError, match="no method is called 'KNNN'"):
        chosen_methods(["KNNN"])


@pytest.mark.parametrize("wrapped", [False, True])
def test_scores_of_scikit_learn_detectors_are_negated(wrapped: bool) -> None:
    trial = make_trial(_table(), 0, "inliers")
    forest = IsolationForest(random_state=0)
    detector = make_pipeline(StandardScaler(), forest) if wrapped else forest
    scores = anomaly_scores(detector.fit(trial.train), trial.test)
    assert roc_auc_score(trial.test_labels, scores) > 0.9


def test_scores_of_objects_without_a_score() -> None:
    with pytest.raises(InputError, match="has no score"):
        anomaly_scores(object(), np.zeros((2, 2)))


def test_estimated_time_on_one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    detector = METHODS["DiffInt-paper"].make(0, 500).set_params(epochs=60)
    rows = np.random.default_rng(0).random((500, 8))
    assert estimated_one_core_seconds(detector, rows) > 0.0
    times = lambda detector, rows: 3.0 + 0.5 * detector.epochs  # noqa: E731
    monkeypatch.setattr("diffint.bench.worker._fit_seconds", times)
    assert estimated_one_core_seconds(detector, rows) == pytest.approx(33.0)
    detector.set_params(epochs=7)  # few enough to be timed
    assert estimated_one_core_seconds(detector, rows) == pytest.approx(6.5)


def test_seeds_trained_together_equal_seeds_trained_alone(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The function for GPUs, run on the CPU."""
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"a GPU called {device}")
    job = Job("1_easy", path, "DiffInt", None, "inliers", (0, 4), "cpu")
    table = read_adbench(path)
    trials = [make_trial(table, seed, "inliers") for seed in job.seeds]
    phases: list[str] = []
    together = run_on_gpu(job, METHODS["DiffInt"], table, trials, phases.append)
    assert phases == ["fitting", "scoring"]
    for outcome in together:
        (alone,) = run_job(replace(job, seeds=(outcome.seed,)))
        assert outcome.roc_auc == alone.roc_auc
        assert outcome.average_precision == alone.average_precision
        assert outcome.on_gpu is not None
        assert outcome.on_gpu[0] == "a GPU called cpu"
        assert outcome.on_gpu[1] > 0.0
    assert together[0].fit_seconds == together[1].fit_seconds  # of both seeds
