"""Compile the kernels of the first fit on a machine ahead of time, in parallel processes.

Numba compiles one function at a time in a process, and compilation cannot be interrupted. So
several processes compile into the cache on disk, and this process loads the code from there.
They end when this process ends, for whatever reason. Where they cannot be started, this process
compiles each kernel when it is first called. Of several processes that need the same code, one
compiles and the others wait.

To register a kernel, add it to `kernels_of_a_fit`.
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

from .code_folder import code_folder
from .compile_lock import compiling_alone
from .kernel_cache import compile_now, flush_tiny_numbers, is_compiled, set_float_mode

_MOST_PROCESSES = 4  # more would be idle while the slowest kernel compiles
_START = f"""
import os, sys
sys.path[:] = sys.argv[1].split(os.pathsep)
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process ends this one
from {__name__} import FitKind, serve
serve(FitKind(*(word == "True" for word in sys.argv[2:])))
"""
_DONE, _EXITED = "done", "exited"
_POLL_S = 0.2  # on some systems an interrupt is handled only after a wait has ended


class FitKind(NamedTuple):
    """The properties of a fit that decide which kernels it needs.

    certified, normalised: of the decoder; by_difference: whether scaled values are too large for
    the exponentials (`intervals.SAFE_EXPONENT`); on_cpu: whether the CPU trains.
    """

    certified: bool
    normalised: bool
    by_difference: bool
    on_cpu: bool


class Kernel(NamedTuple):
    """A compiled function and example arguments.

    arguments: of the types that a fit passes; their values do not matter. seconds: approximate time
    to compile; the slowest kernels are compiled first.
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
        """Whether its code is in this process or on disk."""
        return is_compiled(self.function, self.types)

    def compile(self) -> None:
        """Compile it in this process, or load it from disk."""
        compile_now(self.function, self.types)


def kernels_of_a_fit(kind: FitKind) -> list[Kernel]:
    """The compiled functions that a fit of this kind calls, the slowest to compile first.

    A fit of which only some rows exceed the safe range may call others as well; those are compiled
    when they are called.
    """
    from .cpu import box_counts, intervals, layout, margins, score_kernel, spectral, steps

    certified, normalised, by_difference, on_cpu = kind
    shape = layout.Shape(1, 1, 1, 0.1, not certified, normalised, by_difference)
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
    if normalised and on_cpu:
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
    waiting: Callable[[], None] = lambda: None,
) -> None:
    """Compile the kernels of a fit in up to `processes` processes, and wait for them.

    started: called with the number of kernels, if any must be compiled; done: called after each
    kernel with its share of the work; waiting: called if another process is compiling.
    """
    if kind in _PREPARED_KINDS:
        return
    kernels = kernels_of_a_fit(kind)

    def all_compiled() -> bool:
        return all(kernel.is_compiled for kernel in kernels)

    if not all_compiled() and _processes_can_help():
        with compiling_alone(code_folder(), all_compiled, waiting):
            missing = [kernel for kernel in kernels if not kernel.is_compiled]
            if missing:
                started(len(missing))
                _compile_in_processes(missing, kind, processes, done)
    _PREPARED_KINDS.add(kind)


def _compile_in_processes(
    kernels: Sequence[Kernel], kind: FitKind, processes: int, done: Callable[[float], None]
) -> None:
    total = sum(kernel.seconds for kernel in kernels)
    pool = _CompilerPool(processes, kind)
    try:
        for kernel in pool.compile(kernels):
            done(kernel.seconds / total)
            if not kernel.is_compiled:
                break  # writing to the cache fails: it would fail for the others too
    finally:
        pool.close()


_PREPARED_KINDS: set[FitKind] = set()  # in this process


def _processes_can_help() -> bool:
    """Whether other processes can be started and pass their code on through the cache."""
    # A worker of a process pool may not start processes, and the other workers use the cores.
    if multiprocessing.parent_process() is not None or multiprocessing.current_process().daemon:
        return False
    # Python embedded in an application: sys.executable does not start Python.
    if getattr(sys, "frozen", False) or not sys.executable:
        return False
    if not Path(sys.executable).stem.lower().startswith(("python", "pypy")):
        return False
    return code_folder().is_writable


class _CompilerPool:
    """Processes that compile kernels; each gets one kernel at a time."""

    def __init__(self, size: int, kind: FitKind) -> None:
        self._messages: queue.Queue[tuple[subprocess.Popen[str], str]] = queue.Queue()
        self._size = min(max(size, 1), _MOST_PROCESSES)
        paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
        self._command = [sys.executable, "-c", _START, paths, *(str(word) for word in kind)]
        self._processes: list[subprocess.Popen[str]] = []

    def compile(self, kernels: Sequence[Kernel]) -> Iterator[Kernel]:
        """Yield each kernel once it is compiled; stops early if all processes have ended."""
        waiting = list(kernels)
        assigned: dict[subprocess.Popen[str], Kernel | None] = {}
        for _ in range(min(self._size, len(waiting))):
            process = self._start()
            if process is None:
                break
            assigned[process] = None
            self._send_next(process, assigned, waiting)
        while assigned:
            try:
                process, message = self._messages.get(timeout=_POLL_S)
            except queue.Empty:
                continue
            if message == _EXITED:  # its kernel is left to this process
                assigned.pop(process, None)
            elif message == _DONE:
                kernel = assigned[process]
                self._send_next(process, assigned, waiting)
                if kernel is not None:
                    yield kernel

    def close(self) -> None:
        """Kill all processes."""
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):  # the process had not read all of its input
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
        self._processes.append(process)  # at once, so that an interrupt finds it here
        threading.Thread(target=self._read_messages, args=(process,), daemon=True).start()
        return process

    def _read_messages(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with contextlib.suppress(ValueError):  # `close` has closed it
            for line in process.stdout:
                self._messages.put((process, line.strip()))
        self._messages.put((process, _EXITED))

    def _send_next(
        self,
        process: subprocess.Popen[str],
        assigned: dict[subprocess.Popen[str], Kernel | None],
        waiting: list[Kernel],
    ) -> None:
        """Send the next kernel to a process; if there is none, the process is no longer needed."""
        if not waiting:
            del assigned[process]
            return
        kernel = assigned[process] = waiting.pop(0)
        assert process.stdin is not None
        with contextlib.suppress(OSError):  # the process has ended; `_read_messages` reports it
            process.stdin.write(f"{kernel.name}\n")
            process.stdin.flush()


def serve(kind: FitKind) -> None:
    """Main loop of a compiler process: compile kernels named on standard input, until it ends."""
    names: queue.Queue[str] = queue.Queue()

    def read_names() -> None:
        for line in sys.stdin:
            names.put(line.strip())
        os._exit(0)  # also while compiling: the parent process has ended

    threading.Thread(target=read_names, daemon=True).start()
    kernels = {k.name: k for k in kernels_of_a_fit(kind)}
    while True:
        kernels[names.get()].compile()
        print(_DONE, flush=True)
