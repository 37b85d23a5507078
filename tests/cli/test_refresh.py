"""`diffint refresh` and `diffint compare`: what they write and print, and bad input."""

import json

import numpy as np
import pandas as pd
import pytest

from diffint import DiffInt

from .conftest import make_payments


def payments(n_rows, seed, cities=("Lyon", "Oslo", "Rome")):
    frame = make_payments(n_rows, seed)
    return frame.assign(city=np.resize(cities, n_rows), shop=np.resize(["a", "b"], n_rows))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("refresh")
    train = payments(600, 2)
    detector = DiffInt(random_state=0, epochs=10, n_units=32, n_members=2)
    detector.fit(train[["age", "amount", "visits", "city"]])
    detector.save(folder / "m.diffint")
    moved = payments(300, 3, ("Lyon", "Oslo", "Kyiv"))
    moved["visits"] += 5
    moved.to_csv(folder / "moved.csv", index=False)
    moved.drop(columns="visits").to_csv(folder / "lacks.csv", index=False)
    moved[:0].to_csv(folder / "empty.csv", index=False)
    moved[:1].to_csv(folder / "one.csv", index=False)
    moved.assign(city=7).to_csv(folder / "numbers.csv", index=False)
    mixed = moved["age"].astype(object).where(moved.index != 5, "old")
    moved.assign(age=mixed).to_csv(folder / "one_text.csv", index=False)
    moved.assign(age="old").to_csv(folder / "text.csv", index=False)
    return folder


def test_refresh_and_compare(run, folder, tmp_path):
    old, new = folder / "m.diffint", tmp_path / "new.diffint"
    before = old.read_bytes()
    done = run("refresh", old, folder / "moved.csv", "-o", new, "--label", "fraud")
    assert done.code == 0, done.err
    assert "visits: median 3 → 8" in done.out
    assert "new: Kyiv" in done.out
    assert done.out.endswith(f"Model file: {new}\n")
    assert f"refreshing with {300 - 15} rows" in done.err
    assert old.read_bytes() == before
    assert DiffInt.load(new).model_.training.n_known_anomalies == 15
    compared = run("compare", old, new)
    assert compared.code == 0
    shown = set(compared.out.splitlines())
    assert shown <= set(done.out.splitlines())
    values = json.loads(run("compare", old, new, "--json").out)
    assert values["same_units"] is True
    assert values["features"][0]["feature"] == "visits"
    assert run("compare", old, old).out == "The two models are the same.\n"
    # As the library does it
    table = pd.read_csv(folder / "moved.csv")
    detector = DiffInt.load(old).set_params(random_state=0)
    found = detector.refresh(table[["age", "amount", "visits", "city"]], table["fraud"])
    assert found.text() == done.out.rpartition("Model file")[0].strip()


def test_the_model_is_overwritten_only_if_named(run, folder, tmp_path):
    path = tmp_path / "m.diffint"
    path.write_bytes((folder / "m.diffint").read_bytes())
    done = run("refresh", path, folder / "moved.csv", "-o", path, "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["model"] == str(path)
    assert len(DiffInt.load(path).model_.refreshed_from) == 1


def test_segments_of_a_file(run, folder, tmp_path):
    old, new = tmp_path / "old.diffint", tmp_path / "new.diffint"
    table = payments(400, 4)[["age", "amount", "shop"]]
    detector = DiffInt(random_state=0, epochs=5, n_units=16, n_members=1)
    detector.fit(table, segments="shop").save(old)
    done = run("refresh", old, folder / "moved.csv", "-o", new)
    assert done.code == 0, done.err
    assert run("score", new, folder / "moved.csv").code == 0
    assert DiffInt.load(new).segment_column_ == "shop"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("lacks.csv", "lacks a column that the model needs: 'visits'"),
        ("empty.csv", "has a header but no rows"),
        ("one.csv", "has 1 row; at least 2 are needed"),
        ("numbers.csv", "'city' had text in training"),
        ("text.csv", "text.csv': column 'age' has 'old' in line 2, which is not a number"),
        ("one_text.csv", "column 'age' has 'old' in line 7, which is not a number; correct the"),
        ("nothing.csv", "nothing.csv"),
    ],
)
def test_bad_tables(run, folder, tmp_path, table, message):
    new = tmp_path / "new.diffint"
    done = run("refresh", folder / "m.diffint", folder / table, "-o", new)
    assert done.code == 2
    assert message in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_bad_outputs_and_models(run, folder, tmp_path):
    model, table = folder / "m.diffint", folder / "moved.csv"
    for arguments, message in (
        (("refresh", model, table, "-o", table), "is also an input"),
        (("refresh", model, table, "-o", "-"), "cannot be written to standard output"),
        (("refresh", table, model, "-o", tmp_path / "n"), "the model comes before the table"),
        (("refresh", model, table, "-o", tmp_path / "n", "--label", "age"), "age"),
        (("compare", model, table), "is a table, not a model file"),
        (("compare", folder / "none", model), "there is no model file"),
    ):
        done = run(*arguments)
        assert done.code == 2, arguments
        assert message in done.err
        assert "Traceback" not in done.err
    damaged = tmp_path / "damaged.diffint"
    damaged.write_bytes(model.read_bytes()[:-10])
    assert run("compare", damaged, model).code == 2


def test_models_of_other_tables(run, folder, tmp_path):
    other = tmp_path / "other.diffint"
    DiffInt.paper(epochs=5, n_units=8).fit(np.random.default_rng(0).normal(size=(50, 2))).save(
        other
    )
    done = run("compare", folder / "m.diffint", other)
    assert done.code == 0, done.err
    assert "Features added: x0 and x1." in done.out
    assert "Features removed: age, amount, visits and city." in done.out
    assert "scaling adaptive → minmax" in done.out
