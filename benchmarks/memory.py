"""Measure the peak memory of fitting and scoring large tables.

    python benchmarks/memory.py

Fits 500,000 × 10 rows (three epochs) and scores 5,000,000 × 10 rows from a memory-mapped array,
each in a separate process, and prints the peak resident memory: of the whole process for fitting,
without the output for scoring (mapped pages of the input count as resident).
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

FIT_ROWS, SCORE_ROWS, FEATURES = 500_000, 5_000_000, 10


def peak_mib() -> float:
    """Peak resident memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def make_table(path: Path, n_rows: int) -> None:
    """Write a table of correlated rows block by block, as a memory-mapped array."""
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(FEATURES, FEATURES))
    table = np.lib.format.open_memmap(path, "w+", np.float64, (n_rows, FEATURES))
    for start in range(0, n_rows, 100_000):
        stop = min(start + 100_000, n_rows)
        table[start:stop] = rng.normal(size=(stop - start, FEATURES)) @ mixing
    table.flush()


def measure(what: str, folder: Path) -> None:
    """One measurement, in this process."""
    from diffint import DiffInt

    model = folder / "model.diffint"
    started = time.perf_counter()
    if what == "fit":
        x = np.load(folder / "fit.npy")
        DiffInt(epochs=3, random_state=0).fit(x).save(model)
        print(f"fit {len(x):,} × {FEATURES}: peak {peak_mib():,.0f} MiB (limit 1,536)", end="")
    else:
        x = np.load(folder / "score.npy", mmap_mode="r")
        detector = DiffInt.load(model)
        before = peak_mib()
        scores = detector.anomaly_score(x)
        beyond = peak_mib() - scores.nbytes / 2**20
        print(
            f"score {len(x):,} × {FEATURES}: peak {beyond:,.0f} MiB without the output, "
            f"{before:,.0f} MiB of it before the first row (limit 1,024)",
            end="",
        )
    print(f", {time.perf_counter() - started:.1f} s", flush=True)


def main() -> None:
    """Write the tables and measure in new processes."""
    if len(sys.argv) == 3:
        measure(sys.argv[1], Path(sys.argv[2]))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_table(folder / "fit.npy", FIT_ROWS)
        make_table(folder / "score.npy", SCORE_ROWS)
        for what in ("fit", "score"):
            subprocess.run([sys.executable, __file__, what, name], check=True)


if __name__ == "__main__":
    main()
