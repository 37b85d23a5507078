"""How much the scores of one seed differ between processors, beside those of other seeds.

    python benchmarks/same_seed.py --data FOLDER [--table 20_letter]
        [--out docs/results/same_seed.md]

FOLDER contains the ADBench tables (NN_name.npz). The recommended configuration is fitted on the
training inliers of the first split: with the benchmark's seed, 0, as compiled for this processor
and as compiled for an older one (in a process of its own, with an empty cache of compiled code),
and with other seeds of the detector. The first line is the committed row of the benchmark.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from diffint import DiffInt
from diffint.bench.protocol import make_trial
from diffint.bench.store import read_rows
from diffint.bench.worker import processor_name
from diffint.tables.datasets import adbench_files, read_adbench
from result_lines import emit

ROWS = Path(__file__).parents[1] / "docs" / "results" / "bench" / "rows.csv"
OLDER = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx2,+fma"}
OTHER_SEEDS = (1, 2, 3)


def accuracy(path: Path, seed: int) -> tuple[float, float]:
    """ROC-AUC and average precision on the first split, with this seed of the detector."""
    train, test, labels = make_trial(read_adbench(path), 0, "inliers")
    scores = DiffInt(random_state=seed, n_jobs=1, device="cpu").fit(train).anomaly_score(test)
    return roc_auc_score(labels, scores), average_precision_score(labels, scores)


def accuracy_if_older(path: Path) -> tuple[float, float]:
    """The same with seed 0, as compiled for an older processor."""
    command = [sys.executable, __file__, "--data", str(path.parent), "--only", path.stem]
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, **OLDER, "NUMBA_CACHE_DIR": cache}
        text = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    first, second = map(float, text.stdout.split())
    return first, second


def main() -> None:
    """Fit, print the table and write it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of ADBench tables")
    parser.add_argument("--table", default="20_letter")
    parser.add_argument("--only", metavar="TABLE", help="print two numbers, for seed 0")
    parser.add_argument("--out", type=Path, help="Markdown file to write")
    options = parser.parse_args()
    path = adbench_files(options.data)[options.only or options.table]
    if options.only:
        print(*accuracy(path, 0))
        return

    labels = make_trial(read_adbench(path), 0, "inliers")[2]
    here, lines = processor_name(), list[str]()
    emit(
        lines,
        "# The same seed on two processors",
        "",
        "Created by `python benchmarks/same_seed.py --data FOLDER --out docs/results/same_seed.md`,"
        f" which describes what is measured: {path.stem}, first split, fair regime; "
        f"{int(labels.sum())} anomalies among {len(labels)} test rows.",
        "",
        "| fit | ROC-AUC | average precision |",
        "|---|---|---|",
    )

    def line(name: str, figures: Iterable[float | None]) -> None:
        emit(lines, f"| {name} | {' | '.join(f'{figure:.4f}' for figure in figures)} |")

    for row in read_rows(ROWS):
        if (row.table, row.method, row.regime, row.seed) == (path.stem, "DiffInt", "fair", 0):
            line(f"committed row, {row.processor}", (row.roc_auc, row.average_precision))
    line(f"seed 0, {here}", accuracy(path, 0))
    line("seed 0, the same processor, compiled for an older one", accuracy_if_older(path))
    others = np.array([accuracy(path, seed) for seed in OTHER_SEEDS])
    for seed, figures in zip(OTHER_SEEDS, others, strict=True):
        line(f"seed {seed}, the same processor", figures)
    if options.out:
        options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
