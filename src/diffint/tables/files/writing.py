"""Write a table to a file or standard output, batch by batch."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow
import pyarrow.compute
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from ...core.errors import InputError
from ...core.formatting import printable
from ..atomic_write import OutputFile, atomic_file
from .excel import excel_writer
from .formats import Format, format_to_write

WriteBatch = Callable[[Any], None]

# Spreadsheets read a cell that begins with one of these as a formula, unless it is a number
# (https://owasp.org/www-community/attacks/CSV_Injection).
_FORMULA = "^[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]"
_SIGNED_NUMBER = r"^[+-]([0-9]+([.,][0-9]*)?|[.,][0-9]+)([eE][+-]?[0-9]+)?$"


@contextmanager
def table_writer(
    path: str, schema: Any, kind: str | None = None, guarded: Collection[str] = ()
) -> Iterator[WriteBatch]:
    """A function that writes record batches of this schema to a path, ``-`` for standard output.

    A file is replaced only when everything is written. guarded: columns that spreadsheets must not
    take for formulas (`without_formulas`) where the output is CSV or TSV.
    """
    form = format_to_write(path, kind)
    if path == "-":
        if sys.stdout is None:
            raise InputError("standard output is closed; give a file with -o")
        output = OutputFile(sys.stdout.buffer, "standard output")
        shown = form.is_text and sys.stdout.isatty()
        with _writer(output, schema, form, guarded, shown) as write:
            yield write
        output.flush()
        return
    with atomic_file(path) as file, _writer(file, schema, form, guarded) as write:
        yield write


def without_formulas(texts: Any) -> Any:
    """An array of texts with an apostrophe before each that a spreadsheet takes for a formula.

    Numbers with a sign stay as they are. Arrays of other types are returned unchanged.
    """
    if not _is_text(texts.type):
        return texts
    compute = pyarrow.compute
    formula = compute.match_substring_regex(texts, _FORMULA)
    if not compute.any(formula).as_py():
        return texts
    number = compute.match_substring_regex(texts, _SIGNED_NUMBER)
    marked = compute.replace_substring_regex(texts, r"^(?s:(.*))$", r"'\1")
    return compute.if_else(compute.and_not(formula, number), marked, texts)


def _is_text(kind: Any) -> bool:
    """Whether cells are text, or bytes, which CSV does not distinguish from text."""
    types = pyarrow.types
    tests = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    return any(test(kind) for test in tests)


@contextmanager
def _writer(
    file: OutputFile, schema: Any, form: Format, guarded: Collection[str] = (), shown: bool = False
) -> Iterator[WriteBatch]:
    """shown: whether the text goes to a terminal, on which no character may act."""
    if form.kind == "xlsx":
        with excel_writer(file, schema) as write:
            yield write
        return
    sink = pyarrow.PythonFile(file, mode="w")
    if form.kind == "parquet":
        with pyarrow.parquet.ParquetWriter(sink, schema, compression="zstd") as writer:
            yield writer.write_batch
    elif form.kind == "arrow":
        options = pyarrow.ipc.IpcWriteOptions(compression="lz4")
        with pyarrow.ipc.new_file(sink, schema, options=options) as writer:
            yield writer.write_batch
    else:
        if form.compression:
            sink = pyarrow.CompressedOutputStream(sink, form.compression)
        options = pyarrow.csv.WriteOptions(
            delimiter="\t" if form.kind == "tsv" else ",", quoting_style="needed"
        )
        guard = _Guard(schema, guarded, shown)
        with sink, pyarrow.csv.CSVWriter(sink, guard.schema, write_options=options) as writer:
            yield lambda batch: writer.write_batch(guard(batch))


class _Guard:
    """Makes the batches of a CSV file safe for the program that opens or shows it."""

    def __init__(self, schema: Any, guarded: Collection[str], shown: bool) -> None:
        self._guarded = [name in guarded for name in schema.names]
        self._shown = shown
        cells = (self._safe(pyarrow.array([f.name]), i)[0].as_py() for i, f in enumerate(schema))
        self.schema = pyarrow.schema(
            [field.with_name(name) for field, name in zip(schema, cells, strict=True)]
        )

    def __call__(self, batch: Any) -> Any:
        columns = [self._safe(column, i) for i, column in enumerate(batch.columns)]
        return pyarrow.record_batch(columns, schema=self.schema)

    def _safe(self, cells: Any, column: int) -> Any:
        if self._guarded[column]:
            cells = without_formulas(cells)
        if self._shown and _is_text(cells.type):
            cells = pyarrow.array(map(_shown, cells.to_pylist()), cells.type)
        return cells


def _shown(cell: str | bytes | None) -> str | None:
    """A cell as it appears on a terminal."""
    text = cell.decode("utf-8", "backslashreplace") if isinstance(cell, bytes) else cell
    return None if text is None else printable(text)
