"""Compare training lengths of the recommended configuration.

    python benchmarks/training_length.py --data FOLDER [--seeds 2] [--tables NAME ...]

Mean AUROC and average precision on the test part, and seconds per fit, for 100 epochs with the
paper's batch sizes, and for the number of epochs that gives about 500, 1,000 or 2,000 steps (at
most 100 epochs) with batches of 64 rows, or 256 for tables of over 10,000 rows.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from diffint import DiffInt
from diffint.bench.protocol import make_trial
from diffint.core.config import RECOMMENDED
from diffint.tables.datasets import adbench_files, read_adbench

TABLES = [
    *("4_breastw", "6_cardio", "7_Cardiotocography", "12_fault", "14_glass", "18_Ionosphere"),
    *("19_landsat", "20_letter", "22_magic.gamma", "26_optdigits", "28_pendigits", "29_Pima"),
    *("31_satimage-2", "32_shuttle", "35_SpamBase", "37_Stamps", "38_thyroid", "40_vowels"),
]
LENGTHS = {"500 steps": 500, "1,000 steps": 1_000, "2,000 steps": 2_000, "100 epochs": None}


def measure(path: Path, steps: int | None, seed: int) -> tuple[float, float, float]:
    """AUROC, average precision and seconds of one fit."""
    rows, x_test, y_test = make_trial(read_adbench(path), seed, "inliers")
    settings: dict[str, Any]
    if steps is None:
        settings = {"epochs": 100, "batch_size": "paper"}
    else:
        batch = int(RECOMMENDED.resolved(len(rows), len(rows)).batch_size)
        steps_per_epoch = -(-int(0.8 * len(rows)) // batch)
        epochs = min(100, max(1, round(steps / steps_per_epoch)))
        settings = {"epochs": epochs, "batch_size": batch}
    started = time.perf_counter()
    detector = DiffInt(random_state=seed, **settings).fit(rows)
    took = time.perf_counter() - started
    scores = detector.anomaly_score(x_test)
    return roc_auc_score(y_test, scores), average_precision_score(y_test, scores), took


def main() -> None:
    """Run every length on every table and print the means."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--tables", nargs="*", default=TABLES)
    options = parser.parse_args()
    files = adbench_files(options.data)
    warnings.simplefilter("ignore")
    print("| length | AUROC | average precision | seconds per fit |\n|---|---|---|---|", flush=True)
    for name, steps in LENGTHS.items():
        runs = [
            measure(files[table], steps, seed)
            for table in options.tables
            for seed in range(options.seeds)
        ]
        auroc, precision, took = np.mean(runs, axis=0)
        print(f"| {name} | {auroc:.4f} | {precision:.4f} | {took:.2f} |", flush=True)


if __name__ == "__main__":
    main()
