"""Compare the calibration methods: validity of p-values and accuracy.

    python benchmarks/calibration_study.py --data FOLDER [--seeds 5] [--tables NAME ...]

For each method: the share of test inliers with p ≤ 0.01, 0.05 and 0.1, which should not exceed the
rate by more than two standard errors over the seeds; and AUROC and average precision on the test
part. "none" leaves no rows out: its accuracy is the reference, its p-values are not valid.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from diffint import DiffInt
from diffint.bench.protocol import make_trial
from diffint.tables.datasets import adbench_files, read_adbench

TABLES = [
    "4_breastw",
    "6_cardio",
    "7_Cardiotocography",
    "12_fault",
    "14_glass",
    "18_Ionosphere",
    "20_letter",
    "29_Pima",
    "35_SpamBase",
    "37_Stamps",
    "38_thyroid",
    "39_vertebral",
    "40_vowels",
    "46_WPBC",
]
RATES = (0.01, 0.05, 0.1)
METHODS = {"members": "members", "holdout": "holdout", "none": "training"}


def measure(path: Path, method: str, seed: int) -> list[float]:
    """AUROC, average precision, and the share of test inliers with p at or below each rate."""
    train, test, y_test = make_trial(read_adbench(path), seed, "inliers")
    detector = DiffInt(calibration=METHODS[method], random_state=seed).fit(train)
    scores = detector.anomaly_score(test)
    p_values = detector.model_.calibration.p_values(scores[y_test == 0])
    shares = [float((p_values <= rate).mean()) for rate in RATES]
    return [roc_auc_score(y_test, scores), average_precision_score(y_test, scores), *shares]


def main() -> None:
    """Run every method on every table; print one line each, and the means."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--tables", nargs="*", default=TABLES)
    options = parser.parse_args()
    files = adbench_files(options.data)
    warnings.simplefilter("ignore")
    print("| table | method | AUROC | AP | " + " | ".join(f"p ≤ {r} (s.e.)" for r in RATES) + " |")
    print("|---" * (4 + len(RATES)) + "|", flush=True)
    results: dict[str, list[np.ndarray]] = {method: [] for method in METHODS}
    for name in options.tables:
        for method in METHODS:
            runs = np.array([measure(files[name], method, s) for s in range(options.seeds)])
            results[method].append(runs)
            _print_line(name, method, runs)
    for method, per_table in results.items():
        pooled = np.stack(per_table)  # (tables, seeds, measures)
        means = pooled.mean(axis=0)
        _print_line("**mean**", method, means)
        errors = pooled.std(axis=1, ddof=1) / np.sqrt(options.seeds)
        above = pooled.mean(axis=1)[:, 2:] > np.array(RATES) + 2 * errors[:, 2:]
        label = f"{method}: tables above a rate by 2 s.e."
        print(f"| | {label} | | | " + _joined(above.sum(axis=0)))


def _print_line(name: str, method: str, runs: np.ndarray) -> None:
    mean = runs.mean(axis=0)
    error = runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
    shares = [f"{m:.3f} ({e:.3f})" for m, e in zip(mean[2:], error[2:], strict=True)]
    print(f"| {name} | {method} | {mean[0]:.4f} | {mean[1]:.4f} | " + _joined(shares), flush=True)


def _joined(cells: object) -> str:
    return " | ".join(str(c) for c in cells) + " |"  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
