"""Result rows in one CSV file that many runs may write to at once and none can leave torn."""

from __future__ import annotations

import csv
import hashlib
import io
import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from ..errors import InputError
from ..files.whole import write_whole
from .protocol import Regime

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
_DECIMALS = {"roc_auc": 6, "average_precision": 6, "peak_memory_mb": 0}
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
    write_whole(path, (_HEADER + "".join(_line(row) for row in rows)).encode())


def frame_of(rows: Iterable[Row]) -> pandas.DataFrame:
    """Rows as a frame with their fields as columns."""
    import pandas

    return pandas.DataFrame([asdict(row) for row in rows], columns=list(COLUMNS))


class Store:
    """A results file open for more rows.

    Beside it, while runs are under way, lies a lock file. Its first byte is held while rows are
    written; of the others, a run holds one for every cell it works on, so that a second run does
    something else. The system lets go of them when a process ends, however it ends.
    """

    def __init__(self, path: str | Path, forget: Collection[State] = ()) -> None:
        """forget: rows of these states count as missing; a later row of the same cell counts."""
        self.path = Path(path)
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
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
            lock_path = self.path.with_name(f".{self.path.name}.lock")
            self._lock = os.open(lock_path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise InputError(f"{str(path)!r} cannot be written: {error.strerror}") from None
        self._read_to = 0
        self._rows: dict[Cell, Row] = {}
        with self._appending():
            self._begin()
        self.refresh()
        self._rows = {cell: row for cell, row in self._rows.items() if row.state not in forget}

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
        added = os.pread(self._file, os.fstat(self._file).st_size - self._read_to, self._read_to)
        added = added[: added.rfind(b"\n") + 1]  # another run may be in the middle of a line
        if added:
            header = b"" if self._read_to == 0 else _HEADER.encode()
            for row in _parse(header + added, self.path):
                self._rows[row.cell] = row
            self._read_to += len(added)

    def add(self, rows: Iterable[Row]) -> None:
        """Write rows whose cells have none yet; all of them in one piece."""
        with self._appending():
            self._cut_torn_line()
            self.refresh()
            text = "".join(_line(row) for row in rows if row.cell not in self._rows)
            data = text.encode()
            while data:
                data = data[os.write(self._file, data) :]
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


def _line(row: Row) -> str:
    values = asdict(row)
    for name in _REAL:
        if values[name] is not None:
            values[name] = f"{values[name]:.{_DECIMALS.get(name, 3)}f}"
    # One line per row, whatever a detector had to say.
    values["message"] = " ".join(str(row.message).split())[:_LONGEST_MESSAGE]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(
        ["" if values[name] is None else values[name] for name in COLUMNS]
    )
    return text.getvalue()


def _parse(content: bytes, path: Path) -> list[Row]:
    lines = csv.reader(io.StringIO(content.decode("utf-8", "replace")))
    if tuple(next(lines, ())) != COLUMNS:
        raise _foreign(path)
    rows = []
    for number, line in enumerate(lines, 2):
        if len(line) != len(COLUMNS):
            raise InputError(
                f"{path}, line {number}: {len(line)} values for {len(COLUMNS)} columns"
            )
        values: dict[str, Any] = dict(zip(COLUMNS, line, strict=True))
        try:
            for name in _WHOLE:
                values[name] = int(values[name]) if values[name] else None
            for name in _REAL:
                values[name] = float(values[name]) if values[name] else None
        except ValueError as error:
            raise InputError(f"{path}, line {number}: {error}") from None
        rows.append(Row(**values))
    return rows


def _foreign(path: Path) -> InputError:
    return InputError(
        f"{str(path)!r} is not a results file of `diffint bench run` (its first line would name "
        f"{', '.join(COLUMNS[:4])}, …); choose another name"
    )
