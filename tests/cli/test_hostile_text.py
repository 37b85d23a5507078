"""Names, ids, cells and file names from outside never act on a terminal."""

from __future__ import annotations

import copy
import json

import numpy as np
import pandas as pd
import pytest

from diffint import DiffInt

from ..conftest import QUICK, make_rows

NAMES = [
    "\x1b[31mred\x1b[0m",
    "[bold]rich[/bold]",
    "two\nlines\tand a tab\r",
    "\u202egpj.exe",
    "\x9b2J\x7f\u200b",
]
ID_COLUMN = "id\x1b[2J"
ACTING = [c for name in [*NAMES, ID_COLUMN] for c in name if not c.isprintable() and c != "\n"]


def assert_harmless(text: str) -> None:
    assert not set(ACTING) & set(text), repr(text)


@pytest.fixture(scope="module")
def detector():
    frame = pd.DataFrame(make_rows(200), columns=NAMES)
    return DiffInt(**QUICK, false_positive_rate=0.05, decoder="certified").fit(frame)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory, detector):
    """A folder with a model and tables whose names and ids are full of control characters."""
    folder = tmp_path_factory.mktemp("hostile\x1b[1m")
    rows = pd.DataFrame(make_rows(200), columns=NAMES)
    model = copy.copy(detector)
    model.id_column_ = ID_COLUMN
    model.save(folder / "m.diffint")
    rows.iloc[0] *= 9
    rows.insert(0, ID_COLUMN, [f"\x1b]0;title\x07{i}" for i in range(200)])
    rows.to_parquet(folder / "t.parquet")
    broken = rows.head(3).astype({NAMES[0]: str})
    broken.loc[1, NAMES[0]] = "x\x1b[5m"
    broken.to_parquet(folder / "broken.parquet")
    return folder


@pytest.mark.parametrize(
    "command",
    [
        ["info", "m.diffint"],
        ["info", "m.diffint", "--json"],
        ["constraints", "m.diffint"],
        ["constraints", "m.diffint", "--json"],
        ["explain", "m.diffint", "t.parquet", "--top", "2"],
        ["explain", "m.diffint", "t.parquet", "--top", "2", "--json"],
        ["score", "m.diffint", "broken.parquet"],
        ["score", "m.diffint", "absent\x1b[0m.csv"],
        ["score", "m.diffint", "t.parquet", "--id", "\x1b[7m"],
        ["report", "m.diffint", "t.parquet", "-o", "r.html"],
        ["fit", "t.parquet", "-o", "new.diffint", "--ignore", "\x1b[7m"],
    ],
)
def test_the_command_prints_no_control_characters(run, hostile, monkeypatch, command):
    monkeypatch.chdir(hostile)
    done = run(*command)
    assert_harmless(done.out)
    assert_harmless(done.err)
    assert done.out or done.err


def test_names_are_shown_as_escapes_and_kept_in_json(run, hostile):
    shown = r"\x1b[31mred\x1b[0m, [bold]rich[/bold], two\nlines"
    assert shown in run("info", hostile / "m.diffint").out
    read = json.loads(run("info", hostile / "m.diffint", "--json").out)
    assert read["features"] == NAMES
    done = run("explain", hostile / "m.diffint", hostile / "t.parquet", "--row", 1)
    assert done.out.startswith(r"Row \x1b]0;title\x070: score")
    done = run("explain", hostile / "m.diffint", hostile / "t.parquet", "--row", 1, "--json")
    assert json.loads(done.out)[0]["row"] == "\x1b]0;title\x070"


def test_rich_markup_in_a_folder_is_text(run, tmp_path, monkeypatch):
    monkeypatch.setattr("diffint.cli.demo.training_rows", lambda y: np.arange(len(y)) % 9 == 0)
    folder = tmp_path / "[bold]x[" / "bold]"
    done = run("demo", "--folder", folder, "--top", 1)
    assert f"Model:     {folder}/breast-cancer.diffint" in done.out


def test_texts_in_python(detector):
    frame = pd.DataFrame(make_rows(200), columns=NAMES)
    frame.iloc[:3] *= 9
    rows = frame.head(3)
    why = detector.explain(rows)
    texts = [why.text(), why.brief(0), *why.reasons(0, 5), detector.nearest_normal(rows).text()]
    texts += [detector.explain_global().text(), detector.certify(rows).text()]
    texts += [detector.certify_region({NAMES[0]: 1.0}, {NAMES[2]: 5.0}).text()]
    for text in texts:
        assert_harmless(text)
    assert r"\x1b[31mred\x1b[0m" in why.text(0, 5)
    assert set(why.to_frame()["feature"]) == set(NAMES)  # data stays as it is


def test_errors_in_python(detector):
    with pytest.raises(ValueError, match="feature names should match") as raised:
        detector.anomaly_score(pd.DataFrame(make_rows(5), columns=["\x1b[8m", *NAMES[1:]]))
    assert_harmless(str(raised.value))
