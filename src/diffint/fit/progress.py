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
_WAITING = "another process is compiling; waiting for it"


@contextmanager
def announced_fit(
    n_rows: int, n_features: int, verbose: int, refresh: bool = False
) -> Iterator[None]:
    """Print a line before and after a fit or a refresh if there is no terminal for the bars."""
    shown = bool(verbose) and sys.stderr is not None and not sys.stderr.isatty()
    started = time.perf_counter()
    if shown:
        what = "refreshing with" if refresh else "fitting"
        _print(f"{what} {counted(n_rows, 'row')} of {counted(n_features, 'feature')}")
    yield
    if shown:
        _print(f"{'refreshed' if refresh else 'fitted'} in {time.perf_counter() - started:.1f} s")


def _print(line: str) -> None:
    print(f"diffint: {line}", file=sys.stderr, flush=True)


class CompilingProgress(NamedTuple):
    """What to call while compiling.

    started: with the number of steps; done: after each step with its share of all; waiting: if
    another process compiles, possibly before `started`.
    """

    started: Callable[[int], None]
    done: Callable[[float], None]
    waiting: Callable[[], None]


@contextmanager
def compiling_progress(verbose: int) -> Iterator[CompilingProgress]:
    """Callbacks that show progress: a bar on a terminal, else a line at start and end."""
    if not verbose or sys.stderr is None:
        yield CompilingProgress(lambda _steps: None, lambda _share: None, lambda: None)
        return
    if not sys.stderr.isatty():
        start_times: list[float] = []

        def print_start(text: str) -> None:
            start_times.append(time.perf_counter())
            _print(f"{text} …")

        yield CompilingProgress(
            lambda _steps: print_start(_COMPILING),
            lambda _share: None,
            lambda: print_start(_WAITING),
        )
        if start_times:
            _print(f"ready after {time.perf_counter() - start_times[0]:.0f} s")
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[step]}"),
        TimeRemainingColumn(),
    )
    bar = Bar(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task("", step="", visible=False)
    count, n_steps = 0, 0

    def wait() -> None:
        bar.update(task, description=_WAITING, total=None, visible=True)
        bar.start()

    def start(steps: int) -> None:
        nonlocal n_steps
        n_steps = steps
        bar.reset(task, description=_COMPILING, total=1.0, step=f"step 0/{steps}", visible=True)
        bar.start()

    def advance(share: float) -> None:
        nonlocal count
        count += 1
        bar.update(task, advance=share, step=f"step {count}/{n_steps}")

    try:
        yield CompilingProgress(start, advance, wait)
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
