"""How far a command with many runs is."""

from __future__ import annotations

from typing import NamedTuple


class Event(NamedTuple):
    """Progress: numbers of settled and of all runs, what is running, estimated seconds left."""

    settled: int
    total: int
    running: list[str]
    seconds_left: float | None
