import numpy as np
import pandas
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from diffint import DiffInt, InputError
from diffint.tables.datasets import (
    adbench_files,
    breast_cancer,
    labelled_files,
    macrodata_files,
    read_adbench,
    read_labelled,
    read_macrodata,
)


def test_the_embedded_table():
    table = breast_cancer()
    assert table.x.shape == (569, 30)
    assert table.y.sum() == 212  # malignant
    assert len(table.feature_names) == 30


def test_a_missing_folder(tmp_path):
    with pytest.raises(InputError, match="not a folder of ADBench tables"):
        adbench_files(tmp_path / "missing")


def test_tables_are_ordered_by_their_numbers(tmp_path):
    for name in ("10_b", "2_a", "notes"):
        np.savez(tmp_path / f"{name}.npz", X=np.ones((3, 2), dtype=np.uint8), y=[0, 1, 0])
    assert list(adbench_files(tmp_path)) == ["2_a", "10_b"]
    table = read_adbench(tmp_path / "2_a.npz")
    assert table.x.dtype == np.float64
    np.testing.assert_array_equal(table.y, [0, 1, 0])


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.ones((3, 2)), "y": [1, 2, 1]}, "y contains 1, 2"),
        ({"X": np.ones((3, 2)), "y": [1, -1, 1]}, "y contains -1, 1"),
        ({"X": np.ones((3, 2)), "y": [0, 0.5, 1]}, "y contains 0.0, 0.5, 1.0"),
        ({"X": np.ones((3, 2)), "y": [0, 1]}, "y has 2 values"),
        ({"X": np.ones(3), "y": [0, 1, 0]}, r"shape \(3,\)"),
        ({"X": np.ones((0, 2)), "y": []}, r"shape \(0, 2\)"),
        ({"X": np.ones((3, 2))}, "not a table with X and y"),
        ({"X": np.array([["a"]]), "y": [0]}, "not a table with X and y"),
    ],
)
def test_invalid_tables(tmp_path, arrays, message):
    np.savez(tmp_path / "1_bad.npz", **arrays)
    with pytest.raises(InputError, match=message):
        read_adbench(tmp_path / "1_bad.npz")


def test_files_that_are_not_tables(tmp_path):
    (tmp_path / "1_bad.npz").write_bytes(b"PK\x03\x04 and nothing more")
    (tmp_path / "2_bad.npz").mkdir()
    for name in ("1_bad", "2_bad", "3_none"):
        with pytest.raises(InputError, match="not a table with X and y"):
            read_adbench(tmp_path / f"{name}.npz")


@pytest.mark.parametrize(("name", "least"), [("6_cardio", 0.93), ("31_satimage-2", 0.99)])
def test_accuracy_on_real_tables(adbench, name, least):
    table = read_adbench(adbench_files(adbench)[name])
    x_train, x_test, y_train, y_test = train_test_split(
        table.x, table.y, test_size=0.4, random_state=0
    )
    detector = DiffInt(random_state=0).fit(x_train, anomalies=y_train)
    assert roc_auc_score(y_test, detector.anomaly_score(x_test)) > least


# --- macrOData: a fixed split --------------------------------------------------------------------

SPLIT = {
    "train": np.ones((3, 2), dtype=np.float32),
    "test": np.array([[1.0, np.nan], [2.0, 3.0]], dtype=np.float32),
    "test_labels": np.array([0, 1], dtype=np.int8),
    "feature_names": np.array(["a", "b"]),
}


def test_a_table_with_a_fixed_split(tmp_path):
    np.savez(tmp_path / "t.npz", **SPLIT)
    table = read_macrodata(tmp_path / "t.npz")
    assert table.train.dtype == table.test.dtype == np.float64
    assert table.test_labels.tolist() == [0, 1]
    assert table.feature_names == ["a", "b"]
    assert np.isnan(table.test[0, 1])
    assert table.n_rows == 5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"train": None}, "not a table with train, test, test_labels and feature_names"),
        ({"test_labels": None}, "not a table with train, test, test_labels and feature_names"),
        ({"feature_names": None}, "not a table with train, test, test_labels and feature_names"),
        ({"train": np.array([["x", "y"]])}, "could not convert string"),
        ({"train": np.ones((3, 3))}, r"train has shape \(3, 3\), test \(2, 2\)"),
        ({"train": np.ones(3)}, r"train has shape \(3,\)"),
        ({"train": np.ones((0, 2))}, r"train has shape \(0, 2\)"),
        ({"test_labels": np.array([0, 1, 1])}, r"test_labels \(3,\)"),
        ({"feature_names": np.array(["a"])}, r"feature_names \(1,\)"),
        ({"test_labels": np.array([0, 2])}, "test_labels contains 0, 2; it must be 0, or 1"),
        ({"test_labels": np.array([0, 0])}, "test_labels marks no anomalies in 2 rows"),
        ({"test_labels": np.array([1, 1])}, "test_labels marks only anomalies in 2 rows"),
        ({"train": np.array([[1, 2], [3, -np.inf]])}, "'b' has an infinite number in row 2"),
    ],
)
def test_invalid_tables_with_a_fixed_split(tmp_path, change, message):
    arrays = {name: value for name, value in {**SPLIT, **change}.items() if value is not None}
    np.savez(tmp_path / "t.npz", **arrays)
    with pytest.raises(InputError, match=message) as error:
        read_macrodata(tmp_path / "t.npz")
    assert "t.npz" in str(error.value)


# --- A user's tables -----------------------------------------------------------------------------


def test_a_users_tables(tmp_path):
    np.savez(tmp_path / "b.npz", X=[[1.0, np.nan], [2.0, 3.0]], y=[False, True])
    frame = pandas.DataFrame(
        {"size": [1, 2, 3], "odd": ["false", "true", "false"], "w": [0.5, None, 2]}
    )
    frame.to_parquet(tmp_path / "a.PARQUET")
    (tmp_path / "notes.csv").write_text("not a table of the benchmark")
    assert set(labelled_files(tmp_path)) == {"a", "b"}
    table = read_labelled(tmp_path / "b.npz")
    assert table.y.tolist() == [0, 1]
    assert np.isnan(table.x[0, 1])
    table = read_labelled(tmp_path / "a.PARQUET", "odd")
    assert table.feature_names == ["size", "w"]
    assert table.y.tolist() == [0, 1, 0]
    assert np.isnan(table.x[1, 1])


FRAME = pandas.DataFrame({"a": [1.0, 2.0, 3.0], "label": [0, 1, 0]})


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (FRAME[["a"]], "has no label column 'label'; it has 'a'; name the column with --label"),
        (FRAME[["label"]], "has no column besides the label"),
        (FRAME.assign(city=["x", "y", "z"]), "column 'city' is text"),
        (FRAME.assign(city=pandas.Categorical(["x", "y", "z"])), "column 'city' is text"),
        (FRAME.assign(code=["1", "2", "3"]), "column 'code' is text"),
        (FRAME.assign(day=pandas.to_datetime(["2024-01-01"] * 3)), "column 'day' has the type"),
        (FRAME.assign(label=[0, 2, 0]), "the label 'label' is 2 in row 2; it must be 0 or 1"),
        (FRAME.assign(label=[0, None, 1]), "the label 'label' is missing in row 2"),
        (FRAME.assign(label=["no", "yes", "no"]), "column 'label' has 'no' in row 1"),
        (FRAME.assign(label=0), "label marks no anomalies in 3 rows"),
        (FRAME.assign(label=1), "label marks only anomalies in 3 rows"),
        (FRAME.assign(a=[1.0, np.inf, 2.0]), "column 'a' has an infinite number in row 2"),
        (FRAME.head(0), "no rows"),
    ],
)
def test_invalid_tables_of_a_user(tmp_path, frame, message):
    frame.to_parquet(tmp_path / "mine.parquet")
    with pytest.raises(InputError, match=message) as error:
        read_labelled(tmp_path / "mine.parquet")
    assert "mine.parquet" in str(error.value)


def test_files_of_a_user_that_are_not_tables(tmp_path):
    (tmp_path / "mine.parquet").write_bytes(b"PAR1 and nothing more")
    with pytest.raises(InputError, match=r"'.*mine.parquet' cannot be read as Parquet"):
        read_labelled(tmp_path / "mine.parquet")
    np.savez(tmp_path / "mine.npz", X=np.array([[1.0, np.inf], [2.0, 3.0]]), y=[0, 1])
    with pytest.raises(InputError, match="column 'x1' has an infinite number in row 1"):
        read_labelled(tmp_path / "mine.npz")
    np.savez(tmp_path / "mine.npz", X=np.ones((2, 2)), y=[0, 0])
    with pytest.raises(InputError, match="y marks no anomalies in 2 rows"):
        read_labelled(tmp_path / "mine.npz")


def test_folders_without_tables(tmp_path):
    for files in (adbench_files, macrodata_files, labelled_files):
        with pytest.raises(InputError, match=r"has no .*tables \("):
            files(tmp_path)
