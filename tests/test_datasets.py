import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from diffint import DiffInt, InputError
from diffint.datasets import adbench_files, breast_cancer, read_adbench


def test_the_embedded_table():
    table = breast_cancer()
    assert table.x.shape == (569, 30)
    assert table.y.sum() == 212  # malignant
    assert len(table.feature_names) == 30


def test_a_folder_that_is_none(tmp_path):
    with pytest.raises(InputError, match="not a folder of ADBench tables"):
        adbench_files(tmp_path / "missing")


def test_tables_are_found_in_the_order_of_their_numbers(tmp_path):
    for name in ("10_b", "2_a", "notes"):
        np.savez(tmp_path / f"{name}.npz", X=np.ones((3, 2), dtype=np.uint8), y=[0, 1, 0])
    assert list(adbench_files(tmp_path)) == ["2_a", "10_b"]
    table = read_adbench(tmp_path / "2_a.npz")
    assert table.x.dtype == np.float64
    np.testing.assert_array_equal(table.y, [0, 1, 0])


@pytest.mark.parametrize(("name", "least"), [("6_cardio", 0.93), ("31_satimage-2", 0.99)])
def test_accuracy_on_real_tables(adbench, name, least):
    table = read_adbench(adbench_files(adbench)[name])
    x_train, x_test, y_train, y_test = train_test_split(
        table.x, table.y, test_size=0.4, random_state=0
    )
    detector = DiffInt(random_state=0).fit(x_train, anomalies=y_train)
    assert roc_auc_score(y_test, detector.anomaly_score(x_test)) > least
