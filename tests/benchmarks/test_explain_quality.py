"""Planted rows, the measures, and a small run of the benchmark of explanations."""

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SCRIPT = BENCHMARKS / "explain_quality.py"


@pytest.fixture(autouse=True)
def _scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def rows_that_hang_together(n_rows, seed):
    """Rows of 6 features: two correlated ones, others, and a constant."""
    x = np.random.default_rng(seed).normal(size=(n_rows, 6))
    x[:, 1] = x[:, 0] + 0.1 * x[:, 1]
    x[:, 5] = 7.0
    return x


@pytest.mark.parametrize("count", [1, 2, 3])
def test_broken_dependencies_are_ordinary_values_in_exactly_so_many_features(count):
    from explain_planting import plant

    train, rows = rows_that_hang_together(200, 0), rows_that_hang_together(30, 1)
    planted = plant(train, rows, f"{count} broken", np.random.default_rng(2))
    assert len(planted.rows) == 30
    assert (planted.changed.sum(axis=1) == count).all()
    assert not planted.changed[:, 5].any()  # a constant cannot be changed to an ordinary value
    assert ((planted.rows != rows) == planted.changed).all()
    for _, j in np.argwhere(planted.changed):
        values = planted.rows[planted.changed[:, j], j]
        assert np.isin(values, train[:, j]).all()
        assert (np.abs(values - train[:, j].mean()) <= 1.5 * train[:, j].std()).all()


def test_missing_cells_are_not_changed_and_rows_without_enough_others_are_left_out():
    from explain_planting import break_dependencies

    train, rows = rows_that_hang_together(100, 0), rows_that_hang_together(2, 1)
    rows[0, :3] = np.nan
    rows[1, :4] = np.nan  # one number and the constant are left
    nearest = np.tile(np.arange(20), (2, 1))
    planted = break_dependencies(train, rows, nearest, 2, np.random.default_rng(0))
    assert planted.place.tolist() == [0]
    assert planted.changed.tolist() == [[False, False, False, True, True, False]]


def test_ties_share_a_place_and_naming_nothing_is_a_miss():
    from explain_measures import hits, ranking_auc, recall

    nothing = np.zeros((1, 4))
    changed = np.array([[True, True, False, False]])
    assert hits(nothing, changed) == 0
    assert hits(np.array([[1.0, 0.0, 1.0, 0.0]]), changed) == 0.5
    assert recall(nothing, changed) == 0.5
    assert ranking_auc(nothing, changed) == 0.5
    # One is found for certain; three tie for the second place.
    assert recall(np.array([[1.0, 0.0, 0.0, 0.0]]), changed) == pytest.approx((1 + 1 / 3) / 2)
    assert recall(np.array([[3.0, 1.0, 2.0, 0.0]]), changed) == 0.5


def test_only_features_with_a_reason_are_shown():
    from diffint import DiffInt
    from explain_rivals import features_shown

    train, row = rows_that_hang_together(130, 0), np.zeros((1, 6))
    row[0, [2, 5]] = 50.0, 7.0
    detector = DiffInt(epochs=2, random_state=0, n_jobs=1).fit(train)
    rows = np.vstack([row, np.median(train, axis=0)])
    shown = features_shown(detector.explain(rows))
    assert np.flatnonzero(shown[0]).tolist() == [2]
    assert not shown[1].any()  # an ordinary row has no reason, and doubt does not fill it


def test_neighbours_without_the_feature_find_the_broken_one():
    from explain_rivals import deviations_without

    train = rows_that_hang_together(300, 0)
    row = np.zeros((1, 6))
    row[0, [0, 1, 5]] = 1.0, -1.0, 7.0
    assert deviations_without(train, row).argmax() in (0, 1)
    # Columns of one feature are left out together.
    assert deviations_without(train, row, [[0], [1], [2, 3], [4], [5]]).shape == (1, 5)


def test_a_small_run_is_written_and_reported_again(tmp_path):
    x = np.vstack([rows_that_hang_together(130, 0), 4 + rows_that_hang_together(10, 1)])
    np.savez(tmp_path / "45_wine.npz", X=x, y=np.repeat([0, 1], [130, 10]))
    out = tmp_path / "results"
    options = (
        "--tables 45_wine 4_breastw --seeds 1 --rows 3 --epochs 2 --sections planted --without"
    )
    slow = ["KernelSHAP", "integrated gradients", "IForest + TreeSHAP", "ECOD tails:1 broken"]
    done = run("--data", str(tmp_path), *options.split(), *slow, "-o", str(out))
    assert done.returncode == 0, done.stderr
    assert f"not in {tmp_path}: 4_breastw" in done.stderr
    with out.with_suffix(".csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    kinds = {line["kind"] for line in lines if line["figure"] == "top-1"}
    assert kinds == {"out of range", "in range", "1 broken", "2 broken", "3 broken"}
    ecod = [line for line in lines if line["method"] == "ECOD tails"]
    assert {line["kind"] for line in ecod} == kinds - {"1 broken"}
    where_shown = [line for line in lines if line["figure"] == "top-1 where a reason is shown"]
    assert {"KernelSHAP", "largest z-score"} & {line["method"] for line in where_shown} == {
        "largest z-score"
    }
    assert all(0 <= float(line["value"]) <= 1 for line in lines if line["figure"] == "recall")
    assert "Not measured: KernelSHAP, integrated gradients, IForest + TreeSHAP" in done.stdout
    again = run("--from-csv", str(out.with_suffix(".csv")))
    assert again.returncode == 0, again.stderr
    assert after_the_command(again.stdout) == after_the_command(done.stdout)


def run(*arguments):
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def after_the_command(report):
    return report.split("\n")[3:]
