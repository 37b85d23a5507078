"""Compare the training time with subnormal floats flushed to zero and without.

    python benchmarks/tiny_numbers.py --data adbench

Both fits run on one core, in turn. On processors where subnormal floats are not slower, both take
the same time.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from unittest.mock import patch

import numpy as np
from sklearn.metrics import roc_auc_score

from diffint import DiffInt
from diffint.bench.protocol import make_trial
from diffint.bench.suites import ADBENCH
from diffint.bench.worker import processor_name
from diffint.engine.cpu import steps
from diffint.tables.datasets import read_adbench

TABLES = ("6_cardio", "28_pendigits", "26_optdigits", "48_arrhythmia")


def fit(rows: np.ndarray) -> tuple[DiffInt, float]:
    """A default fit on one core, and its duration in seconds."""
    detector = DiffInt(random_state=0, device="cpu", n_jobs=1)
    started = time.perf_counter()
    detector.fit(rows)
    return detector, time.perf_counter() - started


def main() -> None:
    """Print both times and both accuracies for each table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of ADBench tables")
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    keep_subnormals = patch.object(steps, "train_steps", steps.step_loop)
    small = np.random.default_rng(0).normal(size=(100, 3))
    fit(small)  # compiles
    with keep_subnormals:
        fit(small)
    print(f"{processor_name()}, one core\n")
    print("| table | flushed to zero | kept | ratio | ROC-AUC of each |")
    print("|---|---|---|---|---|")
    files, _ = ADBENCH.find(options.data, options.tables)
    for name, path in files.items():
        trial = make_trial(read_adbench(path), 0, "inliers")
        flushed, quick = fit(trial.train)
        with keep_subnormals:
            kept, slow = fit(trial.train)
        labels = trial.test_labels
        accuracy = [roc_auc_score(labels, d.anomaly_score(trial.test)) for d in (flushed, kept)]
        print(
            f"| {name} | {quick:.2f} s | {slow:.2f} s | {slow / quick:.1f}× "
            f"| {accuracy[0]:.6f}, {accuracy[1]:.6f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
