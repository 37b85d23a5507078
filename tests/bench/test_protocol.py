from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import train_test_split

from diffint.bench.protocol import (
    TABLES,
    Trial,
    chosen_tables,
    fill_missing,
    make_trial,
    read_seeds,
    scale_trial,
)
from diffint.bench.suites import ADBENCH
from diffint.core.errors import InputError
from diffint.tables.datasets import LabelledTable


def test_the_48_tables_and_their_groups() -> None:
    groups = Counter(table.scale for table in TABLES.values())
    assert groups == {"small": 12, "medium": 15, "large": 11, "high-dimensional": 10}
    assert TABLES["6_cardio"].batch_size == 64
    assert TABLES["22_magic.gamma"].batch_size == 512
    assert TABLES["11_donors"].batch_size == 1024


def _table(n_rows: int = 60) -> LabelledTable:
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.normal(size=n_rows), rng.random(n_rows), np.full(n_rows, 3.0)])
    return LabelledTable(x, (np.arange(n_rows) % 6 == 0).astype(np.int64), ["a", "b", "c"])


def test_the_split_is_that_of_the_paper() -> None:
    table = _table()
    train, test, train_labels, test_labels = train_test_split(
        table.x, table.y, test_size=0.4, random_state=3
    )
    everything, inliers = (make_trial(table, 3, rows) for rows in ("everything", "inliers"))  # type: ignore[arg-type]
    np.testing.assert_array_equal(everything.train, train)
    np.testing.assert_array_equal(inliers.train, train[train_labels == 0])
    for trial in (everything, inliers):
        np.testing.assert_array_equal(trial.test, test)
        np.testing.assert_array_equal(trial.test_labels, test_labels)


def test_scaling_by_the_training_rows_and_clipping() -> None:
    trial = make_trial(_table(), 0, "inliers")
    trial.test[0] = [1e9, -1e9, 3.0]
    scaled = scale_trial(trial)
    assert scaled.train[:, :2].min(axis=0).tolist() == [-1.0, -1.0]
    assert scaled.train[:, :2].max(axis=0).tolist() == [1.0, 1.0]
    assert scaled.test[0].tolist() == [1.0, -1.0, -1.0]
    assert np.abs(scaled.test).max() <= 1.0


def test_missing_values_become_the_mean_of_the_training_rows() -> None:
    train = np.array([[1.0, np.nan, np.nan], [3.0, 5.0, np.nan]])
    test = np.array([[np.nan, np.nan, np.nan], [7.0, 8.0, 9.0]])
    filled = fill_missing(Trial(train, test, np.array([0, 1])))
    np.testing.assert_array_equal(filled.train, [[1.0, 5.0, 0.0], [3.0, 5.0, 0.0]])
    np.testing.assert_array_equal(filled.test, [[2.0, 5.0, 0.0], [7.0, 8.0, 9.0]])
    assert np.isnan(train).sum() == 3  # the rows of other methods are unchanged
    complete = make_trial(_table(), 0, "inliers")
    assert fill_missing(complete) is complete


def test_standard_scaling_by_the_training_rows_without_clipping() -> None:
    trial = make_trial(_table(), 0, "inliers")
    trial.train[:, 2] = 0.1  # its mean and deviation have rounding errors
    trial.test[0] = [1e9, -1e9, 3.1]
    scaled = scale_trial(trial, "standard")
    np.testing.assert_allclose(scaled.train[:, :2].mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(scaled.train[:, :2].std(axis=0), 1.0)
    assert (scaled.train[:, 2] == 0.0).all()
    assert scaled.test[0, 0] > 1e8
    assert scaled.test[0, 2] == pytest.approx(3.0)
    assert scale_trial(trial, "none") is trial


@pytest.mark.parametrize(
    ("text", "seeds"), [("0-9", tuple(range(10))), ("5", (5,)), ("2,0-1,2", (0, 1, 2))]
)
def test_seeds(text: str, seeds: tuple[int, ...]) -> None:
    assert read_seeds(text) == seeds


@pytest.mark.parametrize("text", ["", "a", "3-1", "-1", "1,,2", "0-99999999999", "0-50000"])
def test_invalid_seeds(text: str) -> None:
    with pytest.raises(InputError, match="must look like"):
        read_seeds(text)


def test_tables_by_name_short_name_and_group(tmp_path: Path) -> None:
    for name in ("45_wine", "14_glass", "6_cardio", "99_mine", "100_wine"):
        np.savez(tmp_path / f"{name}.npz", X=np.zeros((2, 2)), y=np.zeros(2))
    files, absent = ADBENCH.find(tmp_path)
    assert list(files) == ["14_glass", "45_wine", "6_cardio"]
    assert len(absent) == 45
    files, absent = ADBENCH.find(tmp_path, ["small"])
    assert list(files) == ["14_glass", "45_wine"]
    assert absent[0] == "39_vertebral"
    assert list(ADBENCH.find(tmp_path, ["Wine", "6_cardio"])[0]) == ["45_wine", "6_cardio"]
    assert ADBENCH.find(tmp_path, ["99_mine"]) == ({"99_mine": tmp_path / "99_mine.npz"}, [])
    with pytest.raises(InputError, match="no table is called 'whine'"):
        ADBENCH.find(tmp_path, ["whine"])
    with pytest.raises(InputError, match=r"none of the tables.*it has 6_cardio"):
        ADBENCH.find(tmp_path, ["large"])
    with pytest.raises(InputError, match="not a folder"):
        ADBENCH.find(tmp_path / "none")
    assert len(chosen_tables(["high"])) == 10
