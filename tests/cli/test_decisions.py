"""`score --false-discovery-rate`, `fit --segment` and `fit --confidence`."""

import json

import numpy as np
import pandas as pd
import pytest

from diffint import DiffInt

from .conftest import make_payments


def shops(n_rows, seed):
    """Payments of two shops, one of which has far larger amounts; the first ten are odd."""
    table = make_payments(n_rows, seed).drop(columns="fraud")
    table["shop"] = np.random.default_rng(seed).choice(["1", "2"], size=n_rows)
    table.loc[table["shop"] == "2", "visits"] += 20
    table.loc[:9, "age"] = 190.0
    return table


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shops")
    shops(600, 0).iloc[10:].to_csv(folder / "train.csv", index=False)
    shops(300, 1).to_csv(folder / "new.csv", index=False)
    shops(300, 1).to_parquet(folder / "new.parquet")
    return folder


@pytest.fixture(scope="module")
def model(folder):
    train = pd.read_csv(folder / "train.csv", dtype={"payment": str})
    detector = DiffInt(epochs=20, random_state=0, false_positive_rate=0.05)
    detector.fit(train.drop(columns="payment"), segments="shop").save(folder / "m.diffint")
    return folder / "m.diffint"


def test_fit_with_segments(run, folder, tmp_path):
    done = run(
        *("fit", folder / "train.csv", "-o", tmp_path / "m", "--id", "payment"),
        *("--segment", "shop", "--fpr", 0.05, "--epochs", 20),
    )
    assert done.code == 0, done.err
    assert "Not used: 'payment' (--id) and 'shop' (--segment)." in done.out
    assert (
        "A row is flagged above the threshold of its segment: at most 5 % of normal rows are"
        in done.out
    )
    assert "Thresholds of segments: " in done.out
    new = pd.read_csv(folder / "new.csv", dtype={"payment": str})
    scores = run("score", tmp_path / "m", folder / "new.csv", "-o", tmp_path / "s.parquet")
    assert scores.code == 0, scores.err
    written = pd.read_parquet(tmp_path / "s.parquet")
    loaded = DiffInt.load(tmp_path / "m")
    assert loaded.segment_column_ == "shop"
    np.testing.assert_array_equal(written["p_value"], loaded.p_values(new.drop(columns="payment")))
    np.testing.assert_array_equal(
        written["flagged"], loaded.predict(new.drop(columns="payment")) == -1
    )
    info = run("info", tmp_path / "m").out
    assert "segments    2 from 'shop': 1 (threshold " in info
    shown = json.loads(run("info", tmp_path / "m", "--json").out)
    assert {line["name"] for line in shown["segments"]} == {"1", "2"}


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_all_commands_use_the_threshold_of_the_segment(run, folder, model, tmp_path, suffix):
    new = pd.read_csv(folder / "new.csv", dtype={"payment": str}).drop(columns="payment")
    n_flagged = int((DiffInt.load(model).predict(new) == -1).sum())
    table = folder / f"new.{suffix}"
    only = run("score", model, table, "--flagged-only", "-o", tmp_path / "f.parquet")
    assert f"{n_flagged} flagged" in only.err
    assert len(pd.read_parquet(tmp_path / "f.parquet")) == n_flagged
    assert run("report", model, table, "-o", tmp_path / "r.html").code == 0
    assert f"{n_flagged} of 300 rows are flagged" in (tmp_path / "r.html").read_text()
    explained = json.loads(run("explain", model, table, "--top", 200, "--json").out)
    assert len({line["threshold"] for line in explained}) == 2
    assert sum(line["flagged"] for line in explained) == n_flagged


def test_a_table_without_the_segments(run, folder, model, tmp_path):
    pd.read_csv(folder / "new.csv").drop(columns="shop").to_csv(tmp_path / "t.csv", index=False)
    done = run("score", model, tmp_path / "t.csv", "-o", tmp_path / "s.csv")
    assert done.code == 2
    assert "lacks a column that the model has segments from: 'shop'" in done.err
    assert not (tmp_path / "s.csv").exists()


def test_new_segments_are_named_once(run, folder, model, tmp_path):
    new = pd.read_csv(folder / "new.csv")
    new["shop"] = new["shop"].astype(object)
    new.loc[[0, 5], "shop"] = ["9", None]
    new.to_csv(tmp_path / "t.csv", index=False)
    done = run("score", model, tmp_path / "t.csv", "--no-reasons")
    assert done.code == 0
    assert done.err.count("2 rows are of segments that the training rows do not have (9)") == 1


@pytest.mark.parametrize("rate", [0.1, 0.3])
def test_score_by_a_false_discovery_rate(run, folder, model, tmp_path, rate):
    new = pd.read_csv(folder / "new.csv", dtype={"payment": str}).drop(columns="payment")
    found = DiffInt.load(model).select(new, rate)
    done = run(
        *("score", model, folder / "new.csv", "-o", tmp_path / "s.parquet"),
        *("--false-discovery-rate", rate),
    )
    assert done.code == 0, done.err
    written = pd.read_parquet(tmp_path / "s.parquet")
    np.testing.assert_array_equal(written["flagged"], found.selected)
    np.testing.assert_array_equal(written["p_value"], found.p_values)
    assert f"{found.n_selected} flagged (at most {100 * rate:g} % of them are false" in done.err


def test_nothing_to_select(run, folder, model, tmp_path):
    calm = pd.read_csv(folder / "train.csv").iloc[:40]
    calm.to_csv(tmp_path / "calm.csv", index=False)
    done = run("score", model, tmp_path / "calm.csv", "--false-discovery-rate", 0.05)
    assert done.code == 0
    assert "0 flagged (no row stands out enough for a false discovery rate of 5 %)" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--false-discovery-rate", "0"], "--false-discovery-rate=0.0 must be"),
        (["--false-discovery-rate", "1.5"], "--false-discovery-rate=1.5 must be"),
    ],
)
def test_wrong_rates(run, folder, model, tmp_path, arguments, message):
    done = run("score", model, folder / "new.csv", "-o", tmp_path / "s.csv", *arguments)
    assert done.code == 2
    assert message in done.err
    assert not (tmp_path / "s.csv").exists()


def test_standard_input_cannot_be_read_twice(run, folder, model):
    content = (folder / "new.csv").read_bytes()
    done = run("score", model, "-", "--false-discovery-rate", 0.1, stdin=content)
    assert done.code == 2
    assert "reads the table twice" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--segment", "nope"], "lacks a column that --segment names: 'nope'"),
        (["--confidence", "1"], "--confidence=1.0 must be"),
        (["--calibration", "best"], "--calibration='best'"),
        (["--label", "shop=1", "--segment", "shop"], "both the label and the segment"),
    ],
)
def test_wrong_fits(run, folder, tmp_path, arguments, message):
    done = run("fit", folder / "train.csv", "-o", tmp_path / "m", "--id", "payment", *arguments)
    assert done.code == 2
    assert message in done.err
    assert not (tmp_path / "m").exists()


def test_a_missing_segment_is_named_by_its_place(run, folder, tmp_path):
    train = pd.read_csv(folder / "train.csv")
    train["shop"] = train["shop"].astype(object)
    train.loc[4, "shop"] = None
    train.to_csv(tmp_path / "t.csv", index=False)
    done = run("fit", tmp_path / "t.csv", "-o", tmp_path / "m", "--segment", "shop")
    assert done.code == 2
    assert "the segment 'shop' is missing in line 6" in done.err
    assert "give every row a segment" in done.err


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.xlsx"])
def test_labels_are_the_same_in_every_kind_of_file(run, folder, model, tmp_path, name):
    """Whole numbers with a missing cell beside them are written as 1.0 in CSV."""
    new = pd.read_csv(folder / "new.csv", dtype={"payment": str})
    expected = DiffInt.load(model).p_values(new.drop(columns="payment"))
    new["shop"] = new["shop"].astype(float)
    write = {"csv": new.to_csv, "parquet": new.to_parquet, "xlsx": new.to_excel}
    write[name.split(".")[1]](tmp_path / name, index=False)
    done = run("score", model, tmp_path / name, "--no-reasons", "-o", tmp_path / "s.parquet")
    assert done.code == 0, done.err
    assert "segments" not in done.err
    np.testing.assert_array_equal(pd.read_parquet(tmp_path / "s.parquet")["p_value"], expected)


def test_a_confidence_is_saved(run, folder, tmp_path):
    done = run(
        *("fit", folder / "train.csv", "-o", tmp_path / "m", "--id", "payment", "--epochs", 5),
        *("--confidence", 0.9, "--fpr", 0.1, "--calibration", "holdout", "--ignore", "shop"),
    )
    assert done.code == 0, done.err
    assert (
        "at most 10 % of normal rows are (proven for new rows like the training rows, for this fit"
        in done.out
    )
    assert DiffInt.load(tmp_path / "m").confidence == 0.9


def test_accepted_rows_of_a_file(run, folder, model, tmp_path):
    new = pd.read_csv(folder / "new.csv", dtype={"payment": str})
    new.iloc[:3].to_csv(tmp_path / "normal.csv", index=False)
    plain = run("score", model, folder / "new.csv", "-o", tmp_path / "a.parquet")
    more = ["--accepted", tmp_path / "normal.csv"]
    done = run("score", model, folder / "new.csv", "-o", tmp_path / "b.parquet", *more)
    assert done.code == plain.code == 0, done.err
    before, after = (pd.read_parquet(tmp_path / f"{name}.parquet") for name in "ab")
    assert before["flagged"][:10].all()  # an age of 190
    assert not after["flagged"][:3].any()
    assert (after["p_value"][:3] == 1.0).all()
    assert (before["flagged"] | ~after["flagged"]).all()
    explained = run("explain", model, folder / "new.csv", "--row", 1, *more)
    assert "accepted as normal" in explained.out
    shown = json.loads(run("explain", model, folder / "new.csv", "--row", 1, "--json", *more).out)
    assert shown[0]["threshold"] is None
    reported = run("report", model, folder / "new.csv", "-o", tmp_path / "r.html", *more)
    assert reported.err.startswith(f"{int(after['flagged'].sum())} rows flagged.")
    missing = run("score", model, folder / "new.csv", "--accepted", tmp_path / "none.csv")
    assert missing.code == 2
