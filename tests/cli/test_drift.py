"""`diffint drift`: what it prints, its exit codes, and bad input."""

import json

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


def test_drift(run, folder):
    done = run("drift", folder / "m.diffint", folder / "moved.csv")
    assert done.code == 1, done.err
    assert done.out.startswith("The population has moved (p < 0.001). visits moved from 3 to ")
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
