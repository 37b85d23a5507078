"""The grid of runs: every table, method, regime and seed, and the limits of a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from .baselines import Method
from .protocol import Regime, TrainsOn
from .store import Cell, Row
from .suites import ADBENCH, Suite


class Limits(NamedTuple):
    """Limits of one process: seconds for the fit, the same for the scoring, and resident gigabytes.

    A process that trains several seeds at once gets the seconds of all of them.
    """

    seconds: float = 120.0
    gigabytes: float = 8.0


def limit_was_raised(row: Row, limits: Limits) -> bool:
    """Whether a run exceeded a time or memory limit that is now higher."""
    if row.state == "timeout":
        return (row.time_limit or 0.0) / row.seeds_together < limits.seconds
    return row.state == "out of memory" and (row.memory_limit_gb or 0.0) < limits.gigabytes


@dataclass(frozen=True)
class Grid:
    """All runs of a benchmark.

    tables: files by name. methods: by name, with plugins. slow_after, slow_seeds: if the first seed
    of a method takes longer than `slow_after` seconds on a table, only `slow_seeds` seeds are run
    there. device: "cpu", or "cuda" for the methods that can use it. suite: how the tables are read
    and split.
    """

    tables: dict[str, Path]
    methods: dict[str, Method]
    regimes: tuple[Regime, ...]
    seeds: tuple[int, ...]
    slow_after: float | None = None
    slow_seeds: int = 3
    device: str = "cpu"
    suite: Suite[Any] = ADBENCH

    def runs(self) -> list[Run]:
        """Every run, table by table, seed by seed; runs that are equal in both regimes are one."""
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
    """One fit, for one cell of the grid or for the same cell of both regimes."""

    table: str
    method: str
    trains_on: TrainsOn
    regimes: tuple[Regime, ...]
    seed: int

    @property
    def cells(self) -> list[Cell]:
        """The cells that this run gives rows for."""
        return [Cell(self.table, self.method, regime, self.seed) for regime in self.regimes]
