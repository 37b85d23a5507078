"""Works the grid of (table, method, regime, seed) off, every run in a process of its own."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from .baselines import Method
from .protocol import REGIMES, Regime, TrainsOn
from .store import NOT_RUN, TOO_MUCH, Cell, Row, State, Store
from .worker import (
    ASKED,
    ONE_CORE,
    Job,
    Outcome,
    installed_versions,
    processor_name,
    work,
)

_LOOK_EVERY = 0.1  # seconds, at the processes' clocks and memory
_SEARCH_EVERY = 2.0  # seconds, for further processes that they started
_DRAW_EVERY = 0.5  # seconds, at most
_SERVER_DIED = 255  # what multiprocessing gives as the exit code of a process lost with its server
_LOADING_LIMIT = 300.0  # seconds to read a table and prepare it, of no interest to anyone
_MEGABYTE = 2**20


class Limits(NamedTuple):
    """For one process: seconds for the fit and again for the scoring, and resident gigabytes.

    A process that trains many seeds at once gets as many times the seconds.
    """

    seconds: float = 120.0
    gigabytes: float = 8.0


def outgrown(row: Row, limits: Limits) -> bool:
    """Whether a run ended for want of something that it would now have more of."""
    if row.state == "timeout":
        return (row.time_limit or 0.0) / row.seeds_together < limits.seconds
    return row.state == "out of memory" and (row.memory_limit_gb or 0.0) < limits.gigabytes


@dataclass(frozen=True)
class Grid:
    """What is to be run.

    tables: files by name. methods: by name, plugins among them. slow_after, slow_seeds: where a
    method's first seed took longer than so many seconds on a table, only so many seeds are run.
    device: "cpu", or "cuda" for the methods that can use it.
    """

    tables: dict[str, Path]
    methods: dict[str, Method]
    regimes: tuple[Regime, ...]
    seeds: tuple[int, ...]
    slow_after: float | None = None
    slow_seeds: int = 3
    device: str = "cpu"

    def runs(self) -> list[Run]:
        """Every run, in order: table by table, seed by seed. What is the same in both regimes is
        one run.
        """
        runs = []
        for table in self.tables:
            for seed in self.seeds:
                for method in self.methods.values():
                    by_rows: dict[TrainsOn, list[Regime]] = {}
                    for regime in self.regimes:
                        by_rows.setdefault(method.rows_for(regime), []).append(regime)
                    runs += [
                        Run(table, method.name, rows, tuple(regimes), seed)
                        for rows, regimes in sorted(by_rows.items(), reverse=True)
                    ]
        return runs


class Run(NamedTuple):
    """One fit: a cell of the grid, or the same cell of both regimes."""

    table: str
    method: str
    trains_on: TrainsOn
    regimes: tuple[Regime, ...]
    seed: int

    @property
    def cells(self) -> list[Cell]:
        """The cells whose rows it gives."""
        return [Cell(self.table, self.method, regime, self.seed) for regime in self.regimes]


class Event(NamedTuple):
    """What the runner tells the display: how many runs are settled of how many, what is running,
    and how many seconds the rest will take, if anything is known of it.
    """

    settled: int
    total: int
    running: list[str]
    seconds_left: float | None


def run_grid(
    grid: Grid,
    store: Store,
    jobs: int,
    limits: Limits,
    tell: Callable[[Event], None] = lambda event: None,
) -> None:
    """Run what the store has no row for. An interrupted grid is simply run again."""
    dispatcher = _Dispatcher(grid, store, jobs, limits)
    told = 0.0
    try:
        while dispatcher.step():
            if time.monotonic() > told + _DRAW_EVERY:
                tell(dispatcher.event())
                told = time.monotonic()
        tell(dispatcher.event())
    finally:
        dispatcher.stop()


class _Dispatcher:
    """Which runs are settled, which are under way, which come next."""

    def __init__(self, grid: Grid, store: Store, jobs: int, limits: Limits) -> None:
        self.grid, self.store, self.jobs, self.limits = grid, store, jobs, limits
        self.waiting = grid.runs()
        self.total = len(self.waiting)
        self.sizes = {name: path.stat().st_size for name, path in grid.tables.items()}
        self.processes: list[_Process] = []
        self.lost: set[Run] = set()
        self.environment = _Environment(grid.methods)
        self.context = _server()
        self.processor, self.versions = f"{processor_name()}, 1 core", installed_versions()
        self._settle()

    def step(self) -> bool:
        """Settle what is known, start what can be, wait a little; whether anything is left."""
        self.store.refresh()
        while len(self.processes) < self.jobs:
            runs = self._next_runs()
            if not runs:
                break
            try:
                self.processes.append(self._start(runs))
            except ConnectionError:  # the server is gone; multiprocessing starts another
                self._release(runs)
                self.waiting = runs + self.waiting
                break
        if not self.processes:
            self._settle()
            if self.waiting:  # another run works on all that is left
                time.sleep(1.0)
            return bool(self.waiting)
        wait([process.pipe for process in self.processes], timeout=_LOOK_EVERY)
        for process in self.processes:
            process.look()
        for process in [p for p in self.processes if p.ended]:
            if process.lost and not self.lost.intersection(process.runs):
                self.lost.update(process.runs)  # once more; then it is the detector's doing
                self.waiting = process.runs + self.waiting
            else:
                self.store.add(self._rows(process))
            self.processes.remove(process)
            self._release(process.runs)
        return True

    def stop(self) -> None:
        """End what is under way; its runs have no rows and will be run again."""
        for process in self.processes:
            process.kill()
        self.environment.restore()

    def event(self) -> Event:
        """How far it is."""
        running = [f"{p.runs[0].method} on {p.runs[0].table}" for p in self.processes]
        settled = self.total - len(self.waiting) - sum(len(p.runs) for p in self.processes)
        return Event(settled, self.total, running, self._seconds_left())

    # --- What is next ------------------------------------------------------------------------

    def _settle(self) -> None:
        """Strike off the runs that have their rows or will have none; copy rows between regimes."""
        self.waiting = [run for run in self.waiting if not self._is_settled(run)]

    def _is_settled(self, run: Run) -> bool:
        rows = self.store.rows
        missing = [cell for cell in run.cells if cell not in rows]
        if not missing:
            return True
        known = self._known(run)
        if known is not None:
            self.store.add(replace(known, regime=cell.regime) for cell in missing)
            return True
        first = rows.get(run.cells[0]._replace(seed=self.grid.seeds[0]))
        if first is None:
            return False
        if first.state in TOO_MUCH:
            return True  # the table counts as missing for this method
        nth = self.grid.seeds.index(run.seed)
        return self._is_slow(first) and nth >= self.grid.slow_seeds

    def _known(self, run: Run) -> Row | None:
        """What the other regime's row says of this run, if anything.

        It is the same fit where a method trains on the same rows in both; and what was too much
        with the inliers alone is too much with all rows.
        """
        method = self.grid.methods[run.method]
        for regime in REGIMES:
            row = self.store.rows.get(Cell(run.table, run.method, regime, run.seed))
            if row is None:
                continue
            if method.rows_for(regime) == run.trains_on:
                return row
            if method.rows_for(regime) == "inliers" and row.state in TOO_MUCH:
                return replace(
                    row,
                    message=NOT_RUN + row.message,
                    fit_seconds=None,
                    peak_memory_mb=None,
                )
        return None

    def _is_slow(self, first: Row) -> bool:
        if self.grid.slow_after is None or first.seeds_together > 1:
            return False
        return (first.fit_seconds or 0.0) + (first.score_seconds or 0.0) > self.grid.slow_after

    def _next_runs(self) -> list[Run]:
        """The first run that may start, with those that share its process; claimed."""
        for run in self.waiting:
            if not self._may_start(run):
                continue
            together = [run]
            if self._on_gpu(run):
                together = [r for r in self.waiting if r._replace(seed=run.seed) == run]
            claimed = [r for r in together if self.store.claim(_claim_of(r))]
            # Another run may have written the rows between the last look and the claim.
            self.store.refresh()
            settled = {r for r in claimed if self._is_settled(r)}
            self._release(settled)
            self.waiting = [r for r in self.waiting if r not in claimed]
            if len(settled) < len(claimed):
                return [r for r in claimed if r not in settled]
        return []

    def _may_start(self, run: Run) -> bool:
        """Whether what could make it needless is known: the first seed, and that on fewer rows."""
        first = self.grid.seeds[0]
        if self._on_gpu(run):
            return True
        if run.seed != first:
            return run.cells[0]._replace(seed=first) in self.store.rows
        if run.trains_on == "inliers" or "fair" not in self.grid.regimes:
            return True
        return run.cells[0]._replace(regime="fair") in self.store.rows

    def _on_gpu(self, run: Run) -> bool:
        return self.grid.device != "cpu" and self.grid.methods[run.method].on_gpu

    def _release(self, runs: Iterable[Run]) -> None:
        for run in runs:
            self.store.release(_claim_of(run))

    def _start(self, runs: list[Run]) -> _Process:
        first = runs[0]
        device = self.grid.device if self._on_gpu(first) else "cpu"
        job = Job(
            first.table,
            self.grid.tables[first.table].resolve(),
            first.method,
            self.grid.methods[first.method].plugin,
            first.trains_on,
            tuple(run.seed for run in runs),
            device,
        )
        limits = self.limits._replace(seconds=self.limits.seconds * len(runs))
        return _Process(self.context, runs, job, limits)

    # --- What came of it ---------------------------------------------------------------------

    def _rows(self, process: _Process) -> list[Row]:
        outcomes = {outcome.seed: outcome for outcome in process.outcomes}
        rows = []
        for run in process.runs:
            for cell in run.cells:
                row = Row(
                    *cell,
                    state=process.state or "error",
                    message=process.message,
                    fit_seconds=process.fit_seconds,
                    peak_memory_mb=process.peak_mb or None,
                    seeds_together=len(process.runs),
                    time_limit=process.limits.seconds,
                    memory_limit_gb=process.limits.gigabytes,
                    processor=self.processor if process.job.device == "cpu" else "GPU",
                    versions=self.versions,
                )
                if process.state == "ok":
                    row = replace(row, **_measured(outcomes[run.seed]))
                rows.append(row)
        return rows

    def _seconds_left(self) -> float | None:
        """From what the same method took on the same table; else from how far the grid is."""
        if not self.waiting:
            return None if not self.processes else 0.0
        taken: dict[tuple[str, str], list[float]] = {}
        for row in self.store.rows.values():
            if row.fit_seconds is not None:
                seconds = (row.fit_seconds + (row.score_seconds or 0.0)) / row.seeds_together
                taken.setdefault((row.table, row.method), []).append(seconds)
        if not taken:
            return None
        mean = {key: sum(all_) / len(all_) for key, all_ in taken.items()}
        # Elsewhere a method is taken to need what it needed so far, by the size of the tables.
        rates: dict[str, list[float]] = {}
        for (table, method), seconds in mean.items():
            if table in self.sizes:
                rates.setdefault(method, []).append(seconds / self.sizes[table])
        rate = {method: sum(all_) / len(all_) for method, all_ in rates.items()}
        usual = sum(rate.values()) / len(rate) if rate else 0.0
        left = 0.0
        for run in self.waiting:
            guess = rate.get(run.method, usual) * self.sizes[run.table]
            guess = mean.get((run.table, run.method), guess)
            left += min(guess, 2 * self.limits.seconds)
        return left / self.jobs


class _Process:
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
        self._look_again = now + _LOOK_EVERY
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


class _Environment:
    """What the server's libraries read when they load; kept, since it may have to start again."""

    def __init__(self, methods: Iterable[str]) -> None:
        settings = {
            **ONE_CORE,
            ASKED: ",".join(methods),
            # A killed run cannot tidy up after itself; Python does it, and need not speak of it.
            "PYTHONWARNINGS": "ignore:resource_tracker",
        }
        self._before = {name: os.environ.get(name) for name in settings}
        os.environ.update(settings)

    def restore(self) -> None:
        """As it was."""
        for name, value in self._before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _server() -> Any:
    """Processes are forked from a server that has loaded what the methods need, once."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["diffint.bench.preload"])
    # An interrupt is the runner's to handle; the server inherits that it does not hear any.
    hearing = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN) if hearing else None
    try:
        forkserver.ensure_running()
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)
    return context


def _claim_of(run: Run) -> tuple[str, ...]:
    return run.table, run.method, run.trains_on, str(run.seed)


def _measured(outcome: Outcome) -> dict[str, Any]:
    values = vars(outcome).copy()
    del values["seed"]
    on_gpu = values.pop("on_gpu")
    if on_gpu is not None:
        values["processor"], values["one_core_seconds"] = on_gpu
    return values


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0
