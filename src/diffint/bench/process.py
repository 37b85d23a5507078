"""Processes for the runs: the server they are forked from, and the watch over each."""

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
from .worker import ASKED, ONE_CORE, Job, Outcome, work

LOOK_EVERY = 0.1  # seconds, at the processes' clocks and memory
_SEARCH_EVERY = 2.0  # seconds, for further processes that they started
_LOADING_LIMIT = 300.0  # seconds to read a table and prepare it, of no interest to anyone
_SERVER_DIED = 255  # what multiprocessing gives as the exit code of a process lost with its server
_MEGABYTE = 2**20


class Server:
    """What processes are forked from: it has loaded what the methods need, once."""

    def __init__(self, methods: Iterable[str]) -> None:
        # Read by its libraries when they load; kept, since it may have to start again.
        settings = {
            **ONE_CORE,
            ASKED: ",".join(methods),
            # A killed run cannot tidy up after itself; Python does it, and need not speak of it.
            "PYTHONWARNINGS": "ignore:resource_tracker",
        }
        self._before = {name: os.environ.get(name) for name in settings}
        os.environ.update(settings)
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["diffint.bench.preload"])
        # An interrupt is the runner's to handle; the server inherits that it does not hear any.
        hearing = threading.current_thread() is threading.main_thread()
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN) if hearing else None
        try:
            forkserver.ensure_running()
        finally:
            if handler is not None:
                signal.signal(signal.SIGINT, handler)

    def start(self, runs: list[Run], job: Job, limits: Limits) -> WatchedProcess:
        """A process that works on a job."""
        return WatchedProcess(self._context, runs, job, limits)

    def release(self) -> None:
        """The environment as it was."""
        for name, value in self._before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


class WatchedProcess:
    """One process, its clock and its memory."""

    def __init__(self, context: Any, runs: list[Run], job: Job, limits: Limits) -> None:
        self.runs, self.job, self.limits = runs, job, limits
        self.state: State | None = None
        self.message = ""
        self.outcomes: list[Outcome] = []
        self.fit_seconds: float | None = None
        self.peak_mb = 0.0
        self.phase, self.phase_began = "loading", time.monotonic()
        self.lost = False  # with the server that it was forked from
        self._look_again = self._search_again = 0.0
        self._family: list[psutil.Process] = []
        self.pipe: Connection
        self.pipe, theirs = context.Pipe(duplex=False)
        self.process = context.Process(target=work, args=(job, theirs))
        with delaying_stop_signals():  # a partly written message would be an error in the process
            self.process.start()
        theirs.close()

    @property
    def ended(self) -> bool:
        """Whether it is known how it ended."""
        return self.state is not None

    def look(self) -> None:
        """Hear what it has to say; enforce its limits."""
        try:
            while not self.ended and self.pipe.poll():
                self._hear(*self.pipe.recv())
        except (EOFError, OSError):
            self._died()
        except Exception as error:  # someone else wrote to the pipe
            self._end("error", f"what it said cannot be read ({type(error).__name__})")
        if not self.ended:
            self._enforce()

    def _hear(self, what: str, value: Any) -> None:
        now = time.monotonic()
        if what in ("fitting", "scoring"):
            if what == "scoring":
                self.fit_seconds = now - self.phase_began
            self.phase, self.phase_began = what, now
        elif what == "done":
            self.outcomes, peak = value
            self._end("ok", peak_mb=peak)
        else:
            self._end("out of memory" if what == "out of memory" else "error", value)

    def _enforce(self) -> None:
        now = time.monotonic()
        if now < self._look_again:
            return
        self._look_again = now + LOOK_EVERY
        resident = self._resident_bytes(now)
        self.peak_mb = max(self.peak_mb, resident / _MEGABYTE)
        seconds = now - self.phase_began
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
        """Of the process and all it started; looking for those takes longer and is done less."""
        try:
            if now >= self._search_again:
                self._search_again = now + _SEARCH_EVERY
                process = psutil.Process(self.process.pid)
                self._family = [process, *process.children(recursive=True)]
            return sum(_resident(member) for member in self._family)
        except psutil.Error:  # it has just ended
            return 0

    def _died(self) -> None:
        self.process.join(1.0)
        code = self.process.exitcode
        self.lost = code == _SERVER_DIED
        how = "its pipe is closed" if code is None else f"exit code {code}"
        if code is not None and code < 0:
            with contextlib.suppress(ValueError):
                how = signal.Signals(-code).name
        # We did not kill it: when memory is short, the system does.
        by_system = code == -signal.SIGKILL
        self._end(
            "out of memory" if by_system else "error",
            f"the process died while {self.phase} ({how})"
            + (", most likely for the system's lack of memory" if by_system else ""),
        )

    def _end(self, state: State, message: str = "", peak_mb: float = 0.0) -> None:
        self.state, self.message = state, message
        self.peak_mb = max(self.peak_mb, peak_mb)
        self.kill()

    def kill(self) -> None:
        """End it and all it started."""
        pid = self.process.pid
        if pid is not None:
            family = list(self._family)
            with contextlib.suppress(psutil.Error):
                family += psutil.Process(pid).children(recursive=True)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
            for process in family:  # what has left its group, or came before it had one
                with contextlib.suppress(psutil.Error):
                    process.kill()
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        self.process.join(10.0)
        self.pipe.close()


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0
