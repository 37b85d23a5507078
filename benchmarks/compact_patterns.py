"""Compact pattern sets (`DiffInt.patterns`), measured against the full model and other methods.

    python benchmarks/compact_patterns.py --data FOLDER --out docs/results/compact_patterns

Real tables: the ten smallest ADBench tables (rows × features) of the half that no setting was
chosen on, split 60 : 40 as in the benchmark, trained on inliers. Measured on the test part: the
share of inliers inside at least one pattern (fresh coverage) beside the coverage that the set
states, the share of anomalies outside all patterns, the ROC-AUC of `distance` beside that of the
full model, and the Jaccard index of the sets of features used by two seeds.

Planted hyper-rectangles: 1,000 rows of 12 uniform features, each row in one of four rectangles with
two to four ranges of 10 to 30 % of the feature. A condition that is found is right if the rectangle
that its pattern resembles most has a range of the same feature that overlaps it by at least half
(Jaccard index of the two intervals). F1 is that of precision (right conditions of all found ones)
and recall (ranges of all rectangles that are found).

With other tables (`--tables`), such as those of the half that settings were chosen on, the page
says which.

Rivals: Mint with 5, 10 and 20 intervals per feature (on planted rectangles the best of the three is
reported, on tables 5), one isolation tree, and OutlierTree, whose trees give no set of patterns.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import warnings
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from diffint import DiffInt
from diffint.bench.protocol import make_trial
from diffint.tables.datasets import adbench_files, read_adbench
from pattern_rivals import Conditions, IsolationTree, Mint, OutlierTrees
from result_lines import emit

TABLES = [
    *("39_vertebral", "37_Stamps", "29_Pima", "46_WPBC", "38_thyroid", "6_cardio", "20_letter"),
    *("28_pendigits", "48_arrhythmia", "19_landsat"),
]
COLUMNS = (
    *("table", "seed", "method", "patterns", "conditions", "roc_auc", "full_roc_auc"),
    *("fresh_coverage", "stated_coverage", "anomalies_outside", "precision", "recall", "f1"),
    *("jaccard", "seconds"),
)
PLANTED = "planted"
MINT_BINS = (5, 10, 20)
MOST_TEST_ROWS = 20_000


def plant(seed: int) -> tuple[NDArray[np.float64], list[Conditions]]:
    """Rows (1000, 12) in four rectangles, and the rectangles."""
    rng = np.random.default_rng(seed)
    rows = rng.uniform(0.0, 100.0, size=(1_000, 12))
    owner = rng.integers(4, size=len(rows))
    rectangles: list[Conditions] = []
    for k in range(4):
        rectangle: Conditions = {}
        for j in rng.choice(12, rng.integers(2, 5), replace=False).tolist():
            width = rng.uniform(10.0, 30.0)
            low = rng.uniform(0.0, 100.0 - width)
            rectangle[j] = (low, low + width)
            rows[owner == k, j] = rng.uniform(low, low + width, size=int((owner == k).sum()))
        rectangles.append(rectangle)
    return rows, rectangles


def planted_seeds(count: int) -> range:
    """Seeds that nothing was tried on."""
    return range(200, 200 + count)


def condition_scores(found: list[Conditions], planted: list[Conditions]) -> dict[str, float]:
    """Precision, recall and F1 of the conditions that were found."""
    right_of: list[set[int]] = [set() for _ in planted]
    n_right = 0
    for box in found:
        right = [{j for j in box if j in one and _alike(box[j], one[j])} for one in planted]
        nearest = max(range(len(planted)), key=lambda k: len(right[k]))
        n_right += len(right[nearest])
        right_of[nearest] |= right[nearest]
    precision = n_right / max(sum(map(len, found)), 1)
    recall = sum(map(len, right_of)) / sum(map(len, planted))
    f1 = 2 * precision * recall / (precision + recall) if n_right else 0.0
    return {"precision": precision, "recall": recall, "f1": f1}


def _alike(a: tuple[float, float], b: tuple[float, float]) -> bool:
    shared, hull = min(a[1], b[1]) - max(a[0], b[0]), max(a[1], b[1]) - min(a[0], b[0])
    return hull > 0 and shared / hull >= 0.5


class Compact:
    """`DiffInt.patterns` in the form of the rivals."""

    def __init__(self, detector: DiffInt) -> None:
        self.set = detector.patterns()
        self.covers, self.distance = self.set.covers, self.set.distance

    def boxes(self) -> list[Conditions]:
        s = self.set
        return [
            {int(j): (s.lower[k, j], s.upper[k, j]) for j in np.flatnonzero(s.has_condition[k])}
            for k in range(len(s))
        ]


def measure_planted(seed: int) -> list[dict[str, Any]]:
    rows, rectangles = plant(seed)
    detector = DiffInt(random_state=seed).fit(rows)
    makers: dict[str, Any] = {
        "diffint": lambda: Compact(detector),
        "isolation tree": lambda: IsolationTree(seed).fit(rows),
    } | {f"mint {bins}": lambda bins=bins: Mint(bins).fit(rows) for bins in MINT_BINS}
    lines = []
    for name, make in makers.items():
        start = time.perf_counter()
        boxes = make().boxes()
        lines.append(
            {
                "table": PLANTED,
                "seed": seed,
                "method": name,
                "patterns": len(boxes),
                "conditions": sum(map(len, boxes)),
                "seconds": time.perf_counter() - start,
                **condition_scores(boxes, rectangles),
            }
        )
    return lines


def measure_table(path: Path, seed: int) -> tuple[list[dict[str, Any]], set[int]]:
    """One line per method, and the features that the compact set uses."""
    trial = make_trial(read_adbench(path), seed, "inliers")
    test, labels = trial.test[:MOST_TEST_ROWS], trial.test_labels[:MOST_TEST_ROWS]
    detector = DiffInt(random_state=seed).fit(trial.train)
    full = roc_auc_score(labels, detector.anomaly_score(test))
    makers: dict[str, Any] = {
        "diffint": lambda: Compact(detector),
        "mint": lambda: Mint(MINT_BINS[0]).fit(trial.train),
        "isolation tree": lambda: IsolationTree(seed).fit(trial.train),
        "outliertree": lambda: OutlierTrees().fit(trial.train),
    }
    lines = []
    used: set[int] = set()
    for name, make in makers.items():
        start = time.perf_counter()
        try:
            method: Any = make()
        except ImportError as error:
            print(f"{name}: not installed ({error})")
            continue
        seconds = time.perf_counter() - start
        covered = method.covers(test)
        line = {
            "table": path.stem,
            "seed": seed,
            "method": name,
            "roc_auc": roc_auc_score(labels, method.distance(test)),
            "full_roc_auc": full,
            "fresh_coverage": covered[labels == 0].mean(),
            "anomalies_outside": (~covered[labels == 1]).mean(),
            "seconds": seconds,
        }
        if hasattr(method, "boxes"):
            boxes = method.boxes()
            line |= {"patterns": len(boxes), "conditions": sum(map(len, boxes))}
        if name == "diffint":
            line["stated_coverage"] = method.set.set_coverage
            used = {j for box in boxes for j in box}
        lines.append(line)
    return lines, used


def jaccard(used: dict[int, set[int]]) -> float:
    """Mean over pairs of seeds."""
    pairs = combinations(used.values(), 2)
    return float(np.mean([len(a & b) / max(len(a | b), 1) for a, b in pairs]))


def mean(lines: list[dict[str, Any]], column: str, **where: Any) -> float:
    """Mean over the tables of the means over their seeds."""
    by_table: dict[str, list[float]] = {}
    for line in lines:
        value = line.get(column)
        if value is not None and all(line[key] == wanted for key, wanted in where.items()):
            by_table.setdefault(line["table"], []).append(float(value))
    return float(np.mean([np.mean(values) for values in by_table.values()])) if by_table else np.nan


def report(lines: list[dict[str, Any]], jaccards: dict[str, float], options: Any) -> list[str]:
    """The page."""
    text: list[str] = []
    real = [line for line in lines if line["table"] != PLANTED]
    planted = [line for line in lines if line["table"] == PLANTED]
    ours = [line for line in real if line["method"] == "diffint"]
    tables = list(jaccards)
    emit(
        text,
        "# Compact pattern sets" + ("" if options.tables == TABLES else ", other tables"),
        "",
        "Created by `python benchmarks/compact_patterns.py --data FOLDER --out "
        f"docs/results/{options.out.name} --seeds {options.seeds} --planted {options.planted}"
        + ("" if options.tables == TABLES else f" --tables {' '.join(options.tables)}")
        + f"`; every run is in `{options.out.name}.csv`. At most 20 patterns of at most 5 "
        "conditions. The method and the measures are described at the top of the script, and what "
        "the sets are in [The model on one page](../patterns.md).",
        "",
        "## Against what was aimed at",
        "",
        f"Means over {len(tables)} tables, {options.seeds} seeds each; planted rectangles: "
        f"{options.planted} tables.",
        "",
        "| | at least | goal | measured |",
        "|---|---|---|---|",
    )
    loss = mean(ours, "full_roc_auc") - mean(ours, "roc_auc")
    gap = [abs(line["stated_coverage"] - line["fresh_coverage"]) for line in ours]
    by_mint = max(MINT_BINS, key=lambda bins: mean(planted, "f1", method=f"mint {bins}"))
    best_mint = f"mint {by_mint}"
    emit(
        text,
        f"| share of fresh inliers covered | 0.80 | 0.90 | {mean(ours, 'fresh_coverage'):.3f} |",
        f"| ROC-AUC below that of the full model | 0.03 | 0.01 | {loss:.3f} "
        f"({mean(ours, 'roc_auc'):.3f}, full model {mean(ours, 'full_roc_auc'):.3f}) |",
        f"| F1 of planted conditions | Mint's, {mean(planted, 'f1', method=best_mint):.2f} | 0.95 "
        f"| {mean(planted, 'f1', method='diffint'):.2f} |",
        f"| Jaccard index of the features used by two seeds | 0.7 | 0.8 | "
        f"{np.mean(list(jaccards.values())):.2f} |",
        f"| stated coverage minus fresh coverage | agrees | | "
        f"{mean(ours, 'stated_coverage') - mean(ours, 'fresh_coverage'):+.3f} on average, "
        f"{np.mean(gap):.3f} in absolute value |",
        "",
        "## Tables",
        "",
        "| table | full model | compact set | fresh coverage | stated | anomalies outside "
        "| patterns | conditions | Jaccard | seconds |",
        "|---|---|---|---|---|---|---|---|---|---|",
    )
    for name in tables:
        its = [line for line in ours if line["table"] == name]
        values = [
            *(f"{mean(its, c):.3f}" for c in ("full_roc_auc", "roc_auc")),
            *(
                f"{mean(its, c):.2f}"
                for c in ("fresh_coverage", "stated_coverage", "anomalies_outside")
            ),
            *(f"{mean(its, c):.0f}" for c in ("patterns", "conditions")),
            f"{jaccards[name]:.2f}",
            f"{mean(its, 'seconds'):.1f}",
        ]
        emit(text, f"| {name} | " + " | ".join(values) + " |")
    emit(
        text,
        "",
        "## Other methods on the same tables",
        "",
        "Mint's hyper-rectangles have conditions on nearly all features. OutlierTree flags few "
        "rows, and all rows that it does not flag score 0.",
        "",
        "| method | ROC-AUC | fresh coverage | anomalies outside | patterns | conditions each |",
        "|---|---|---|---|---|---|",
    )
    for name in dict.fromkeys(line["method"] for line in real):
        rate = mean(real, "conditions", method=name) / mean(real, "patterns", method=name)
        numbers = [mean(real, "patterns", method=name), rate]
        emit(
            text,
            f"| {name} | {mean(real, 'roc_auc', method=name):.3f} | "
            f"{mean(real, 'fresh_coverage', method=name):.2f} | "
            f"{mean(real, 'anomalies_outside', method=name):.2f} | "
            + " | ".join("–" if np.isnan(value) else f"{value:.1f}" for value in numbers)
            + " |",
        )
    emit(
        text,
        "",
        "## Planted hyper-rectangles",
        "",
        "| method | F1 | precision | recall | patterns | conditions |",
        "|---|---|---|---|---|---|",
    )
    for name in dict.fromkeys(line["method"] for line in planted):
        values = [f"{mean(planted, c, method=name):.2f}" for c in ("f1", "precision", "recall")]
        values += [f"{mean(planted, c, method=name):.0f}" for c in ("patterns", "conditions")]
        emit(text, f"| {name} | " + " | ".join(values) + " |")
    emit(text, f"| truth | | | | 4 | {_planted_conditions(options.planted):.0f} |")
    return text


def _planted_conditions(count: int) -> float:
    return float(np.mean([sum(map(len, plant(seed)[1])) for seed in planted_seeds(count)]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("DIFFINT_ADBENCH"))
    parser.add_argument("--out", type=Path, default=Path("docs/results/compact_patterns"))
    parser.add_argument("--tables", nargs="*", default=TABLES)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--planted", type=int, default=10)
    options = parser.parse_args()
    if options.data is None:
        parser.error("name the folder of the tables with --data, or in DIFFINT_ADBENCH")
    warnings.simplefilter("ignore")
    files = adbench_files(Path(options.data))
    lines: list[dict[str, Any]] = []
    for seed in planted_seeds(options.planted):
        lines += measure_planted(seed)
    jaccards = {}
    for name in options.tables:
        used = {}
        for seed in range(options.seeds):
            more, used[seed] = measure_table(files[name], seed)
            lines += more
            print(name, seed, {k: v for k, v in more[0].items() if k != "table"}, flush=True)
        jaccards[name] = jaccard(used)
        for line in lines:
            if line["table"] == name and line["method"] == "diffint":
                line["jaccard"] = jaccards[name]
    text = report(lines, jaccards, options)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.with_suffix(".md").write_text("\n".join(text) + "\n")
    with options.out.with_suffix(".csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="")
        writer.writeheader()
        for line in lines:
            writer.writerow(
                {k: round(v, 4) if isinstance(v, float) else v for k, v in line.items()}
            )


if __name__ == "__main__":
    main()
