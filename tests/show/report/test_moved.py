"""The part of the report that says whether the rows are like the calibration rows."""

import re

import numpy as np
import pandas as pd
import pytest

from diffint import DiffInt

from ...conftest import QUICK
from .tables import PAYLOADS, text_of

NAMES = ["temp", "wind", "site"]


def weather(n_rows, seed, temp=35.0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal([temp, 9.0], [5.0, 3.0], (n_rows, 2)), columns=NAMES[:2])
    return frame.assign(site=rng.choice(["north", "south"], n_rows))


@pytest.fixture(scope="module")
def detector():
    return DiffInt(**QUICK, calibration="holdout").fit(weather(800, 0))


@pytest.fixture
def report(detector, tmp_path):
    """The text of the report on a table."""

    def make(rows, by=detector):
        return text_of(by.report(rows, tmp_path / "report.html").read_text())

    return make


def test_rows_that_have_moved(report, detector):
    rows = weather(300, 1, temp=80.0)
    text, drift = report(rows), detector.drift(rows)
    assert "The rows have moved These rows are not like the calibration rows (p < 0.001)." in text
    assert "100 % of the rows are flagged, 1 % expected; with temp as in training" in text
    assert f"temp median {drift.shifts[0].was:.1f} {drift.shifts[0].now:.1f}" in text
    assert "Flagged rows may be normal rows of a population that has moved." in text
    assert text.index("The rows have moved") < text.index("Scores threshold")
    assert "no sign of a drift" not in text


def test_shares_and_relations_have_names(report):
    text = report(weather(300, 1).assign(site="north", wind=np.nan))
    assert "wind share of missing values 0 % 100 %" in text
    assert re.search(r"site share of (north \d\d % 100|south \d\d % 0) %", text)
    assert "None of 300 rows is flagged" in text
    assert "Flagged rows may be normal rows" not in text
    assert "All rows are similar" not in text


def test_rows_that_have_not_moved_get_one_line(report):
    text = report(weather(300, 2))
    assert "The rows are like the calibration rows: no sign of a drift (p = " in text
    assert "have moved" not in text


def test_training_rows(report):
    train = weather(800, 0)
    for rows in (train, train[:400], pd.concat([weather(300, 1, temp=80.0), train])):
        text = report(rows)
        assert "The model was trained on these rows, or on some of them" in text
        assert "have moved" not in text
        assert "no sign of a drift" not in text


def test_nothing_is_said_of_few_rows_or_without_stored_rows(report):
    assert "rows have moved" in report(weather(20, 1, temp=80.0))
    bare = DiffInt(**QUICK, kept_rows=0).fit(weather(300, 0))
    times = pd.DataFrame({"at": pd.date_range("2024-01-01", periods=300, freq="h")})
    only_times = DiffInt(**QUICK).fit(times)
    for text in (
        report(weather(19, 1, temp=80.0)),
        report(weather(300, 1, temp=80.0), bare),
        report(times, only_times),
        report(weather(1, 1)),
    ):
        assert "rows have moved" not in text
        assert "calibration rows: no sign" not in text


def test_names_and_values_do_not_become_markup(tmp_path):
    names = [name for name in PAYLOADS if "script" in name][:3]
    frame = weather(300, 0).set_axis(names, axis=1)
    detector = DiffInt(**QUICK).fit(frame)
    moved = weather(300, 1, temp=80.0).set_axis(names, axis=1).assign(**{names[2]: names[0]})
    page = detector.report(moved, tmp_path / "r.html").read_text()
    assert "rows have moved" in page
    for name in names:
        assert name not in page


def test_the_command_says_the_same(detector, tmp_path):
    from typer.testing import CliRunner

    from diffint.cli.app import app

    detector.save(tmp_path / "m.diffint")
    rows = weather(300, 1, temp=80.0)
    rows.to_csv(tmp_path / "t.csv", index=False)
    arguments = ["report", str(tmp_path / "m.diffint"), str(tmp_path / "t.csv"), "-o"]
    assert CliRunner().invoke(app, [*arguments, str(tmp_path / "r.html")]).exit_code == 0
    text = text_of((tmp_path / "r.html").read_text())
    own = text_of(detector.report(rows, tmp_path / "own.html").read_text())
    part = own[own.index("The rows have moved") : own.index("Scores threshold")]
    assert part in text
