"""Cells of Excel workbooks, also of damaged ones and of those that other programs write."""

import datetime
import io
import random
import zipfile

import numpy as np
import openpyxl
import pytest

from diffint import InputError
from diffint.tables.files.reading import ReadingOptions, open_table


def saved(path, rows):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    return str(path)


def cells(path, **options):
    with open_table(path, ReadingOptions(**options)) as file:
        return [row for _, batch in file.batches(file.columns) for row in batch.to_pylist()]


def test_cells_are_text_as_in_csv(tmp_path):
    when = datetime.datetime(2024, 5, 1)
    row = [7, 2.0, 0.1, True, None, "007", when, when.replace(hour=9), 1e300]
    path = saved(tmp_path / "t.xlsx", [[f"c{i}" for i in range(9)], row])
    expected = ["7", "2", "0.1", "True", None, "007", "2024-05-01", "2024-05-01 09:00:00", "1e+300"]
    assert list(cells(path)[0].values()) == expected
    assert cells(path, decimal=",")[0]["c2"] == "0,1"


def test_numbers_are_exact(tmp_path):
    drawn = np.random.default_rng(0).lognormal(0, 20, 500)
    numbers = np.array([float(f"{number:.15g}") for number in drawn])  # as many as openpyxl writes
    path = saved(tmp_path / "t.xlsx", [["x"], *([float(number)] for number in numbers)])
    with open_table(path) as file:
        parts = [file.numbers(batch, ["x"], first)[:, 0] for first, batch in file.batches(["x"])]
    np.testing.assert_array_equal(np.concatenate(parts), numbers)


def test_a_wrong_size_in_the_file_loses_no_rows(tmp_path):
    path = saved(tmp_path / "t.xlsx", [["a", "b"], *([i, i] for i in range(20))])
    changed = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).replace(b'ref="A1:B21"', b'ref="A1:A1"'))
    (tmp_path / "t.xlsx").write_bytes(changed.getvalue())
    assert len(cells(path)) == 20


def test_columns_without_a_name(tmp_path):
    path = saved(tmp_path / "a.xlsx", [[None, "a", None], [None, 1, None], [None, 2, ""]])
    assert cells(path) == [{"a": "1"}, {"a": "2"}]
    path = saved(tmp_path / "b.xlsx", [[None, "a"], [0, 5], [1, 6]])  # an index of pandas
    assert cells(path) == [{"": "0", "a": "5"}, {"": "1", "a": "6"}]
    path = saved(tmp_path / "c.xlsx", [["a"], *([i] for i in range(2000)), [1, "note"]])
    with pytest.raises(InputError, match=r"row 2,002 of .*'note' in a column without a name"):
        cells(path)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["t.csv"], "is a zip archive; unpack it"),
        (["[Content_Types].xml", "xl/workbook.bin"], "save it as .xlsx or .csv"),
        (["mimetype", "content.xml"], "save it as .xlsx or .csv"),
        (["[Content_Types].xml"], "cannot be read as Excel"),
    ],
)
def test_other_archives(tmp_path, names, message):
    path = tmp_path / "t.xlsx"
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, "x")
    with pytest.raises(InputError, match=message):
        cells(str(path))


@pytest.mark.parametrize(
    "content", [b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)], ids=["old Excel"]
)
@pytest.mark.parametrize("name", ["t.xls", "t.xlsx", "t"])
def test_old_or_encrypted_workbooks(tmp_path, content, name):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=r"old Excel file \(.xls\) or has a password; open it"):
        cells(str(tmp_path / name))


@pytest.mark.parametrize("row", ["99999999999", "x"])
def test_rows_with_impossible_numbers(tmp_path, monkeypatch, row):
    monkeypatch.setattr("diffint.tables.files.excel.MOST_ROWS", 20_000)
    path = saved(tmp_path / "t.xlsx", [["a"], [1], [2]])
    changed = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).replace(b'<row r="3"', f'<row r="{row}"'.encode()))
    (tmp_path / "t.xlsx").write_bytes(changed.getvalue())
    with pytest.raises(InputError, match="cannot be read as Excel"):
        cells(path)


def test_damaged_workbooks_are_read_or_refused(tmp_path):
    path = tmp_path / "t.xlsx"
    saved(path, [["a", "b"], *([i, f"text {i}"] for i in range(30))])
    whole, rng = path.read_bytes(), random.Random(0)
    refused = 0
    for i in range(300):
        if i % 3 == 0:
            content = whole[: rng.randrange(len(whole))]
        elif i % 3 == 1:
            content = bytearray(whole)
            for _ in range(rng.randrange(1, 20)):
                content[rng.randrange(len(whole))] = rng.randrange(256)
        else:  # damage inside the archive, where no checksum helps
            changed = io.BytesIO()
            with zipfile.ZipFile(io.BytesIO(whole)) as old, zipfile.ZipFile(changed, "w") as new:
                for name in old.namelist():
                    part = bytearray(old.read(name))
                    for _ in range(rng.choice([0, 0, 1, 3])):
                        part[rng.randrange(len(part))] = rng.choice(b'<>&"/0aZ \xff')
                    new.writestr(name, bytes(part))
            content = changed.getvalue()
        path.write_bytes(content)
        try:
            cells(str(path), kind="xlsx")
        except InputError:
            refused += 1
    assert 100 < refused < 300
