"""Read a table from a file or standard input, batch by batch in constant memory."""

from __future__ import annotations

import csv
import io
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow
import pyarrow.compute as compute
import pyarrow.ipc
import pyarrow.parquet
from numpy.typing import NDArray

from ...core.errors import InputError
from ...core.formatting import counted, number
from .formats import LONGEST_MARK, Format, format_by_content, format_of
from .number_parsing import NotNumbers, NotNumeric, as_numbers
from .text import TextTable

BATCH_ROWS = 65_536
MOST_COLUMNS = 10_000
_PART_BYTES = 2**20
_KINDS_OF_IDS = (  # which are written as they are; others as text
    pyarrow.types.is_integer,
    pyarrow.types.is_floating,
    pyarrow.types.is_boolean,
    pyarrow.types.is_decimal,
    pyarrow.types.is_timestamp,
    pyarrow.types.is_date,
    pyarrow.types.is_time,
    pyarrow.types.is_null,
)
_CORRECT_THE_CELL = "correct the cell, or leave it empty if the value is missing"
_SEPARATORS = {";": "';'", "\t": "'\\t'", "|": "'|'", ",": "','"}


@dataclass(frozen=True)
class ReadingOptions:
    """How to read a file: its kind (from its name if None) and the conventions of its text."""

    kind: str | None = None
    separator: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"

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
        self._stream, self._size, self.format = _open(path, options)
        self.columns: list[str] = []
        try:
            self._source = self._open_source()
        except (pyarrow.ArrowException, OSError) as error:
            self._stream.close()
            raise self._unreadable(error) from error
        self.columns = list(self._source.names)
        self.n_rows: int | None = self._source.n_rows
        try:
            self._check_columns()
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
                for start in range(0, batch.num_rows, BATCH_ROWS):
                    part = batch.slice(start, BATCH_ROWS)
                    yield first, part
                    first += part.num_rows
        except (pyarrow.ArrowException, OSError) as error:
            raise self._unreadable(error) from error
        if first == 0:
            raise InputError(f"{self.name} has a header but no rows" + self.hint())

    def numbers(
        self, batch: Any, columns: Sequence[str], first: int, can_ignore: bool = False
    ) -> NDArray[np.float64]:
        """The columns of a batch as a matrix (rows, columns); raises unless all are finite numbers.

        first: number of rows before the batch; can_ignore: whether the error can suggest to ignore
        the column.
        """

        def remedy(name: str, otherwise: str = _CORRECT_THE_CELL) -> str:
            if can_ignore:
                shown = _quoted(name)
                return f"use --ignore {shown}, or --id {shown} if it contains the ids of the rows"
            return otherwise

        values = np.empty((batch.num_rows, len(columns)))
        for j, name in enumerate(columns):
            try:
                values[:, j] = as_numbers(batch.column(name), self.options.decimal)
            except NotNumbers as found:
                raise InputError(
                    f"{self.name}: column {name!r} has {_short(found.value)!r} "
                    f"{self.where(first + found.row)}, "
                    f"which is not a number; {remedy(name)}{self.hint()}"
                ) from None
            except NotNumeric as kind:
                raise InputError(
                    f"{self.name}: column {name!r} has the type {_short(str(kind))}, which is not "
                    f"a number; {remedy(name, 'convert it to numbers')}"
                ) from None
        infinite = np.isinf(values)
        if infinite.any():
            row, j = np.argwhere(infinite)[0]
            raise InputError(
                f"{self.name}: column {columns[j]!r} has an infinite number "
                f"{self.where(first + int(row))}; {remedy(columns[j])}"
            )
        return values

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
        ids = batch.column(column)
        if pyarrow.types.is_dictionary(ids.type):
            ids = ids.dictionary_decode()
        try:
            as_text = ids.cast(pyarrow.string())
            if pyarrow.types.is_timestamp(ids.type) or pyarrow.types.is_date(ids.type):
                compute.min_max(ids).as_py()  # raises an error if Python cannot show a date
        except (pyarrow.ArrowException, ValueError, OverflowError):
            raise InputError(
                f"{self.name}: the column {column!r} of type {_short(str(ids.type))} cannot be "
                "used as ids; convert it to text or numbers, or choose another column"
            ) from None
        kept = any(is_kind(ids.type) for is_kind in _KINDS_OF_IDS)
        return ids if kept else as_text

    def where(self, row: int) -> str:
        """Where a row is, as a line number if possible, to find it in an editor."""
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

    def hint(self) -> str:
        """A hint at a wrong separator if the table has only one column."""
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
        if "UTF8" in text or "utf-8" in text.lower() or "codec" in text:
            return InputError(
                f"{self.name} is not text in {self.options.encoding}; if it is text, set its "
                "encoding with --encoding (latin-1, utf-16, …)"
            )
        if "Empty CSV" in text:
            return InputError(
                f"{self.name} is empty; it needs a line of column names and at least one row"
            )
        kind = {"csv": "CSV", "tsv": "TSV", "parquet": "Parquet", "arrow": "Arrow"}
        return InputError(
            f"{self.name} cannot be read as {kind[self.format.kind]} ({text[:160]}); is it "
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


def _open(path: str, options: ReadingOptions) -> tuple[Any, int, Format]:
    """(stream, size in bytes or 0 if unknown, format)"""
    expected = format_of("" if path == "-" else path, options.kind)
    if path == "-":
        if sys.stdin is None:
            raise InputError("standard input is closed; give the name of a file")
        return _from_pipe(sys.stdin.buffer, expected)
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path!r} is a folder; give a file")
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path!r} does not exist{_similar(path)}")
    if not os.path.isfile(path):  # a named pipe, or the shell's <(command)
        return _from_pipe(open(path, "rb"), expected)
    with open(path, "rb") as file:
        actual = format_by_content(file.read(LONGEST_MARK), expected)
    if options.kind is not None and actual.kind != expected.kind:
        actual = Format(expected.kind, actual.compression)
    size = os.path.getsize(path)
    if size == 0:
        raise InputError(f"{path!r} is empty; it needs a line of column names and at least one row")
    if actual.is_text:
        stream = pyarrow.input_stream(path, compression=actual.compression)
        return stream, size, actual
    if actual.compression:
        raise InputError(
            f"{path!r} is compressed, which is supported for CSV and TSV only; unpack it"
        )
    # Not memory-mapped: the mapped pages would count as this process's memory.
    return pyarrow.OSFile(path), size, actual


def _from_pipe(raw: Any, expected: Format) -> tuple[Any, int, Format]:
    """Input that can be read once, from its start to its end."""
    first = raw.peek(LONGEST_MARK)[:LONGEST_MARK] if hasattr(raw, "peek") else b""
    actual = format_by_content(first, expected)
    if actual.is_text:
        return pyarrow.input_stream(raw, compression=actual.compression), 0, actual
    # Parquet and Arrow files are read from their end, so all of the input is needed first. It is
    # kept in Arrow's memory: its threads must not have to free an object of Python.
    content = pyarrow.BufferOutputStream()
    while part := raw.read(_PART_BYTES):
        content.write(part)
    return pyarrow.BufferReader(content.getvalue()), 0, actual


def _similar(path: str) -> str:
    """A hint at a file with a similar name, or nothing."""
    import difflib

    folder = Path(path).parent
    names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    close = difflib.get_close_matches(Path(path).name, names, 1)
    return f"; did you mean {str(folder / close[0])!r}?" if close else ""


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "…"


def _quoted(name: str) -> str:
    return repr(name) if re.search(r"[^\w.-]", name) else name
