"""``diffint find``, and the note of ``score`` on the rows of the training."""

import numpy as np
import pandas as pd
import pytest

from diffint import DiffInt

from ..show.report.tables import data_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("find")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(80, 2)), columns=["width", "height"])
    frame.insert(0, "name", [f"n{i:02}" for i in range(80)])
    frame.insert(1, "noise", rng.permutation(80))
    frame.loc[7, "width"] = 30.0
    frame.to_csv(folder / "table.csv", index=False)
    return folder


QUICK = ("--id", "name", "--ignore", "noise", "--epochs", "100", "--jobs", "1")


def test_it_writes_everything(folder, run):
    files = [folder / name for name in ("scores.csv", "report.html", "found.diffint")]
    options = ("-o", files[0], "--report", files[1], "--model", files[2], "--top", "2")
    result = run("find", folder / "table.csv", *QUICK, *options)
    assert result.code == 0, result.err
    assert "of 80 rows" in result.out
    assert result.out.count("\nRow ") == 2
    first = result.out.split("\nRow ")[1]
    assert first.startswith("n07: score")
    assert "left out as a suspect" in first
    assert "width = 30" in first
    assert "'noise' (--ignore)" in result.out
    scores = pd.read_csv(files[0])
    assert list(scores) == ["name", "score", "p_value", "suspect", "beyond_chance", "reasons"]
    assert len(scores) == 80
    assert scores["name"][0] == "n07"
    assert scores["score"].is_monotonic_decreasing
    assert scores["reasons"][0].startswith("width = 30")
    report = data_of(files[1].read_text())
    assert report["rows"][0][0] == "n07"
    assert report["kept"] == ["noise"]
    assert report["rows"][0][-1] == [str(pd.read_csv(folder / "table.csv")["noise"][7])]
    model = DiffInt.load(files[2])
    assert model.id_column_ == "name"
    assert model.model_.training.n_suspects >= 1

    again = run("score", files[2], folder / "table.csv", "-o", folder / "again.csv")
    assert again.code == 0
    assert "these are the rows that the model was trained on" in again.err
    assert "diffint find" in again.err
    pd.read_csv(folder / "table.csv")[:79].to_csv(folder / "other.csv", index=False)
    other = run("score", files[2], folder / "other.csv", "-o", folder / "again.csv")
    assert "trained on" not in other.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--suspected-share", "0.7"), "below 0.5, or 'auto'"),
        (("--suspected-share", "some"), "suspected_share=some"),
        (("--id", "nothing"), "lacks a column that --id names"),
        (("-o", "-"), "give files"),
        (("-o", "same", "--report", "same"), "give each its own"),
    ],
)
def test_invalid_options(folder, run, options, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("find", folder / "table.csv", "--ignore", "name", *options)
    assert result.code == 2
    assert message in result.err
    assert "Traceback" not in result.err
    assert not list(tmp_path.iterdir())


def test_the_table_is_not_overwritten(folder, run):
    before = (folder / "table.csv").read_bytes()
    result = run("find", folder / "table.csv", *QUICK, "-o", folder / "table.csv")
    assert result.code == 2
    assert (folder / "table.csv").read_bytes() == before


def test_too_few_rows(run, tmp_path):
    (tmp_path / "few.csv").write_text("a,b\n1,2\n3,4\n5,6\n")
    result = run("find", tmp_path / "few.csv")
    assert result.code == 2
    assert "at least 10" in result.err


def test_fit_lists_its_suspects(folder, run, tmp_path):
    options = ("--suspected-share", "0.0125", "-o", tmp_path / "m.diffint")
    result = run("fit", folder / "table.csv", *QUICK, *options)
    assert result.code == 0, result.err
    assert "Left out 1 suspect: row 8." in result.out
