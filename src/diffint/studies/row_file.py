"""The rows of a study: a CSV file that a killed run leaves complete up to its last row."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

from ..core.errors import InputError
from ..tables.atomic_write import atomic_write, errors_that_name, note_written
from ..tables.file_lock import try_lock
from .study import Measured, Row, Study, Task

FULL, QUICK = "full", "quick"
# Columns beside the study's own: the kind of run, and where and how long it was measured.
_BEFORE, _AFTER = ("run",), ("seconds", "processor", "versions")


class RowFile:
    """The file of one study, open for appending and locked against a second command."""

    def __init__(self, path: Path, study: Study, quick: bool) -> None:
        """quick: the kind of run; a file with rows of the other kind is refused."""
        self.path, self.study, self.kind = path, study, QUICK if quick else FULL
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        except OSError as error:
            raise InputError(f"{str(path)!r} cannot be written: {error.strerror}") from None
        try:
            if try_lock(self._file) is False:
                raise InputError(
                    f"{str(path)!r} is being written by another command; wait until it has ended"
                )
            self._remove_incomplete_line()
            self._rows = read_rows(path, study)
            self._check_kind()
        except BaseException:
            os.close(self._file)
            raise

    def __enter__(self) -> RowFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        os.close(self._file)

    def row_of(self, task: Task) -> Row | None:
        """The row of a task as it is in the file; None if it has not been measured."""
        return self._rows.get(_key(self.study, task))

    def add(self, task: Task, measured: Measured, **about: Any) -> None:
        """Append the row of a task. about: the columns `seconds`, `processor` and `versions`"""
        unknown = set(measured) - set(self.study.measures)
        if unknown:
            raise RuntimeError(f"study {self.study.name}: {sorted(unknown)} are not its measures")
        row = {"run": self.kind, **task, **measured, **about}
        cells = {name: _written(row.get(name)) for name in columns_of(self.study)}
        with errors_that_name(repr(str(self.path))):
            note_written(str(self.path))
            data = _line(cells.values())
            while data:
                data = data[os.write(self._file, data) :]
        self._rows[_key(self.study, task)] = {name: _read(cell) for name, cell in cells.items()}

    def put_in_order(self, tasks: list[Task]) -> None:
        """Write the rows of these tasks first, in their order: they come as they are finished."""
        order = {_key(self.study, task): place for place, task in enumerate(tasks)}
        keys = sorted(self._rows, key=lambda key: order.get(key, len(order)))
        if keys == list(self._rows):
            return
        self._rows = {key: self._rows[key] for key in keys}
        content = _line(columns_of(self.study))
        for row in self._rows.values():
            content += _line(_written(row[name]) for name in columns_of(self.study))
        atomic_write(self.path, content)

    def _remove_incomplete_line(self) -> None:
        """Remove an incomplete last line, left by a killed command; write the header if needed."""
        with errors_that_name(repr(str(self.path))):
            size = os.fstat(self._file).st_size
            content = os.pread(self._file, size, 0)
            complete = content.rfind(b"\n") + 1
            if complete < size:
                os.ftruncate(self._file, complete)
            if complete == 0:
                os.write(self._file, _line(columns_of(self.study)))

    def _check_kind(self) -> None:
        for row in self._rows.values():
            if row["run"] != self.kind:
                raise InputError(
                    f"{str(self.path)!r} has rows of a {row['run']} run, which are not mixed with "
                    f"those of a {self.kind} one; choose another folder with --out"
                )


def columns_of(study: Study) -> tuple[str, ...]:
    """The columns of a study's file."""
    return (*_BEFORE, *study.keys, *study.measures, *_AFTER)


def read_rows(path: Path, study: Study) -> dict[tuple[str, ...], Row]:
    """All rows of a file by what identifies their tasks."""
    with open(path, newline="", encoding="utf-8") as file:
        lines = csv.reader(file)
        if tuple(next(lines, ())) != columns_of(study):
            raise InputError(
                f"{str(path)!r} is not a file of this version of the study {study.name}; move it "
                "away, or choose another folder with --out"
            )
        rows = {}
        for line in lines:
            if len(line) != len(columns_of(study)):
                raise InputError(
                    f"{str(path)!r}, line {lines.line_num}: {len(line)} values for "
                    f"{len(columns_of(study))} columns; remove the line to measure it again"
                )
            cells = dict(zip(columns_of(study), line, strict=True))
            key = tuple(cells[name] for name in study.keys)
            rows[key] = {name: _read(cell) for name, cell in cells.items()}
    return rows


def _line(cells: Iterable[str]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue().encode()


def _key(study: Study, task: Task) -> tuple[str, ...]:
    return tuple(_written(task[name]) for name in study.keys)


def _written(value: Any) -> str:
    """A value as a cell; `_read` gives it back, numbers with six significant digits."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, str | int):
        return str(value)
    if isinstance(value, list | tuple):
        return json.dumps([float(f"{number:.5g}") for number in value])
    value = float(value)
    return str(int(value)) if value.is_integer() else f"{value:.6g}"


def _read(cell: str) -> Any:
    if not cell:
        return None
    if cell.startswith("["):
        return json.loads(cell)
    try:
        return float(cell)
    except ValueError:
        return cell
