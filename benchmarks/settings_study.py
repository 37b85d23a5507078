"""Compare settings of the recommended configuration on the tables that settings are chosen on.

    python benchmarks/settings_study.py --adbench FOLDER --macrodata FOLDER --selection FILE
        [--half select] [--variants NAME ...] [--seeds 1] [--jobs -1] [-o OUTPUT]

Fits each variant on every table (one thread per fit) and compares it with KNN: the mean distance
from 5 neighbours, on standardised rows. Writes OUTPUT.csv, with one line per table, seed and
variant, and OUTPUT.md with mean differences, wins and losses, and Wilcoxon's p.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import os
import time
import warnings
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import wilcoxon
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.neighbors import NearestNeighbors

from diffint import DiffInt
from diffint.bench.protocol import Trial, scale_trial
from diffint.bench.selection import read_selection
from diffint.bench.suites import SUITES
from diffint.core.checks import resolve_jobs
from diffint.core.config import MAX_EPOCHS, RECOMMENDED, usual_steps

KNN = "KNN-standard"
VERDICT = (
    "Wins and losses count tables; p is Wilcoxon's. Each variant differs from the recommended "
    "configuration in what its name says."
)
METRICS = ("roc_auc", "average_precision")


def steps(count: int, passes: int = MAX_EPOCHS) -> dict[str, Any]:
    """Settings for a number of steps with at most so many passes; filled in for each table."""
    return {"steps": count, "passes": passes}


# What was changed, beginning with nothing.
VARIANTS: dict[str, dict[str, Any]] = {
    "recommended": {},
    "no kept rows": {"kept_rows": 0},
    "1,000 kept rows": {"kept_rows": 1_000},
    "scaling='minmax'": {"scaling": "minmax"},
    "scaling='minmax', no kept rows": {"scaling": "minmax", "kept_rows": 0},
    "coverage_weight=0": {"coverage_weight": 0.0},
    "coverage_weight=0.05": {"coverage_weight": 0.05},
    "coverage_weight=0.2": {"coverage_weight": 0.2},
    "at most 400 passes": {"passes": 400},
    "1,000 steps": steps(1_000),
    "4,000 steps": steps(4_000),
    "5 members": {"n_members": 5},
    "as before": {
        **{"scaling": "minmax", "kept_rows": 0, "coverage_weight": 0.2, "missing": "ignored"},
        **steps(1_000, passes=400),
    },
}


class Task(NamedTuple):
    """One table and seed, on which all variants are run."""

    suite: str
    table: str
    file: Path
    seed: int
    variants: tuple[str, ...]


Line = dict[str, Any]


def settings_for(name: str, n_rows: int) -> dict[str, Any]:
    """The settings of a variant for a table with so many training rows."""
    settings = dict(VARIANTS[name])
    if "passes" in settings:
        n_trained = int(0.8 * n_rows)
        batch = int(RECOMMENDED.resolved(n_rows, n_trained).batch_size)
        count = settings.pop("steps", usual_steps(n_trained))
        epochs = max(1, round(count / -(-n_trained // batch)))
        settings["epochs"] = min(settings.pop("passes"), epochs)
    return settings


def nearest_neighbours(trial: Trial) -> np.ndarray[Any, Any]:
    """Scores of the rival: the mean distance from 5 neighbours, on standardised rows."""
    scaled = scale_trial(trial, "standard")
    search = NearestNeighbors(n_neighbors=min(5, len(scaled.train))).fit(scaled.train)
    return np.asarray(search.kneighbors(scaled.test)[0].mean(axis=1))


def measure(task: Task) -> list[Line]:
    """The rival and every variant on one table."""
    warnings.simplefilter("ignore")
    suite = SUITES[task.suite]
    trial = suite.trial(suite.read(task.file), task.seed, "inliers")
    lines = []
    for name in (KNN, *task.variants):
        started = time.perf_counter()
        if name == KNN:
            scores = nearest_neighbours(trial)
        else:
            settings = settings_for(name, len(trial.train))
            detector = DiffInt(random_state=task.seed, n_jobs=1, device="cpu", **settings)
            scores = detector.fit(trial.train).anomaly_score(trial.test)
        lines.append(
            {
                "suite": task.suite,
                "table": task.table,
                "seed": task.seed,
                "variant": name,
                "roc_auc": float(roc_auc_score(trial.test_labels, scores)),
                "average_precision": float(average_precision_score(trial.test_labels, scores)),
                "seconds": time.perf_counter() - started,
            }
        )
    return lines


def summary(lines: list[Line], suite: str) -> Iterable[str]:
    """The comparison on one suite as a Markdown table."""
    values: dict[str, dict[str, list[list[float]]]] = defaultdict(lambda: defaultdict(list))
    for line in lines:
        if line["suite"] == suite:
            numbers = [float(line[c]) for c in (*METRICS, "seconds")]
            values[line["variant"]][line["table"]].append(numbers)
    means = {v: {t: np.mean(s, axis=0) for t, s in tables.items()} for v, tables in values.items()}
    rival = means.pop(KNN)
    level = np.mean(list(rival.values()), axis=0)
    yield f"## {suite}: {len(rival)} tables"
    yield ""
    yield f"{KNN}: ROC-AUC {level[0]:.4f}, average precision {level[1]:.4f}."
    yield ""
    yield "| variant | ROC-AUC | wins–losses | p | AP | wins–losses | p | seconds per fit |"
    yield "|---|---|---|---|---|---|---|---|"
    for variant, tables in means.items():
        gains = np.array([tables[t] - rival[t] for t in rival if t in tables])
        cells = []
        for i in range(2):
            gain = gains[:, i]
            p = wilcoxon(gain).pvalue if gain.any() else 1.0
            wins, losses = int((gain > 0).sum()), int((gain < 0).sum())
            cells.append(f"{gain.mean():+.4f} | {wins}–{losses} | {p:.1g}")
        seconds = np.mean([t[2] for t in tables.values()])
        yield f"| {variant} | {' | '.join(cells)} | {seconds:.2f} |"
    yield ""


def main() -> None:
    """Run all variants and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--adbench", type=Path)
    parser.add_argument("--macrodata", type=Path)
    parser.add_argument("--selection", type=Path, required=True)
    parser.add_argument("--half", default="select")
    parser.add_argument("--variants", nargs="*", default=list(VARIANTS), choices=VARIANTS)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("-o", "--output", type=Path, default=Path("docs/results/lead/settings"))
    options = parser.parse_args()
    chosen = read_selection(options.selection, options.half)
    tasks = []
    for suite in ("adbench", "macrodata"):
        folder = getattr(options, suite)
        files = SUITES[suite].files(folder) if folder else {}
        tasks += [
            Task(suite, table, files[table], seed, tuple(options.variants))
            for table in (chosen.of(suite) if files else [])
            if table in files
            for seed in range(options.seeds)
        ]
    tasks.sort(key=lambda task: -task.file.stat().st_size)
    measure(tasks[-1])  # compile once
    for library in ("OMP", "OPENBLAS", "MKL"):  # the processes start afterwards
        os.environ[f"{library}_NUM_THREADS"] = "1"
    lines: list[Line] = []
    with multiprocessing.get_context("spawn").Pool(resolve_jobs(options.jobs)) as pool:
        for done, found in enumerate(pool.imap_unordered(measure, tasks), 1):
            lines += found
            print(f"{done} of {len(tasks)}: {found[0]['table']}", flush=True)
    lines.sort(key=lambda line: (line["suite"], line["table"], line["seed"]))
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with options.output.with_suffix(".csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, lines[0])
        writer.writeheader()
        writer.writerows(
            {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in line.items()}
            for line in lines
        )
    text = [
        "# Settings of the recommended configuration",
        "",
        "Created by `python benchmarks/settings_study.py --adbench FOLDER --macrodata FOLDER "
        f"--selection FILE --half {options.half} --seeds {options.seeds} --variants "
        + " ".join(f'"{variant}"' for variant in options.variants)
        + f"`: differences from {KNN} "
        f"on the tables of that half. {VERDICT}",
        "",
    ]
    for suite in dict.fromkeys(line["suite"] for line in lines):
        text += summary(lines, suite)
    options.output.with_suffix(".md").write_text("\n".join(text))
    print("\n".join(text))


if __name__ == "__main__":
    main()
