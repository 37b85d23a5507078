"""`accept`: does a repeated harmless kind of row fall silent, and nothing else?

    python benchmarks/accepting.py --data FOLDER --out docs/results/accepting [--seeds 3]

Ten ADBench tables; the detector is trained on 60 % of the inliers (false-positive rate 0.05). A
harmless kind of row is made from 120 of the other inliers: one or two features drawn at random are
set half a training range beyond the largest training value, with noise of a fifth of a standard
deviation. Of those that are flagged, twenty are accepted, if there are more. Measured on
the others: the share that is no longer flagged; and on the table's own test rows and anomalies: the
change of the ROC-AUC of 1 − p, and of the share of anomalies that are flagged.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

from diffint import DiffInt
from diffint.tables.datasets import adbench_files, read_adbench
from result_lines import emit

TABLES = (
    *("6_cardio", "7_Cardiotocography", "12_fault", "19_landsat", "20_letter", "28_pendigits"),
    *("29_Pima", "37_Stamps", "38_thyroid", "40_vowels"),
)
FALSE_POSITIVE_RATE, N_ACCEPTED, N_KIND = 0.05, 20, 120


def measure(path: Path, seed: int, n_features: int) -> tuple[float, float, float] | None:
    """The share that fell silent, and the changes; None if too few of the kind are flagged."""
    table = read_adbench(path)
    rng = np.random.default_rng(seed)
    inliers = rng.permutation(np.flatnonzero(table.y == 0))
    n_train = int(0.6 * len(inliers))
    train, test = table.x[inliers[:n_train]], table.x[inliers[n_train:]]
    odd = table.x[table.y == 1]
    detector = DiffInt(random_state=seed, false_positive_rate=FALSE_POSITIVE_RATE).fit(train)
    varies = np.flatnonzero(np.ptp(train, axis=0) > 0)
    kind = test[rng.permutation(len(test))][:N_KIND].copy()
    for j in rng.choice(varies, n_features, replace=False):
        beyond = train[:, j].max() + 0.5 * np.ptp(train[:, j])
        kind[:, j] = beyond + rng.normal(0.0, 0.2 * train[:, j].std(), len(kind))
    kind = kind[detector.predict(kind) == -1]
    if len(kind) <= N_ACCEPTED + 5:
        return None
    labels = np.r_[np.zeros(len(test)), np.ones(len(odd))]

    def accuracy() -> tuple[float, float]:
        p = detector.p_values(np.concatenate([test, odd]))
        return float(roc_auc_score(labels, 1 - p)), float((detector.predict(odd) == -1).mean())

    before = accuracy()
    detector.accept(kind[:N_ACCEPTED])
    silent = float((detector.predict(kind[N_ACCEPTED:]) == 1).mean())
    after = accuracy()
    return silent, after[0] - before[0], after[1] - before[1]


def main() -> None:
    """Run all tables and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    files = adbench_files(options.data)
    text: list[str] = []
    emit(
        text,
        "# Accepted rows",
        "",
        "Created by `python benchmarks/accepting.py --data FOLDER --out docs/results/accepting "
        f"--seeds {options.seeds}`, which describes what is measured; means over seeds, and over "
        "one and two changed features.",
        "",
        "| table | runs | fell silent | change of ROC-AUC | change of anomalies flagged |",
        "|---|---|---|---|---|",
    )
    means = []
    for name in TABLES:
        runs = [measure(files[name], s, n) for s in range(options.seeds) for n in (1, 2)]
        found = np.array([run for run in runs if run is not None])
        means.append(found.mean(axis=0))
        cells = f"{means[-1][0]:.3f} | {means[-1][1]:+.4f} | {means[-1][2]:+.4f}"
        emit(text, f"| {name} | {len(found)} | {cells} |")
    mean = np.mean(means, axis=0)
    emit(text, f"| **mean** | | {mean[0]:.3f} | {mean[1]:+.4f} | {mean[2]:+.4f} |")
    options.out.with_suffix(".md").write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
