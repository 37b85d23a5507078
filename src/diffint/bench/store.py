"""Result rows in one CSV file that many runs may write to at once and none can leave torn."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from ..core.errors import InputError
from ..tables.atomic_write import atomic_write
from .protocol import REGIMES, Regime

if TYPE_CHECKING:
    import pandas

State = Literal["ok", "timeout", "out of memory", "error"]
STATES: tuple[State, ...] = get_args(State)


class Cell(NamedTuple):
    """What one result row is about."""

    table: str
    method: str
    regime: Regime
    seed: int


@dataclass(frozen=True)
class Row:
    """One result.

    state, message: how it ended; the metrics are there when it is ok.
    fit_seconds, score_seconds: wall clock; of all `seeds_together` where several shared a launch.
    peak_memory_mb: largest resident size of its process, the preloaded libraries among it.
    processor: what it was fitted on.
    one_core_seconds: what the fit would take on one core, estimated, where that was a GPU.
    time_limit, memory_limit_gb: seconds for the fit and again for the scoring of a process, and
        its resident memory.
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

    @property
    def cell(self) -> Cell:
        """What it is about."""
        return Cell(self.table, self.method, self.regime, self.seed)


COLUMNS = tuple(field.name for field in fields(Row))
TOO_MUCH: tuple[State, ...] = ("timeout", "out of memory")
# How the message of a row begins that was copied from a run on fewer rows that was too much.
NOT_RUN = "not run; on the inliers alone: "
_HEADER = ",".join(COLUMNS) + "\n"
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
_APPENDING = 0  # the byte of the lock file that is held while the results are written to
_LONGEST_MESSAGE = 300


def read_rows(path: str | Path) -> list[Row]:
    """The rows of a results file; a last line that was cut off is not one.

    Where a cell was run again, all its rows are there, and the last one counts.
    """
    path = Path(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be read: {error.strerror}") from None
    return _parse(content[: content.rfind(b"\n") + 1], path)


def write_rows(path: str | Path, rows: Iterable[Row]) -> None:
    """A results file of these rows and no others, in place of what was there."""
    atomic_write(path, _HEADER.encode() + b"".join(_line(row) for row in rows))


def frame_of(rows: Iterable[Row]) -> pandas.DataFrame:
    """Rows as a frame with their fields as columns."""
    import pandas

    return pandas.DataFrame([asdict(row) for row in rows], columns=list(COLUMNS))


class Store:
    """A results file open for more rows.

    Beside it lies a lock file, which stays. Its first byte is held while rows are
    written; of the others, a run holds one for every cell it works on, so that a second run does
    something else. The system lets go of them when a process ends, however it ends.
    """

    def __init__(self, path: str | Path, forget: Callable[[Row], bool] = lambda row: False) -> None:
        """forget: which of the rows that are there count as missing.

        They stay in the file; of several rows of a cell the last one counts.
        """
        # One lock file, whatever links lead to the results.
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
                "the evaluation runs on Linux and macOS only: it needs their file locks"
            ) from None
        if self.path.exists() and not self.path.is_file():
            raise InputError(f"{str(path)!r} is not a file; give a name such as results.csv")
        try:
            self._file = self._open()
            lock_path = self.path.with_name(f".{self.path.name}.lock")
            self._lock = os.open(lock_path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise InputError(f"{str(path)!r} cannot be written: {error.strerror}") from None
        self._read_to = 0
        self._rows: dict[Cell, Row] = {}
        with self._appending():
            self._begin()
        self.refresh()
        self._rows = {cell: row for cell, row in self._rows.items() if not forget(row)}

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
        """All rows as of the last refresh, by what they are about."""
        return self._rows

    def refresh(self) -> None:
        """Read what was added since, by this run or another."""
        size = os.fstat(self._file).st_size
        if size < self._read_to:  # cut short by someone else
            self._read_to = 0
        added = os.pread(self._file, size - self._read_to, self._read_to)
        added = added[: added.rfind(b"\n") + 1]  # another run may be in the middle of a line
        if added:
            header = b"" if self._read_to == 0 else _HEADER.encode()
            for row in _parse(header + added, self.path):
                self._rows[row.cell] = row
            self._read_to += len(added)

    def add(self, rows: Iterable[Row]) -> None:
        """Write rows whose cells have none yet; all of them in one piece."""
        with self._appending():
            self._follow()
            self._cut_torn_line()
            self.refresh()
            data = b"".join(_line(row) for row in rows if row.cell not in self._rows)
            try:
                while data:
                    data = data[os.write(self._file, data) :]
            except OSError as error:  # a full disk, most likely; the next run mends a torn line
                raise OSError(error.errno, os.strerror(error.errno or 0), str(self.path)) from None
        self.refresh()

    def claim(self, key: object) -> bool:
        """Whether this run may work on something; False while another does."""
        import fcntl

        try:
            fcntl.lockf(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _byte_of(key))
        except OSError:
            return False
        return True

    def release(self, key: object) -> None:
        """Give back what was claimed."""
        import fcntl

        fcntl.lockf(self._lock, fcntl.LOCK_UN, 1, _byte_of(key))

    @contextmanager
    def _appending(self) -> Iterator[None]:
        import fcntl

        fcntl.lockf(self._lock, fcntl.LOCK_EX, 1, _APPENDING)
        try:
            yield
        finally:
            fcntl.lockf(self._lock, fcntl.LOCK_UN, 1, _APPENDING)

    def _open(self) -> int:
        return os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)

    def _follow(self) -> None:
        """Go on in the file of that name where another took the place of ours.

        Editors and version control do that; rows written to the old one would be lost.
        """
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(self._file), os.stat(self.path)):
                return
        os.close(self._file)
        self._file, self._read_to = self._open(), 0
        self._begin()

    def _begin(self) -> None:
        """Give a new file its header; refuse one that is something else."""
        header = _HEADER.encode()
        content = os.pread(self._file, len(header), 0)
        if content and not header.startswith(content):
            raise _foreign(self.path)
        if len(content) < len(header):  # new, or cut off in its first line
            os.ftruncate(self._file, 0)
            os.write(self._file, header)
        self._cut_torn_line()

    def _cut_torn_line(self) -> None:
        """Cut off a last line that a killed run left unfinished."""
        size = os.fstat(self._file).st_size
        if os.pread(self._file, 1, size - 1) != b"\n":
            content = os.pread(self._file, size, 0)
            os.ftruncate(self._file, content.rfind(b"\n") + 1)


def _byte_of(key: object) -> int:
    """A place in the lock file for anything that prints the same in every run."""
    digest = hashlib.sha256(repr(key).encode()).digest()
    return 1 + int.from_bytes(digest[:7], "big")


def _line(row: Row) -> bytes:
    values = asdict(row)
    for name in _REAL:
        if values[name] is not None:
            values[name] = f"{values[name]:.{_DECIMALS.get(name, 6)}f}"
    # One printable line per row, whatever a detector had to say.
    words = "".join(c if c.isprintable() else " " for c in str(row.message)).split()
    values["message"] = " ".join(words)[:_LONGEST_MESSAGE]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(
        ["" if values[name] is None else values[name] for name in COLUMNS]
    )
    return text.getvalue().encode("utf-8", "backslashreplace")


def _parse(content: bytes, path: Path) -> list[Row]:
    lines = csv.reader(io.StringIO(content.decode("utf-8", "replace"), newline=""))
    if tuple(next(lines, ())) != COLUMNS:
        raise _foreign(path)
    rows = []
    try:
        for line in lines:
            rows.append(_row(line))
    except (ValueError, csv.Error) as error:
        raise InputError(f"{path}, line {lines.line_num}: {error}") from None
    return rows


def _row(line: list[str]) -> Row:
    """A row from the values of a line; ValueError says what is wrong with them."""
    if len(line) != len(COLUMNS):
        raise ValueError(f"{len(line)} values for {len(COLUMNS)} columns")
    values: dict[str, Any] = dict(zip(COLUMNS, line, strict=True))
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
            raise ValueError("a row that is ok, and no other, has metrics between 0 and 1")
    return row


def _foreign(path: Path) -> InputError:
    return InputError(
        f"{str(path)!r} is not a results file of this version of `diffint bench run` (its first "
        f"line would be {','.join(COLUMNS[:4])},… and nothing before it)"
    )
