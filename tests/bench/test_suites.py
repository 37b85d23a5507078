"""The suites: finding, choosing, reading and splitting tables, and runs on them."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pandas
import pytest

from diffint.bench.baselines import chosen_methods
from diffint.bench.grid import Grid, Limits
from diffint.bench.runner import run_grid
from diffint.bench.store import Row, Store, read_rows
from diffint.bench.suites import ADBENCH, FOLDER, MACRODATA, SUITES, Suite, chosen_suite
from diffint.bench.worker import Job, run_job
from diffint.core.errors import InputError

from .synthetic import labelled_rows, write_split_table


@pytest.fixture
def macro(tmp_path: Path) -> Path:
    """Two macrOData tables, the first one larger."""
    folder = tmp_path / "macro"
    folder.mkdir()
    write_split_table(folder / "oddbench__Big.npz", n_rows=200)
    write_split_table(folder / "ovrbench__small-1.npz")
    (folder / "README.md").write_text("not a table")
    return folder


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A user's tables: an npz file, and a Parquet file with missing cells."""
    folder = tmp_path / "own"
    folder.mkdir()
    x, y = labelled_rows()
    np.savez(folder / "machines.npz", X=x, y=y)
    x[::7, 1] = np.nan
    frame = pandas.DataFrame(x, columns=["a", "b", "c"]).assign(label=y == 1)
    frame.to_parquet(folder / "orders.parquet")
    return folder


def run(suite: Suite, folder: Path, output: Path, methods: tuple[str, ...] = ()) -> list[Row]:
    plugins = ["tests.bench.plugins:Distance"]
    tables, _ = suite.find(folder)
    grid = Grid(tables, chosen_methods(methods, plugins), suite.regimes, (0, 1), suite=suite)
    with Store(output, suite=suite.name) as store:
        run_grid(grid, store, 2, Limits(60.0, 4.0))
    return read_rows(output)


# --- Finding and choosing tables -----------------------------------------------------------------


def test_tables_are_found_small_ones_first(macro: Path, own: Path) -> None:
    assert list(MACRODATA.find(macro)[0]) == ["ovrbench__small-1", "oddbench__Big"]
    assert set(FOLDER.find(own)[0]) == {"machines", "orders"}
    files, absent = MACRODATA.find(macro, ["ODDBENCH__big"])
    assert files == {"oddbench__Big": macro / "oddbench__Big.npz"}
    assert absent == []


def test_an_unknown_name_is_an_error_that_suggests_others(macro: Path) -> None:
    with pytest.raises(InputError, match=r"no table is called 'oddbench__Bigger'.*oddbench__Big"):
        MACRODATA.find(macro, ["oddbench__Bigger"])
    with pytest.raises(InputError, match="there are 2, such as"):
        MACRODATA.find(macro, ["small"])  # scale groups are ADBench's


def test_two_files_of_one_name(own: Path) -> None:
    (own / "orders.npz").write_bytes((own / "machines.npz").read_bytes())
    with pytest.raises(InputError, match=r"two tables called 'orders', 'orders.npz' and"):
        FOLDER.find(own)


@pytest.mark.parametrize("suite", SUITES.values(), ids=list(SUITES))
def test_a_folder_without_tables(tmp_path: Path, suite: Suite) -> None:
    (tmp_path / ".hidden.npz").write_text("")
    (tmp_path / "folder.npz").mkdir()
    (tmp_path / "table.csv").write_text("a,label\n1,0\n")
    with pytest.raises(InputError, match=r"has no .*tables \(.*npz"):
        suite.find(tmp_path)
    with pytest.raises(InputError, match="is not a folder of"):
        suite.find(tmp_path / "none")


def test_choosing_a_suite() -> None:
    assert chosen_suite("adbench") is ADBENCH
    with pytest.raises(InputError, match="'own' is not one of adbench, macrodata, folder"):
        chosen_suite("own")
    with pytest.raises(InputError, match="--label is only for --suite folder"):
        chosen_suite("macrodata", "y")


def test_regimes() -> None:
    assert ADBENCH.chosen_regimes(None) == FOLDER.chosen_regimes(None) == ("paper", "fair")
    assert MACRODATA.chosen_regimes(None) == MACRODATA.chosen_regimes("fair") == ("fair",)
    with pytest.raises(InputError, match="the suite macrodata has only the regime fair"):
        MACRODATA.chosen_regimes("paper")
    with pytest.raises(InputError, match="'both' is not one of paper, fair"):
        MACRODATA.chosen_regimes("both")


def test_suites_can_be_sent_to_a_process(own: Path) -> None:
    frame = pandas.DataFrame({"a": [1.0, 2.0], "odd": [0, 1]})
    frame.to_parquet(own / "orders.parquet")
    suite = pickle.loads(pickle.dumps(chosen_suite("folder", "odd")))
    assert suite.read(own / "orders.parquet").y.tolist() == [0, 1]


# --- Splitting -----------------------------------------------------------------------------------


def test_the_split_of_macrodata_is_that_of_the_file(macro: Path) -> None:
    table = MACRODATA.read(macro / "oddbench__Big.npz")
    assert table.n_rows == len(table.train) + len(table.test)
    first, second = (MACRODATA.trial(table, seed, "inliers") for seed in (0, 1))
    for trial in (first, second):
        np.testing.assert_array_equal(trial.train, table.train)
        np.testing.assert_array_equal(trial.test_labels, table.test_labels)


def test_a_users_table_is_split_by_the_seed_as_adbench_is(own: Path) -> None:
    table = FOLDER.read(own / "machines.npz")
    as_adbench = ADBENCH.trial(ADBENCH.read(own / "machines.npz"), 3, "inliers")
    np.testing.assert_array_equal(FOLDER.trial(table, 3, "inliers").test, as_adbench.test)


# --- Runs ----------------------------------------------------------------------------------------


def test_a_run_on_macrodata(macro: Path, tmp_path: Path) -> None:
    rows = run(MACRODATA, macro, tmp_path / "r.csv", ("DiffInt",))
    assert len(rows) == 2 * 2 * 2
    assert {(row.state, row.regime, row.suite) for row in rows} == {("ok", "fair", "macrodata")}
    distance = [row for row in rows if row.method == "Distance" and row.table == "oddbench__Big"]
    assert [row.n_train for row in distance] == [200, 200]
    assert distance[0].roc_auc == distance[1].roc_auc  # a seed does not change the split


def test_a_run_on_a_users_tables_with_missing_cells(own: Path, tmp_path: Path) -> None:
    rows = run(FOLDER, own, tmp_path / "r.csv", ("DiffInt",))
    assert len(rows) == 2 * 2 * 2 * 2
    # Distance has no value for rows with NaN: it gets the training mean instead.
    assert {(row.state, row.message, row.suite) for row in rows} == {("ok", "", "folder")}
    assert all((row.roc_auc or 0.0) > 0.6 for row in rows)


def test_only_diffint_gets_missing_cells(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from diffint import DiffInt

    seen = {}
    fit = DiffInt.fit

    def noting(self, x, *arguments, **options):
        seen["DiffInt"] = bool(np.isnan(x).any())
        return fit(self, x, *arguments, **options)

    monkeypatch.setattr(DiffInt, "fit", noting)
    job = Job("orders", own / "orders.parquet", "DiffInt", None, "inliers", (0,), suite=FOLDER)
    run_job(job)
    assert seen == {"DiffInt": True}


def test_a_seed_without_anomalies_in_its_test_part_is_an_error_of_its_run(tmp_path: Path) -> None:
    x, y = labelled_rows()
    anomalies = np.flatnonzero(y)
    y[anomalies[1:]] = 0
    np.savez(tmp_path / "rare.npz", X=x, y=y)
    states = set()
    for seed in range(8):
        job = Job("rare", tmp_path / "rare.npz", "DiffInt", None, "inliers", (seed,), suite=FOLDER)
        trial = FOLDER.trial(FOLDER.read(job.path), seed, "inliers")
        states.add(bool(trial.test_labels.any()))
        if not trial.test_labels.any():
            with pytest.raises(InputError, match=f"the test part of seed {seed} has only"):
                run_job(job)
    assert states == {True, False}


# --- The real tables -----------------------------------------------------------------------------


def test_all_macrodata_tables_can_be_read(macrodata: Path) -> None:
    files, absent = MACRODATA.find(macrodata)
    assert len(files) == 300
    assert not absent
    for path in files.values():
        table = MACRODATA.read(path)
        assert 0 < table.test_labels.sum() < len(table.test)


def test_diffint_on_a_macrodata_table(macrodata: Path) -> None:
    path = macrodata / "oddbench__HockeyPlayerStatus.npz"
    (outcome,) = run_job(Job(path.stem, path, "DiffInt", None, "inliers", (0,), suite=MACRODATA))
    assert outcome.roc_auc > 0.93
