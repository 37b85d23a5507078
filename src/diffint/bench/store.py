"""The results file: a CSV file that several commands can append to at the same time."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from ..core.errors import InputError
from ..tables.atomic_write import atomic_write, errors_that_name, note_written
from .protocol import REGIMES, Regime

if TYPE_CHECKING:
    import pandas

State = Literal["ok", "timeout", "out of memory", "error"]
STATES: tuple[State, ...] = get_args(State)


class Cell(NamedTuple):
    """The key of a result row."""

    table: str
    method: str
    regime: Regime
    seed: int


@dataclass(frozen=True)
class Row:
    """One result.

    state, message: how the run ended; the metrics are given if the state is ok.
    fit_seconds, score_seconds: wall-clock time; of all `seeds_together` that shared a launch.
    peak_memory_mb: largest resident size of its process, including preloaded libraries.
    processor: the processor or GPU that it was fitted on.
    one_core_seconds: for a fit on a GPU, the estimated time of the fit on one core.
    time_limit, memory_limit_gb: limits of its process: seconds for the fit and the same for the
        scoring, and resident memory.
    suite: the suite of its table (see `suites`).
    """

    table: str
    method: str
    regime: Regime
    seed: int
    state: State
    message: str = ""
    roc_auc: float | None = None
    average_precision: float | None = None
    fit_seconds: float | None = None
    score_seconds: float | None = None
    peak_memory_mb: float | None = None
    n_train: int | None = None
    n_test: int | None = None
    seeds_together: int = 1
    processor: str = ""
    one_core_seconds: float | None = None
    time_limit: float | None = None
    memory_limit_gb: float | None = None
    versions: str = ""
    suite: str = "adbench"

    @property
    def cell(self) -> Cell:
        """Its key."""
        return Cell(self.table, self.method, self.regime, self.seed)


COLUMNS = tuple(field.name for field in fields(Row))
LIMIT_STATES: tuple[State, ...] = ("timeout", "out of memory")
# Start of the message of a row that was copied from a run on fewer rows, which exceeded a limit.
NOT_RUN = "not run; on the inliers alone: "
# Files from before there were several suites have no such column, and rows of ADBench tables.
_WITHOUT_SUITE = COLUMNS[:-1]
_WHOLE = ("seed", "n_train", "n_test", "seeds_together")
_REAL = (
    "roc_auc",
    "average_precision",
    "fit_seconds",
    "score_seconds",
    "peak_memory_mb",
    "one_core_seconds",
    "time_limit",
    "memory_limit_gb",
)
_DECIMALS = {"peak_memory_mb": 0, "time_limit": 3, "memory_limit_gb": 3}
_APPENDING = 0  # the byte of the lock file that is locked while rows are written
_LONGEST_MESSAGE = 300


def read_rows(path: str | Path) -> list[Row]:
    """The rows of a results file; an incomplete last line is ignored.

    If a cell was run again, all its rows are returned, and the last one counts.
    """
    path = Path(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be read: {error.strerror}") from None
    return _parse(content[: content.rfind(b"\n") + 1], path)


def write_rows(path: str | Path, rows: Iterable[Row]) -> None:
    """Write a results file with exactly these rows, replacing an existing one."""
    atomic_write(path, _header(COLUMNS) + b"".join(_line(row, COLUMNS) for row in rows))


def frame_of(rows: Iterable[Row]) -> pandas.DataFrame:
    """Rows as a data frame with their fields as columns."""
    import pandas

    return pandas.DataFrame([asdict(row) for row in rows], columns=list(COLUMNS))


class Store:
    """A results file, open for appending rows of one suite.

    A lock file is kept beside it. Its first byte is locked while rows are written. A command also
    locks one byte for every run it works on, so that a second command works on other runs. The
    system releases the locks when a process ends in any way.
    """

    def __init__(
        self,
        path: str | Path,
        forget: Callable[[Row], bool] = lambda row: False,
        suite: str = "adbench",
    ) -> None:
        """forget: whether an existing row counts as missing. suite: its name.

        Such rows stay in the file; of several rows of a cell, the last one counts. Raises an error
        if the file has rows of another suite, as their tables can have the same names.
        """
        self.suite, self._columns = suite, COLUMNS
        # Links to the same file share one lock file.
        self.path = Path(os.path.realpath(path))
        if self.path.is_dir():
            raise InputError(f"{str(path)!r} is a folder; give a file name such as results.csv")
        if not self.path.parent.is_dir():
            raise InputError(
                f"the folder {str(self.path.parent)!r} does not exist; create it first"
            )
        try:
            import fcntl  # noqa: F401
        except ImportError:
            raise InputError(
                "the benchmark needs file locks, which only Linux and macOS have"
            ) from None
        if self.path.exists() and not self.path.is_file():
            raise InputError(f"{str(path)!r} is not a file; give a name such as results.csv")
        try:
            self._file = self._open()
            lock_path = self.path.with_name(f".{self.path.name}.lock")
            self._lock = os.open(lock_path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise InputError(f"{str(path)!r} cannot be written: {error.strerror}") from None
        self._position = 0
        with self._appending():
            self._check_header()
        existing = self._added()
        last = {row.cell: row for row in existing}
        self._rows = {cell: row for cell, row in last.items() if not forget(row)}
        # All rows of the cells to repeat, to skip them when the file is read from its start again.
        self._forgotten = Counter(row for row in existing if row.cell not in self._rows)

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        os.close(self._file)
        os.close(self._lock)

    @property
    def rows(self) -> dict[Cell, Row]:
        """All rows as of the last refresh, by cell."""
        return self._rows

    def refresh(self) -> None:
        """Read rows that were added since the last refresh, by this command or another."""
        if os.fstat(self._file).st_size < self._position:  # another program shortened the file
            self._position = 0
        forgotten = Counter(self._forgotten if self._position == 0 else ())
        for row in self._added():
            if forgotten[row]:
                forgotten[row] -= 1
            else:
                self._rows[row.cell] = row

    def _added(self) -> list[Row]:
        """The rows after the position, which moves behind them."""
        size = os.fstat(self._file).st_size
        added = os.pread(self._file, size - self._position, self._position)
        added = added[: added.rfind(b"\n") + 1]  # another command may be writing a line
        if not added:
            return []
        header = b"" if self._position == 0 else _header(self._columns)
        rows = _parse(header + added, self.path)
        for row in rows:
            self._check_suite(row.suite)
        self._position += len(added)
        return rows

    def add(self, rows: Iterable[Row]) -> None:
        """Append the rows whose cells have none yet."""
        with self._appending():
            self._reopen_if_replaced()
            self._remove_incomplete_line()
            self.refresh()
            added = [row for row in rows if row.cell not in self._rows]
            data = b"".join(_line(row, self._columns) for row in added)
            note_written(str(self.path))
            while data:
                data = data[os.write(self._file, data) :]
        self.refresh()

    def claim(self, key: object) -> bool:
        """Lock a run for this command; False if another command works on it."""
        import fcntl

        try:
            fcntl.lockf(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _byte_of(key))
        except OSError:
            return False
        return True

    def release(self, key: object) -> None:
        """Unlock a claimed run."""
        import fcntl

        fcntl.lockf(self._lock, fcntl.LOCK_UN, 1, _byte_of(key))

    @contextmanager
    def _appending(self) -> Iterator[None]:
        import fcntl

        fcntl.lockf(self._lock, fcntl.LOCK_EX, 1, _APPENDING)
        try:
            with errors_that_name(repr(str(self.path))):
                yield
        finally:
            fcntl.lockf(self._lock, fcntl.LOCK_UN, 1, _APPENDING)

    def _open(self) -> int:
        return os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)

    def _reopen_if_replaced(self) -> None:
        """Open the file again if it was replaced by another one.

        Editors and version control do that; rows written to the old file would be lost.
        """
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(self._file), os.stat(self.path)):
                return
        replaced, self._file, self._position = self._file, self._open(), 0
        os.close(replaced)
        self._check_header()

    def _check_header(self) -> None:
        """Write the header of a new file; raise an error if it is another kind of file."""
        header = _header(COLUMNS)
        content = os.pread(self._file, len(header), 0)
        self._columns = COLUMNS
        if content.startswith(_header(_WITHOUT_SUITE)):
            self._columns = _WITHOUT_SUITE
            self._check_suite("adbench")
        elif content and not header.startswith(content):
            raise _not_a_results_file(self.path)
        elif len(content) < len(header):  # new, or with an incomplete first line
            os.ftruncate(self._file, 0)
            os.write(self._file, header)
        self._remove_incomplete_line()

    def _check_suite(self, found: str) -> None:
        if found != self.suite:
            raise InputError(
                f"{str(self.path)!r} has results of the suite {found}; write those of the suite "
                f"{self.suite} to another file"
            )

    def _remove_incomplete_line(self) -> None:
        """Remove an incomplete last line, left by a killed command."""
        size = os.fstat(self._file).st_size
        if size == 0:  # emptied by another program
            os.write(self._file, _header(self._columns))
        elif os.pread(self._file, 1, size - 1) != b"\n":
            content = os.pread(self._file, size, 0)
            os.ftruncate(self._file, content.rfind(b"\n") + 1)


def _byte_of(key: object) -> int:
    """The byte of the lock file for a key; the same in every process."""
    digest = hashlib.sha256(repr(key).encode()).digest()
    return 1 + int.from_bytes(digest[:7], "big")


def _header(columns: Sequence[str]) -> bytes:
    return (",".join(columns) + "\n").encode()


def _line(row: Row, columns: Sequence[str]) -> bytes:
    values = asdict(row)
    for name in _REAL:
        if values[name] is not None:
            values[name] = f"{values[name]:.{_DECIMALS.get(name, 6)}f}"
    # Messages come from detectors and can have any characters; a row is one printable line.
    words = "".join(c if c.isprintable() else " " for c in str(row.message)).split()
    values["message"] = " ".join(words)[:_LONGEST_MESSAGE]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(
        ["" if values[name] is None else values[name] for name in columns]
    )
    return text.getvalue().encode("utf-8", "backslashreplace")


def _parse(content: bytes, path: Path) -> list[Row]:
    lines = csv.reader(io.StringIO(content.decode("utf-8", "replace"), newline=""))
    columns = tuple(next(lines, ()))
    if columns not in (COLUMNS, _WITHOUT_SUITE):
        raise _not_a_results_file(path)
    rows = []
    try:
        for line in lines:
            rows.append(_row(line, columns))
    except (ValueError, csv.Error) as error:
        raise InputError(f"{path}, line {lines.line_num}: {error}") from None
    return rows


def _row(line: list[str], columns: Sequence[str]) -> Row:
    """A row from the values of a line; raises ValueError if they are invalid."""
    if len(line) != len(columns):
        raise ValueError(f"{len(line)} values for {len(columns)} columns")
    values: dict[str, Any] = dict(zip(columns, line, strict=True))
    for name in _WHOLE:
        values[name] = int(values[name]) if values[name] else None
    for name in _REAL:
        values[name] = float(values[name]) if values[name] else None
    row = Row(**values)
    if row.regime not in REGIMES or row.state not in STATES:
        raise ValueError(f"the regime {row.regime!r} or the state {row.state!r} is unknown")
    if values["seed"] is None or not row.seeds_together:
        raise ValueError("seed and seeds_together must be given")
    for metric in (row.roc_auc, row.average_precision):
        if (metric is None) == (row.state == "ok") or not 0.0 <= (metric or 0.0) <= 1.0:
            raise ValueError("rows with state ok must have metrics between 0 and 1, others none")
    return row


def _not_a_results_file(path: Path) -> InputError:
    return InputError(
        f"{str(path)!r} is not a results file of this version of `diffint bench run` (its first "
        f"line must be {','.join(COLUMNS[:4])},…)"
    )
