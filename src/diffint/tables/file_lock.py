"""Locks of files between processes.

A lock belongs to an open file, so the system frees it when its process ends, for whatever reason.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..core.errors import InputError

_POLL_S = 0.02

if sys.platform == "win32":
    import msvcrt

    def try_lock(file: int) -> bool | None:
        """Lock an open file. False if it is locked already; None if locks are not supported."""
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        except OSError:
            return None
        return True

    def _unlock(file: int) -> None:
        os.lseek(file, 0, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def try_lock(file: int) -> bool | None:
        """Lock an open file. False if it is locked already; None if locks are not supported."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return None
        return True

    def _unlock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)


@contextmanager
def locked(path: str | os.PathLike[str], patience_s: float = 60.0) -> Iterator[None]:
    """Hold the lock of a file, which need not exist; other processes and threads wait for it.

    The lock is that of a file beside it, ``.name.lock``, which stays: `atomic_write` replaces the
    file itself, and a lock of the old one would keep nobody out.
    """
    target = Path(os.path.realpath(path))  # links to the same file share one lock
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"the folder {str(target.parent)!r} does not exist; create it first"
        )
    try:
        file = os.open(target.with_name(f".{target.name}.lock"), os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise InputError(
            f"{str(path)!r} cannot be locked: {error.strerror}; check the permissions of its folder"
        ) from None
    try:
        _wait_for(file, path, time.monotonic() + patience_s)
        try:
            yield
        finally:
            _unlock(file)  # not only closed: a process forked meanwhile has the same open file
    finally:
        os.close(file)


def _wait_for(file: int, path: str | os.PathLike[str], deadline: float) -> None:
    while not (state := try_lock(file)):
        if state is None:
            raise InputError(
                f"{str(path)!r} cannot be locked, as its file system has no locks; use another disk"
            )
        if time.monotonic() > deadline:
            raise InputError(
                f"{str(path)!r} has been locked by another process for a minute; try again later"
            )
        time.sleep(_POLL_S)
