"""Compare the paper configuration with the results printed in the paper.

    python benchmarks/paper_check.py --data FOLDER [--reference paper_config_check.csv]

Runs the paper configuration on the eleven tables for which the paper prints an AUROC, with seeds
0–4 of the 60/40 split, trained on the inliers of the training part. Prints our AUROC beside that of
the paper and of an independent run. FOLDER contains the ADBench tables (NN_name.npz).
"""

from __future__ import annotations

import argparse
import csv
import warnings
from pathlib import Path

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from diffint import DiffInt, TrainingWarning
from diffint.bench.protocol import make_trial
from diffint.core.config import paper_batch_size
from diffint.tables.datasets import adbench_files, read_adbench

PAPER_AUROC = {
    "14_glass": "0.876 / 0.891",
    "18_Ionosphere": "0.953",
    "21_Lymphography": "0.994",
    "29_Pima": "0.696",
    "6_cardio": "0.976",
    "31_satimage-2": "0.999",
    "37_Stamps": "0.953",
    "39_vertebral": "0.477",
    "42_WBC": "0.998",
    "45_wine": "0.950",
    "46_WPBC": "0.584",
}


def run(path: Path, seed: int, device: str) -> tuple[float, float]:
    """AUROC and average precision of the paper configuration on one split."""
    table = read_adbench(path)
    train, test, labels = make_trial(table, seed, "inliers")
    detector = DiffInt.paper(
        batch_size=paper_batch_size(len(table.x)), random_state=seed, device=device
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingWarning)
        detector.fit(train)
    scores = detector.anomaly_score(test)
    return roc_auc_score(labels, scores), average_precision_score(labels, scores)


def read_reference(path: Path | None) -> dict[str, tuple[float, float]]:
    """AUROC and average precision of the independent run, by table."""
    if path is None:
        return {}
    with open(path) as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        return {r["dataset"]: (float(r["roc_auc"]), float(r["average_precision"])) for r in rows}


def main() -> None:
    """Run, print the table and the number of tables that agree."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of ADBench tables")
    parser.add_argument("--reference", type=Path, help="CSV of the independent run")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    files = adbench_files(options.data)
    reference = read_reference(options.reference)

    print("Paper configuration, mean AUROC (standard error) over seeds; AP: average precision\n")
    print("| table | ours | s.e. | independent run | paper | agrees | our AP | independent AP |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    agreed = compared = 0
    for name, paper in PAPER_AUROC.items():
        if name not in files:
            print(f"| {name} | missing from {options.data} | | | {paper} | | | |")
            continue
        results = np.array([run(files[name], s, options.device) for s in range(options.seeds)])
        auroc, precision = results.mean(axis=0)
        error = results[:, 0].std(ddof=1) / np.sqrt(len(results))
        independent, verdict = reference.get(name), ""
        if independent is not None:
            compared += 1
            close = abs(auroc - independent[0]) <= max(2 * error, 0.015)
            agreed += close
            verdict = "yes" if close else "NO"
        shown = [f"{v:.4f}" for v in independent] if independent else ["–", "–"]
        print(
            f"| {name} | {auroc:.4f} | {error:.4f} | {shown[0]} | {paper} | {verdict} "
            f"| {precision:.4f} | {shown[1]} |",
            flush=True,
        )
    if compared:
        print(f"\n{agreed} of {compared} tables agree with the independent run (2 s.e. or 0.015).")


if __name__ == "__main__":
    main()
