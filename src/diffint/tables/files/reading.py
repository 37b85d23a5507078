"""A table in a file, or from standard input, batch by batch in constant memory."""

from __future__ import annotations

import codecs
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
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
from numpy.typing import NDArray

from ...core.errors import InputError
from ...core.formatting import counted
from .cells import NotNumbers, as_numbers
from .formats import LONGEST_MARK, Format, format_by_content, format_of

BATCH_ROWS = 65_536
MOST_COLUMNS = 10_000
_BLOCK_BYTES = 4 * 2**20
_LONGEST_HEADER = 64 * 2**20
_SEPARATORS = {";": "';'", "\t": "'\\t'", "|": "'|'", ",": "','"}


@dataclass(frozen=True)
class ReadingOptions:
    """How to read a file: its kind (by its name if None) and how its text is written."""

    kind: str | None = None
    separator: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        separator = {"\\t": "\t", "tab": "\t"}.get(self.separator or "", self.separator)
        object.__setattr__(self, "separator", separator)
        fits = separator is None or (len(separator) == 1 and separator.isascii())
        if not fits or separator in ('"', "\n", "\r"):
            raise InputError(
                f"the separator {self.separator!r} must be a single character, such as ';' or '\\t'"
            )
        if self.decimal not in (".", ","):
            raise InputError(f"the decimal sign {self.decimal!r} must be '.' or ','")
        try:
            "".encode(self.encoding)
        except LookupError:
            raise InputError(
                f"{self.encoding!r} is no known encoding; try utf-8, latin-1 or utf-16"
            ) from None


class TableFile:
    """An open table: its columns, how long it is where that is known, and its batches, once."""

    def __init__(self, path: str, options: ReadingOptions) -> None:
        self.path, self.options = path, options
        self.name = "standard input" if path == "-" else repr(path)
        self._stream, self._size, self.format = _open(path, options)
        self.columns: list[str] = []
        try:
            self._source = self._open_source()
        except pyarrow.ArrowException as error:
            self._stream.close()
            raise self._unreadable(error) from error
        self.columns = list(self._source.names)
        self.n_rows: int | None = self._source.n_rows
        self._check_columns()

    def close(self) -> None:
        """Let go of the file."""
        self._stream.close()

    def progress(self) -> float | None:
        """The share of the file that has been read, None where its size is not known."""
        if not self._size or self.format.compression:
            return None
        try:
            return min(1.0, self._stream.tell() / self._size)
        except (ValueError, OSError):
            return None

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[int, Any]]:
        """(number of rows before it, pyarrow batch) with these columns, in the file's order."""
        first = 0
        try:
            for batch in self._source.batches(list(columns)):
                for start in range(0, batch.num_rows, BATCH_ROWS):
                    part = batch.slice(start, BATCH_ROWS)
                    yield first, part
                    first += part.num_rows
        except pyarrow.ArrowException as error:
            raise self._unreadable(error) from error
        if first == 0:
            raise InputError(f"{self.name} has a header but no rows" + self.hint())

    def numbers(
        self, batch: Any, columns: Sequence[str], first: int, can_ignore: bool = False
    ) -> NDArray[np.float64]:
        """The columns of a batch as a matrix (rows, columns); what is no finite number is refused.

        first: how many rows of the file come before the batch; can_ignore: whether the column may
        be left out instead.
        """

        def remedy(name: str) -> str:
            if can_ignore:
                return f"leave the column out with --ignore {_quoted(name)}"
            return "mend the cell, or leave it blank where it is missing"

        values = np.empty((batch.num_rows, len(columns)))
        for j, name in enumerate(columns):
            try:
                values[:, j] = as_numbers(batch.column(name), self.options.decimal)
            except NotNumbers as found:
                shown = repr(found.value if len(found.value) <= 40 else found.value[:37] + "…")
                raise InputError(
                    f"{self.name}: column {name!r} holds {shown} {self.where(first + found.row)}, "
                    f"which is not a number; {remedy(name)}{self.hint()}"
                ) from None
        infinite = np.isinf(values)
        if infinite.any():
            row, j = np.argwhere(infinite)[0]
            raise InputError(
                f"{self.name}: column {columns[j]!r} holds an infinite number "
                f"{self.where(first + int(row))}; {remedy(columns[j])}"
            )
        return values

    def where(self, row: int) -> str:
        """Where a row is, for someone with the file in an editor."""
        if not self.format.is_text:
            return f"in row {row + 1:,}"
        line = self._line_of(row)
        return f"in line {line:,}" if line is not None else f"in row {row + 1:,} after the header"

    def _line_of(self, row: int) -> int | None:
        """The line of a row; None where it cannot be looked up."""
        return next((line for i, (line, _) in enumerate(self._lines(), -1) if i == row), None)

    def _ragged_line(self, n_cells: int) -> int | None:
        """The first line with another number of cells."""
        return next((line for line, cells in self._lines() if len(cells) != n_cells), None)

    def _lines(self) -> Iterator[tuple[int, list[str]]]:
        """(line number, cells) of the header and every row.

        Lines without anything are no rows, unless there is but one column.
        """
        if self.path == "-":
            return
        with pyarrow.input_stream(self.path, compression=self.format.compression) as stream:
            text = io.TextIOWrapper(stream, self.options.encoding, "replace", newline="")
            reader = csv.reader(text, delimiter=self._separator)
            try:
                for cells in reader:
                    if cells or len(self.columns) == 1:
                        yield reader.line_num, cells or [""]
            except csv.Error:  # a cell beyond its limits: no line to point at
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
        return _Text(self._stream, self._separator, self.options.encoding)

    def _check_columns(self) -> None:
        if len(self.columns) > MOST_COLUMNS:
            raise InputError(
                f"{self.name} has {len(self.columns):,} columns, and at most {MOST_COLUMNS:,} can "
                "be read; is it perhaps to be turned on its side?"
            )
        seen: set[str] = set()
        for name in self.columns:
            if name in seen:
                raise InputError(
                    f"{self.name} has more than one column called {name!r}; rename them"
                )
            seen.add(name)

    def hint(self) -> str:
        """What may be wrong with a table of one column."""
        if not self.format.is_text or len(self.columns) != 1:
            return ""
        for sign, written in _SEPARATORS.items():
            if sign in self.columns[0] and sign != self._separator:
                return f" (are the columns separated by {written}? then add --separator {written})"
        return ""

    def _unreadable(self, error: Exception) -> InputError:
        """What Arrow says, in words that say what to do."""
        text = " ".join(str(error).split())
        ragged = re.search(r"Expected (\d+) columns, got (\d+)", text)
        if ragged:
            line = self._ragged_line(int(ragged[1]))
            where = "a line" if line is None else f"line {line:,}"
            hint = self.hint() or "; mend the line, or name the separator with --separator"
            cells = counted(int(ragged[2]), "cell")
            return InputError(f"{self.name}: {where} has {cells} instead of {ragged[1]}{hint}")
        if "UTF8" in text or "utf-8" in text.lower() or "codec" in text:
            return InputError(
                f"{self.name} is not text in {self.options.encoding}; if it is text, name its "
                "encoding with --encoding (latin-1, utf-16, …)"
            )
        if "Empty CSV" in text:
            return InputError(f"{self.name} is empty; it needs a line of column names and rows")
        kind = {"csv": "CSV", "tsv": "TSV", "parquet": "Parquet", "arrow": "Arrow"}
        return InputError(
            f"{self.name} cannot be read as {kind[self.format.kind]} ({text[:160]}); is it "
            "damaged, or of another kind (--format)?"
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
    """What the kinds of files have in common."""

    names: list[str]
    n_rows: int | None

    def batches(self, columns: list[str]) -> Iterator[Any]:
        """Record batches with these columns."""


class _Text:
    """Lines of text; every cell stays text until it is asked for as a number."""

    n_rows: int | None = None  # nobody has counted them

    def __init__(self, stream: Any, separator: str, encoding: str) -> None:
        csv.field_size_limit(_LONGEST_HEADER)
        self._stream = _Rewound(stream)
        reader = csv.reader(
            io.StringIO(self._stream.beginning(encoding), newline=""), delimiter=separator
        )
        try:
            header = next((cells for cells in reader if any(cell.strip() for cell in cells)), None)
        except csv.Error as error:
            raise pyarrow.ArrowInvalid(f"its header is not one: {error}") from None
        if header is None:
            raise pyarrow.ArrowInvalid("Empty CSV file")
        if any("\0" in cell for cell in header):
            raise pyarrow.ArrowInvalid("it holds NUL bytes, which text does not")
        self.names = [name.strip() for name in header]
        self._header_lines = reader.line_num
        self._separator, self._encoding = separator, encoding

    def batches(self, columns: list[str]) -> Iterator[Any]:
        yield from pyarrow.csv.open_csv(
            pyarrow.PythonFile(self._stream, "r"),
            read_options=pyarrow.csv.ReadOptions(
                column_names=self.names,
                skip_rows=self._header_lines,
                block_size=_BLOCK_BYTES,
                encoding=self._encoding,
            ),
            parse_options=pyarrow.csv.ParseOptions(
                delimiter=self._separator,
                newlines_in_values=True,
                # A blank line in a single column is a missing value.
                ignore_empty_lines=len(self.names) > 1,
            ),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types={name: pyarrow.string() for name in self.names},
                include_columns=columns,
                strings_can_be_null=False,
            ),
        )


class _Rewound:
    """A stream whose first bytes have been looked at and are read again."""

    def __init__(self, stream: Any) -> None:
        self._stream, self._ahead, self.closed = stream, b"", False

    def beginning(self, encoding: str) -> str:
        """The first block of text, or more where no line ends in it."""
        try:
            while True:
                more = self._stream.read(_BLOCK_BYTES)
                self._ahead += more
                text = codecs.getincrementaldecoder(encoding)().decode(self._ahead, not more)
                if (text.strip() and "\n" in text.lstrip()) or not more:
                    return text.removeprefix("\ufeff")
                if len(self._ahead) > _LONGEST_HEADER:
                    raise pyarrow.ArrowInvalid("it has no line of column names")
        except UnicodeDecodeError as error:
            raise pyarrow.ArrowInvalid(str(error)) from None

    def read(self, size: int = -1) -> bytes:
        if not self._ahead:
            return bytes(self._stream.read(size) if size >= 0 else self._stream.read())
        part = self._ahead if size < 0 else self._ahead[:size]
        self._ahead = self._ahead[len(part) :]
        return part

    def close(self) -> None:
        self.closed = True


class _Parquet:
    def __init__(self, stream: Any) -> None:
        self._file = pyarrow.parquet.ParquetFile(stream, pre_buffer=False, buffer_size=2**20)
        self.names = list(self._file.schema_arrow.names)
        self.n_rows: int | None = int(self._file.metadata.num_rows)

    def batches(self, columns: list[str]) -> Iterator[Any]:
        yield from self._file.iter_batches(BATCH_ROWS, columns=columns)


class _Arrow:
    n_rows: int | None = None

    def __init__(self, stream: Any) -> None:
        try:
            self._file = pyarrow.ipc.open_file(stream)
        except pyarrow.ArrowInvalid:  # perhaps a stream
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
    """(stream, bytes in all or 0, format)"""
    asked = format_of("" if path == "-" else path, options.kind)
    if path == "-":
        return _standard_input(asked)
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path!r} is a folder; name a file")
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path!r} does not exist{_similar(path)}")
    with open(path, "rb") as file:
        shown = format_by_content(file.read(LONGEST_MARK), asked)
    if options.kind is not None and shown.kind != asked.kind:
        shown = Format(asked.kind, shown.compression)
    size = os.path.getsize(path)
    if size == 0:
        raise InputError(f"{path!r} is empty; it needs a line of column names and rows")
    if shown.is_text:
        stream = pyarrow.input_stream(path, compression=shown.compression)
        return stream, size, shown
    if shown.compression:
        raise InputError(f"{path!r} is compressed as a whole, which only text may be; unpack it")
    # Not mapped into memory: pages of the file would count as ours.
    return pyarrow.OSFile(path), size, shown


def _standard_input(asked: Format) -> tuple[Any, int, Format]:
    raw = sys.stdin.buffer
    first = raw.peek(LONGEST_MARK)[:LONGEST_MARK] if hasattr(raw, "peek") else b""
    shown = format_by_content(first, asked)
    if shown.is_text:
        return pyarrow.input_stream(raw, compression=shown.compression), 0, shown
    return pyarrow.BufferReader(raw.read()), 0, shown  # their ends must be read first


def _similar(path: str) -> str:
    """A hint at a file with nearly the same name."""
    import difflib

    folder = Path(path).parent
    names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    close = difflib.get_close_matches(Path(path).name, names, 1)
    return f"; did you mean {str(folder / close[0])!r}?" if close else ""


def _quoted(name: str) -> str:
    return repr(name) if re.search(r"[^\w.-]", name) else name
