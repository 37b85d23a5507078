"""Excel workbooks as tables of the command."""

import io
import os
import sys

import numpy as np
import openpyxl
import pandas as pd
import pytest

from diffint import DiffInt

from .conftest import make_payments

FEATURES = ["age", "amount", "visits"]
QUICK = ("--epochs", 1, "--members", 1, "--units", 8)


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    path = tmp_path_factory.mktemp("excel") / "t.xlsx"
    make_payments().to_excel(path, index=False)
    return path


def library_scores(folder):
    return DiffInt.load(folder / "m.diffint").anomaly_score(make_payments()[FEATURES])


def test_the_same_scores_as_from_other_formats(run, payments, book, tmp_path):
    done = run("score", payments / "m.diffint", book, "-o", tmp_path / "o.parquet")
    assert done.code == 0, done.err
    result = pd.read_parquet(tmp_path / "o.parquet")
    np.testing.assert_array_equal(result["score"], library_scores(payments))
    assert list(result["payment"]) == list(make_payments()["payment"])  # with leading zeros
    done = run("score", payments / "m.diffint", "-", stdin=book.read_bytes())
    assert len(pd.read_csv(io.StringIO(done.out))) == 400


def test_fit_explain_report(run, payments, book, tmp_path):
    options = ("--label", "fraud", "--id", "payment", *QUICK)
    assert run("fit", book, "-o", tmp_path / "m", *options).code == 0
    assert run("explain", tmp_path / "m", book, "--row-id", "000007").out.startswith("Row 000007")
    assert run("report", tmp_path / "m", book, "-o", tmp_path / "r.html").code == 0


@pytest.mark.parametrize("options", [(), ("--output-format", "xlsx")])
def test_scores_in_a_workbook(run, payments, tmp_path, options):
    out = tmp_path / ("o" if options else "o.xlsx")
    kept = ("--keep", "amount,visits")
    done = run("score", payments / "m.diffint", payments / "t.csv", "-o", out, *options, *kept)
    assert done.code == 0, done.err
    sheet = openpyxl.load_workbook(io.BytesIO(out.read_bytes())).active
    rows = list(sheet.values)
    assert rows[0] == ("payment", "amount", "visits", "score", "p_value", "flagged", "reasons")
    table = make_payments()
    assert [row[0] for row in rows[1:]] == list(table["payment"])  # text, with leading zeros
    assert [row[2] for row in rows[1:]] == list(table["visits"])  # numbers
    np.testing.assert_allclose([row[3] for row in rows[1:]], library_scores(payments), rtol=5.1e-6)
    assert {row[5] for row in rows[1:]} == {True, False}
    assert sheet.freeze_panes == "A2"


def test_text_is_never_a_formula_and_has_no_control_characters(run, payments, tmp_path):
    ids = ["=1+1", "#N/A", "a\x07b", "@x", "plain"]
    make_payments().head(5).assign(payment=ids).to_parquet(tmp_path / "t.parquet")
    out = tmp_path / "o.xlsx"
    assert run("score", payments / "m.diffint", tmp_path / "t.parquet", "-o", out).code == 0
    cells = [row[0] for row in openpyxl.load_workbook(out).active.iter_rows(min_row=2)]
    assert [cell.value for cell in cells] == ["=1+1", "#N/A", r"a\x07b", "@x", "plain"]
    assert {cell.data_type for cell in cells} == {"s"}


@pytest.mark.parametrize("old", [True, False])
def test_nothing_is_lost_and_nothing_is_left_after_an_error(
    run, payments, tmp_path, monkeypatch, old
):
    out, folder = tmp_path / "o.xlsx", tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.setattr("diffint.tables.files.text._BLOCK_BYTES", 1000)
    if old:
        out.write_text("old")
    table = make_payments()[FEATURES].to_csv(index=False)
    (tmp_path / "t.csv").write_text(table + "1,2,oops\n")
    done = run("score", payments / "m.diffint", tmp_path / "t.csv", "-o", out)
    assert done.code == 2
    assert "has 'oops' in line 402" in done.err
    assert sorted(os.listdir(tmp_path)) == ["o.xlsx"] * old + ["t.csv", "temporary"]
    assert not old or out.read_text() == "old"
    assert os.listdir(folder) == []


def test_a_full_disk(run, payments):
    files = (payments / "m.diffint", payments / "t.csv", "-o", "/dev/full")
    done = run("score", *files, "--output-format", "xlsx")
    assert done.code == 2
    assert "diffint: '/dev/full' cannot be written: No space left on device; " in done.err


def test_more_rows_than_a_sheet_has(run, payments, tmp_path, monkeypatch):
    monkeypatch.setattr("diffint.tables.files.excel.MOST_ROWS", 300)
    out = tmp_path / "o.xlsx"
    done = run("score", payments / "m.diffint", payments / "t.csv", "-o", out)
    assert done.code == 2
    assert "an Excel sheet has at most 300 rows; write a .csv" in done.err
    assert not out.exists()
    assert run("score", payments / "m.diffint", payments / "t.csv", "-o", out, "--top", 9).code == 0


def workbook(path, **sheets):
    made = openpyxl.Workbook()
    made.remove(made.active)
    for name, rows in sheets.items():
        sheet = made.create_sheet(name)
        for row in rows:
            sheet.append(row)
    made.save(path)
    return path


ROWS = [FEATURES, [30, 1500, 3], [40, 2000, 2]]


def test_sheets(run, payments, tmp_path):
    path = workbook(tmp_path / "t.xlsx", notes=[["hello"]], **{"new rows": ROWS}, empty=[])
    command = ("score", payments / "m.diffint", path)
    done = run(*command)
    assert done.code == 2
    assert "has 2 sheets, 'notes' and 'new rows'; choose one with --sheet" in done.err
    assert run(*command, "--sheet", "new rows").out.count("\n") == 3
    wrong = run(*command, "--sheet", "New row")
    assert wrong.code == 2
    assert "has no sheet 'New row' (did you mean 'new rows'?); it has 'notes'" in wrong.err
    empty = run(*command, "--sheet", "empty")
    assert empty.code == 2
    assert "the sheet 'empty' of" in empty.err
    other = run("score", payments / "m.diffint", payments / "t.csv", "--sheet", "a")
    assert other.code == 2
    assert "--sheet is for Excel files" in other.err
    only = workbook(tmp_path / "one.xlsx", table=ROWS, empty=[])
    assert run("score", payments / "m.diffint", only).code == 0


def test_rows_are_named_by_their_number_in_the_sheet(run, payments, tmp_path):
    rows = [[], [], ["", *FEATURES], [], [None, 1, 2, 3], [], [], [None, 1, 2, "x"]]
    path = workbook(tmp_path / "t.xlsx", t=rows)
    done = run("score", payments / "m.diffint", path)
    assert done.code == 2
    assert "column 'visits' has 'x' in row 8 of the sheet" in done.err


def test_without_openpyxl(run, payments, book, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    done = run("score", payments / "m.diffint", book)
    assert done.code == 2
    assert "is an Excel file, which needs openpyxl; install it with: pip install" in done.err
    (tmp_path / "o.xlsx").write_text("old")
    done = run("score", payments / "m.diffint", payments / "t.csv", "-o", tmp_path / "o.xlsx")
    assert done.code == 2
    assert "writing Excel files needs openpyxl; install it with: pip install" in done.err
    assert (tmp_path / "o.xlsx").read_text() == "old"
