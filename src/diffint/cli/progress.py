"""Progress of commands with many runs."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..core.formatting import printable
from .output import say

if TYPE_CHECKING:
    from ..bench.progress import Event


@contextmanager
def progress_bar(
    what: str = "runs", line_every: float = math.inf
) -> Iterator[Callable[[Event], None]]:
    """A function that shows the progress: a bar with the time left, or lines without a terminal.

    what: is counted; line_every: seconds between lines, of which the first comes at once.
    """
    if sys.stderr is None:
        yield lambda event: None
        return
    if not sys.stderr.isatty():
        next_line = 0.0

        def tell(event: Event) -> None:
            nonlocal next_line
            if time.monotonic() >= next_line:
                next_line = time.monotonic() + line_every
                done = f"{event.settled:,} of {event.total:,} {what} are done"
                say(f"diffint: {done}{_left(event)} …", err=True)

        yield tell
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn
    from rich.table import Column

    columns = (
        BarColumn(bar_width=24),
        TextColumn("{task.description}"),
        TextColumn(
            "{task.fields[running]}",
            style="dim",
            markup=False,
            table_column=Column(no_wrap=True, ratio=1),
        ),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, expand=True) as bar:
        task = bar.add_task("starting", total=None, running="")

        def draw(event: Event) -> None:
            shown = ", ".join(map(printable, event.running[:2])) + (
                " …" if len(event.running) > 2 else ""
            )
            bar.update(
                task,
                completed=event.settled,
                total=event.total,
                description=f"{event.settled:,} of {event.total:,} {what}{_left(event)}",
                running=f"· {shown}" if shown else "",
            )

        yield draw


def _left(event: Event) -> str:
    if event.seconds_left is None:
        return ""
    minutes, seconds = divmod(int(event.seconds_left), 60)
    hours, minutes = divmod(minutes, 60)
    clock = f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
    return f", about {clock} left"
