"""Estimate the one-core training time of benchmark results that were fitted on a GPU.

    python benchmarks/one_core.py docs/results/bench/rows.csv --data adbench

Estimates the processor time from a few epochs on this machine and writes it to the column
`one_core_seconds` of these results, so that all times are for the same kind of core.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import replace
from pathlib import Path

from diffint.bench.baselines import METHODS
from diffint.bench.protocol import make_trial
from diffint.bench.store import read_rows, write_rows
from diffint.bench.suites import ADBENCH
from diffint.bench.worker import estimated_one_core_seconds
from diffint.tables.datasets import read_adbench


def estimate(path: Path, method: str) -> float:
    """Estimated seconds of one fit of `method` on the inliers of the first seed."""
    table = read_adbench(path)
    detector = METHODS[method].make(0, len(table.x))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimated_one_core_seconds(detector, make_trial(table, 0, "inliers").train)


def main() -> None:
    """Estimate every table and method with GPU results, and write the results back."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("rows", type=Path, help="results of `diffint bench run`; changed in place")
    parser.add_argument("--data", type=Path, required=True, help="folder of ADBench tables")
    options = parser.parse_args()
    rows = read_rows(options.rows)
    files, _ = ADBENCH.find(options.data)
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
