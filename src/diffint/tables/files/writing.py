"""Write a table to a file or standard output, batch by batch."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from ...core.errors import InputError
from ..atomic_write import OutputFile, atomic_file
from .formats import Format, format_to_write

WriteBatch = Callable[[Any], None]


@contextmanager
def table_writer(path: str, schema: Any, kind: str | None = None) -> Iterator[WriteBatch]:
    """A function that writes record batches of this schema to a path, ``-`` for standard output.

    A file is replaced only when everything is written.
    """
    form = format_to_write(path, kind)
    if path == "-":
        if sys.stdout is None:
            raise InputError("standard output is closed; give a file with -o")
        output = OutputFile(sys.stdout.buffer, "standard output")
        with _writer(output, schema, form) as write:
            yield write
        output.flush()
        return
    with atomic_file(path) as file, _writer(file, schema, form) as write:
        yield write


@contextmanager
def _writer(file: OutputFile, schema: Any, form: Format) -> Iterator[WriteBatch]:
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
        with sink, pyarrow.csv.CSVWriter(sink, schema, write_options=options) as writer:
            yield writer.write_batch
