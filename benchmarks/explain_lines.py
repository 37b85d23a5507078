"""Results of `explain_quality.py`, one number a line, and how they are stored."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple


class Line(NamedTuple):
    """One number of one run; kind and method are empty where they do not apply."""

    section: str
    table: str
    seed: int
    kind: str
    method: str
    figure: str
    value: float


class Lines(list[Line]):
    """Lines with means over seeds."""

    def of(self, **where: str) -> Lines:
        """The lines with these fields."""
        return Lines(x for x in self if all(getattr(x, k) == v for k, v in where.items()))

    def names(self, field: str) -> list[str]:
        """The different values of a field, in the order of the lines."""
        return list(dict.fromkeys(getattr(line, field) for line in self))

    def by_table(self, **where: str) -> dict[str, float]:
        """The mean over seeds (and whatever else is not in `where`) for each table."""
        values = defaultdict(list)
        for line in self.of(**where):
            values[line.table].append(line.value)
        return {table: sum(some) / len(some) for table, some in values.items()}

    def sorted(self) -> Lines:
        """The lines by section, table and seed."""
        return Lines(sorted(self, key=lambda x: (x.section, _number(x.table), x.seed)))

    def sum(self, **where: str) -> float:
        """The sum of the values of these lines."""
        return sum(line.value for line in self.of(**where))


class LineFile:
    """A CSV file to which lines are added as they come."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        with path.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerow(Line._fields)

    def add(self, lines: Iterable[Line]) -> None:
        """Write the lines at the end of the file."""
        with self._path.open("a", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerows(line._replace(value=f"{line.value:.6g}") for line in lines)  # type: ignore[arg-type]


def read_lines(paths: Iterable[Path]) -> Lines:
    """The lines of files; a number that is in several files is that of the last one."""
    found: dict[tuple[object, ...], Line] = {}
    for path in paths:
        with path.open(newline="") as file:
            for section, table, seed, kind, method, figure, value in list(csv.reader(file))[1:]:
                line = Line(section, table, int(seed), kind, method, figure, float(value))
                found[line[:-1]] = line
    return Lines(found.values())


def _number(table: str) -> tuple[int, str]:
    """ADBench tables by their number."""
    start = table.partition("_")[0]
    return (int(start) if start.isdigit() else 0), table
