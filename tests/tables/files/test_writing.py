import io
import sys

import openpyxl
import pyarrow
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

from diffint.tables.files.writing import table_writer, without_formulas

TEXTS = {
    "=1+1": "'=1+1",
    "=cmd|' /C calc'!A0": "'=cmd|' /C calc'!A0",
    "+49 30 123": "'+49 30 123",
    "-1+1": "'-1+1",
    "@SUM(A1)": "'@SUM(A1)",
    "\t=1": "'\t=1",
    "\r=1": "'\r=1",
    "=a\nb": "'=a\nb",
    "\uff1d1": "'\uff1d1",
    "-12": "-12",
    "+4.5": "+4.5",
    "-1,5e-3": "-1,5e-3",
    "-.5": "-.5",
    "a=1": "a=1",
    "'=1": "'=1",
    "": "",
    None: None,
}


@pytest.mark.parametrize("kind", [pyarrow.string(), pyarrow.large_string()])
def test_only_texts_that_start_a_formula_get_an_apostrophe(kind):
    safe = without_formulas(pyarrow.array(TEXTS, kind))
    assert safe.type == kind
    assert safe.to_pylist() == list(TEXTS.values())


def test_bytes_and_numbers():
    assert without_formulas(pyarrow.array([b"=1", b"x"])).to_pylist() == [b"'=1", b"x"]
    numbers = pyarrow.array([-1, 2])
    assert without_formulas(numbers) is numbers


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz", "t.parquet", "t.feather"])
def test_guarded_columns_are_changed_in_text_files_only(tmp_path, name):
    table = pyarrow.table({"=a": ["=1", "x"], "b": ["=1", "y"]})
    with table_writer(str(tmp_path / name), table.schema, guarded=["=a"]) as write:
        write(table.to_batches()[0])
    if "sv" in name:
        separator = "\t" if "tsv" in name else ","
        options = pyarrow.csv.ParseOptions(delimiter=separator)
        read = pyarrow.csv.read_csv(tmp_path / name, parse_options=options)
        assert read.to_pydict() == {"'=a": ["'=1", "x"], "b": ["=1", "y"]}
    else:
        module = pyarrow.parquet if name == "t.parquet" else pyarrow.feather
        assert module.read_table(tmp_path / name).equals(table)


@pytest.mark.parametrize("terminal", [True, False])
def test_no_character_acts_on_a_terminal(monkeypatch, terminal):
    table = pyarrow.table({"a\x1b": ["\x1b[2J", None], "b": [b"\x1b", b""]})
    written = io.BytesIO()
    stream = io.TextIOWrapper(written)
    monkeypatch.setattr(stream, "isatty", lambda: terminal, raising=False)
    monkeypatch.setattr(sys, "stdout", stream)
    with table_writer("-", table.schema) as write:
        write(table.to_batches()[0])
    assert (b"\x1b" not in written.getvalue()) == terminal
    assert (rb"\x1b[2J" in written.getvalue()) == terminal


def test_a_workbook_on_standard_output(monkeypatch):
    table = pyarrow.table({"a": ["=1", "x"], "b": [1.5, None], "c": ["1", "2.5"]})
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written))
    with table_writer("-", table.schema, "xlsx") as write:
        write(table.to_batches()[0])
    rows = list(openpyxl.load_workbook(io.BytesIO(written.getvalue())).active.values)
    assert rows == [("a", "b", "c"), ("=1", 1.5, 1), ("x", None, 2.5)]
