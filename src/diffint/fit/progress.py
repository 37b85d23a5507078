"""Progress of a fit: bars on a terminal, else a line at the start and at the end."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ..core.formatting import counted
from ..engine.interface import Progress

_TRAINING = "training"
_COMPILING = "compiling, once on this machine"


@contextmanager
def announced_fit(n_rows: int, n_features: int, verbose: int) -> Iterator[None]:
    """Print a line before and after a fit if there is no terminal for the bars."""
    shown = bool(verbose) and sys.stderr is not None and not sys.stderr.isatty()
    started = time.perf_counter()
    if shown:
        _print(f"fitting {counted(n_rows, 'row')} of {counted(n_features, 'feature')}")
    yield
    if shown:
        _print(f"fitted in {time.perf_counter() - started:.1f} s")


def _print(line: str) -> None:
    print(f"diffint: {line}", file=sys.stderr, flush=True)


class CompilingProgress(NamedTuple):
    """started: call with the number of steps; done: call after each step with its share of all."""

    started: Callable[[int], None]
    done: Callable[[float], None]


@contextmanager
def compiling_progress(verbose: int) -> Iterator[CompilingProgress]:
    """Callbacks that show progress: a bar on a terminal, else a line at start and end."""
    if not verbose or sys.stderr is None:
        yield CompilingProgress(lambda _steps: None, lambda _share: None)
        return
    if not sys.stderr.isatty():
        start_times: list[float] = []

        def print_start(_steps: int) -> None:
            start_times.append(time.perf_counter())
            _print(f"{_COMPILING} …")

        yield CompilingProgress(print_start, lambda _share: None)
        if start_times:
            _print(f"compiled in {time.perf_counter() - start_times[0]:.0f} s")
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("step {task.fields[step]}/{task.fields[steps]}"),
        TimeRemainingColumn(),
    )
    bar = Bar(*columns, console=Console(stderr=True), transient=True)
    count = 0

    def start(steps: int) -> None:
        bar.start()
        bar.add_task(_COMPILING, total=1.0, step=0, steps=steps)

    def advance(share: float) -> None:
        nonlocal count
        count += 1
        bar.update(bar.task_ids[0], advance=share, step=count)

    try:
        yield CompilingProgress(start, advance)
    finally:
        bar.stop()


@contextmanager
def training_progress(epochs: int, n_members: int, verbose: int) -> Iterator[Progress | None]:
    """A callback that shows epoch, loss and time left; None if nothing is to be shown."""
    if not verbose or sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("epoch {task.fields[epoch]}/{task.fields[epochs]}"),
        TextColumn("loss {task.fields[loss]}"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(_TRAINING, total=epochs * n_members, epoch=0, epochs=epochs, loss="–")
        done, lock = 0, threading.Lock()

        def advance(_member: int, loss: float) -> None:
            nonlocal done
            with lock:
                done += 1
                bar.update(
                    task,
                    advance=1,
                    epoch=done // n_members,
                    loss=f"{loss:.4f}",
                )

        yield advance
