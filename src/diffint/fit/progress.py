"""A bar for long work, quiet where there is no terminal."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ..engine.interface import Progress

_TRAINING = "training"


@contextmanager
def training_progress(
    epochs: int, n_members: int, verbose: int, device: str
) -> Iterator[Progress | None]:
    """A callback that draws epoch, loss and time left; None when nothing should be drawn."""
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
        task = bar.add_task(
            _first_work(device), total=epochs * n_members, epoch=0, epochs=epochs, loss="–"
        )
        done, lock = 0, threading.Lock()

        def advance(_member: int, loss: float) -> None:
            nonlocal done
            with lock:
                done += 1
                bar.update(
                    task,
                    description=_TRAINING,
                    advance=1,
                    epoch=done // n_members,
                    loss=f"{loss:.4f}",
                )

        yield advance


def _first_work(device: str) -> str:
    """What happens before the first epoch ends."""
    if device != "cpu":
        return _TRAINING
    from ..engine.cpu import steps
    from ..engine.kernel_cache import is_at_hand

    return _TRAINING if is_at_hand(steps.step_loop) else "compiling, once on this machine"
