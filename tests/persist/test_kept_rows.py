"""Training rows in model files: how many there are, what the file says, and what is refused."""

import numpy as np
import pytest
from benchmarks.attacks.forged_files import ModelFile

from diffint import DiffInt, ModelFileError

from ..conftest import QUICK, make_rows
from .forging import forge


@pytest.fixture(scope="module")
def table():
    x = make_rows(120)
    x[:, 1] = np.exp(np.random.default_rng(0).normal(0, 3, 120))
    x[::4, 2] = np.nan
    x[:, 3] = 5.0
    return x


def saved_file(path):
    return ModelFile.parse(path.read_bytes())


@pytest.mark.filterwarnings("ignore:1 row has no value:diffint.core.errors.InputWarning")
@pytest.mark.parametrize("kept_rows", [0, 1, 15, 16, 17, 500])
@pytest.mark.parametrize("missing", ["signal", "ignored"])
def test_scores_are_the_same_to_the_bit(table, tmp_path, kept_rows, missing):
    detector = DiffInt(**QUICK, kept_rows=kept_rows, missing=missing).fit(table)
    detector.save(tmp_path / "m")
    loaded = DiffInt.load(tmp_path / "m")
    new = np.vstack([table, table * 1.3])
    new[5] = np.nan
    np.testing.assert_array_equal(loaded.anomaly_score(new), detector.anomaly_score(new))
    np.testing.assert_array_equal(loaded.p_values(new), detector.p_values(new))
    assert loaded.get_params()["kept_rows"] == kept_rows
    assert loaded.get_params()["missing"] == missing
    assert loaded.explain(table[:9]).text() == detector.explain(table[:9]).text()


def test_the_file_says_how_many_rows_are_stored(table, tmp_path):
    path = tmp_path / "m"
    DiffInt(**QUICK, kept_rows=20).fit(table).save(path)
    file = saved_file(path)
    assert file.description["n_kept_rows"] == 20
    assert file.description["training_rows"].startswith("40 training rows are stored, scaled")
    assert "fit with kept_rows=0 to store none" in file.description["training_rows"]
    assert file.arrays["members.kept_rows"].shape == (2, 20, 5)
    # The statement can be read without any tool.
    assert b"40 training rows are stored" in path.read_bytes()


def test_a_table_with_fewer_rows_than_may_be_kept(table, tmp_path):
    DiffInt(**QUICK).fit(table).save(tmp_path / "m")
    kept = saved_file(tmp_path / "m").description["n_kept_rows"]
    assert kept == 96  # what each member is trained on


def test_no_rows_are_kept_if_none_are_left_out(table):
    # The scores of kept rows, whose distance is 0, would set the threshold.
    detector = DiffInt(**QUICK, calibration="training").fit(table)
    assert all(len(member.kept_rows) == 0 for member in detector.model_.members)


def test_no_rows_are_stored_if_none_are_kept(table, tmp_path):
    detector = DiffInt(**QUICK, kept_rows=0).fit(table)
    assert all(len(member.kept_rows) == 0 for member in detector.model_.members)
    path = tmp_path / "m"
    detector.save(path)
    file = saved_file(path)
    assert file.description["training_rows"] == "no training rows are stored"
    assert file.description["n_kept_rows"] == 0
    assert file.arrays["members.kept_rows"].size == 0


def test_the_paper_keeps_no_rows(table, tmp_path):
    DiffInt.paper(**{**QUICK, "n_members": 1}).fit(table).save(tmp_path / "m")
    assert saved_file(tmp_path / "m").description["n_kept_rows"] == 0


def test_stored_rows_are_training_rows_and_no_others(table, tmp_path):
    detector = DiffInt(**QUICK, kept_rows=10).fit(table)
    for member in detector.model_.members:
        weighted = member.scaler.transform(table)[1] * member.kept_weight
        for kept in member.kept_rows:
            same = (np.isnan(weighted) | np.isclose(weighted, kept, rtol=1e-6)).all(axis=1)
            assert same.any()


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.update(n_kept_rows=0),
        lambda m: m.update(n_kept_rows=0, training_rows="no training rows are stored"),
        lambda m: m.update(n_kept_rows=19),
        lambda m: m.update(n_kept_rows=-20),
        lambda m: m.update(n_kept_rows=10**15),
        lambda m: m.update(n_kept_rows=20.0),
        lambda m: m.update(n_kept_rows=True),
        lambda m: m.update(n_kept_rows=None),
        lambda m: m.pop("n_kept_rows"),
        lambda m: m.update(training_rows="no training rows are stored"),
        lambda m: m.update(training_rows=""),
        lambda m: m.update(training_rows=None),
        lambda m: m.pop("training_rows"),
        lambda m: m["config"].update(kept_rows=0),
        lambda m: m["config"].update(kept_rows=19),
        lambda m: m["config"].update(kept_rows=-1),
        lambda m: m["config"].update(missing="perhaps"),
        lambda m: m["config"].pop("missing"),  # a default would give other scores
        lambda m: m["config"].pop("temperature"),
    ],
)
def test_a_false_statement_is_refused(table, tmp_path, change):
    path = tmp_path / "m"
    DiffInt(**QUICK, kept_rows=20).fit(table).save(path)
    forge(path, describe=change)
    with pytest.raises(ModelFileError):
        DiffInt.load(path)


CELL, FIRST = (0, 0, 0), (0, 0)


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("members.kept_rows", CELL, np.nan),
        ("members.kept_rows", CELL, np.inf),
        ("members.kept_rows", CELL, 1e31),
        ("members.kept_weight", FIRST, -1.0),
        ("members.kept_weight", FIRST, np.nan),
        ("members.kept_weight", FIRST, 1e13),
        ("members.distance_weight", 0, -0.1),
        ("members.distance_weight", 0, np.nan),
        ("members.distance_weight", 0, 1e13),
        ("members.missing_error", FIRST, -1e-3),
        ("members.missing_error", FIRST, np.nan),
        ("members.missing_surprise", FIRST, np.inf),
        ("members.missing_surprise", FIRST, -1.0),
        ("members.scaler.knots", (0, 1, 0, 2), np.nan),
        ("members.scaler.knots", (0, 1, 0, 0), 1e9),
        ("members.scaler.knots", (0, 1, 1, 0), -1.0),
        ("members.scaler.knots", (0, 0, 0, 35), 1.0),
        ("members.scaler.knots", (0, 3), 1.0),  # of a constant
    ],
)
def test_an_impossible_value_is_refused(table, tmp_path, name, place, value):
    path = tmp_path / "m"
    DiffInt(**QUICK, kept_rows=20).fit(table).save(path)
    forge(path, arrays=lambda arrays: arrays[name].__setitem__(place, value))
    with pytest.raises(ModelFileError, match="impossible"):
        DiffInt.load(path)


def test_the_largest_values_give_finite_scores_within_bounds(table, tmp_path):
    """A file that passes the checks cannot make the scorer overflow."""
    path = tmp_path / "m"
    DiffInt(**QUICK, kept_rows=20).fit(table).save(path)

    def change(arrays):
        rng = np.random.default_rng(0)
        arrays["members.kept_rows"][:] = rng.choice(
            [-1e30, 1e30], arrays["members.kept_rows"].shape
        )
        arrays["members.kept_weight"][:] = 1e12
        arrays["members.distance_weight"][:] = 1e12
        arrays["members.missing_error"][:] = 1e37
        arrays["members.missing_surprise"][:] = 1e37

    forge(path, arrays=change)
    detector = DiffInt.load(path)
    complete = np.nan_to_num(table)
    scores = detector.anomaly_score(complete)
    assert np.isfinite(scores).all()
    assert np.isfinite(detector.anomaly_score(table)).all()
    region = detector.certify_region(complete.min(axis=0), complete.max(axis=0))
    assert region.lower <= scores.min()
    assert scores.max() <= region.upper < np.inf
    assert np.isfinite(detector.explain(table).share).all()
