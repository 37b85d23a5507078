"""Read a table from a file or standard input, batch by batch in constant memory."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow
import pyarrow.compute as compute
import pyarrow.ipc
import pyarrow.parquet
from numpy.typing import NDArray

from ...core.errors import InputError
from ...core.formatting import counted, listed, number
from .excel import ExcelTable
from .formats import NAMES
from .number_parsing import PLAIN_KINDS, NotNumeric, as_cells
from .opening import open_stream
from .parsing import UnusableColumn, parsed
from .text import TextTable

BATCH_ROWS = 65_536
MOST_COLUMNS = 10_000
_MOST_LISTED = 10  # columns that one message names
_CORRECT_THE_CELL = "correct the cell, or leave it empty if the value is missing"
_UNREADABLE = pyarrow.ArrowException, OSError, UnicodeDecodeError  # the last of a column's name
_SEPARATORS = {";": "';'", "\t": "'\\t'", "|": "'|'", ",": "','"}


@dataclass(frozen=True)
class ReadingOptions:
    """How to read a file: its kind (from its name if None) and the conventions of its text.

    sheet: of an Excel workbook; None if it has only one with cells.
    """

    kind: str | None = None
    separator: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"
    sheet: str | None = None

    def __post_init__(self) -> None:
        separator = {"\\t": "\t", "tab": "\t"}.get(self.separator or "", self.separator)
        object.__setattr__(self, "separator", separator)
        valid = separator is None or (len(separator) == 1 and separator.isascii())
        if not valid or separator in ('"', "\n", "\r"):
            raise InputError(
                f"the separator {self.separator!r} must be a single character, such as ';' or '\\t'"
            )
        if self.decimal not in (".", ","):
            raise InputError(f"the decimal sign {self.decimal!r} must be '.' or ','")
        try:
            "".encode(self.encoding)
        except LookupError:
            raise InputError(
                f"{self.encoding!r} is not a known encoding; try utf-8, latin-1 or utf-16"
            ) from None


class TableFile:
    """An open table: its columns, its length if known, and its batches, which can be read once."""

    def __init__(self, path: str, options: ReadingOptions) -> None:
        self.path, self.options = path, options
        self.name = "standard input" if path == "-" else repr(path)
        self._stream, self._size, self.format = open_stream(path, options.kind)
        self.columns: list[str] = []
        try:
            self._source = self._open_source()
            self.columns = list(self._source.names)
            self.n_rows: int | None = self._source.n_rows
            self._check_columns()
        except _UNREADABLE as error:
            self._stream.close()
            raise self._unreadable(error) from error
        except InputError:
            self._stream.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def progress(self) -> float | None:
        """The share of the file that has been read, None if its size is unknown."""
        if not self._size or self.format.compression:
            return None
        try:
            return float(min(1.0, self._stream.tell() / self._size))
        except (ValueError, OSError):
            return None

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[int, Any]]:
        """(number of rows before it, pyarrow batch with these columns), in the file's order."""
        first = 0
        try:
            for batch in self._source.batches(list(columns)):
                if self.format.has_types:
                    # Arrow would follow offsets and positions of the file wherever they lead.
                    batch.validate(full=True)
                for start in range(0, batch.num_rows, BATCH_ROWS):
                    part = batch.slice(start, BATCH_ROWS)
                    yield first, part
                    first += part.num_rows
        except _UNREADABLE as error:
            raise self._unreadable(error) from error
        if first == 0:
            raise InputError(f"{self.name} has a header but no rows" + self.hint())

    def missing_words(self, words: Sequence[str]) -> Sequence[str]:
        """Those that stand for missing cells here: none if the columns of the file have types."""
        return () if self.format.has_types else words

    def numbers(
        self, batch: Any, columns: Sequence[str], first: int, words: Sequence[str] = ()
    ) -> NDArray[np.float64]:
        """The columns of a batch as a matrix (rows, columns); raises unless all are finite numbers.

        first: number of rows before the batch; words: that stand for missing cells, beside the
        usual ones.
        """
        values, unusable = self.parsed(batch, columns, first, words)
        if unusable:
            raise self.not_numbers(unusable)
        return values

    def not_numbers(self, unusable: Sequence[UnusableColumn]) -> InputError:
        """The error for columns that a model needs as numbers."""
        if len(unusable) == 1:
            remedy = "convert it to numbers" if unusable[0].kind == "type" else _CORRECT_THE_CELL
            problem = unusable[0].sentence(self.where)
            return InputError(f"{self.name}: {problem}; {remedy}{self.hint(unusable)}")
        return InputError(
            f"{self.name}: {self.listed(unusable)}; correct the cells, or leave them empty if the "
            f"values are missing{self.hint(unusable)}"
        )

    def parsed(
        self, batch: Any, columns: Sequence[str], first: int, words: Sequence[str] = ()
    ) -> tuple[NDArray[np.float64], list[UnusableColumn]]:
        """The columns of a batch as a matrix (rows, columns), and those that are not numbers."""
        return parsed(batch, columns, first, self.options.decimal, words)

    def cells(self, batch: Any, column: str, words: Sequence[str]) -> Any:
        """A column of a batch as `as_cells` gives it: a pyarrow array (rows,).

        words: that stand for missing cells. Raises an error for a type whose cells have no texts.
        """
        try:
            return as_cells(batch.column(column), words)
        except NotNumeric as kind:
            raise InputError(
                f"{self.name}: column {column!r} has the type {str(kind)[:40]}; convert it to text "
                "or numbers"
            ) from None

    def listed(self, unusable: Sequence[UnusableColumn]) -> str:
        """``2 columns cannot be used: 'cut' (text, e.g. 'Ideal') and …``"""
        alone = len(unusable) == 1
        shown = [column.brief(self.where, alone) for column in unusable[:_MOST_LISTED]]
        more = len(unusable) - len(shown)
        shown += [f"{more:,} more"] if more else []
        return f"{counted(len(unusable), 'column')} cannot be used: {listed(shown)}"

    def anomalies(self, batch: Any, label: str, first: int) -> NDArray[np.bool_]:
        """Which rows of a batch the label marks as anomalies; raises unless all are 0 or 1.

        first: number of rows before the batch.
        """
        marks = self.numbers(batch, [label], first)[:, 0]
        wrong = np.flatnonzero((marks != 0) & (marks != 1))
        if len(wrong):
            mark = marks[wrong[0]]
            raise InputError(
                f"{self.name}: the label {label!r} is "
                f"{'missing' if np.isnan(mark) else number(mark)} "
                f"{self.where(first + int(wrong[0]))}; it must be 0 or 1 (or false, true)"
            )
        return np.asarray(marks == 1)

    def ids(self, batch: Any, column: str) -> Any:
        """A column of a batch as ids: a pyarrow array (rows,) that can be shown and written."""
        return self._cells(batch, column, "used as ids")

    def kept(self, batch: Any, column: str) -> Any:
        """A column of a batch as it is: a pyarrow array (rows,) that can be shown and written."""
        return self._cells(batch, column, "kept")

    def kept_if_possible(self, batch: Any, column: str) -> Any:
        """As `kept`, but without the cells of a batch if they cannot be shown."""
        try:
            return self.kept(batch, column)
        except InputError:
            kind = batch.column(column).type
            kind = kind.value_type if pyarrow.types.is_dictionary(kind) else kind
            plain = any(is_kind(kind) for is_kind in PLAIN_KINDS)
            return pyarrow.nulls(batch.num_rows, kind if plain else pyarrow.string())

    def _cells(self, batch: Any, column: str, use: str) -> Any:
        ids = batch.column(column)
        if pyarrow.types.is_dictionary(ids.type):
            ids = ids.dictionary_decode()
        try:
            as_text = ids.cast(pyarrow.string())
            if pyarrow.types.is_timestamp(ids.type) or pyarrow.types.is_date(ids.type):
                compute.min_max(ids).as_py()  # raises an error if Python cannot show a date
        except (pyarrow.ArrowException, ValueError, OverflowError):
            raise InputError(
                f"{self.name}: the column {column!r} of type {str(ids.type)[:40]} cannot be "
                f"{use}; convert it to text or numbers, or choose another column"
            ) from None
        kept = any(is_kind(ids.type) for is_kind in PLAIN_KINDS)  # others are written as text
        return ids if kept else as_text

    def where(self, row: int) -> str:
        """Where a row is, as a line number if possible, to find it in an editor."""
        if isinstance(self._source, ExcelTable):
            return f"in row {self._source.row_of_sheet(row):,} of the sheet"
        if not self.format.is_text:
            return f"in row {row + 1:,}"
        line = self._line_of(row)
        return f"in line {line:,}" if line is not None else f"in row {row + 1:,} after the header"

    def _line_of(self, row: int) -> int | None:
        """The line of a row; None if it cannot be found."""
        return next((line for i, (line, _) in enumerate(self._lines(), -1) if i == row), None)

    def _ragged_line(self, n_cells: int) -> int | None:
        """The first line whose number of cells is not `n_cells`."""
        return next((line for line, cells in self._lines() if len(cells) != n_cells), None)

    def _lines(self) -> Iterator[tuple[int, list[str]]]:
        """(line number, cells) of the header and every row.

        Empty lines are skipped, unless there is only one column.
        """
        if self.path == "-":
            return
        with pyarrow.input_stream(self.path, compression=self.format.compression) as stream:
            text = io.TextIOWrapper(stream, self.options.encoding, "replace", newline="")
            reader = csv.reader(text, delimiter=self._separator)
            found_header = False
            try:
                for cells in reader:
                    found_header |= any(cell.strip() for cell in cells)
                    if found_header and (cells or len(self.columns) == 1):
                        yield reader.line_num, cells or [""]
            except csv.Error:  # a cell that is too long: the line is unknown
                return

    @property
    def _separator(self) -> str:
        if self.options.separator is not None:
            return self.options.separator
        if self.format.kind == "tsv":
            return "\t"
        return "," if self.options.decimal == "." else ";"

    def _open_source(self) -> _Source:
        if self.format.kind == "xlsx":
            return ExcelTable(self._stream, self.options.sheet, self.options.decimal, self.name)
        if self.options.sheet is not None:
            raise InputError(f"--sheet is for Excel files, and {self.name} is none; leave it out")
        if self.format.kind == "parquet":
            return _Parquet(self._stream)
        if self.format.kind == "arrow":
            return _Arrow(self._stream)
        return TextTable(self._stream, self._separator, self.options.encoding)

    def _check_columns(self) -> None:
        if len(self.columns) > MOST_COLUMNS:
            raise InputError(
                f"{self.name} has {len(self.columns):,} columns, more than the limit of "
                f"{MOST_COLUMNS:,}; does the table need to be transposed?"
            )
        seen: set[str] = set()
        for name in self.columns:
            if name in seen:
                raise InputError(
                    f"{self.name} has more than one column called {name!r}; rename them"
                )
            seen.add(name)

    def hint(self, unusable: Sequence[UnusableColumn] = ()) -> str:
        """A hint at decimal commas, or at a wrong separator if the table has only one column."""
        if self.options.decimal == "." and any(column.has_decimal_comma for column in unusable):
            return " (are there decimal commas? then add --decimal ,)"
        if not self.format.is_text or len(self.columns) != 1:
            return ""
        for sign, shown in _SEPARATORS.items():
            if sign in self.columns[0] and sign != self._separator:
                return f" (are the columns separated by {shown}? then add --separator {shown})"
        return ""

    def _unreadable(self, error: Exception) -> InputError:
        """Arrow's error as one that says what to do."""
        text = " ".join(str(error).split())
        ragged = re.search(r"Expected (\d+) columns, got (\d+)", text)
        if ragged:
            line = self._ragged_line(int(ragged[1]))
            where = "a line" if line is None else f"line {line:,}"
            hint = self.hint() or "; correct the line, or set the separator with --separator"
            cells = counted(int(ragged[2]), "cell")
            return InputError(f"{self.name}: {where} has {cells} instead of {ragged[1]}{hint}")
        if self.format.is_text and re.search("UTF-?8|codec", text, re.IGNORECASE):
            return InputError(
                f"{self.name} is not text in {self.options.encoding}; if it is text, set its "
                "encoding with --encoding (latin-1, utf-16, …)"
            )
        if "Empty CSV" in text:
            return InputError(
                f"{self.name} is empty; it needs a line of column names and at least one row"
            )
        return InputError(
            f"{self.name} cannot be read as {NAMES[self.format.kind]} ({text[:160]}); is it "
            "damaged, or in another format (--format)?"
        )


@contextmanager
def open_table(path: str, options: ReadingOptions | None = None) -> Iterator[TableFile]:
    """Open a table by path, ``-`` for standard input."""
    table = TableFile(path, options or ReadingOptions())
    try:
        yield table
    finally:
        table.close()


class _Source(Protocol):
    """The interface of the readers of each kind of file."""

    names: list[str]
    n_rows: int | None

    def batches(self, columns: list[str]) -> Iterator[Any]:
        """Record batches with these columns."""


class _Parquet:
    """A Parquet file."""

    def __init__(self, stream: Any) -> None:
        self._file = pyarrow.parquet.ParquetFile(stream, pre_buffer=False, buffer_size=2**20)
        self.names = list(self._file.schema_arrow.names)
        self.n_rows: int | None = int(self._file.metadata.num_rows)

    def batches(self, columns: list[str]) -> Iterator[Any]:
        yield from self._file.iter_batches(BATCH_ROWS, columns=columns)


class _Arrow:
    """An Arrow file, in the file format or the stream format."""

    n_rows: int | None = None

    def __init__(self, stream: Any) -> None:
        try:
            self._file = pyarrow.ipc.open_file(stream)
        except pyarrow.ArrowInvalid:  # not the file format: try the stream format
            stream.seek(0)
            self._file = pyarrow.ipc.open_stream(stream)
        self.names = list(self._file.schema.names)

    def batches(self, columns: list[str]) -> Iterator[Any]:
        if hasattr(self._file, "num_record_batches"):
            for i in range(self._file.num_record_batches):
                yield self._file.get_batch(i).select(columns)
        else:
            for batch in self._file:
                yield batch.select(columns)
