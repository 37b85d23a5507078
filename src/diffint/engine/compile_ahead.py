"""The first fit on a machine: what it needs is compiled in other processes, side by side.

Numba compiles in one thread at a time, and a thread that compiles cannot be stopped. Processes can:
each compiles what it is told into numba's cache on disk, from which this process then loads it.
They end with this process, however it ends. Where they cannot be had, nothing is lost: whatever is
not in the cache is compiled by this process when it is first called.

A kernel is registered by adding it to `kernels_of_a_fit`.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np

from .kernel_cache import flush_tiny_numbers, is_compiled, set_float_mode

_MOST_PROCESSES = 4  # more than that wait for the largest kernel
_START = f"""
import os, sys
sys.path[:] = sys.argv[1].split(os.pathsep)
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it ends it
from {__name__} import FitKind, serve
serve(FitKind(*(word == "True" for word in sys.argv[2:])))
"""
_DONE, _GONE = "done", "gone"
_WAKE_UP_S = 0.2  # lets an interrupt through on every system


class FitKind(NamedTuple):
    """What decides which kernels a fit needs.

    certified: whether the decoder is; by_difference: whether the rows leave the safe range of the
    exponentials; on_cpu: whether the CPU trains, too.
    """

    certified: bool
    by_difference: bool
    on_cpu: bool


class Kernel(NamedTuple):
    """A compiled function and what a fit calls it with.

    arguments: any of the right types; what they hold does not matter. seconds: about how long it
    takes to compile; the longest are begun first.
    """

    name: str
    function: Any
    arguments: tuple[Any, ...]
    seconds: float

    @property
    def types(self) -> tuple[Any, ...]:
        """Numba's types of the arguments."""
        return tuple(numba.typeof(argument) for argument in self.arguments)

    @property
    def is_compiled(self) -> bool:
        """Whether this process has it, or finds it on disk."""
        return is_compiled(self.function, self.types)

    def compile(self) -> None:
        """Compile it in this process, or load it from disk."""
        self.function.compile(self.types)


def kernels_of_a_fit(kind: FitKind) -> list[Kernel]:
    """Everything compiled that a fit of this kind calls, the slowest to compile first.

    A fit that leaves the safe range only sometimes calls more; that is compiled when it is called.
    """
    from .cpu import box_counts, intervals, layout, margins, score_kernel, spectral, steps

    certified, by_difference, on_cpu = kind
    shape = layout.Shape(1, 1, 1, 0.1, certified, by_difference)
    weights = layout.views(np.zeros(layout.flat_size(shape), dtype=np.float32), shape)
    work = layout.workspace(shape, weights, 1)
    row, table = np.zeros(1, dtype=np.float32), np.zeros((1, 1), dtype=np.float32)
    wide_row, wide_table = row.astype(np.float64), table.astype(np.float64)
    counts, count_table = np.zeros(1, dtype=np.int64), np.zeros((1, 1), dtype=np.int64)
    whole_row = np.zeros(1, dtype=np.int32)

    found = [
        Kernel(
            "score_rows",
            score_kernel.score_rows,
            (
                *(0, 1, 0, 0, 1, row, wide_row, counts, row, whole_row, wide_row),
                *(wide_row, wide_table, table, table),
            ),
            5.0,
        ),
        Kernel(
            "unit_exponentials",
            intervals.unit_exponentials,
            (table, table, 0.1, table, table, table),
            0.2,
        ),
        Kernel(
            "count_inside",
            box_counts.count_inside,
            (table, table, table, counts, count_table, count_table),
            0.3,
        ),
    ]
    if on_cpu:
        singular = layout.Spectral(row, row, row, row)
        seconds = {"pass_rows": 5.0, "prepare": 1.2, "update": 1.0, "through_normalisation": 0.8}
        found += [
            Kernel(name, call[0], call[1], seconds.get(name, 1.5))
            for name, call in steps.part_calls(shape, weights, singular, work)._asdict().items()
            if call is not None
        ]
        parts = steps.Parts(*(0 for _ in steps.Parts._fields))
        schedule = layout.Schedule(0.1, 1.0, 1, False, 0.0)
        loop = (
            *(0, 1, parts, table, counts, 0, 1, 1, 0, schedule, shape),
            *(weights, weights, weights, weights, singular, work, wide_table, wide_row, 0.9),
        )
        found += [
            Kernel("flush_tiny_numbers", flush_tiny_numbers, (), 0.1),
            Kernel("set_float_mode", set_float_mode, (0,), 0.1),
            Kernel("step_loop", steps.step_loop, loop, 2.3),
        ]
    if by_difference:
        found += [
            Kernel(
                "bounded_log_boxes",
                intervals.bounded_log_boxes_by_difference,
                (table, table, table, 0.1, 4.0, row, table),
                0.3,
            ),
            Kernel(
                "bound_gradients",
                intervals.bound_gradients_by_difference,
                (table, table, table, table, 0.1, 0, 0, 1, table, table, table),
                0.5,
            ),
        ]
    else:
        found += [
            Kernel("row_exponentials", intervals.row_exponentials, (table, 0.1, table, table), 0.2),
            Kernel(
                "bounded_log_boxes",
                intervals.bounded_log_boxes,
                (table, table, table, table, 4.0, row, table),
                0.3,
            ),
            Kernel(
                "bound_gradients",
                intervals.bound_gradients,
                (table, table, table, table, table, 0.1, 0, 1, table, table, table),
                0.6,
            ),
        ]
    if certified and on_cpu:
        found.append(Kernel("power_iteration", spectral.power_iteration, (table, row, row), 0.3))
    if certified:
        sides, flags = np.zeros((1, 1), dtype=np.int8), np.zeros(1, dtype=np.bool_)
        found.append(
            Kernel(
                "row_margins",
                margins.row_margins,
                (
                    *(table, wide_table, wide_table, wide_table, 0.1, 0.1),
                    *(wide_row, wide_row, sides, flags, wide_table),
                ),
                1.5,
            )
        )
    return sorted(found, key=lambda kernel: -kernel.seconds)


def compile_for_a_fit(
    kind: FitKind,
    processes: int,
    started: Callable[[int], None] = lambda _steps: None,
    done: Callable[[float], None] = lambda _share: None,
) -> None:
    """Have what a fit needs compiled by up to so many processes, and wait for it.

    started: called with the number of kernels when there is something to compile; done: after each
    of them, with its share of the work.
    """
    if kind in _SEEN_TO:
        return
    missing = [kernel for kernel in kernels_of_a_fit(kind) if not kernel.is_compiled]
    if missing and _processes_can_help(missing):
        started(len(missing))
        total = sum(kernel.seconds for kernel in missing)
        crew = _Crew(processes, kind)
        try:
            for kernel in crew.compile(missing):
                done(kernel.seconds / total)
                if not kernel.is_compiled:
                    break  # it did not get into the cache, and the others will not either
        finally:
            crew.dismiss()  # after an interrupt, too
    _SEEN_TO.add(kind)


_SEEN_TO: set[FitKind] = set()  # in this process


def _processes_can_help(kernels: Sequence[Kernel]) -> bool:
    """Whether other processes can be started, and hand over what they compile."""
    # A worker of a pool may not have children, and its siblings keep the cores busy anyway.
    if multiprocessing.parent_process() is not None or multiprocessing.current_process().daemon:
        return False
    # An application that Python is part of; to start it again would not start Python.
    if getattr(sys, "frozen", False) or not sys.executable:
        return False
    if not Path(sys.executable).stem.lower().startswith(("python", "pypy")):
        return False
    return all(kernel.function.stats.cache_path is not None for kernel in kernels)


class _Crew:
    """Processes that compile."""

    def __init__(self, size: int, kind: FitKind) -> None:
        self._said: queue.Queue[tuple[subprocess.Popen[str], str]] = queue.Queue()
        self._size = min(max(size, 1), _MOST_PROCESSES)
        paths = os.pathsep.join(path for path in sys.path if path)
        self._command = [sys.executable, "-c", _START, paths, *(str(word) for word in kind)]
        self._processes: list[subprocess.Popen[str]] = []
        self._listeners: list[threading.Thread] = []

    def compile(self, kernels: Sequence[Kernel]) -> Iterator[Kernel]:
        """Yield each kernel that is compiled; ends early where no process is left to do it."""
        waiting = list(kernels)
        at_work: dict[subprocess.Popen[str], Kernel | None] = {}
        for _ in range(min(self._size, len(waiting))):
            process = self._start()
            if process is None:
                break
            at_work[process] = None
            self._tell(process, at_work, waiting)
        while at_work:
            try:
                process, said = self._said.get(timeout=_WAKE_UP_S)
            except queue.Empty:
                continue
            if said == _GONE:  # what it was to do is left to the caller
                at_work.pop(process, None)
            elif said == _DONE:
                kernel = at_work[process]
                self._tell(process, at_work, waiting)
                if kernel is not None:
                    yield kernel

    def dismiss(self) -> None:
        """End all of them at once."""
        for process in self._processes:
            process.kill()
        for process, listener in zip(self._processes, self._listeners, strict=True):
            process.wait()
            listener.join()  # ends with its process
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):  # something for it to read was still in there
                    if pipe is not None:
                        pipe.close()

    def _start(self) -> subprocess.Popen[str] | None:
        try:
            process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )
        except OSError:
            return None
        listener = threading.Thread(target=self._listen, args=(process,), daemon=True)
        listener.start()
        self._processes.append(process)
        self._listeners.append(listener)
        return process

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self._said.put((process, line.strip()))
        self._said.put((process, _GONE))

    def _tell(
        self,
        process: subprocess.Popen[str],
        at_work: dict[subprocess.Popen[str], Kernel | None],
        waiting: list[Kernel],
    ) -> None:
        """Give it the next kernel, or none more."""
        if not waiting:
            del at_work[process]
            return
        kernel = at_work[process] = waiting.pop(0)
        assert process.stdin is not None
        with contextlib.suppress(OSError):  # it is gone, which `_listen` says
            process.stdin.write(f"{kernel.name}\n")
            process.stdin.flush()


def serve(kind: FitKind) -> None:
    """What such a process does: compile the kernels named on its input, until that ends."""
    names: queue.Queue[str] = queue.Queue()

    def listen() -> None:
        for line in sys.stdin:
            names.put(line.strip())
        os._exit(0)  # in the middle of compiling, too: the process that wanted it is gone

    threading.Thread(target=listen, daemon=True).start()
    kernels = {k.name: k for k in kernels_of_a_fit(kind)}
    while True:
        kernels[names.get()].compile()
        print(_DONE, flush=True)
