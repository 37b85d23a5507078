"""A selection of tables, from a CSV file that lists the tables of each suite and their halves.

Tables are chosen and settings tuned on one half, and results reported on the other.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import InputError

_COLUMNS = ("suite", "table", "half")


@dataclass(frozen=True)
class Selection:
    """The selected tables: (suite, table) pairs, and where they come from, for messages."""

    tables: tuple[tuple[str, str], ...]
    source: str

    def of(self, suite: str) -> list[str]:
        """The tables of a suite; raises an error if there are none."""
        found = [table for of_suite, table in self.tables if of_suite == suite]
        if not found:
            raise InputError(f"{self.source} lists no tables of the suite {suite}")
        return found


def read_selection(path: str | Path, half: str | None = None) -> Selection:
    """The tables that a file lists, or those of one half; its columns are suite, table, half."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            columns, rows = reader.fieldnames or (), list(reader)
    except (OSError, UnicodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"the selection {str(path)!r} cannot be read: {reason}") from None
    missing = [name for name in _COLUMNS if name not in columns]
    if missing:
        raise InputError(
            f"the selection {str(path)!r} has no column {', '.join(map(repr, missing))}; its "
            f"first line must be {','.join(_COLUMNS)}"
        )
    halves = sorted({row["half"] for row in rows if row["half"]})
    if half is not None and half not in halves:
        raise InputError(
            f"--half {half!r} is not in {str(path)!r}, which has {', '.join(halves) or 'none'}"
        )
    chosen = [(row["suite"], row["table"]) for row in rows if half in (None, row["half"])]
    source = str(path) if half is None else f"the half {half} of {path}"
    return Selection(tuple(dict.fromkeys(chosen)), source)
