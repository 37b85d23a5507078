"""Read CSV and TSV text in blocks of whole rows, in constant memory.

Arrow parses each block from memory of its own. It never calls back into Python from one of its
threads: such a thread may still be inside Python when the interpreter ends, which aborts it.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow
import pyarrow.csv

LONGEST_ROW = 64 * 2**20
_BLOCK_BYTES = 4 * 2**20
_BYTE_ORDER_MARK = "\ufeff".encode()
_UTF8 = ("utf-8", "utf-8-sig")


class TextTable:
    """A CSV or TSV file; cells stay text until they are parsed as numbers."""

    n_rows: int | None = None  # unknown before the whole file is read

    def __init__(self, stream: Any, separator: str, encoding: str) -> None:
        csv.field_size_limit(LONGEST_ROW)
        self._separator = separator
        self._blocks = _utf8_blocks(stream, encoding)
        self._ahead = b""
        reader = csv.reader(io.StringIO(self._beginning(), newline=""), delimiter=separator)
        try:
            header = next((cells for cells in reader if any(cell.strip() for cell in cells)), None)
        except csv.Error as error:
            raise pyarrow.ArrowInvalid(f"its header cannot be read: {error}") from None
        if header is None:
            raise pyarrow.ArrowInvalid("Empty CSV file")
        if any("\0" in cell for cell in header):
            raise pyarrow.ArrowInvalid("it contains NUL bytes, so it is not text")
        self.names = [name.strip() for name in header]
        line_ends = re.finditer(rb"\r\n?|\n", self._ahead)
        after_header = [
            end.end() for end, _ in zip(line_ends, range(reader.line_num), strict=False)
        ]
        complete = len(after_header) == reader.line_num
        self._ahead = self._ahead[after_header[-1] :] if complete else b""

    def batches(self, columns: list[str]) -> Iterator[Any]:
        """Record batches with these columns, as text."""
        parse = pyarrow.csv.ParseOptions(
            delimiter=self._separator,
            newlines_in_values=True,
            # An empty line in a table of one column is a missing value.
            ignore_empty_lines=len(self.names) > 1,
        )
        convert = pyarrow.csv.ConvertOptions(
            column_types={name: pyarrow.string() for name in self.names},
            include_columns=columns,
            strings_can_be_null=False,
        )
        for rows in self._blocks_of_rows():
            read = pyarrow.csv.ReadOptions(column_names=self.names, block_size=len(rows))
            source = pyarrow.BufferReader(_copied_to_arrow(rows))
            yield from pyarrow.csv.read_csv(source, read, parse, convert).to_batches()

    def _beginning(self) -> str:
        """The rows of the first block, or of more blocks if no row ends in it."""
        while True:
            more = next(self._blocks, b"")
            self._ahead = (self._ahead + more).removeprefix(_BYTE_ORDER_MARK)
            end = end_of_last_row(self._ahead, self._separator) if more else len(self._ahead)
            if self._ahead[:end].strip() or not more:
                break
            if len(self._ahead) > LONGEST_ROW:
                raise pyarrow.ArrowInvalid("it has no line of column names")
        try:
            return self._ahead[:end].decode()
        except UnicodeDecodeError as error:
            raise pyarrow.ArrowInvalid(str(error)) from None

    def _blocks_of_rows(self) -> Iterator[bytes]:
        """All rows after the header, as blocks that end where a row ends."""
        unfinished, self._ahead = self._ahead, b""
        wanted = len(unfinished)
        for more in self._blocks:
            unfinished += more
            if len(unfinished) < wanted:
                continue
            end = end_of_last_row(unfinished, self._separator)
            if end:
                yield unfinished[:end]
                unfinished = unfinished[end:]
            elif len(unfinished) > LONGEST_ROW:
                raise pyarrow.ArrowInvalid(
                    f"a row is longer than {LONGEST_ROW // 2**20} MB; is there a quotation mark "
                    "that is not closed?"
                )
            # A long row is not searched again for every block.
            wanted = min(2 * len(unfinished), LONGEST_ROW + 1)
        if unfinished:
            yield unfinished


def end_of_last_row(data: bytes, separator: str) -> int:
    """The number of bytes up to the end of the last complete row, 0 if there is none.

    data: CSV that begins at the start of a row. Cells in quotation marks may contain line ends.
    """
    if b"\n" not in data and b"\r" not in data:
        return 0
    quotes = np.flatnonzero(np.frombuffer(data, np.uint8) == ord('"'))
    if not _all_enclose_cells(quotes, data, separator):
        return _end_of_last_row_by_cells(data, separator)
    # Now a line end is the end of a row if an even number of quotation marks comes before it.
    limit = len(data)
    while True:
        # After a last "\r" a "\n" may follow.
        end = max(data.rfind(b"\n", 0, limit), data.rfind(b"\r", 0, min(limit, len(data) - 1)))
        before = int(np.searchsorted(quotes, end))
        if end < 0 or before % 2 == 0:
            return end + 1
        limit = int(quotes[before - 1])


def _all_enclose_cells(quotes: Any, data: bytes, separator: str) -> bool:
    """Whether all quotation marks begin or end a cell, or are doubled. quotes: their positions"""
    if not len(quotes):
        return True
    values = np.frombuffer(data, np.uint8)
    borders = np.frombuffer(f'{separator}\r\n"'.encode(), np.uint8)
    before = values[quotes[::2][int(quotes[0] == 0) :] - 1]
    after = values[quotes[1::2][quotes[1::2] < len(data) - 1] + 1]
    return bool(np.isin(before, borders).all() and np.isin(after, borders).all())


def _end_of_last_row_by_cells(data: bytes, separator: str) -> int:
    """`end_of_last_row` for any quotation marks: inside a cell they are ordinary characters."""
    sign = re.escape(separator).encode()
    rest = rb"[^%b\r\n]*" % sign
    cell = rb'(?:"[^"]*(?:""[^"]*)*"(?!")%b|(?!")%b)' % (rest, rest)
    row = re.compile(rb"(?:%b%b)*%b(?:\r\n|\n|\r(?=[\s\S]))" % (cell, sign, cell))
    end = 0
    while found := row.match(data, end):
        end = found.end()
    return end


def _utf8_blocks(stream: Any, encoding: str) -> Iterator[bytes]:
    """The stream in blocks of UTF-8, none of them empty."""
    unchanged = codecs.lookup(encoding).name in _UTF8  # Arrow checks that it is UTF-8
    decoder = codecs.getincrementaldecoder(encoding)()
    block = b"more"
    while block:
        block = stream.read(_BLOCK_BYTES)
        try:
            text = block if unchanged else decoder.decode(block, final=not block).encode()
        except UnicodeError as error:
            raise pyarrow.ArrowInvalid(f"codec: {error}") from None
        if text:
            yield text


def _copied_to_arrow(data: bytes) -> Any:
    """A pyarrow buffer that is freed without Python, from any thread."""
    buffer = pyarrow.allocate_buffer(len(data))
    np.frombuffer(buffer, np.uint8)[:] = np.frombuffer(data, np.uint8)
    return buffer
