"""Atomic file writing: a file is replaced only when its new content is complete."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from ..core.errors import InputError, InputTypeError

# Codes of errors for a full disk, a limit on the size of files and a used-up quota.
FULL = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))
_unfinished: set[Path] = set()  # temporary files


def check_writable(path: str | os.PathLike[str]) -> Path:
    """The path with links resolved; raises an error if no file can be written there."""
    if not isinstance(path, (str, os.PathLike)):
        raise InputTypeError(f"path={path!r} must be the name of a file to write to")
    try:
        target = Path(os.path.realpath(path))
        is_folder = target.is_dir()
    except ValueError as error:
        raise InputError(f"path={path!r} cannot be the name of a file: {error}") from error
    except OSError as error:  # such as a name that is too long
        raise error_of_writing(repr(str(path)), error) from error
    if is_folder:
        raise IsADirectoryError(f"{str(target)!r} is a folder; give a file name to write to")
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"the folder {str(target.parent)!r} does not exist; create it first"
        )
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(f"{str(target)!r} is read-only; choose another name")
    return target


def check_not_an_input(
    output: str | os.PathLike[str], *inputs: str | os.PathLike[str] | None
) -> None:
    """Raise an error if the output is one of the input files, which would be overwritten.

    Files are compared, not names: a link to an input is that input. ``-`` is standard output or
    input, which may also be a file. An input that is None is not known.
    """
    written = _file_behind(output, 1)
    for path in inputs:
        read = None if path is None or written is None else _file_behind(path, 0)
        if read is not None and written is not None and os.path.samestat(written, read):
            name = "standard output" if output == "-" else repr(os.fspath(output))
            raise InputError(
                f"the output {name} is also an input and would be overwritten; choose another name"
            )


def _file_behind(path: str | os.PathLike[str], standard_stream: int) -> os.stat_result | None:
    """The file that a path leads to; None if there is none, or if it is a pipe or a device."""
    try:
        found = os.fstat(standard_stream) if path == "-" else os.stat(path)
    except (OSError, ValueError):  # not there, or not a valid name
        return None
    return found if stat.S_ISREG(found.st_mode) else None


class OutputFile:
    """An open file whose errors say which file it is. Closing it leaves the file itself open.

    After an error nothing more is written: libraries still try it when they clean up.
    """

    def __init__(self, file: BinaryIO, name: str) -> None:
        """name: as it appears in messages, for example ``standard output``"""
        self._file, self._name, self.closed = file, name, False
        self.given_up = False

    def write(self, data: Any) -> int:
        """Write bytes. → their number"""
        left = memoryview(data).cast("B")
        try:
            with errors_that_name(self._name):
                # A file without a buffer may accept only a part at a time.
                while len(left) and not self.given_up:
                    left = left[self._file.write(left) :]
        except BaseException:
            self.given_up = True
            raise
        return memoryview(data).nbytes

    def flush(self) -> None:
        """Write what is in the buffer."""
        if not self.given_up:
            with errors_that_name(self._name):
                self._file.flush()

    def close(self) -> None:
        """Accept no more bytes."""
        self.closed = True


@contextmanager
def errors_that_name(name: str) -> Iterator[None]:
    """Raise an error of the system, such as a full disk, as one that says where and what to do."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise error_of_writing(name, error) from error


def error_of_writing(name: str, error: OSError) -> OSError:
    """An error of the system as one that says where it occurred and what to do."""
    full = error.errno in FULL
    remedy = "free some space, or write to another disk" if full else "check it, or write elsewhere"
    return OSError(f"{name} cannot be written: {error.strerror or error}; {remedy}")


@contextmanager
def atomic_file(path: str | os.PathLike[str], is_last: bool = False) -> Iterator[OutputFile]:
    """A file to write to; it replaces an existing one on success only.

    The content goes to a temporary file in the same folder, which is removed after an error.
    is_last: as in `atomic_write`
    """
    name = str(path)
    path = check_writable(path)
    if path.exists() and not path.is_file():  # a pipe or a device: no old content to keep
        note_written(name)
        with open(path, "wb", buffering=0) as device, _giving_up(device, name) as output:
            yield output
        return
    temporary = path.with_name(f".{path.name[:50]}.{secrets.token_hex(6)}")
    _unfinished.add(temporary)  # before it exists: a signal may arrive between any two steps
    try:
        with errors_that_name(repr(name)):
            # A new file gets the user's default permissions; an existing one keeps its own.
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with os.fdopen(handle, "wb", buffering=0) as file:
            with _giving_up(file, name) as output:
                yield output
            with errors_that_name(repr(name)):
                os.fsync(file.fileno())
                note_written(name, os.fstat(file.fileno()), is_last)
        with errors_that_name(repr(name)):
            if path.exists():
                os.chmod(temporary, path.stat().st_mode & 0o7777)
            os.replace(temporary, path)
        note_written(name, None, is_last)  # another process may replace it as well
    finally:
        temporary.unlink(missing_ok=True)  # there is none any more after a success
        _unfinished.discard(temporary)


@contextmanager
def _giving_up(file: BinaryIO, name: str) -> Iterator[OutputFile]:
    """An output file to which nothing more is written after the block."""
    output = OutputFile(file, repr(name))
    try:
        yield output
    finally:
        output.given_up = True


def atomic_write(path: str | os.PathLike[str], content: bytes, is_last: bool = False) -> None:
    """Write a file so that a partly written one is never visible.

    is_last: whether the work is done with this file, so that it must not be done again
    """
    with atomic_file(path, is_last) as file:
        file.write(content)


def remove_unfinished() -> None:
    """Remove temporary files that are still there, after a signal in the middle of a clean-up."""
    for temporary in list(_unfinished):
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


class WrittenFiles:
    """The files that were written since this list was begun."""

    def __init__(self) -> None:
        self._files: dict[str, os.stat_result | None] = {}
        self._last: set[str] = set()

    def names(self) -> list[str]:
        """The names of the files, as they were given."""
        return [name for name, state in self._files.items() if _is_at(name, state)]

    def is_done(self) -> bool:
        """Whether one of them ends the work, so that what comes after must not be interrupted."""
        return any(_is_at(name, self._files[name]) for name in self._last)

    def _add(self, name: str, state: os.stat_result | None, is_last: bool) -> None:
        self._files[name] = state
        if is_last:
            self._last.add(name)


_lists: list[WrittenFiles] = []


@contextmanager
def listing_written_files() -> Iterator[WrittenFiles]:
    """A list of the files written inside the block, to say what an interrupted command left."""
    written = WrittenFiles()
    _lists.append(written)
    try:
        yield written
    finally:
        _lists.remove(written)


def note_written(name: str, state: os.stat_result | None = None, is_last: bool = False) -> None:
    """Add a file to the lists.

    state: of the temporary file that is about to take this name. The file counts as written if it
    really has, which a signal may have prevented. is_last: as in `atomic_write`
    """
    for written in _lists:
        written._add(name, state, is_last)


def _is_at(name: str, state: os.stat_result | None) -> bool:
    try:
        return state is None or os.path.samestat(os.stat(name), state)
    except OSError:
        return False
