"""Measure the boxes: whether rows lie in their own, and whether their coverage is as stated.

    python benchmarks/explanations.py [--data FOLDER] [--seeds 5] [--jobs N]
        [-o docs/results/explanations]

Share of test inliers and anomalies inside their own box; accuracy with and without the coverage
term and the larger learning rate of the intervals; difference of the coverage shown with
constraints and that on test inliers. Faithfulness, stability, length and the comparison with
attributions are studies: `diffint study list`.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

from diffint import DiffInt
from diffint.bench.protocol import make_trial
from diffint.tables.datasets import adbench_files, read_adbench

Matrix = NDArray[np.float64]
TABLES = [
    *("4_breastw", "6_cardio", "12_fault", "14_glass", "15_Hepatitis", "18_Ionosphere"),
    *("19_landsat", "20_letter", "21_Lymphography", "26_optdigits", "28_pendigits", "29_Pima"),
    *("31_satimage-2", "37_Stamps", "38_thyroid", "39_vertebral", "40_vowels", "42_WBC"),
    *("45_wine", "46_WPBC"),
]
# The paper's configuration with a fifth of the epochs and five times the learning rate, which
# gives nearly the same result in less time.
QUICK_PAPER: dict[str, Any] = {"epochs": 200, "learning_rate": 2.5e-4}


def split(path: Path, seed: int) -> tuple[Matrix, Matrix, Matrix]:
    """Training inliers, test inliers, test anomalies."""
    train, test, labels = make_trial(read_adbench(path), seed, "inliers")
    return train, test[labels == 0], test[labels == 1]


def detector(kind: str, seed: int) -> DiffInt:
    """The detector of a kind of configuration, not fitted."""
    if kind == "paper":
        return DiffInt.paper(random_state=seed, n_jobs=1, **QUICK_PAPER)
    changes: dict[str, Any] = {"coverage_weight": 0.0, "interval_rate": 1.0}
    return DiffInt(random_state=seed, n_jobs=1, **(changes if kind == "plain" else {}))


def boxes(job: tuple[Path, int]) -> list[float]:
    """Shares inside boxes, accuracy and coverage errors of one table and seed."""
    path, seed = job
    train, inliers, anomalies = split(path, seed)
    labels = np.repeat([0, 1], [len(inliers), len(anomalies)])
    figures: list[float] = []
    warnings.simplefilter("ignore")
    for kind in ("recommended", "plain", "paper"):
        fitted = detector(kind, seed).fit(train)
        figures += [fitted.match(rows)["inside"].mean() for rows in (inliers, anomalies)]
        if kind != "paper":
            scores = fitted.anomaly_score(np.vstack([inliers, anomalies]))
            figures += [roc_auc_score(labels, scores), average_precision_score(labels, scores)]
        if kind == "recommended":
            figures += coverage_errors(fitted, inliers)
    return figures


def coverage_errors(fitted: DiffInt, inliers: Matrix) -> list[float]:
    """Mean of shown coverage − coverage on test inliers, of constraints alone and together."""
    explanation = fitted.explain_global()
    frame = explanation.to_frame(n_units=10, n_constraints=3)
    column = {name: j for j, name in enumerate(explanation.feature_names)}
    alone, together = [], []
    for _, lines in frame.groupby("unit"):
        holds = np.ones(len(inliers), dtype=bool)
        for _, line in lines.iterrows():
            value = inliers[:, column[line["feature"]]]
            lower = line["lower"] if line["binds_below"] else -np.inf
            upper = line["upper"] if line["binds_above"] else np.inf
            inside = (value >= lower) & (value <= upper)
            holds &= inside
            alone.append(line["coverage"] - inside.mean())
            together.append(line["joint_coverage"] - holds.mean())
    return [float(np.mean(alone)), float(np.mean(together))]


def table(heading: list[str], lines: dict[str, list[float]]) -> str:
    """A Markdown table with the mean of every column in the last line."""
    lines = {**lines, "**mean**": list(np.nanmean(list(lines.values()), axis=0))}
    text = ["| " + " | ".join(heading) + " |", "|---" * len(heading) + "|"]
    text += [
        f"| {name} | " + " | ".join(f"{value:.3f}" for value in values) + " |"
        for name, values in lines.items()
    ]
    return "\n".join(text)


def boxes_part(files: dict[str, Path], seeds: int, pool: ProcessPoolExecutor) -> str:
    """The section of the results, with the mean over the seeds of every table."""
    jobs = [(files[name], seed) for name in TABLES if name in files for seed in range(seeds)]
    results: dict[str, list[list[float]]] = {}
    for (path, _), figures in zip(jobs, pool.map(boxes, jobs), strict=True):
        results.setdefault(path.stem, []).append(figures)
    heading = "table, inliers inside, anomalies inside, AUROC, AP, coverage alone: shown − test, "
    heading += "together, plain: inliers, anomalies, AUROC, AP, paper: inliers, anomalies"
    means = {name: list(np.mean(values, axis=0)) for name, values in results.items()}
    return (
        "## Boxes\n\nShare of test rows inside their own box in every feature; accuracy; mean "
        "difference of the coverage shown with the top constraints and that on test inliers. "
        "*Plain*: without the coverage term and the larger learning rate of the intervals. "
        "*Paper*: its configuration (200 epochs at five times its learning rate), boxes not "
        f"scaled. {seeds} seeds.\n\n" + table(heading.split(", "), means)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("DIFFINT_ADBENCH"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="Processes")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    if options.data is None:
        parser.error("give the folder of ADBench tables with --data or DIFFINT_ADBENCH")
    with ProcessPoolExecutor(options.jobs) as pool:
        text = boxes_part(adbench_files(options.data), options.seeds, pool)
    print(text, flush=True)
    if options.output:
        command = "python " + " ".join(["benchmarks/explanations.py", *sys.argv[1:]])
        title = f"# Measurements of explanations\n\nCreated by `{command}`.\n\n"
        options.output.with_suffix(".md").write_text(title + text + "\n")


if __name__ == "__main__":
    main()
