"""Compare ways of calibration: how accurate the detector stays, and what its p-values find.

    python benchmarks/calibration_study.py --adbench FOLDER --macrodata FOLDER --selection FILE
        --out docs/results/calibration_study [--seeds 2] [--every 8]

On tables of the half that settings are chosen on, inliers split 60 : 40 at random; every so
many-th table of macrOData, in order of size, and all of ADBench up to MOST_CELLS training cells.

Ways:

- members: each member leaves out other rows. Calibration rows are scored by the members that left
  them out, new rows by all. No theorem holds for these p-values.
- member by member: as before, but a new row is compared with the rows that a member left out by
  its score of this member (CV+, cross-conformal). P(p ≤ α) ≤ 2 α + 1.6 / (rows / 5 + 1).
- lowest member: a new row's score is the lowest of all members. The same theorem.
- twice the mean: the mean of one p-value for each member, times two. P(p ≤ α) ≤ α.
- holdout: all members leave out 10, 20 or 30 % of the rows. P(p ≤ α) ≤ α.

Measured: ROC-AUC and average precision (of the detector's own score), the share of test inliers
and of anomalies with p ≤ 0.05, and the share of anomalies that are selected by the procedure of
Benjamini and Hochberg at 0.1 where 10 % of the rows are anomalies.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

from decisions import rows_of
from diffint import DiffInt
from diffint.bench.selection import read_selection
from diffint.decide.selection import step_up
from diffint.fit import row_split
from diffint.tables.datasets import adbench_files, macrodata_files
from result_lines import emit

MOST_ROWS, MOST_TEST, MOST_CELLS = 20_000, 3_000, 200_000
HELD_OUT = (0.1, 0.2, 0.3)
SIZES = ((0, 1_000), (1_000, 5_000), (5_000, 10**9))
COLUMNS = ("suite", "table", "seed", "rows", "way", "roc_auc", "ap", "normal", "found", "selected")

Array = NDArray[np.float64]


def measure(suite: str, name: str, path: Path, seed: int) -> list[dict[str, Any]]:
    """One line per way."""
    x, anomalous = rows_of(suite, path)
    rng = np.random.default_rng(1_000 + seed)
    inliers, anomalies = (rng.permutation(np.flatnonzero(anomalous == a)) for a in (False, True))
    n_train = int(0.6 * len(inliers))
    train, normal = x[inliers[:n_train][:MOST_ROWS]], x[inliers[n_train:][:MOST_TEST]]
    test = np.concatenate([normal, x[anomalies[:MOST_TEST]]])
    is_odd = np.arange(len(test)) >= len(normal)
    lines = []

    def add(way: str, scores: Array, p: Array) -> None:
        count = min(max(round(len(normal) / 9), 1), int(is_odd.sum()))
        some = np.r_[np.flatnonzero(~is_odd), np.flatnonzero(is_odd)[:count]]
        found = step_up(p[some], 0.1)
        values = (
            *(suite, name, seed, len(train), way),
            roc_auc_score(is_odd, scores),
            average_precision_score(is_odd, scores),
            (p[~is_odd] <= 0.05).mean(),
            (p[is_odd] <= 0.05).mean(),
            found[is_odd[some]].mean(),
        )
        lines.append(dict(zip(COLUMNS, values, strict=True)))

    detector = DiffInt(random_state=seed, calibration="members")
    split = detector._fit(train, None, None)
    scores, packed = detector.anomaly_score(test), detector.prepared.packed
    by_member = np.stack([packed.member_scores(test, k, 1) for k in range(packed.n_members)])
    known = [packed.member_scores(train[rows], k, 1) for k, rows in enumerate(split.left_out)]
    add("members", scores, detector.p_values(test))
    counts = [_at_least(k, s) for k, s in zip(known, by_member, strict=True)]
    n_known = sum(map(len, known))
    add("member by member", scores, (1 + np.sum(counts, axis=0)) / (1 + n_known))
    lowest = by_member.min(axis=0)
    add("lowest member", lowest, (1 + _at_least(np.concatenate(known), lowest)) / (1 + n_known))
    each = [(1 + c) / (1 + len(k)) for c, k in zip(counts, known, strict=True)]
    add("twice the mean", scores, np.minimum(2 * np.mean(each, axis=0), 1.0))
    for share in HELD_OUT:
        with patch.object(row_split, "HELD_OUT_SHARE", share):
            detector = DiffInt(random_state=seed, calibration="holdout").fit(train)
        way = f"holdout {100 * share:g} %"
        add(way, detector.anomaly_score(test), detector.p_values(test))
    return lines


def _at_least(known: Array, scores: Array) -> NDArray[np.intp]:
    """How many of the known scores are at least as high. (rows,) → (rows,)"""
    return len(known) - np.searchsorted(np.sort(known), scores, side="left")


def report(lines: list[dict[str, Any]], options: Any) -> list[str]:
    """The page."""
    text: list[str] = []
    n_tables = len({line["table"] for line in lines})
    emit(
        text,
        "# How rows are left out for calibration",
        "",
        "Created by `python benchmarks/calibration_study.py --adbench FOLDER --macrodata FOLDER "
        f"--selection FILE --out docs/results/calibration_study --seeds {options.seeds} --every "
        f"{options.every}`, which also describes the ways. {n_tables} tables of the half that "
        f"settings are chosen on, {options.seeds} seeds; means over tables.",
    )
    for low, high in SIZES:
        own = [line for line in lines if low <= line["rows"] < high]
        count = len({line["table"] for line in own})
        if not own:
            continue
        name = f"From {low:,} training rows on" if low else f"Below {high:,} training rows"
        if low and high < 10**9:
            name = f"{low:,} to {high:,} training rows"
        emit(
            text,
            "",
            f"## {name} ({count} tables)",
            "",
            "| way | ROC-AUC | average precision | normal rows with p ≤ 0.05 | anomalies with "
            "p ≤ 0.05 | anomalies selected at 0.1 |",
            "|---|---|---|---|---|---|",
        )
        for way in dict.fromkeys(line["way"] for line in own):
            cells = [_mean(own, way, column) for column in COLUMNS[5:]]
            emit(text, f"| {way} | " + " | ".join(f"{cell:.3f}" for cell in cells) + " |")
    return text


def _mean(lines: list[dict[str, Any]], way: str, column: str) -> float:
    by_table: dict[str, list[float]] = {}
    for line in lines:
        if line["way"] == way:
            by_table.setdefault(line["table"], []).append(line[column])
    return float(np.mean([np.mean(values) for values in by_table.values()]))


def main() -> None:
    """Run all tables and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name in ("--adbench", "--macrodata", "--selection", "--out"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--every", type=int, default=8)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    chosen = read_selection(options.selection, "select")
    files = {
        "adbench": adbench_files(options.adbench),
        "macrodata": macrodata_files(options.macrodata),
    }
    lines = []
    for suite, found in files.items():
        names = [name for name in found if name in chosen.of(suite)]
        for name in names if suite == "adbench" else names[:: options.every]:
            x, anomalous = rows_of(suite, found[name])
            if 0.6 * (~anomalous).sum() * x.shape[1] > MOST_CELLS:
                continue
            for seed in range(options.seeds):
                lines += measure(suite, name, found[name], seed)
            print(f"{name}: {lines[-1]['rows']:,} rows", flush=True)
    with options.out.with_suffix(".csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(
            {k: round(v, 5) if isinstance(v, float) else v for k, v in line.items()}
            for line in lines
        )
    options.out.with_suffix(".md").write_text("\n".join(report(lines, options)) + "\n")


if __name__ == "__main__":
    main()
