"""Waiting for what another process or thread does: never for a time that should be enough."""

from __future__ import annotations

import time
from collections.abc import Callable

import psutil

LIMIT = 600.0  # seconds; only keeps a broken test from hanging, however slow the machine is


def wait_until(condition: Callable[[], object]) -> None:
    """Return once the condition is true."""
    until = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.01)


def wait_for_end(*pids: int) -> None:
    """Return once these processes have ended; nobody needs to have asked for their exit codes."""
    wait_until(lambda: not any(map(_runs, pids)))


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
