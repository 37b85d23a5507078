"""One process compiles while others wait for its code.

The lock belongs to an open file, so the system frees it when its process ends, for whatever reason.
Nothing depends on it but time: where files cannot be locked, every process compiles.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ..tables.file_lock import try_lock
from .code_folder import CodeFolder

_POLL_S = 0.1
# After so long without new code, do not wait any longer: the other process may be suspended.
_PATIENCE_S = 120.0


@contextmanager
def compiling_alone(
    folder: CodeFolder,
    is_done: Callable[[], bool],
    waiting: Callable[[], None] = lambda: None,
) -> Iterator[None]:
    """Enter the block when no other process compiles, or when there is nothing left to compile.

    is_done: whether all code is there; waiting: called once if another process compiles.
    """
    lock = None if is_done() else _acquire(folder, is_done, waiting)
    try:
        if lock is not None:
            folder.remove_leftovers()
        yield
    finally:
        if lock is not None:
            _close(lock)


_given_up: set[Path] = set()  # in this process


def _acquire(
    folder: CodeFolder, is_done: Callable[[], bool], waiting: Callable[[], None]
) -> int | None:
    """Wait for the lock; None if it is not needed any more or cannot be had."""
    lock = folder.open_lock()
    if lock is None:
        return None
    _open_locks.add(lock)
    patience = 0.0 if folder.path in _given_up else _PATIENCE_S
    changed_at, deadline, is_told = folder.changed_at, time.monotonic() + patience, False
    try:
        while (is_locked := try_lock(lock)) is False:
            if is_done():
                break
            if time.monotonic() > deadline:
                _given_up.add(folder.path)  # its holder hangs: other kernels do not wait again
                break
            if not is_told:
                waiting()
                is_told = True
            if folder.changed_at != changed_at:
                changed_at, deadline = folder.changed_at, time.monotonic() + _PATIENCE_S
            time.sleep(_POLL_S)
    except BaseException:
        _close(lock)
        raise
    if not is_locked:
        _close(lock)
        return None
    return lock


_open_locks: set[int] = set()


def _close(lock: int) -> None:
    """Close the file, which frees the lock."""
    if lock in _open_locks:  # else this is a forked process
        _open_locks.discard(lock)
        with contextlib.suppress(OSError):
            os.close(lock)


def _close_inherited() -> None:
    """In a forked process: close the files, or the locks would last until this process ends."""
    for lock in [*_open_locks]:
        _close(lock)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_inherited)
