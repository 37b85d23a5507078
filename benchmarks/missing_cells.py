"""Measure what missing cells do to the accuracy, and whether nearly empty rows pass as normal.

    python benchmarks/missing_cells.py --data FOLDER [--tables NAME ...] [--seeds 3]
        [--out docs/results/missing_cells.md]

Fits the recommended configuration on the inliers of a split and removes 30 % of the test cells at
random. Compares the ROC-AUC with that of the same model when the missing cells are replaced by the
mean of their column in the training rows; and with missing="ignored". Also: the share of rows that
are flagged at p ≤ 0.05 among test inliers of which all but one cell in ten are removed.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from diffint import DiffInt
from diffint.bench.protocol import make_trial
from diffint.score.prepared import PreparedModel
from diffint.score.scoring import anomaly_scores
from diffint.tables.datasets import adbench_files, read_adbench
from result_lines import emit

TABLES = [
    *("4_breastw", "6_cardio", "7_Cardiotocography", "12_fault", "18_Ionosphere"),
    *("19_landsat", "28_pendigits", "31_satimage-2", "38_thyroid", "40_vowels"),
]
MISSING, NEARLY_ALL = 0.3, 0.9
MOST_ROWS = 4_000  # of a test part
COLUMNS = ("complete", "30 % missing", "mean of the column", "ignored", "nearly empty rows flagged")

Rows = NDArray[np.float64]


def measure(path: Path, seed: int) -> list[float]:
    """The columns of the table for one split."""
    train, test, labels = make_trial(read_adbench(path), seed, "inliers")
    test, labels = test[:MOST_ROWS], labels[:MOST_ROWS]
    model = DiffInt(random_state=seed).fit(train).model_
    rng = np.random.default_rng(seed)
    holes = np.where(rng.random(test.shape) < MISSING, np.nan, test)
    filled = np.where(np.isnan(holes), train.mean(axis=0), holes)
    ignoring = replace(model, config=replace(model.config, missing="ignored"))
    inliers = test[labels == 0]
    empty = np.where(rng.random(inliers.shape) < NEARLY_ALL, np.nan, inliers)
    flagged = model.calibration.p_values(anomaly_scores(PreparedModel(model), empty)) <= 0.05
    return [
        *(
            float(roc_auc_score(labels, anomaly_scores(PreparedModel(m), rows)))
            for m, rows in ((model, test), (model, holes), (model, filled), (ignoring, holes))
        ),
        float(flagged.mean()),
    ]


def main() -> None:
    """Measure all tables and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tables", nargs="*", default=TABLES)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    files = adbench_files(options.data)
    lines: list[str] = []
    emit(
        lines,
        "# Missing cells",
        "",
        "Created by `python benchmarks/missing_cells.py --data FOLDER`: ROC-AUC with complete test "
        "rows and with 30 % of their cells missing, mean over the seeds "
        f"0–{options.seeds - 1}; the method is described at the top of the script.",
        "",
        f"| table | {' | '.join(COLUMNS)} |",
        "|---" * (len(COLUMNS) + 1) + "|",
    )
    means = []
    for name in options.tables:
        means.append(np.mean([measure(files[name], s) for s in range(options.seeds)], axis=0))
        emit(lines, f"| {name} | " + " | ".join(f"{value:.4f}" for value in means[-1]) + " |")
    average = np.mean(means, axis=0)
    emit(lines, "| **mean** | " + " | ".join(f"{value:.4f}" for value in average) + " |", "")
    if options.out:
        options.out.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
