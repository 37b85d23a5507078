"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def check_place(path: str | os.PathLike[str]) -> Path:
    """Where a path leads, through links; refused where no file can be written."""
    place = Path(os.path.realpath(path))
    if place.is_dir():
        raise IsADirectoryError(f"{str(place)!r} is a folder; give a file name to write to")
    if not place.parent.is_dir():
        raise FileNotFoundError(f"the folder {str(place.parent)!r} does not exist; create it first")
    if place.exists() and not os.access(place, os.W_OK):
        raise PermissionError(f"{str(place)!r} is read-only; choose another name")
    return place


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write to by way of a temporary neighbour, which takes its place at the end.

    Until then, and for good if anything goes wrong, what was there before stays.
    """
    path = check_place(path)
    if path.exists() and not path.is_file():  # a pipe or a device has no old content to keep
        with open(path, "wb") as device:
            yield device
        return
    temporary = path.with_name(f".{path.name[:50]}.{secrets.token_hex(6)}")
    try:
        # Created by the user's own rights; an existing file keeps those it has.
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


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file so that it is never seen half written."""
    with whole_file(path) as file:
        file.write(content)
