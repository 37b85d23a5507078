"""`diffint drift`: what it prints, its exit codes, and bad input."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from diffint import DiffInt
from diffint.cli import drift as command

from .conftest import make_payments


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("drift")
    train = make_payments(600, 2).drop(columns=["fraud", "payment"])
    train["city"] = np.resize(["Lyon", "Oslo", "Rome"], len(train))
    detector = DiffInt(random_state=0, epochs=10, n_units=32, n_members=2)
    detector.fit(train).save(folder / "m.diffint")
    new = make_payments(300, 3).assign(city=np.resize(["Lyon", "Oslo", "Rome"], 300))
    new["month"] = np.repeat(["2024-01", "2024-02", "2024-03"], [140, 150, 10])
    new.to_csv(folder / "same.csv", index=False)
    moved = new.copy()
    moved.loc[moved["month"] == "2024-02", "visits"] += 5
    moved.to_csv(folder / "moved.csv", index=False)
    moved.to_parquet(folder / "moved.parquet")
    return folder


def test_no_drift(run, folder):
    done = run("drift", folder / "m.diffint", folder / "same.csv")
    assert done.code == 0, done.err
    assert done.out.startswith("No sign that the population has moved (p = ")
    assert "refresh" not in done.err


def test_drift(run, folder):
    done = run("drift", folder / "m.diffint", folder / "moved.csv")
    assert done.code == 1, done.err
    assert done.out.startswith("The population has moved (p < 0.001). visits moved from 3 to ")
    assert done.err.endswith(f"diffint refresh {folder / 'm.diffint'} RECENT -o NEW\n")
    again = run("drift", folder / "m.diffint", folder / "moved.parquet")
    assert (again.code, again.out) == (1, done.out)
    table = pd.read_csv(folder / "moved.csv")[["age", "amount", "visits", "city"]]
    assert DiffInt.load(folder / "m.diffint").drift(table).text() == done.out.strip()


def test_json(run, folder):
    done = run("drift", folder / "m.diffint", folder / "moved.csv", "--json", "--level", 0.001)
    values = json.loads(done.out)
    assert done.code == 1
    assert values["drifted"] is True
    assert values["level"] == 0.001
    assert values["shifts"][0]["feature"] == "visits"


def test_one_verdict_for_each_value(run, folder):
    arguments = ("drift", folder / "m.diffint", folder / "moved.csv", "--by", "month")
    done = run(*arguments)
    assert done.code == 1, done.err
    january, february, march = done.out.splitlines()
    assert january.startswith("2024-01: No sign that the population has moved")
    assert february.startswith("2024-02: The population has moved (p < 0.001). visits moved from 3")
    assert march == "2024-03: too few rows (10)."
    values = json.loads(run(*arguments, "--json").out)
    assert [value["value"] for value in values] == ["2024-01", "2024-02", "2024-03"]
    assert [value["drifted"] for value in values] == [False, True, None]
    assert values[0]["level"] == 0.01 / 2  # two are compared
    assert run("drift", folder / "m.diffint", folder / "same.csv", "--by", "month").code == 0


def test_a_feature_can_name_the_parts(run, folder):
    done = run("drift", folder / "m.diffint", folder / "same.csv", "--by", "city")
    assert done.code == 1  # each part has one city only
    assert "Oslo: The population has moved (p < 0.001). city is" in done.out


def test_only_some_rows_of_a_long_file_are_kept(run, folder, monkeypatch, tmp_path):
    monkeypatch.setattr("diffint.decide.drift.MOST_ROWS", 100)
    done = run("drift", folder / "m.diffint", folder / "moved.csv", "--json")
    values = json.loads(done.out)
    assert (values["n_rows"], values["n_compared"]) == (300, 100)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--by", "weekday"), "lacks a column that --by names: 'weekday'"),
        (("--level", "0"), "--level=0.0 must be a finite number above 0 and below 1"),
        (("--level", "nan"), "--level=nan must be"),
        (("--by", "payment"), "at least 20 rows for a value of 'payment'"),
    ],
)
def test_options_that_cannot_be_used(run, folder, arguments, message, monkeypatch):
    monkeypatch.setattr(command, "MOST_PARTS", 1000)
    done = run("drift", folder / "m.diffint", folder / "same.csv", *arguments)
    assert done.code == 2
    assert message in done.err
    assert done.out == ""


def test_too_many_values(run, folder):
    done = run("drift", folder / "m.diffint", folder / "same.csv", "--by", "payment")
    assert done.code == 2
    assert "column 'payment' has more than 200 values" in done.err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t[:0], "no rows|has no|empty"),
        (lambda t: t[:1], "drift needs at least 20 rows"),
        (lambda t: t[:19], "drift needs at least 20 rows; .* has only 19"),
        (lambda t: t.drop(columns="age"), "lacks a column that the model needs: 'age'"),
        (lambda t: t.assign(age="old"), "age"),
    ],
)
def test_tables_that_cannot_be_used(run, folder, tmp_path, change, message):
    change(pd.read_csv(folder / "same.csv")).to_csv(tmp_path / "t.csv", index=False)
    done = run("drift", folder / "m.diffint", tmp_path / "t.csv")
    assert done.code == 2
    import re

    assert re.search(message, done.err)
    assert "Traceback" not in done.err


def test_a_model_without_rows(run, folder, tmp_path):
    x = pd.read_csv(folder / "same.csv")[["age", "amount"]]
    DiffInt(epochs=1, n_members=2, kept_rows=0).fit(x).save(tmp_path / "m")
    done = run("drift", tmp_path / "m", folder / "same.csv")
    assert done.code == 2
    assert "stores no calibration rows" in done.err


def test_the_help_names_the_exit_codes(run):
    done = run("drift", "--help")
    assert done.code == 0
    assert "exit code is 0" in done.out


# --- Monitors ------------------------------------------------------------------------------------


@pytest.fixture
def watch(run, folder, tmp_path):
    """Add a file to the monitor in tmp_path."""

    def add(table, *arguments):
        path = tmp_path / "überwacht.json"
        return run("drift", folder / "m.diffint", folder / table, "--monitor", path, *arguments)

    return add


def test_a_monitor_adds_file_after_file(watch, folder, tmp_path):
    from diffint import DriftMonitor

    first = watch("same.csv")
    assert (first.code, first.out.startswith("No drift in 300 rows (p = ")) == (0, True), first
    second = watch("moved.csv", "--json")
    assert second.code == 1, second.err
    state = json.loads(second.out)
    assert state["drifted"] is True
    assert state["n_rows"] == 600
    assert "visits" in state["features"]
    monitor = DriftMonitor(DiffInt.load(folder / "m.diffint"))
    for name in ("same.csv", "moved.csv"):
        monitor.update(pd.read_csv(folder / name)[["age", "amount", "visits", "city"]])
    assert state["text"] == monitor.state.text()
    again = watch("same.csv")  # an alarm stays
    assert again.code == 1
    assert again.out.startswith("The rows have moved: alarm at row ")


def test_the_rate_of_a_monitor(watch):
    assert json.loads(watch("same.csv", "--json", "--level", 0.05).out)["false_alarm_rate"] == 0.05
    assert json.loads(watch("same.csv", "--json").out)["n_rows"] == 600
    done = watch("same.csv", "--level", 0.01)
    assert done.code == 2
    assert "has a false alarm rate of 0.05, not 0.01" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--by", "month"), "--by cannot be combined with --monitor"),
        (("--fpr", "0.1"), "--fpr cannot be combined with --monitor"),
        (("--level", "2"), "--level=2.0 must be"),
    ],
)
def test_options_that_a_monitor_does_not_take(watch, arguments, message, tmp_path):
    done = watch("same.csv", *arguments)
    assert done.code == 2
    assert message in done.err
    assert list(tmp_path.iterdir()) == []


def test_monitor_files_that_cannot_be_used(watch, run, folder, tmp_path):
    """The file is as before, and nothing is scored."""
    path = tmp_path / "überwacht.json"
    watch("same.csv")
    good = path.read_bytes()
    for content, message in [
        (b"", "not a drift monitor"),
        (b"age,amount\n1,2\n", "not a drift monitor"),
        (good[: len(good) // 2], "not a drift monitor"),
        (good.replace(b'"n_rows": 300', b'"n_rows": 301'), "damaged or changed"),
    ]:
        path.write_bytes(content)
        done = watch("moved.csv")
        assert done.code == 2
        assert message in done.err
        assert "überwacht.json" in done.err
        assert path.read_bytes() == content
    path.write_bytes(good)
    x = make_payments(200, 5)[["age", "amount", "visits"]]
    DiffInt(epochs=1, n_members=2, random_state=0).fit(x).save(tmp_path / "other")
    done = run("drift", tmp_path / "other", folder / "same.csv", "--monitor", path)
    assert done.code == 2
    assert "belongs to another model" in done.err
    for wrong in (folder / "m.diffint", folder / "same.csv"):
        done = run("drift", folder / "m.diffint", folder / "same.csv", "--monitor", wrong)
        assert done.code == 2
        assert "also an input and would be overwritten" in done.err
    done = run("drift", folder / "m.diffint", folder / "same.csv", "--monitor", "-")
    assert done.code == 2
    assert "needs the name of a file" in done.err
    done = run("drift", folder / "m.diffint", folder / "same.csv", "--monitor", tmp_path / "no/m")
    assert done.code == 2
    assert "does not exist" in done.err
    assert path.read_bytes() == good


def test_tables_that_a_monitor_cannot_use_change_nothing(watch, folder, tmp_path):
    watch("same.csv")
    before = (tmp_path / "überwacht.json").read_bytes()
    table = pd.read_csv(folder / "same.csv")
    table[:0].to_csv(folder / "empty.csv", index=False)
    table.drop(columns="age").to_csv(folder / "other.csv", index=False)
    for name in ("empty.csv", "other.csv", "none.csv"):
        done = watch(name)
        assert done.code == 2
        assert "Traceback" not in done.err
    assert (tmp_path / "überwacht.json").read_bytes() == before
    table[:1].to_csv(folder / "one.csv", index=False)
    assert json.loads(watch("one.csv", "--json").out)["n_rows"] == 301


def test_the_text_of_training_rows(run, folder, tmp_path):
    train = make_payments(600, 2).drop(columns=["fraud", "payment"])
    train["city"] = np.resize(["Lyon", "Oslo", "Rome"], len(train))
    train.to_csv(tmp_path / "t.csv", index=False)
    done = run("drift", folder / "m.diffint", tmp_path / "t.csv")
    assert done.code == 0
    assert "The model was trained on these rows or on some of them" in done.out
    done = run("drift", folder / "m.diffint", tmp_path / "t.csv", "--by", "city", "--json")
    assert all(part["training_rows"] for part in json.loads(done.out))


# --- Ctrl-C while a monitor is written -----------------------------------------------------------


def interrupting(function, before):
    """The function, with a Ctrl-C before or after it."""

    def interrupted(*given, **named):
        if before:
            os.kill(os.getpid(), signal.SIGINT)
        result = function(*given, **named)
        if not before:
            os.kill(os.getpid(), signal.SIGINT)
        return result

    return interrupted


@pytest.mark.parametrize(("name", "before"), [("fsync", True), ("fsync", False), ("replace", True)])
def test_an_interrupt_before_a_monitor_is_replaced_changes_nothing(
    watch, tmp_path, monkeypatch, name, before
):
    assert watch("same.csv").code == 0
    path = tmp_path / "überwacht.json"
    earlier = path.read_bytes()
    monkeypatch.setattr(os, name, interrupting(getattr(os, name), before))
    done = watch("same.csv")
    assert (done.code, done.out) == (130, "")
    assert done.err == "diffint: interrupted; no file was written\n"
    assert path.read_bytes() == earlier
    assert sorted(os.listdir(tmp_path)) == [f".{path.name}.lock", path.name]
    monkeypatch.undo()
    # The repeated job counts its rows once.
    assert json.loads(watch("same.csv", "--json").out)["n_rows"] == 600


@pytest.mark.parametrize(
    ("place", "name", "before"),
    [
        (os, "replace", False),
        (os, "close", False),  # of the lock: another process may replace the file from here on
        (command, "say_json", True),
        (command, "say_json", False),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_from_the_replacement_of_a_monitor_on_the_command_finishes(
    watch, tmp_path, monkeypatch, place, name, before
):
    path, call = tmp_path / "überwacht.json", getattr(place, name)
    left = [interrupting(call, before)]

    def once(*given, **named):
        use = left.pop() if left and (path.exists() or name == "replace") else call
        return use(*given, **named)

    monkeypatch.setattr(place, name, once)
    done = watch("same.csv", "--json")
    assert (done.code, done.err, left) == (0, "", [])
    assert json.loads(done.out)["n_rows"] == 300
    assert json.loads(watch("same.csv", "--json").out)["n_rows"] == 600


INTERRUPTED_END = """
import contextlib, os, signal, sys

def interrupt(kill=os.kill, own=os.getpid()):
    kill(own, signal.SIGINT)

class Last:
    def __del__(self, interrupt=interrupt):
        interrupt()

where, *arguments = sys.argv[1:]
from diffint.cli import app, main
if where == "handlers restored":
    handling = app.handling_stop_signals
    @contextlib.contextmanager
    def handling_then_interrupted(handler):
        with handling(handler):
            yield
        interrupt()
    app.handling_stop_signals = handling_then_interrupted
else:
    last = Last()  # a global variable, deleted when handlers written in Python are gone
sys.argv = ["diffint", *arguments]
main()
"""


@pytest.mark.parametrize("where", ["handlers restored", "end of Python"])
def test_an_interrupt_at_the_end_of_the_process_changes_nothing(folder, tmp_path, where):
    arguments = "drift", folder / "m.diffint", folder / "same.csv", "--monitor", tmp_path / "state"
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_END, where, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("No drift in 300 rows")
