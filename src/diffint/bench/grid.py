"""What is to be run: every table, method, regime and seed, and within which limits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from .baselines import Method
from .protocol import Regime, TrainsOn
from .store import Cell, Row


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
