import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from diffint import DiffInt, InputError
from diffint.tables.datasets import adbench_files, breast_cancer, read_adbench


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
