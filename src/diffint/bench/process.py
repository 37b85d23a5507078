"""Processes of the runs: the fork server, and the limits on each process."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterable
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from typing import Any

import psutil

from ..cli.signals import delaying_stop_signals
from .grid import Limits, Run
from .store import State
from .worker import METHODS_VARIABLE, ONE_CORE, Job, Outcome, work

CHECK_EVERY = 0.1  # seconds between checks of the processes' time and memory
_SEARCH_EVERY = 2.0  # seconds between searches for their child processes
_LOADING_LIMIT = 300.0  # seconds to read and prepare a table, which is not timed
_END_LIMIT = 10.0  # seconds for the system to end a process and to say how it ended
_SERVER_DIED = 255  # multiprocessing's exit code for processes whose server died
_MEGABYTE = 2**20


class Server:
    """The fork server, which loads once what the methods need."""

    def __init__(self, methods: Iterable[str]) -> None:
        # Read by the server's libraries when they load; kept in case it has to be restarted.
        settings = {
            **ONE_CORE,
            METHODS_VARIABLE: ",".join(methods),
            # Python cleans up after killed runs; its warnings about that are not useful.
            "PYTHONWARNINGS": "ignore:resource_tracker",
        }
        self._before = {name: os.environ.get(name) for name in settings}
        os.environ.update(settings)
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["diffint.bench.preload"])
        # The runner handles interrupts; the server inherits that they are ignored.
        in_main_thread = threading.current_thread() is threading.main_thread()
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN) if in_main_thread else None
        try:
            forkserver.ensure_running()
        finally:
            if handler is not None:
                signal.signal(signal.SIGINT, handler)

    def start(self, runs: list[Run], job: Job, limits: Limits) -> WatchedProcess:
        """Start a process for a job."""
        return WatchedProcess(self._context, runs, job, limits)

    def release(self) -> None:
        """Restore the environment variables."""
        for name, value in self._before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


class WatchedProcess:
    """One process with limits on time and memory."""

    def __init__(self, context: Any, runs: list[Run], job: Job, limits: Limits) -> None:
        self.runs, self.job, self.limits = runs, job, limits
        self.state: State | None = None
        self.message = ""
        self.outcomes: list[Outcome] = []
        self.fit_seconds: float | None = None
        self.peak_mb = 0.0
        self.phase, self.phase_start = "loading", time.monotonic()
        self.lost = False  # whether it ended because its server died
        self._next_check = self._next_search = 0.0
        self._family: list[psutil.Process] = []
        self.pipe: Connection
        self.pipe, child_end = context.Pipe()
        self.process = context.Process(target=work, args=(job, child_end))
        with delaying_stop_signals():  # the process would fail on a partly written job
            self.process.start()
        child_end.close()

    @property
    def ended(self) -> bool:
        """Whether it has ended, with a known state."""
        return self.state is not None

    def check(self) -> None:
        """Receive its messages and enforce its limits."""
        try:
            while not self.ended and self.pipe.poll():
                self._receive(*self.pipe.recv())
        except (EOFError, OSError):
            self._died()
        except Exception as error:  # the detector wrote to the pipe
            self._end("error", f"its message cannot be read ({type(error).__name__})")
        if not self.ended:
            self._enforce()

    def _receive(self, kind: str, value: Any) -> None:
        now = time.monotonic()
        if kind in ("fitting", "scoring"):
            if kind == "scoring":
                self.fit_seconds = now - self.phase_start
            self.phase, self.phase_start = kind, now
        elif kind == "done":
            self.outcomes, peak = value
            self._end("ok", peak_mb=peak)
        else:
            self._end("out of memory" if kind == "out of memory" else "error", value)

    def _enforce(self) -> None:
        now = time.monotonic()
        if now < self._next_check:
            return
        self._next_check = now + CHECK_EVERY
        resident = self._resident_bytes(now)
        self.peak_mb = max(self.peak_mb, resident / _MEGABYTE)
        seconds = now - self.phase_start
        limit = _LOADING_LIMIT if self.phase == "loading" else self.limits.seconds
        if resident > self.limits.gigabytes * 2**30:
            self._end(
                "out of memory",
                f"{resident / 2**30:.1f} GB resident while {self.phase}, over the limit of "
                f"{self.limits.gigabytes:g} GB",
            )
        elif seconds > limit:
            self._end("timeout", f"still {self.phase} after {limit:g} s")

    def _resident_bytes(self, now: float) -> int:
        """Memory of the process and its children, which are searched less often (it is slow)."""
        try:
            if now >= self._next_search:
                self._next_search = now + _SEARCH_EVERY
                process = psutil.Process(self.process.pid)
                self._family = [process, *process.children(recursive=True)]
            return sum(_resident(member) for member in self._family)
        except psutil.Error:  # it has just ended
            return 0

    def _died(self) -> None:
        self.process.join(_END_LIMIT)
        code = self.process.exitcode
        self.lost = code == _SERVER_DIED
        how = "its pipe is closed" if code is None else f"exit code {code}"
        if code is not None and code < 0:
            with contextlib.suppress(ValueError):
                how = signal.Signals(-code).name
        # Not killed by the runner, so by the system, which does so when memory is short.
        by_system = code == -signal.SIGKILL
        self._end(
            "out of memory" if by_system else "error",
            f"the process died while {self.phase} ({how})"
            + (", probably because the system ran out of memory" if by_system else ""),
        )

    def _end(self, state: State, message: str = "", peak_mb: float = 0.0) -> None:
        self.state, self.message = state, message
        self.peak_mb = max(self.peak_mb, peak_mb)
        self.kill()

    def kill(self) -> None:
        """Kill it and all its children."""
        pid = self.process.pid
        if pid is not None:
            family = list(self._family)
            with contextlib.suppress(psutil.Error):
                family += psutil.Process(pid).children(recursive=True)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
            for process in family:  # children outside its process group
                with contextlib.suppress(psutil.Error):
                    process.kill()
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        self.process.join(_END_LIMIT)
        self.pipe.close()


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0
