"""Atomic file writing: a file is replaced only when its new content is complete."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ..core.errors import InputError


def check_writable(path: str | os.PathLike[str]) -> Path:
    """The path with links resolved; raises an error if no file can be written there."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
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


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write to; it replaces an existing one on success only.

    The content goes to a temporary file in the same folder, which is removed after an error.
    """
    path = check_writable(path)
    if path.exists() and not path.is_file():  # a pipe or a device: no old content to keep
        with open(path, "wb") as device:
            yield device
        return
    temporary = path.with_name(f".{path.name[:50]}.{secrets.token_hex(6)}")
    try:
        # A new file gets the user's default permissions; an existing one keeps its own.
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except OSError as error:
        raise OSError(error.errno, os.strerror(error.errno or 0), str(path)) from None
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            if not file.closed:
                file.flush()
                os.fsync(file.fileno())
        if path.exists():
            os.chmod(temporary, path.stat().st_mode & 0o7777)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def atomic_write(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file so that a partly written one is never visible."""
    with atomic_file(path) as file:
        file.write(content)
