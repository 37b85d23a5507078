"""Measure the memory and speed of ``diffint score`` on a file of ten million rows.

    python benchmarks/command_scale.py [--rows 10000000] [-o docs/results/command_scale.md]

Writes a Parquet file of rows × 10 features batch by batch, fits a model on similar rows, and scores
the file with the command (to Parquet, with reasons for the flagged rows). Compares its rows per
second, including reading and writing, with those of `anomaly_score` on rows in memory. Resident
memory is that of the command's process.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas
import psutil
import pyarrow
import pyarrow.parquet

from diffint import DiffInt

FEATURES = 10
BATCH = 500_000
IN_MEMORY = 1_000_000
NAMES = [f"f{j}" for j in range(FEATURES)]


def rows(n_rows: int, seed: int) -> np.ndarray:
    """Random rows with correlated features. → (n_rows, FEATURES)"""
    mixing = np.random.default_rng(0).normal(size=(FEATURES, FEATURES))
    return np.random.default_rng(seed).normal(size=(n_rows, FEATURES)) @ mixing


def write_table(path: Path, n_rows: int) -> None:
    schema = pyarrow.schema([(name, pyarrow.float64()) for name in NAMES])
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        for seed, start in enumerate(range(0, n_rows, BATCH), 1):
            part = rows(min(BATCH, n_rows - start), seed)
            writer.write_table(pyarrow.table(dict(zip(NAMES, part.T, strict=True))))


def run_and_measure(command: list[str]) -> tuple[float, float]:
    """Seconds and peak resident MiB of a command."""
    started, peak = time.perf_counter(), 0
    process = psutil.Popen(command)
    while process.poll() is None:
        try:
            peak = max(peak, process.memory_info().rss)
        except psutil.NoSuchProcess:
            break
        time.sleep(0.02)
    if process.wait():
        raise SystemExit("the command failed")
    return time.perf_counter() - started, peak / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table, model, out = (Path(folder) / n for n in ("t.parquet", "m.diffint", "o.parquet"))
        write_table(table, options.rows)
        detector = DiffInt(random_state=0).fit(pandas.DataFrame(rows(20_000, 0), columns=NAMES))
        detector.save(model)
        frame = pandas.DataFrame(rows(IN_MEMORY, 1), columns=NAMES)
        detector.anomaly_score(frame)
        started = time.perf_counter()
        detector.anomaly_score(frame)
        in_memory = IN_MEMORY / (time.perf_counter() - started)
        command = [sys.executable, "-m", "diffint", "score", str(model), str(table), "-o", str(out)]
        seconds, peak = run_and_measure(command)
        flagged = pyarrow.parquet.read_table(out, columns=["flagged"])["flagged"].to_numpy()
        assert len(flagged) == options.rows
    rate = options.rows / seconds
    text = (
        "# The command on a large file\n\n"
        f"Created by `python benchmarks/command_scale.py`: {options.rows:,} × {FEATURES} Parquet "
        f"rows, of which {flagged.mean():.1%} are flagged and explained.\n\n"
        "| | |\n|---|---|\n"
        f"| rows per second in memory (`anomaly_score`) | {in_memory:,.0f} |\n"
        f"| rows per second of the command, including start, reading, writing | {rate:,.0f} |\n"
        f"| ratio | {in_memory / rate:.2f} |\n"
        f"| peak resident memory | {peak:,.0f} MiB |\n"
        f"| seconds | {seconds:.1f} |\n"
    )
    print(text)
    if options.output:
        options.output.write_text(text)


if __name__ == "__main__":
    main()
