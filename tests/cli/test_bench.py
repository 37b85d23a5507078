from __future__ import annotations

import contextlib
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas
import pytest

from diffint.bench.protocol import TABLES
from diffint.bench.store import read_rows

from ..bench.synthetic import labelled_rows, write_split_table
from ..waiting import LIMIT, wait_until

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tables(tmp_path_factory) -> Path:
    """Small synthetic tables with the names of some benchmark tables."""
    folder = tmp_path_factory.mktemp("adbench")
    small = [table for table in TABLES.values() if table.scale == "small"][:5]
    for number, table in enumerate(small):
        rng = np.random.default_rng(number)
        y = (np.arange(100) % 8 == 0).astype(int)
        x = rng.normal(size=(100, 4)) + 2.0 * y[:, None] * rng.random((100, 4))
        np.savez(folder / f"{table.name}.npz", X=x, y=y)
    return folder


def test_run_then_report(run, tables, tmp_path):
    output = tmp_path / "r.csv"
    command = (
        "bench",
        "run",
        "--data",
        tables,
        "--tables",
        "small",
        "--seeds",
        "0-1",
        "-o",
        output,
    )
    plugin = ("--plugin", "tests.bench.plugins:Distance")
    done = run(*command, "--methods", "DiffInt,knn", *plugin, "--jobs", 2)
    assert done.code == 0, done.err
    assert "requested rows: 60 ok" in done.out
    assert "Not in" in done.err  # the other small tables
    assert "45_wine" in done.err
    assert len(read_rows(output)) == 5 * 3 * 2 * 2
    again = run(*command, "--methods", "DiffInt,knn", *plugin)
    assert again.out.startswith("0 new rows")

    folder = tmp_path / "report"
    done = run("bench", "report", output, "-o", folder)
    assert done.code == 0, done.err
    assert "start with" in done.out
    page = (folder / "README.md").read_text()
    assert "Distance" in page
    assert "43 of the paper's 48 tables have no rows here" in page
    assert (folder / "figures" / "cd-fair-roc_auc-overall.svg").exists()


def test_the_other_suites(run, tmp_path):
    macro, own = tmp_path / "macro", tmp_path / "own"
    for folder in (macro, own):
        folder.mkdir()
    for name in ("oddbench__A", "oddbench__B"):
        write_split_table(macro / f"{name}.npz")
    x, y = labelled_rows()
    x[0, 0] = np.nan
    pandas.DataFrame(x, columns=["a", "b", "c"]).assign(odd=y).to_parquet(own / "orders.parquet")
    plugin = ("--plugin", "tests.bench.plugins:Distance", "--seeds", "0-1")
    results = {"macrodata": tmp_path / "macro.csv", "folder": tmp_path / "own.csv"}
    run_macro = ("bench", "run", "--suite", "macrodata", "--data", macro, *plugin)
    done = run(*run_macro, "-o", results["macrodata"])
    assert done.code == 0, done.err
    assert "4 new rows" in done.out
    done = run(*run_macro, "--regime", "paper", "-o", results["macrodata"])
    assert done.code == 2
    assert "the suite macrodata has only the regime fair" in done.err
    run_own = ("bench", "run", "--suite", "folder", "--label", "odd", "--data", own, *plugin)
    done = run(*run_own, "-o", results["folder"])
    assert done.code == 0, done.err
    assert "requested rows: 4 ok" in done.out
    before = results["macrodata"].read_bytes()
    done = run(*run_own, "-o", results["macrodata"])
    assert done.code == 2
    assert "has results of the suite macrodata; write those of the suite folder" in done.err
    assert results["macrodata"].read_bytes() == before

    selection = tmp_path / "selection.csv"
    selection.write_text(
        "suite,table,half\nmacrodata,oddbench__A,select\nmacrodata,oddbench__B,report\n"
    )
    report = ("bench", "report", results["macrodata"], "-o", tmp_path / "report")
    done = run(*report, "--selection", selection, "--half", "report")
    assert done.code == 0, done.err
    assert "| tables | 1: oddbench\\_\\_B |" in (tmp_path / "report" / "README.md").read_text()
    for change, message in (
        (("--half", "report"), "--half needs --selection"),
        (("--selection", selection, "--half", "x"), "'x' is not in"),
        ((results["folder"],), "of the suites folder and macrodata; make one report for each"),
        (("--selection", tmp_path / "none.csv"), "cannot be read"),
    ):
        done = run(*report, *change)
        assert done.code == 2
        assert message in done.err
        assert len(done.err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("suite", "change", "message"),
    [
        ("macrodata", {"train": None}, "is not a table with train, test, test_labels"),
        ("macrodata", {"test_labels": np.full(60, 2)}, "test_labels contains 2"),
        ("macrodata", {"test_labels": np.zeros(60)}, "marks no anomalies in 60 rows"),
        ("macrodata", None, "has no macrOData tables"),
        ("folder", {"city": ["x", "y"]}, "column 'city' is text"),
        ("folder", {"label": [0, 3]}, "the label 'label' is 3 in row 2"),
        ("folder", {"label": [0, 0]}, "marks no anomalies"),
        ("folder", {"label": None}, "has no label column 'label'"),
        ("folder", None, "has no tables"),
        ("adbench", None, "has no ADBench tables"),
        ("wide", None, "--suite 'wide' is not one of adbench, macrodata, folder"),
    ],
)
def test_invalid_tables_of_the_other_suites(run, tmp_path, suite, change, message):
    data, output = tmp_path / "data", tmp_path / "r.csv"
    data.mkdir()
    if change is not None and suite == "macrodata":
        write_split_table(data / "oddbench__A.npz", **change)
    elif change is not None:
        columns = {"a": [1.0, 2.0], "label": [0, 1], **change}
        columns = {name: values for name, values in columns.items() if values is not None}
        pandas.DataFrame(columns).to_parquet(data / "orders.parquet")
    done = run("bench", "run", "--suite", suite, "--data", data, "--methods", "KNN", "-o", output)
    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert not output.exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("--methods", "KNM"), "no method is called 'KNM'"),
        (("--tables", "whine"), "no table is called 'whine'"),
        (("--tables", "large"), "none of the tables"),
        (("--seeds", "x"), "must look like 0-9"),
        (("--retry", "ok"), "--retry 'ok' is not one of timeout, out of memory, error"),
        (("--regime", "both"), "not one of paper, fair"),
        (("--plugin", "nowhere:X"), "cannot be imported"),
        (("--jobs", "0"), "--jobs 0 must be"),
        (("--slow-after", "nan"), "--slow-after nan must be above 0"),
        (("--time-limit", "0"), "--time-limit 0 must be above 0"),
        (("--memory-limit", "-1"), "--memory-limit -1 must be above 0"),
        (("--device", "tpu"), "is not one of 'auto', 'cpu', 'cuda'"),
        (("--data", "/nowhere"), "not a folder of ADBench tables"),
        (("-o", "/nowhere/r.csv"), "does not exist"),
        (("--label", "y"), "--label is only for --suite folder"),
    ],
)
def test_invalid_options(run, tables, tmp_path, change, message):
    done = run("bench", "run", "--data", tables, "-o", tmp_path / "r.csv", "--seeds", "0", *change)
    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert not list(tmp_path.glob("*"))


def test_invalid_results(run, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n")
    for arguments, message in (
        ((other,), "not a results file"),
        ((tmp_path / "none.csv",), "cannot be read"),
    ):
        done = run("bench", "report", *arguments, "-o", tmp_path / "report")
        assert done.code == 2
        assert message in done.err
        assert not (tmp_path / "report").exists()


def test_missing_packages_are_named(run, tables, tmp_path, monkeypatch):
    import importlib.util

    find = importlib.util.find_spec
    absent = {"pyod", "torch"}
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *a: None if name in absent else find(name, *a)
    )
    done = run("bench", "run", "--data", tables, "-o", tmp_path / "r.csv", "--methods", "KNN")
    assert done.code == 2
    assert "pip install 'diffint-ad[bench]'" in done.err


def test_an_interrupted_run_can_be_continued(tables, tmp_path):
    output = tmp_path / "r.csv"
    command = [sys.executable, "-m", "diffint", "bench", "run", "--data", str(tables)]
    for name in ("Distance", "Gated"):
        command += ["--plugin", f"tests.bench.plugins:{name}"]
    command += ["--seeds", "0-2", "--jobs", "2", "-o", str(output)]
    gate = tmp_path / "gate"
    how = {"cwd": ROOT, "env": {**os.environ, "PLUGIN_GATE": str(gate)}}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **how)
    wait_until(lambda: output.exists() and len(read_rows(output)) >= 3)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=LIMIT)
    assert process.returncode == 130, err
    assert "run the same command to continue" in err
    assert "Traceback" not in err
    before = read_rows(output)
    assert 3 <= len(before) < 60
    gate.touch()
    assert subprocess.run(command, capture_output=True, timeout=LIMIT, **how).returncode == 0
    after = read_rows(output)
    assert len(after) == 5 * 3 * 2 * 2
    assert after[: len(before)] == before


def test_an_interrupt_while_a_plugin_is_imported(tables, tmp_path):
    command = [sys.executable, "-m", "diffint", "bench", "run", "--data", str(tables)]
    command += ["--plugin", "tests.bench.slow_to_import:X", "-o", str(tmp_path / "r.csv")]
    started = tmp_path / "started"
    environment = {**os.environ, "PLUGIN_LOG": str(started)}
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=environment
    )
    wait_until(started.exists)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=LIMIT)
    assert process.returncode == 130
    assert err == "diffint: interrupted; no file was written\n"


def test_progress_is_shown_on_a_terminal(tables, tmp_path):
    reader, terminal = pty.openpty()
    command = [sys.executable, "-m", "diffint", "bench", "run", "--data", str(tables)]
    command += ["--seeds", "0-2", "--plugin", "tests.bench.plugins:Slowish", "--jobs", "1"]
    process = subprocess.Popen([*command, "-o", tmp_path / "r.csv"], stderr=terminal, cwd=ROOT)
    os.close(terminal)
    shown = b""
    with contextlib.suppress(OSError):  # raised when the process closes the terminal
        while part := os.read(reader, 65536):
            shown += part
    os.close(reader)
    assert process.wait(LIMIT) == 0
    text = shown.decode()
    assert "Traceback" not in text
    assert re.search(r"\d+ of 30 runs, about \d+:\d\d left", text)
    assert "Slowish on" in text


def test_the_example_of_the_guide_ranks_a_plugin(tables, tmp_path):
    page = (ROOT / "docs" / "benchmark.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "my_detector.py").write_text(code)
    (tmp_path / "adbench").symlink_to(tables)
    commands = re.search(
        r"```sh\n(diffint bench run.*?--plugin my_detector.*?)```", page, re.DOTALL
    )
    assert commands is not None
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for line in commands[1].replace("\\\n", " ").strip().splitlines():
        done = subprocess.run(
            shlex.split(line), cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, (line, done.stderr)
    assert "Mahalanobis" in (tmp_path / "ranking" / "README.md").read_text()


@pytest.mark.parametrize("name", ["values.csv", "README.md"])
def test_a_results_file_is_not_replaced_by_the_report(run, tmp_path, name):
    results = tmp_path / name
    results.write_bytes((ROOT / "docs/results/bench/rows.csv").read_bytes())
    before = results.read_bytes()
    more = ["--tables", "small", "--methods", "DiffInt,KNN,IForest"]
    done = run("bench", "report", results, "-o", tmp_path, *more)
    assert done.code == 2
    assert "is also an input and would be overwritten" in done.err
    assert os.listdir(tmp_path) == [name]
    assert results.read_bytes() == before


def test_results_are_not_written_into_a_table(run, tables):
    table = sorted(tables.glob("*.npz"))[0]
    before = table.read_bytes()
    done = run("bench", "run", "--data", tables, "--methods", "KNN", "-o", table)
    assert done.code == 2
    assert "is not a results file" in done.err
    assert table.read_bytes() == before


def test_methods_whose_package_is_missing(run, tables, tmp_path, monkeypatch):
    from diffint.bench import baselines

    for name in ("ICL", "SLAD", "NeuTraL", "GOAD"):
        absent = replace(baselines.METHODS[name], package="no_such_package")
        monkeypatch.setitem(baselines.METHODS, name, absent)
    command = ("bench", "run", "--data", tables, "--tables", "glass", "--seeds", "0")
    output = tmp_path / "r.csv"
    refused = run(*command, "--methods", "KNN,SLAD,GOAD", "-o", output)
    assert refused.code == 2
    assert "SLAD, GOAD need DeepOD; install it with pip install --no-deps deepod==" in refused.err
    assert not output.exists()
    # The default methods leave them out; only this method is kept, to be fast.
    few = {n: m for n, m in baselines.METHODS.items() if n == "HBOS" or not m.installed}
    with patch.dict(baselines.METHODS, few, clear=True):  # restores their order too
        done = run(*command, "-o", output)
    assert done.code == 0, done.err
    assert "Left out: ICL, SLAD, NeuTraL, GOAD need DeepOD; install it with pip" in done.err
    assert {row.method for row in read_rows(output)} == {"HBOS"}
