"""Open a table file or standard input as a stream of bytes, and find its format."""

from __future__ import annotations

import difflib
import io
import os
import sys
from pathlib import Path
from typing import Any

import pyarrow

from ...core.errors import InputError
from .formats import (
    LONGEST_MARK,
    Format,
    check_is_a_table,
    format_by_content,
    format_of,
    has_table_name,
)

_PART_BYTES = 2**20


def open_stream(path: str, kind: str | None) -> tuple[Any, int, Format]:
    """(stream, size in bytes or 0 if unknown, format); kind: the format, None to find it."""
    expected = format_of("" if path == "-" else path, kind)
    if path == "-":
        if sys.stdin is None:
            raise InputError("standard input is closed; give the name of a file")
        return _from_pipe(sys.stdin.buffer, expected, "standard input")
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path!r} is a folder; give a file{_table_in(path)}")
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path!r} does not exist{similar_file(path)}")
    if not os.path.isfile(path):  # a named pipe, or the shell's <(command)
        return _from_pipe(open(path, "rb"), expected, repr(path))
    with open(path, "rb") as file:
        first = file.read(LONGEST_MARK)
    check_is_a_table(first, repr(path))
    actual = format_by_content(first, expected)
    if kind is not None and actual.kind != expected.kind:
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
    if actual.kind == "xlsx":
        return open(path, "rb"), size, actual
    # Not memory-mapped: the mapped pages would count as this process's memory.
    return pyarrow.OSFile(path), size, actual


def _from_pipe(raw: Any, expected: Format, name: str) -> tuple[Any, int, Format]:
    """Input that can be read once, from its start to its end."""
    first = raw.peek(LONGEST_MARK)[:LONGEST_MARK] if hasattr(raw, "peek") else b""
    check_is_a_table(first, name)
    actual = format_by_content(first, expected)
    if actual.is_text:
        return pyarrow.input_stream(raw, compression=actual.compression), 0, actual
    if actual.kind == "xlsx":
        return io.BytesIO(raw.read()), 0, actual
    # Parquet and Arrow files are read from their end, so all of the input is needed first. It is
    # kept in Arrow's memory: its threads must not have to free an object of Python.
    content = pyarrow.BufferOutputStream()
    while part := raw.read(_PART_BYTES):
        content.write(part)
    return pyarrow.BufferReader(content.getvalue()), 0, actual


def similar_file(path: str) -> str:
    """A hint at a file with a similar name, or nothing."""
    folder = Path(path).parent
    names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    close = difflib.get_close_matches(Path(path).name, names, 1)
    return f"; did you mean {str(folder / close[0])!r}?" if close else ""


def _table_in(folder: str) -> str:
    """A hint at a table in the folder, or nothing."""
    tables = sorted(entry for entry in Path(folder).iterdir() if has_table_name(entry.name))
    return f", such as {str(tables[0])!r}" if tables else ""
