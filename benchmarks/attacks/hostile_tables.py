"""Tables that a program may be given by mistake or in bad faith, for `tables.py`.

Each kind is a function of a random generator that returns a `Table`. It is written only in the
process that reads it.
"""

from __future__ import annotations

import datetime
import decimal
import gzip
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Content = bytes | str | Callable[[Path], Any]


@dataclass
class Table:
    """A table file that is not yet written, and options of the command that suit it."""

    content: Content
    suffix: str = ".csv"
    options: dict[str, list[str]] = field(default_factory=dict)
    commands: tuple[str, ...] = ("fit", "score", "score", "explain", "report")

    def write(self, path: Path) -> None:
        """Write the file."""
        if callable(self.content):
            self.content(path)
        elif isinstance(self.content, str):
            path.write_bytes(self.content.encode("utf-8", "surrogatepass"))
        else:
            path.write_bytes(self.content)


def lines(rng: random.Random, n_rows: int | None = None) -> list[list[str]]:
    """A valid table: the header and rows of the cells id, a, b, c, d."""
    rows = [["id", "a", "b", "c", "d"]]
    for i in range(rng.randrange(2, 60) if n_rows is None else n_rows):
        cells = [f"{rng.gauss(0, 1):.4g}" for _ in range(3)]
        rows.append([f"r{i}", *cells, str(int(rng.random() < 0.1))])
    return rows


def joined(rows: list[list[str]], separator: str = ",", end: str = "\n") -> str:
    """Rows as text."""
    return "".join(separator.join(cells) + end for cells in rows)


def with_cells(rng: random.Random, cells: list[str]) -> Table:
    """A valid table in which some cells are replaced by some of these."""
    rows = lines(rng)
    for _ in range(rng.randrange(1, 5)):
        rng.choice(rows[1:])[rng.randrange(5)] = rng.choice(cells)
    return Table(joined(rows, end=rng.choice(["\n", "\r\n"])))


# Text


def valid(rng: random.Random) -> Table:
    return Table(joined(lines(rng)))


def random_bytes(rng: random.Random) -> Table:
    return Table(rng.randbytes(rng.randrange(5000)), rng.choice(SUFFIXES))


def random_text(rng: random.Random) -> Table:
    signs = 'abc019.,;"\n\r\t eE+-_\0\ufeffé\u2028\U0001f600'
    return Table("".join(rng.choice(signs) for _ in range(rng.randrange(2000))), ".csv")


def changed_bytes(rng: random.Random) -> Table:
    content = bytearray(joined(lines(rng)).encode())
    for _ in range(rng.randrange(1, 10)):
        content[rng.randrange(len(content))] = rng.randrange(256)
    return Table(bytes(content))


def cut_text(rng: random.Random) -> Table:
    text = joined(lines(rng))
    return Table(text[: rng.randrange(len(text))])


def unbalanced_quotes(rng: random.Random) -> Table:
    return with_cells(rng, ['"', '"1', '1"', '"""', '""', '"a\nb', 'a"b', '"a"b', '" 1"', '"1,2'])


def strange_numbers(rng: random.Random) -> Table:
    return with_cells(rng, STRANGE_NUMBERS.split())


def formulas_and_controls(rng: random.Random) -> Table:
    return with_cells(rng, FORMULAS_AND_CONTROLS.split(" "))


def surrogates(rng: random.Random) -> Table:
    return with_cells(rng, ["\ud800", "a\udfff", "\ud83d\ude00", "\U0010ffff", "\ufffe", "\uffff"])


def mixed_line_ends(rng: random.Random) -> Table:
    rows = lines(rng)
    ends = ["\n", "\r\n", "\r", "\n\n", "\r\r\n", "\n\r", "\n \n"]
    return Table("".join(",".join(cells) + rng.choice(ends) for cells in rows))


def ragged(rng: random.Random) -> Table:
    rows = lines(rng)
    for _ in range(rng.randrange(1, 4)):
        cells = rng.choice(rows)
        cells[:] = cells[: rng.randrange(5)] if rng.random() < 0.5 else [*cells, "1"]
    return Table(joined(rows))


def strange_header(rng: random.Random) -> Table:
    rows = lines(rng)
    names = ["", " ", "a", "id", "\0", "é", "a\nb", '"', '"a,b"', "=1+1", "\x1b[31m", "x" * 5000]
    names += ["../../etc", "score", "row", "p_value", "--help", "1", "\ufeffa", "None", "'", "{}"]
    for _ in range(rng.randrange(1, 4)):
        rows[0][rng.randrange(5)] = rng.choice(names)
    return Table(joined(rows))


def no_rows(rng: random.Random) -> Table:
    header = joined(lines(rng, 0))
    choices = ["", "\n", " ", "\n\n\n", "\ufeff", '"', ",", ",,,\n,,,\n", header, header.strip()]
    return Table(rng.choice([*choices, header + "\n\n", header + "r0,1,2,3,0", header + "r0"]))


def few_or_constant(rng: random.Random) -> Table:
    cells = rng.choice([["r", "1", "1", "1", "0"], ["r", "", "", "", "0"], ["", "", "", "", ""]])
    return Table(joined([*lines(rng, 0), *[cells] * rng.randrange(1, 30)]))


def huge_numbers(rng: random.Random) -> Table:
    rows = lines(rng)
    for cells in rows[1:]:
        cells[1] = f"{rng.choice([1, -1])}e{rng.choice([300, 308, -308, -323, 150])}"
    return Table(joined(rows))


def byte_order_marks(rng: random.Random) -> Table:
    encoding = rng.choice(["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1"])
    given = ["utf-8", encoding, encoding, "utf-16", "cp037", "ascii", "utf-7", "shift_jis"]
    text = joined(lines(rng)).replace("r1", "ré")
    return Table(text.encode(encoding), ".csv", {"--encoding": given})


def other_conventions(rng: random.Random) -> Table:
    separator = rng.choice([";", "\t", "|", " ", ":", "\x01"])
    text = joined(lines(rng), separator)
    if rng.random() < 0.5:
        text = text.replace(".", ",")
    given = [",", ";", "\\t", "|", " ", separator, ".", "5", "a"]
    suffix = rng.choice([".csv", ".tsv", ".txt", ""])
    return Table(text, suffix, {"--separator": given, "--decimal": [".", ","]})


def very_wide(rng: random.Random) -> Table:
    n_columns = rng.choice([1000, 3000, 9990, 10_001, 100_000])
    header = [f"x{j}" for j in range(n_columns)]
    rows = [",".join(str(rng.randrange(9)) for _ in header) for _ in range(3)]
    return Table(",".join(["id", "a", "b", "c", "d", *header]) + "\n" + "".join(
        f"r{i},1,2,{i},0,{row}\n" for i, row in enumerate(rows)
    ))  # fmt: skip


def long_cells(rng: random.Random) -> Table:
    size = rng.choice([10_000, 200_000, 5_000_000, 50_000_000, 70_000_000])
    cell = rng.choice(["1", "x", "\t", "é", '"', '""', "\n", " "])
    long = rng.choice(["{}", '"{}"', '"{}']).format(cell * (size // len(cell.encode())))
    column = rng.randrange(5)

    def write(path: Path) -> None:
        rows = lines(rng, 20)
        rows[rng.choice([0, 1, 10])][column] = long
        path.write_text(joined(rows), newline="")

    return Table(write)


def many_bad_lines(rng: random.Random) -> Table:
    """Large enough for several blocks, with something wrong near the beginning or the end."""
    good, bad = "r,1,2,3,0\n", rng.choice(["r,1,2\n", "r,1,x,3,0\n", "r,1,2,3,0,0\n", '"\n', "é\n"])
    n_rows = 1_500_000
    parts = [good * n_rows, good * 1000]
    if rng.random() < 0.7:
        parts.reverse()
    return Table(f"id,a,b,c,d\n{parts[0]}{bad}{parts[1]}".encode("latin-1"))


# Compressed text


def compressed(rng: random.Random) -> Table:
    content = gzip.compress(joined(lines(rng)).encode())
    damage = rng.randrange(4)
    if damage == 1:
        content = content[: rng.randrange(len(content))]
    elif damage == 2:
        at = rng.randrange(len(content))
        content = content[:at] + rng.randbytes(3) + content[at + 3 :]
    elif damage == 3:
        content += rng.randbytes(20)
    return Table(content, rng.choice([".csv.gz", ".csv.zst", ".csv", ".tsv.gz", ".parquet"]))


def bombs(rng: random.Random) -> Table:
    """A small compressed file with a large content."""
    row = b"r,1,2,3,0\n"
    unit = rng.choice([b"\0", b"1", b"\n", b'"', b",", b"1,2\n", b'"\n', row, row])
    n_parts = 2 if unit == row else 60  # valid rows only take their time
    header = rng.choice([b"id,a,b,c,d\n", b""])
    kind = rng.choice(["gzip", "zstd"])

    def write(path: Path) -> None:
        import pyarrow

        with pyarrow.output_stream(str(path), compression=kind) as file:
            file.write(header)
            for _ in range(n_parts):
                file.write(unit * (5_000_000 // len(unit)))

    return Table(write, ".csv.gz" if kind == "gzip" else ".csv.zst")


# Parquet and Arrow


def too_many_rows(rng: random.Random) -> Table:
    """A small file of equal rows, more than fit into memory."""

    def write(path: Path) -> None:
        import pyarrow
        import pyarrow.parquet

        table = pyarrow.table({name: [1.0] * 1_000_000 for name in "abcd"})
        with pyarrow.parquet.ParquetWriter(path, table.schema) as writer:
            for _ in range(60):
                writer.write_table(table)

    return Table(write, ".parquet", commands=("fit",))


def arrow_table(rng: random.Random, **columns: Any) -> Any:
    """A pyarrow table of a valid table, with some columns replaced."""
    import pyarrow

    n_rows = rng.randrange(2, 40)
    table: dict[str, Any] = {"id": [f"r{i}" for i in range(n_rows)]}
    table |= {name: [rng.gauss(0, 1) for _ in range(n_rows)] for name in "abc"}
    table["d"] = [int(rng.random() < 0.1) for _ in range(n_rows)]
    for name, (values, kind) in columns.items():
        cells = [rng.choice(values) for _ in range(n_rows)]
        table[name] = pyarrow.array(cells, kind)
    return pyarrow.table(table)


def written(path: Path, table: Any, kind: str) -> None:
    """Write a pyarrow table as Parquet, Arrow file or Arrow stream."""
    import pyarrow
    import pyarrow.parquet

    if kind == "parquet":
        pyarrow.parquet.write_table(table, path)
        return
    new = pyarrow.ipc.new_file if kind == "file" else pyarrow.ipc.new_stream
    with new(str(path), table.schema) as writer:
        writer.write_table(table)


def binary_kind(rng: random.Random) -> tuple[str, str]:
    """(kind, suffix) of a Parquet or Arrow file"""
    return rng.choice(
        [("parquet", ".parquet"), ("file", ".arrow"), ("stream", ".arrow"), ("parquet", "")]
    )


def odd_types(rng: random.Random) -> Table:
    """A column, perhaps the ids, of a type that is neither a number nor text."""
    kind, suffix = binary_kind(rng)
    column, choice = rng.choice(["id", "id", "a", "d"]), rng.randrange(len(odd_columns()))

    def write(path: Path) -> None:
        values, type_ = odd_columns()[choice]
        table = arrow_table(rng, **{column: (values, type_)})
        try:
            written(path, table, kind)
        except Exception:  # Parquet does not have every type of Arrow
            written(path, table, "stream")

    return Table(write, suffix)


def odd_columns() -> list[tuple[list[Any], Any]]:
    """(some values, type) of columns"""
    import pyarrow as pa

    day, second = datetime.date(2020, 1, 1), datetime.timedelta(seconds=1)
    number = decimal.Decimal("1.50")
    types: list[tuple[list[Any], Any]] = [
        ([[1], [1, 2], None, []], pa.list_(pa.int64())),
        ([[1.0, 2.0]], pa.list_(pa.float64(), 2)),
        ([[[1]], None], pa.large_list(pa.list_(pa.int8()))),
        ([{"x": 1}, None], pa.struct([("x", pa.int64())])),
        ([{}, None], pa.struct([])),
        ([[("k", 1)], []], pa.map_(pa.string(), pa.int64())),
        ([b"a", b"\xff", None], pa.binary()),
        ([b"r1", b"r2"], pa.binary()),
        ([b"abcd"], pa.binary(4)),
        ([b"a"], pa.large_binary()),
        ([number, None], pa.decimal128(10, 2)),
        ([decimal.Decimal(10) ** 70], pa.decimal256(76, 2)),
        ([second, None], pa.duration("s")),
        ([second], pa.duration("ns")),
        ([datetime.datetime(2020, 1, 1)], pa.timestamp("us")),
        ([datetime.datetime(2020, 1, 1)], pa.timestamp("ns", "Europe/Berlin")),
        ([2**62], pa.timestamp("s")),
        ([day, None], pa.date32()),
        ([day], pa.date64()),
        ([datetime.time(1, 2)], pa.time64("us")),
        ([True, False, None], pa.bool_()),
        ([None], pa.null()),
        ([2**64 - 1, 0], pa.uint64()),
        ([-(2**63)], pa.int64()),
        ([1.5, float("nan"), float("inf")], pa.float64()),
        ([1.5, None], pa.float32()),
        (["r1", "1", None], pa.dictionary(pa.int8(), pa.string())),
        ([1, 2, None], pa.dictionary(pa.int32(), pa.int64())),
        (["1.5", "x", ""], pa.large_string()),
        (["r1", "a\x1b[31m", "=1+1", "a\nb", 'a"b', "\x00"], pa.string()),
        (["x" * 100_000], pa.string()),
    ]
    if hasattr(pa, "string_view"):
        types += [(["1", "r1"], pa.string_view()), ([b"1"], pa.binary_view())]
    return types


def damaged_binary(rng: random.Random) -> Table:
    """A Parquet or Arrow file that is cut, changed or of the wrong kind."""
    kind, suffix = binary_kind(rng)
    damage = rng.randrange(5)

    def write(path: Path) -> None:
        written(path, arrow_table(rng), kind)
        content = bytearray(path.read_bytes())
        if damage == 0:
            content = content[: rng.randrange(len(content))]
        elif damage == 1:
            for _ in range(rng.randrange(1, 20)):
                content[rng.randrange(len(content))] = rng.randrange(256)
        elif damage == 2:
            at = rng.randrange(len(content))
            content[at : at + 8] = rng.choice([b"\xff", b"\x7f", b"\0"]) * 8
        elif damage == 3:
            content = content[: len(content) // 2] + rng.randbytes(50) + content[-12:]
        else:  # only the marks of the format
            content = bytearray(rng.choice([b"PAR1", b"PAR1PAR1", b"ARROW1\0\0", b"\xff" * 8]))
        path.write_bytes(content)

    return Table(write, suffix)


def odd_tables(rng: random.Random) -> Table:
    """Parquet and Arrow tables with strange names, no rows or no columns."""
    kind, suffix = binary_kind(rng)
    choice = rng.randrange(6)

    def write(path: Path) -> None:
        import pyarrow

        table = arrow_table(rng)
        if choice == 0:
            table = table.rename_columns(["id", "a", "b", "c", "a"])
        elif choice == 1:
            table = table.slice(0, 0)
        elif choice == 2:
            table = table.select([])
        elif choice == 3:
            table = table.rename_columns(["", " ", "a.b", "\x1b[31m", "é\n"])
        elif choice == 4:
            names = [*table.column_names, *(f"x{j}" for j in range(2000))]
            table = pyarrow.table([*table.columns, *[table.column(1)] * 2000], names)
        else:
            table = table.replace_schema_metadata({"pandas": "{", "ARROW:schema": "x" * 1000})
        written(path, table, kind)

    return Table(write, suffix)


def wrong_name(rng: random.Random) -> Table:
    """A file in another format than its name or --format says."""
    kind, _ = binary_kind(rng)
    formats = {"--format": ["csv", "tsv", "parquet", "arrow"]} if rng.random() < 0.5 else {}
    if rng.random() < 0.5:
        return Table(joined(lines(rng)), rng.choice(SUFFIXES), formats)
    return Table(lambda path: written(path, arrow_table(rng), kind), rng.choice(SUFFIXES), formats)


STRANGE_NUMBERS = """
1e999 -1e999 inf -Infinity nan NaN 0x1F 1_000 1,000 1.000,5 1e-400 1e308 -1.7e308 5e-324 1e5000 ++1
1e 1.2.3 .5 5. 0b1 0o7 ½ ٣ １２ 1e+ 1d5 £5 5% TRUE false - ? --1 1/2 12:30 2020-01-01 0.1f NA #N/A
None null 99999999999999999999999999
"""
FORMULAS_AND_CONTROLS = (
    "=1+1 @SUM(A1) +cmd|'/C_calc'!A0 \x1b[31mred \x1b]0;title\x07 \x00 a\x00b \x08\x08 \u202e "
    "\u2028 \x85 \x0b \x0c \x1a \x7f"
)
SUFFIXES = (".csv", ".tsv", ".parquet", ".arrow", ".feather", ".csv.gz", ".csv.zst", "", ".xlsx")
KINDS: tuple[Callable[[random.Random], Table], ...] = (
    valid,
    random_bytes,
    random_text,
    changed_bytes,
    cut_text,
    unbalanced_quotes,
    strange_numbers,
    formulas_and_controls,
    surrogates,
    mixed_line_ends,
    ragged,
    strange_header,
    no_rows,
    few_or_constant,
    huge_numbers,
    byte_order_marks,
    other_conventions,
    compressed,
    odd_types,
    damaged_binary,
    odd_tables,
    wrong_name,
    odd_types,
    damaged_binary,
)
# Large ones, which take longer.
LARGE_KINDS = (very_wide, long_cells, many_bad_lines, bombs, bombs, too_many_rows)
