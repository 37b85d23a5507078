"""Anomalies in the training rows: what they cost, and what `suspected_share` wins back.

The setting of the paper's ablation (b): seven small ADBench tables, split 60 : 40 as in the
benchmark. The training rows are the inliers of the training part and as many of its anomalies as
make up 5, 10 or 20 % of them, or all it has if these are fewer (wine, glass, WBC and Lymphography
have 3 to 7, so that their share is 3 to 10 %). ROC-AUC is measured on the test part.

    python benchmarks/contamination.py --data FOLDER --out docs/results/contamination
"""

from __future__ import annotations

import argparse
import csv
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from diffint import DiffInt
from diffint.tables.datasets import adbench_files, read_adbench
from result_lines import emit

TABLES = [
    *("45_wine", "21_Lymphography", "46_WPBC", "14_glass", "42_WBC", "39_vertebral", "37_Stamps")
]
SHARES = (0.0, 0.05, 0.1, 0.2)
PAPER = {0.0: 0.833, 0.05: 0.751, 0.1: 0.735, 0.2: 0.720}
COLUMNS = ("table", "seed", "asked", "true_share", "suspected_share", "roc_auc", "found", "lost")


def measure(path: Path, seed: int, asked: float) -> list[dict[str, Any]]:
    """One line per value of `suspected_share`, for one split and share of anomalies."""
    table = read_adbench(path)
    train, test, anomalous, labels = train_test_split(
        table.x, table.y.astype(bool), test_size=0.4, random_state=seed
    )
    rng = np.random.default_rng(seed)
    inliers, anomalies = np.flatnonzero(~anomalous), rng.permutation(np.flatnonzero(anomalous))
    added = anomalies[: round(asked / (1 - asked) * len(inliers))]
    rows = rng.permutation(np.concatenate([inliers, added]))
    dirty = anomalous[rows]
    share = float(dirty.mean())
    lines = []
    values: tuple[float | str, ...] = (0.0, share, "auto") if asked else (0.0, "auto")
    for suspected in values:
        detector = DiffInt(suspected_share=suspected, random_state=seed).fit(train[rows])
        lines.append(
            {
                "table": path.stem,
                "seed": seed,
                "asked": asked,
                "true_share": round(share, 4),
                "suspected_share": suspected if suspected in (0.0, "auto") else "true",
                "roc_auc": round(float(roc_auc_score(labels, detector.anomaly_score(test))), 4),
                "found": _share(detector.suspects_[dirty]),
                "lost": _share(detector.suspects_[~dirty]),
            }
        )
    return lines


def _share(mask: NDArray[np.bool_]) -> float | str:
    return round(float(mask.mean()), 4) if len(mask) else ""


def report(lines: list[dict[str, Any]], n_seeds: int) -> list[str]:
    """The page."""
    text: list[str] = []
    emit(
        text,
        "# Anomalies in the training rows",
        "",
        "Created by `python benchmarks/contamination.py --data FOLDER --out "
        f"docs/results/contamination`: mean ROC-AUC over the seeds 0–{n_seeds - 1}; every run is "
        "in `contamination.csv`. The method is described at the top of the script, and "
        "[how suspects are found](../method.md#suspects) in the guide.",
        "",
        "Training rows with 0, 5, 10 and 20 % anomalies, or with all that the training part has.",
        "",
    )

    def mean(field: str, **wanted: Any) -> float:
        chosen = [x for x in lines if all(x[key] == value for key, value in wanted.items())]
        values = [x[field] for x in chosen if x[field] != ""]
        return float(np.mean(values)) if values else float("nan")

    tables = list(dict.fromkeys(x["table"] for x in lines))
    for name, suspected in (("0 (default)", 0.0), ("the true share", "true"), ("auto", "auto")):
        emit(text, f"## suspected_share: {name}", "")
        emit(text, "| table | " + " | ".join(f"{100 * s:g} %" for s in SHARES) + " |")
        emit(text, "|---" * (len(SHARES) + 1) + "|")
        for table in [*tables, None]:
            cells = []
            for asked in SHARES:
                value = 0.0 if suspected == "true" and asked == 0 else suspected
                wanted = {"asked": asked, "suspected_share": value}
                wanted |= {"table": table} if table else {}
                cells.append(f"{mean('roc_auc', **wanted):.3f}")
            title = table or "**mean**"
            emit(text, f"| {title} | " + " | ".join(cells) + " |")
        paper = " | ".join(f"{PAPER[s]:.3f}" for s in SHARES)
        emit(text, f"| the paper's mean | {paper} |", "")
    emit(text, "## What is left out", "", "Means over all tables and seeds.", "")
    emit(text, "| anomalies | suspected_share | anomalies found | ordinary rows left out |")
    emit(text, "|---|---|---|---|")
    for asked in SHARES:
        for suspected in ("true", "auto") if asked else ("auto",):
            wanted = {"asked": asked, "suspected_share": suspected}
            found, lost = mean("found", **wanted), mean("lost", **wanted)
            shown = f"{100 * found:.0f} %" if asked else ""
            emit(text, f"| {100 * asked:g} % | {suspected} | {shown} | {100 * lost:.1f} % |")
    emit(text, "")
    return text


def main() -> None:
    """Measure all tables and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tables", nargs="*", default=TABLES)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, help="without an extension: .csv and .md are written")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    files = adbench_files(options.data)
    lines = [
        line
        for name in options.tables
        for seed in range(options.seeds)
        for asked in SHARES
        for line in measure(files[name], seed, asked)
    ]
    text = report(lines, options.seeds)
    if options.out:
        options.out.with_suffix(".md").write_text("\n".join(text))
        with options.out.with_suffix(".csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines)


if __name__ == "__main__":
    main()
