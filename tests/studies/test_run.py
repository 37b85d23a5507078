"""Running a study: rows that are kept, tables that are missing, quick runs, and errors."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from diffint.core.errors import InputError
from diffint.studies.registry import NAMES, study_named
from diffint.studies.row_file import RowFile, columns_of, read_rows
from diffint.studies.run import run_study
from diffint.studies.study import Setup

from ..waiting import LIMIT, wait_until
from .tiny import FAILS, STUDY, WAITS

ROOT = Path(__file__).parents[2]


@pytest.fixture
def log(tmp_path, monkeypatch):
    """A file with one line for each task that was measured."""
    path = tmp_path / "log"
    monkeypatch.setenv("DIFFINT_TINY_LOG", str(path))
    return lambda: len(path.read_text().splitlines()) if path.exists() else 0


def test_a_run_writes_rows_page_and_figure(tiny_study, tables, tmp_path):
    outcome = run_study(STUDY, Setup(tables), tmp_path / "out", command="diffint study tiny")
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "tiny.csv",
        "tiny.md",
        "tiny.svg",
    ]
    page = outcome.page.read_text()
    assert "| it is 8.57 | 8.57 | 8.57 | **Holds**: it is 8.57. |" in page
    assert "`diffint study tiny`: 12 rows" in page
    assert "1 core" in page
    assert "numpy" in page
    rows = list(read_rows(tmp_path / "out" / "tiny.csv", STUDY).values())
    assert len(rows) == 12
    assert rows[0]["curve"] == [0.33333, 2.0]
    assert rows[0]["none"] is None
    assert [row["seed"] for row in rows[:3]] == [0, 1, 2]


def test_a_missing_table_is_named_and_the_rest_is_measured(tiny_study, tables, tmp_path):
    outcome = run_study(STUDY, Setup(tables), tmp_path / "out")
    assert outcome.missing == ["43_WDBC"]
    assert "Missing from the folder: 43_WDBC." in outcome.page.read_text()
    assert "2 tables" in outcome.page.read_text()


def test_no_table_at_all_is_an_error(tiny_study, tables, tmp_path):
    for path in tables.iterdir():
        path.rename(path.with_name("99_other" + path.name))
    with pytest.raises(InputError, match="none of the tables of the study tiny"):
        run_study(STUDY, Setup(tables), tmp_path / "out")
    with pytest.raises(InputError, match="give their folder with --data"):
        run_study(STUDY, Setup(), tmp_path / "out")


def test_an_unreadable_table_is_an_error_before_any_task(tiny_study, tables, tmp_path, log):
    (tables / "45_wine.npz").write_bytes(b"no table")
    with pytest.raises(InputError, match="45_wine"):
        run_study(STUDY, Setup(tables), tmp_path / "out")
    assert log() == 0


def test_a_second_run_measures_nothing_again(tiny_study, tables, tmp_path, log):
    run_study(STUDY, Setup(tables), tmp_path / "out")
    page = (tmp_path / "out" / "tiny.md").read_bytes()
    figure = (tmp_path / "out" / "tiny.svg").read_bytes()
    run_study(STUDY, Setup(tables), tmp_path / "out")
    assert log() == 12
    assert (tmp_path / "out" / "tiny.md").read_bytes() == page
    assert (tmp_path / "out" / "tiny.svg").read_bytes() == figure


def test_more_seeds_keep_the_rows_there_are(tiny_study, tables, tmp_path, log):
    run_study(STUDY, Setup(tables), tmp_path / "out")
    run_study(STUDY, Setup(tables, seeds=5), tmp_path / "out")
    assert log() == 20
    rows = list(read_rows(tmp_path / "out" / "tiny.csv", STUDY).values())
    assert [row["seed"] for row in rows[:5]] == [0, 1, 2, 3, 4]


def test_a_run_that_fails_keeps_its_rows_and_names_the_task(
    tiny_study, tables, tmp_path, log, monkeypatch
):
    monkeypatch.setenv(FAILS, "45_wine")
    with pytest.raises(RuntimeError, match=r"study tiny, table 45_wine, .*KeyError"):
        run_study(STUDY, Setup(tables), tmp_path / "out")
    assert not (tmp_path / "out" / "tiny.md").exists()
    monkeypatch.delenv(FAILS)
    run_study(STUDY, Setup(tables), tmp_path / "out")
    assert log() == 12


def test_an_incomplete_last_line_is_measured_again(tiny_study, tables, tmp_path, log):
    run_study(STUDY, Setup(tables), tmp_path / "out")
    path = tmp_path / "out" / "tiny.csv"
    path.write_bytes(path.read_bytes()[:-20])
    run_study(STUDY, Setup(tables), tmp_path / "out")
    assert log() == 13
    assert len(read_rows(path, STUDY)) == 12


def test_quick_rows_have_a_folder_of_their_own_and_are_never_mixed(tiny_study, tables, tmp_path):
    out = tmp_path / "out"
    run_study(STUDY, Setup(tables), out)
    outcome = run_study(STUDY, Setup(tables, quick=True), out)
    assert outcome.page == out / "quick" / "tiny.md"
    assert "A quick run" in outcome.page.read_text()
    assert "A quick run" not in (out / "tiny.md").read_text()
    assert len(read_rows(out / "tiny.csv", STUDY)) == 12
    with pytest.raises(InputError, match="rows of a quick run"):
        run_study(STUDY, Setup(tables), out / "quick")


def test_a_file_of_something_else_is_refused(tiny_study, tables, tmp_path):
    path = tmp_path / "tiny.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="not a file of this version of the study tiny"):
        run_study(STUDY, Setup(tables), tmp_path)
    assert path.read_text() == "a,b\n1,2\n"
    path.write_text(",".join(columns_of(STUDY)) + "\nfull,14_glass\n")
    with pytest.raises(InputError, match="line 2: 2 values"):
        run_study(STUDY, Setup(tables), tmp_path)


def test_two_commands_do_not_write_the_same_file(tiny_study, tables, tmp_path):
    with (
        RowFile(tmp_path / "tiny.csv", STUDY, quick=False),
        pytest.raises(InputError, match="another command"),
    ):
        run_study(STUDY, Setup(tables), tmp_path)


# --- The command ---------------------------------------------------------------------------------


def test_the_command_prints_both_numbers_and_missing_tables(run, tiny_study, tables, tmp_path):
    done = run("study", "tiny", "--data", tables, "--out", tmp_path / "o", "--seeds", 1)
    assert done.code == 0, done.err
    assert "it is 8.57: paper 8.57, ours 8.57. Holds: it is 8.57." in done.out
    assert "43_WDBC" in done.err
    assert "0 of 4 tasks of the study tiny are done" in done.err
    assert "--data FOLDER --seeds 1`" in (tmp_path / "o" / "tiny.md").read_text()


def test_the_list_has_every_study(run):
    done = run("study", "list")
    assert done.code == 0
    for name in NAMES:
        assert name in done.out
        study = study_named(name)
        assert study.name == name
        assert study.paper in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("temprature",), "did you mean temperature?"),
        (("temperature",), "needs ADBench tables; give their folder with --data"),
        (("temperature", "--data", "nowhere"), "'nowhere' is not a folder"),
        (("all", "--data", "nowhere"), "'nowhere' is not a folder"),
        (("toy", "--jobs", "0"), "--jobs 0"),
        (("toy", "--seeds", "0"), "--seeds 0"),
        (("toy", "--device", "abacus"), "abacus"),
    ],
)
def test_invalid_input_is_one_message_and_code_2(run, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    done = run("study", *arguments)
    assert done.code == 2
    assert message in done.err
    assert done.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_study_without_its_package_says_so(run, tables, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *_: None)
    done = run("study", "reconstruction", "--data", tables, "--out", tmp_path / "o")
    assert done.code == 2
    assert "needs torch; install it with pip install" in done.err


def test_all_goes_on_without_studies_that_lack_tables(run, tiny_study, tmp_path, monkeypatch):
    monkeypatch.setattr("diffint.studies.registry.NAMES", ("temperature", "tiny"))
    folder = tmp_path / "tables"
    folder.mkdir()
    y = (np.arange(60) % 6 == 0).astype(int)
    np.savez(folder / "45_wine.npz", X=np.random.default_rng(0).normal(size=(60, 3)), y=y)
    done = run("study", "all", "--data", folder, "--out", tmp_path / "o", "--seeds", 1)
    assert done.code == 0, done.err
    assert "left out: none of the tables of the study temperature" in done.err
    assert (tmp_path / "o" / "tiny.md").exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs POSIX signals")
@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupted_run_goes_on(tables, tmp_path, jobs):
    program = (
        "import sys; import diffint.studies.registry as r, diffint.studies.run as s\n"
        "from tests.studies import tiny\n"
        "r.NAMES = ('tiny',); r.study_named = s.study_named = lambda name: tiny.STUDY\n"
        "sys.modules['diffint.studies.tiny'] = tiny\n"
        "if __name__ == '__main__':\n"
        "    from diffint.cli import main; main()\n"
    )
    script = tmp_path / "command.py"
    script.write_text(program)
    out = tmp_path / "out"
    command = [sys.executable, script, "study", "tiny", "--data", tables, "--out", out]
    paths = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    environment = {**os.environ, "PYTHONPATH": paths, WAITS: "45_wine"}
    running = subprocess.Popen(
        [*map(str, command), "--jobs", str(jobs)], env=environment, stderr=subprocess.PIPE
    )
    csv = out / "tiny.csv"
    wait_until(lambda: csv.exists() and csv.read_text().count("\n") == 7)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=LIMIT)
    assert running.returncode == 130
    assert b"interrupted" in errors
    assert b"Traceback" not in errors
    assert sorted(path.name for path in out.iterdir()) == ["tiny.csv"]
    assert len(read_rows(csv, STUDY)) == 6
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run([*map(str, command)], env=environment, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert b"6 of 12 tasks" in done.stderr
    assert len(read_rows(csv, STUDY)) == 12
