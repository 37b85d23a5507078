"""Measure whether flagged rows with the same cause come into one group.

    python benchmarks/alert_groups.py [--data FOLDER] [--tables NAME ...] [--seeds 3]
        [-o docs/results/alert_groups]

Plants 20 causes in 200 normal test rows each and groups the rows that are flagged. A cause changes
one feature of its rows, or two together, always in the same way:
*code*: one value below all training values, as −999 for "unknown"; *unit*: a number far above its
usual values, as grams entered as milligrams; *missing*; *shift*: an ordinary value, but the wrong
one for this row, always on the same side. Reports the number of groups, their purity (the share of
rows whose cause is the most frequent of their group), and how many rows stay together (the share of
rows in the largest group of their cause), also after the rows are shuffled.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diffint import DiffInt
from diffint.bench.protocol import make_trial
from diffint.tables.datasets import adbench_files, read_adbench

TABLES = [
    *("11_donors", "19_landsat", "1_ALOI", "28_pendigits", "30_satellite", "35_SpamBase"),
    *("5_campaign", "6_cardio"),
]
N_CAUSES, ROWS_PER_CAUSE = 20, 200
MOST_TRAINING_ROWS = 20_000
WAYS = ("code", "unit", "missing", "shift")
CANDIDATES = 100

Matrix = NDArray[np.float64]


def plant(train: Matrix, rows: Matrix, rng: np.random.Generator) -> tuple[Matrix, list[str]]:
    """Rows with causes, and the name of each row's cause. rows: (causes · rows per cause, …)"""
    low, high = train.min(axis=0), train.max(axis=0)
    spread = train.std(axis=0)
    # Few different values leave nothing to shift; half of the features are enough for all causes.
    varying = [j for j in range(train.shape[1]) if len(np.unique(train[:, j])) > 10]
    pairs = [(j, way) for j in varying for way in WAYS]
    chosen = [pairs[k] for k in rng.permutation(len(pairs))[:N_CAUSES]]
    planted, names = rows.copy(), []
    for cause, (j, way) in enumerate(chosen):
        place = slice(cause * ROWS_PER_CAUSE, (cause + 1) * ROWS_PER_CAUSE)
        features = [j]
        if rng.random() < 0.25 and len(varying) > 1:
            features.append(int(rng.choice([k for k in varying if k != j])))
        for feature in features:
            if way == "code":
                planted[place, feature] = low[feature] - max(high[feature] - low[feature], 1.0)
            elif way == "unit":
                distance = planted[place, feature] - low[feature] + spread[feature]
                planted[place, feature] = (
                    low[feature] + 10 * distance + high[feature] - low[feature]
                )
            elif way == "missing":
                planted[place, feature] = np.nan
            else:
                ordinary = np.quantile(train[:, feature], 0.9, method="higher")
                planted[place, feature] = ordinary + rng.uniform(0, spread[feature], ROWS_PER_CAUSE)
        names += [f"{way} {features}"] * ROWS_PER_CAUSE
    return planted[: len(names)], names  # fewer if there are not enough features


def measure(path: Path, seed: int) -> dict[str, Any] | None:
    """The groups of one table; None if it has too few test rows."""
    train, x_test, y_test = make_trial(read_adbench(path), seed, "inliers")
    rng = np.random.default_rng(seed)
    train = train[rng.permutation(len(train))[:MOST_TRAINING_ROWS]]
    normal = x_test[y_test == 0]
    normal = normal[rng.choice(len(normal), N_CAUSES * ROWS_PER_CAUSE, replace=True)]
    detector = DiffInt(random_state=seed).fit(train)
    planted, names = plant(train, normal, rng)
    explanation = detector.explain(planted)
    started = time.perf_counter()
    groups = explanation.alert_groups()
    seconds = time.perf_counter() - started
    flagged = np.flatnonzero(explanation.flagged)
    causes = np.array(names)
    pure = sum(Counter(causes[group.rows].tolist()).most_common(1)[0][1] for group in groups)
    together = sum(
        Counter(groups.group_of[flagged[causes[flagged] == cause]].tolist()).most_common(1)[0][1]
        for cause in set(causes[flagged].tolist())
    )
    order = rng.permutation(len(planted))
    shuffled = detector.explain(planted[order]).alert_groups().group_of
    return {
        "table": path.stem,
        "seed": seed,
        "alerts": len(flagged),
        "causes": len(set(causes[flagged].tolist())),
        "groups": len(groups),
        "purity": pure / len(flagged),
        "together": together / len(flagged),
        "stable": bool((shuffled == groups.group_of[order]).all()),
        "ms_per_alert": 1e3 * seconds / len(flagged),
    }


def report(lines: list[dict[str, Any]], command: str) -> str:
    """The results as Markdown."""
    text = [
        "# Groups of alerts",
        "",
        f"Made by `{command}`.",
        "",
        f"{N_CAUSES} planted causes, {ROWS_PER_CAUSE} rows each; of these rows, the flagged ones "
        "are grouped. Purity: share of rows whose cause is the most frequent one of their group. "
        "Together: share of rows in the largest group of their cause. Means over seeds.",
        "",
        "| table | alerts | causes | groups | purity | together | ms per alert |",
        "|---|---|---|---|---|---|---|",
    ]
    columns = ["alerts", "causes", "groups", "purity", "together", "ms_per_alert"]
    formats = ["{:.0f}", "{:.1f}", "{:.1f}", "{:.3f}", "{:.3f}", "{:.2f}"]

    def row(name: str, some: list[dict[str, Any]]) -> str:
        means = [float(np.mean([line[column] for line in some])) for column in columns]
        return f"| {name} | " + " | ".join(map(str.format, formats, means)) + " |"

    tables = list(dict.fromkeys(line["table"] for line in lines))
    text += [row(name, [line for line in lines if line["table"] == name]) for name in tables]
    text += [row("**mean**", lines), ""]
    text.append(
        f"The most groups in one run: {max(line['groups'] for line in lines)}; the least purity: "
        f"{min(line['purity'] for line in lines):.3f}. Same groups after the rows were shuffled: "
        f"{sum(line['stable'] for line in lines)} of {len(lines)} runs."
    )
    return "\n".join(text) + "\n"


def main() -> None:
    """Measure and print; with `-o`, also write the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("DIFFINT_ADBENCH"))
    parser.add_argument("--tables", nargs="+", default=TABLES)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()
    if arguments.data is None:
        parser.error("give the folder of the ADBench tables with --data or DIFFINT_ADBENCH")
    warnings.simplefilter("ignore")
    files = adbench_files(arguments.data)
    lines = []
    for name in arguments.tables:
        for seed in range(arguments.seeds):
            line = measure(files[name], seed)
            if line is not None:
                lines.append(line)
                print(line, file=sys.stderr, flush=True)
    command = "python benchmarks/alert_groups.py " + " ".join(sys.argv[1:])
    text = report(lines, command)
    print(text)
    if arguments.output is not None:
        arguments.output.with_suffix(".md").write_text(text, encoding="utf-8")
        with open(arguments.output.with_suffix(".csv"), "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(lines[0]))
            writer.writeheader()
            writer.writerows(lines)


if __name__ == "__main__":
    main()
