"""Run the grid of (table, method, regime, seed), every run in its own process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from multiprocessing.connection import wait
from typing import Any

from .grid import Grid, Limits, Run
from .process import CHECK_EVERY, Server, WatchedProcess
from .progress import Event
from .protocol import REGIMES
from .store import LIMIT_STATES, NOT_RUN, Cell, Row, Store
from .worker import Job, Outcome, installed_versions, processor_name

_DRAW_EVERY = 0.5  # seconds, at most


def run_grid(
    grid: Grid,
    store: Store,
    jobs: int,
    limits: Limits,
    show: Callable[[Event], None] = lambda event: None,
) -> None:
    """Run every cell that has no row in the store; after an interrupt, run the grid again.

    show: called with the progress, at most every `_DRAW_EVERY` seconds and at the end.
    """
    dispatcher = _Dispatcher(grid, store, jobs, limits)
    shown = 0.0
    try:
        while dispatcher.step():
            if time.monotonic() > shown + _DRAW_EVERY:
                show(dispatcher.event())
                shown = time.monotonic()
        show(dispatcher.event())
    finally:
        dispatcher.stop()


class _Dispatcher:
    """Decides which runs are settled, and which start next. A settled run needs no process."""

    def __init__(self, grid: Grid, store: Store, jobs: int, limits: Limits) -> None:
        self.grid, self.store, self.jobs, self.limits = grid, store, jobs, limits
        self.waiting = grid.runs()
        self.total = len(self.waiting)
        self.sizes = {name: path.stat().st_size for name, path in grid.tables.items()}
        self.processes: list[WatchedProcess] = []
        self.lost: set[Run] = set()
        self.server = Server(grid.methods)
        self.processor, self.versions = f"{processor_name()}, 1 core", installed_versions()
        self._settle()

    def step(self) -> bool:
        """Start runs, wait a little, store the results. → whether any run is left"""
        self.store.refresh()
        while len(self.processes) < self.jobs:
            runs = self._next_runs()
            if not runs:
                break
            try:
                self.processes.append(self._start(runs))
            except (ConnectionError, EOFError):  # the server died; the next start makes another
                self._release(runs)
                self.waiting = runs + self.waiting
                break
        if not self.processes:
            self._settle()
            if self.waiting:  # another command works on all remaining runs
                time.sleep(1.0)
            return bool(self.waiting)
        wait([process.pipe for process in self.processes], timeout=CHECK_EVERY)
        for process in self.processes:
            process.check()
        for process in [p for p in self.processes if p.ended]:
            if process.lost and not self.lost.intersection(process.runs):
                self.lost.update(process.runs)  # try once more; the second time it is an error
                self.waiting = process.runs + self.waiting
            else:
                self.store.add(self._rows(process))
            self.processes.remove(process)
            self._release(process.runs)
        return True

    def stop(self) -> None:
        """Kill the running processes; their runs have no rows and will be run again."""
        for process in self.processes:
            process.kill()
        self.server.release()

    def event(self) -> Event:
        """The progress."""
        running = [f"{p.runs[0].method} on {p.runs[0].table}" for p in self.processes]
        settled = self.total - len(self.waiting) - sum(len(p.runs) for p in self.processes)
        return Event(settled, self.total, running, self._seconds_left())

    # --- Which runs are next -----------------------------------------------------------------

    def _settle(self) -> None:
        """Remove the settled runs from those waiting."""
        self.waiting = [run for run in self.waiting if not self._settle_one(run)]

    def _settle_one(self, run: Run) -> bool:
        """Whether a run has its rows (copied between regimes if equal), or will have none."""
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
        if first.state in LIMIT_STATES:
            return True  # the table counts as missing for this method
        nth = self.grid.seeds.index(run.seed)
        return self._is_slow(first) and nth >= self.grid.slow_seeds

    def _known(self, run: Run) -> Row | None:
        """The row of this run if it follows from the row of the other regime.

        It is the same fit if a method trains on the same rows in both; and a run that exceeds a
        limit on the inliers alone also exceeds it on all rows.
        """
        method = self.grid.methods[run.method]
        for regime in REGIMES:
            row = self.store.rows.get(Cell(run.table, run.method, regime, run.seed))
            if row is None:
                continue
            if method.rows_for(regime) == run.trains_on:
                return row
            if method.rows_for(regime) == "inliers" and row.state in LIMIT_STATES:
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
        """The first run that can start, with those that share its process; they are claimed."""
        for run in self.waiting:
            if not self._may_start(run):
                continue
            together = [run]
            if self._on_gpu(run):
                together = [r for r in self.waiting if r._replace(seed=run.seed) == run]
            claimed = [r for r in together if self.store.claim(_claim_of(r))]
            # Another command may have written the rows between the last refresh and the claim.
            self.store.refresh()
            settled = {r for r in claimed if self._settle_one(r)}
            self._release(settled)
            self.waiting = [r for r in self.waiting if r not in claimed]
            if len(settled) < len(claimed):
                return [r for r in claimed if r not in settled]
        return []

    def _may_start(self, run: Run) -> bool:
        """Whether runs that could disturb it or make it unnecessary are done."""
        # A run that was lost with its server runs alone: it cannot be lost by another one again.
        alone = run in self.lost or any(self.lost.intersection(p.runs) for p in self.processes)
        if alone and self.processes:
            return False
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

    def _start(self, runs: list[Run]) -> WatchedProcess:
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
            self.grid.suite,
        )
        limits = self.limits._replace(seconds=self.limits.seconds * len(runs))
        return self.server.start(runs, job, limits)

    # --- Results ---------------------------------------------------------------------

    def _rows(self, process: WatchedProcess) -> list[Row]:
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
                    suite=self.grid.suite.name,
                )
                if process.state == "ok":
                    row = replace(row, **_measured(outcomes[run.seed]))
                rows.append(row)
        return rows

    def _seconds_left(self) -> float | None:
        """Estimated from runs of the same method: on the same table, else by table size."""
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
        # On other tables the time is assumed to be proportional to the size of the table.
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


def _claim_of(run: Run) -> tuple[str, ...]:
    return run.table, run.method, run.trains_on, str(run.seed)


def _measured(outcome: Outcome) -> dict[str, Any]:
    values = vars(outcome).copy()
    del values["seed"]
    on_gpu = values.pop("on_gpu")
    if on_gpu is not None:
        values["processor"], values["one_core_seconds"] = on_gpu
    return values
