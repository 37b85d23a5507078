"""Read and write Excel workbooks (.xlsx) row by row, by openpyxl."""

from __future__ import annotations

import bisect
import datetime
import math
import re
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Any

import pyarrow

from ...core.errors import InputError
from ...core.formatting import counted, listed, printable
from ..atomic_write import OutputFile, errors_that_name
from .names import did_you_mean, option_value

MOST_ROWS = 2**20  # of a sheet, with its header
_BATCH_ROWS = 8_192
_NOT_AVAILABLE = "#N/A"  # an error in Excel, also if it is typed in: a missing value
_ROWS_AHEAD = 1_000  # in which a column without a name must have a value to be one
_INSTALL = "needs openpyxl; install it with: pip install openpyxl"


class ExcelTable:
    """A sheet of a workbook; its cells become text, as in CSV, until they are parsed as numbers."""

    n_rows: int | None = None  # what a workbook says about it is not reliable

    def __init__(self, stream: Any, sheet: str | None, decimal: str, name: str) -> None:
        """sheet: None for the only one; decimal: sign of numbers as text; name: for messages"""
        openpyxl = _openpyxl(f"{name} is an Excel file, which")
        self._name, self._decimal = name, decimal
        with _readable():
            self._refuse_other_archives(stream)
            book = openpyxl.load_workbook(stream, read_only=True, data_only=True)
            chosen = self._chosen(book.worksheets, sheet)
            self.sheet = str(chosen.title)
            self._rows = _numbered_rows(chosen)
            header = next((cells for _, cells in self._rows if _is_filled(cells)), None)
        if header is None:
            raise InputError(f"the sheet {self.sheet!r} of {name} is empty")
        self._ahead = self._next_rows(_ROWS_AHEAD)
        texts = [(self._text(cell) or "").strip() for cell in header]
        width = max([len(texts), *(len(cells) for _, cells in self._ahead)])
        texts += [""] * (width - len(texts))
        # A column is one that has a name, or values without a name.
        self._places = [
            j for j, text in enumerate(texts) if text or any(_at(c, j) for _, c in self._ahead)
        ]
        self.names = [texts[j] for j in self._places]
        # (row of the table, rows of the sheet before it), where the difference changes
        self._skipped: list[tuple[int, int]] = []

    def batches(self, columns: list[str]) -> Iterator[Any]:
        """Record batches with these columns, as text. Empty rows are left out."""
        places = [self._places[self.names.index(name)] for name in columns]
        known, count = set(self._places), 0
        while rows := self._ahead or self._next_rows(_BATCH_ROWS):
            self._ahead = []
            filled = [(number, cells) for number, cells in rows if _is_filled(cells)]
            for number, cells in filled:
                self._check_width(number, cells, known)
                if not self._skipped or number - count != self._skipped[-1][1]:
                    self._skipped.append((count, number - count))
                count += 1
            texts = [
                pyarrow.array([self._text(_at(c, j)) for _, c in filled], pyarrow.string())
                for j in places
            ]
            if filled:
                yield pyarrow.record_batch(texts, names=columns)

    def row_of_sheet(self, row: int) -> int:
        """The number in the sheet, from 1, of a row that was read."""
        place = bisect.bisect_right(self._skipped, row, key=lambda skipped: skipped[0])
        return row + (self._skipped[place - 1][1] if place else 0)

    def _next_rows(self, count: int) -> list[tuple[int, Sequence[Any]]]:
        with _readable():
            rows = list(islice(self._rows, count))
        if rows and rows[-1][0] > MOST_ROWS:
            raise pyarrow.ArrowInvalid("it has more rows than a sheet can have")
        return rows

    def _check_width(self, number: int, cells: Sequence[Any], known: set[int]) -> None:
        for j, cell in enumerate(cells):
            if j not in known and cell not in (None, ""):
                raise InputError(
                    f"{self._name}: row {number:,} of the sheet {self.sheet!r} has "
                    f"{str(cell)[:40]!r} in a column without a name; name the column in the "
                    "first row, or remove the cell"
                )

    def _chosen(self, sheets: list[Any], wanted: str | None) -> Any:
        """The sheet with this name, or the only visible one that has cells."""
        names = [str(sheet.title) for sheet in sheets]
        if wanted is not None:
            if wanted not in names:
                raise InputError(
                    f"{self._name} has no sheet {wanted!r}{did_you_mean(wanted, names)}; it has "
                    f"{listed([repr(name) for name in names])}"
                )
            return sheets[names.index(wanted)]
        visible = [sheet for sheet in sheets if sheet.sheet_state == "visible"]
        filled = [s for s in visible if any(_is_filled(cells) for _, cells in _numbered_rows(s))]
        if not filled:
            raise InputError(f"{self._name} has no sheet with cells")
        if len(filled) > 1:
            shown = [repr(str(sheet.title)) for sheet in filled]
            raise InputError(
                f"{self._name} has {counted(len(shown), 'sheet')}, {listed(shown)}; choose one "
                f"with --sheet, such as --sheet {option_value([str(filled[0].title)])}"
            )
        return filled[0]

    def _refuse_other_archives(self, stream: Any) -> None:
        with zipfile.ZipFile(stream) as archive:
            names = set(archive.namelist())
        stream.seek(0)
        if "xl/workbook.bin" in names or "content.xml" in names:
            raise InputError(
                f"{self._name} is a spreadsheet of another kind; save it as .xlsx or .csv"
            )
        if "[Content_Types].xml" not in names:
            raise InputError(f"{self._name} is a zip archive; unpack it and give the table in it")

    def _text(self, cell: Any) -> str | None:
        """A cell as text, None if it is missing."""
        if cell is None or isinstance(cell, str):
            return None if cell == _NOT_AVAILABLE else cell
        if isinstance(cell, float):
            whole = cell.is_integer() and abs(cell) < 1e15
            return str(int(cell)) if whole else repr(cell).replace(".", self._decimal)
        if isinstance(cell, datetime.datetime):
            return cell.isoformat(" ").removesuffix(" 00:00:00")
        return str(cell)


def _numbered_rows(sheet: Any) -> Iterator[tuple[int, Sequence[Any]]]:
    """(number from 1, cells) of the rows of a sheet; they may differ in length."""
    sheet.reset_dimensions()  # some programs write a wrong size, by which rows would be lost
    return enumerate(sheet.iter_rows(values_only=True), 1)


def _is_filled(cells: Sequence[Any]) -> bool:
    return any(cell not in (None, "") for cell in cells)


def _at(cells: Sequence[Any], place: int) -> Any:
    return cells[place] if place < len(cells) else None


def _openpyxl(what: str) -> Any:
    """The library; what: that needs it, for the message if it is not installed."""
    try:
        import openpyxl
    except ImportError:
        raise InputError(f"{what} {_INSTALL}") from None
    return openpyxl


@contextmanager
def _readable() -> Iterator[None]:
    """Errors of openpyxl as those of Arrow; without its warnings of what it does not read."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        except (InputError, OSError, MemoryError, pyarrow.ArrowException):
            raise
        except Exception as error:  # of the parsers of XML, numbers and dates, in damaged files
            raise pyarrow.ArrowInvalid(f"{error}" or type(error).__name__) from error


# --- Writing -------------------------------------------------------------------------------------

# A number as programs write it; leading and trailing zeros would get lost, and Excel has 15 digits.
_NUMBER = re.compile(r"-?(0|[1-9]\d{0,8})(\.\d{0,5}[1-9])?")
_WIDE = {"reasons": 80}  # columns with long texts, in characters


@contextmanager
def excel_writer(file: OutputFile, schema: Any) -> Iterator[Callable[[Any], None]]:
    """A function that writes record batches of this schema to a workbook with one sheet.

    Text is never a formula. A column of texts that are all numbers in the first batch is written
    as numbers, because text files have nothing but text.
    """
    openpyxl = _openpyxl("writing Excel files")
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("diffint")
    sheet.freeze_panes = "A2"
    for j, name in enumerate(schema.names):
        if name in _WIDE:
            letter = openpyxl.utils.get_column_letter(j + 1)
            sheet.column_dimensions[letter].width = _WIDE[name]
    as_numbers: list[bool] = []
    count = 1

    def write(batch: Any) -> None:
        nonlocal as_numbers, count
        columns = [column.to_pylist() for column in batch.columns]
        as_numbers = as_numbers or [_are_numbers(column) for column in columns]
        count += batch.num_rows
        if count > MOST_ROWS:
            raise InputError(
                f"an Excel sheet has at most {MOST_ROWS:,} rows; write a .csv or .parquet file, or "
                "fewer rows (--flagged-only, --top N)"
            )
        for row in zip(*columns, strict=True):
            append([_cell(cell, j) for cell, j in zip(row, as_numbers, strict=True)])

    def append(values: list[Any]) -> None:
        for j, value in enumerate(values):
            if isinstance(value, str) and value[0] in "=#":  # else a formula, or an error
                values[j] = openpyxl.cell.WriteOnlyCell(sheet, value=value)
                values[j].data_type = "s"
        with errors_that_name("a temporary file"):
            sheet.append(values)

    try:
        append([_cell(name, False) for name in schema.names])
        yield write
        book.save(file)
    finally:
        if not sheet.closed:  # openpyxl removes its temporary file only when a book is saved
            with suppress(Exception):
                sheet.close()
                sheet._writer.cleanup()


def _are_numbers(column: list[Any]) -> bool:
    texts = [cell for cell in column if cell not in (None, "")]
    return bool(texts) and all(isinstance(t, str) and _NUMBER.fullmatch(t) for t in texts)


def _cell(value: Any, as_number: bool) -> Any:
    """A value that Excel can hold."""
    if isinstance(value, str | bytes):
        text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value
        if as_number and _NUMBER.fullmatch(text):
            return float(text) if "." in text else int(text)
        return printable(text, keep="\n\t") or None
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    if isinstance(value, int) and abs(value) >= 10**15:
        return str(value)  # Excel would round it
    if isinstance(value, datetime.datetime) and value.tzinfo is None and value.year >= 1900:
        return value
    if value is None or isinstance(value, bool | int | float):
        return value
    return str(value)
