"""What rows that were fitted on a GPU would take on one core of this machine.

    python benchmarks/one_core.py docs/results/bench/rows.csv --data adbench

Estimates from a few epochs, in processor time, and writes it into the column `one_core_seconds` of
those rows: where they come from a machine with other cores than the rest, one core's times are then
those of one kind of core.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import replace
from pathlib import Path

from diffint.bench.baselines import METHODS
from diffint.bench.protocol import find_tables, make_trial
from diffint.bench.store import read_rows, write_rows
from diffint.bench.worker import estimated_one_core_seconds
from diffint.tables.datasets import read_adbench


def estimate(path: Path, method: str) -> float:
    """Seconds that one fit of `method` on the first seed's inliers would take."""
    table = read_adbench(path)
    detector = METHODS[method].make(0, len(table.x))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimated_one_core_seconds(detector, make_trial(table, 0, "inliers").train)


def main() -> None:
    """Estimate every table and method that the rows have from a GPU; write the rows back."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("rows", type=Path, help="rows of `diffint bench run`; changed in place")
    parser.add_argument("--data", type=Path, required=True, help="folder of ADBench tables")
    options = parser.parse_args()
    rows = read_rows(options.rows)
    files, _ = find_tables(options.data)
    seconds: dict[tuple[str, str], float] = {}
    for table, path in files.items():
        for method in sorted({r.method for r in rows if r.table == table and r.one_core_seconds}):
            seconds[table, method] = estimate(path, method)
            print(f"{table:20s} {method:14s} {seconds[table, method]:9.1f} s", flush=True)
    known = [
        replace(row, one_core_seconds=seconds[row.table, row.method])
        if row.one_core_seconds and (row.table, row.method) in seconds
        else row
        for row in rows
    ]
    write_rows(options.rows, known)


if __name__ == "__main__":
    main()
