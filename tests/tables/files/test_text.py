"""CSV text in blocks: the same rows as if it were parsed as a whole."""

import io
import random
import sys
import threading

import pyarrow
import pyarrow.csv
import pytest

from diffint.core.errors import InputError
from diffint.tables.files import text
from diffint.tables.files.reading import ReadingOptions, open_table

CELLS = ["", "1", "a b", '"x"', '"a,b"', '"a\nb"', '"a\r\nb"', '"\r"', '""', '"a""b"', '"""",""']
STRAY = ['a"b', ' "x"', '"a"b', 'a""', '5" pipe']


def rows_in_blocks(data, monkeypatch, block_bytes, encoding="utf-8"):
    monkeypatch.setattr(text, "_BLOCK_BYTES", block_bytes)
    table = text.TextTable(io.BytesIO(data), ",", encoding)
    return [row for batch in table.batches(table.names) for row in batch.to_pylist()]


def rows_as_a_whole(data, n_columns):
    return pyarrow.csv.read_csv(
        pyarrow.BufferReader(data),
        pyarrow.csv.ReadOptions(block_size=2**20),
        pyarrow.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=n_columns > 1),
        pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys("xyz", pyarrow.string()), strings_can_be_null=False
        ),
    ).to_pylist()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_blocks_of_any_size_give_the_same_rows(monkeypatch, end, seed):
    rng = random.Random(seed)
    for _ in range(60):
        n_columns = rng.choice([1, 2, 3])
        cells = CELLS + (STRAY if rng.random() < 0.3 else [])
        lines = [",".join("xyz"[:n_columns])]
        for _ in range(rng.randrange(1, 7)):
            line = [rng.choice(cells) for _ in range(n_columns)]
            lines.append(",".join(cell for cell in line if cell != '"""",""'))
        data = end.join(lines).encode() + (end.encode() if rng.random() < 0.7 else b"")
        try:
            expected = rows_as_a_whole(data, n_columns)
        except pyarrow.ArrowInvalid:
            expected = None
        try:
            found = rows_in_blocks(data, monkeypatch, rng.choice([1, 2, 3, 5, 8, 1000]))
        except pyarrow.ArrowInvalid:
            found = None
        assert found == expected, data


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "latin-1"])
def test_characters_that_are_cut_by_the_end_of_a_block(monkeypatch, encoding):
    data = "x,y\né,1\nü,2\n".encode(encoding)
    for block_bytes in (1, 2, 3, 7):
        rows = rows_in_blocks(data, monkeypatch, block_bytes, encoding)
        assert rows == [{"x": "é", "y": "1"}, {"x": "ü", "y": "2"}]


def test_a_row_that_does_not_end(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "_BLOCK_BYTES", 10)
    monkeypatch.setattr(text, "LONGEST_ROW", 1000)
    path = tmp_path / "t.csv"
    path.write_text('a,b\n1,"2\n' + "1,2\n" * 1000)
    with (
        pytest.raises(InputError, match=r"a row is longer.*quotation mark that is not closed"),
        open_table(str(path)) as file,
    ):
        list(file.batches(["a", "b"]))


class Recorder(io.RawIOBase):
    """An endless table; knows which threads have read it."""

    def __init__(self):
        self.threads, self.n_reads = set(), 0

    def readable(self):
        return True

    def readinto(self, buffer):
        self.threads.add(threading.get_ident())
        self.n_reads += 1
        line = b"a,b\n" if self.n_reads == 1 else b"1,2\n"
        buffer[:4] = line
        return 4


def test_only_the_calling_thread_reads_the_input(monkeypatch):
    """Another thread would still be in Python when the interpreter ends, and would abort it."""
    monkeypatch.setattr(text, "_BLOCK_BYTES", 4096)
    source = Recorder()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(source)))
    with open_table("-", ReadingOptions("csv")) as file:
        batches = file.batches(["a", "b"])
        for _ in range(3):
            next(batches)
    assert source.threads == {threading.get_ident()}
    assert source.n_reads < 20_000  # and it is not read much further than needed
