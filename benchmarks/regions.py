"""How many regions are decided, and how long does it take?

    python benchmarks/regions.py --data FOLDER --out docs/results/regions [--regions 40] [--jobs 2]

Six ADBench tables, the recommended configuration on the training inliers of one split, both
decoders. A region is a box over two or three features; a feature's range has 2 to 20 % of the
training range, around a value of a random row (each feature of another one, so that the values
need not go together) or up to one training range beyond the largest or smallest. Half of the
regions leave the other features free, half fix them to the values of a test row. What is true is
searched for: 4,000 random rows, 2,000 rows with the free features of training rows, and rows of a
gradient-based adversary (Adam, minimising and maximising the score) from 24 starts. A region in
which all of these are flagged, or none, counts as truly certain; regions are drawn until half of
them are, for every table and kind.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
import torch

from diffint import DiffInt
from diffint.bench.protocol import make_trial
from diffint.tables.datasets import adbench_files, read_adbench
from result_lines import emit
from score_search import TorchScore, follow_gradient

TABLES = ("6_cardio", "14_glass", "18_Ionosphere", "29_Pima", "38_thyroid", "45_wine")
KINDS = ("free", "fixed")
SECONDS = 10.0
STARTS, STEPS = 24, 40


def draw_region(
    train: np.ndarray, test: np.ndarray, kind: str, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Ends of a region, (features,) each; infinite where a feature is free."""
    d = train.shape[1]
    varies = np.flatnonzero(np.ptp(train, axis=0) > 0)
    chosen = rng.choice(varies, size=int(rng.integers(2, 4)), replace=False)
    low, high = np.full(d, -np.inf), np.full(d, np.inf)
    if kind == "fixed":
        low[:] = high[:] = test[rng.integers(len(test))]
    for j in chosen:
        span = np.ptp(train[:, j])
        width = span * 10.0 ** rng.uniform(np.log10(0.02), np.log10(0.2))
        middle = rng.choice(train[:, j])
        if rng.random() < 0.3:
            beyond = rng.random() * span
            middle = (
                train[:, j].max() + beyond if rng.random() < 0.5 else train[:, j].min() - beyond
            )
        low[j], high[j] = middle - width / 2, middle + width / 2
    return low, high


def search(
    detector: DiffInt, score: TorchScore, train: np.ndarray, low: np.ndarray, high: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:  # fmt: skip
    """Scores of rows in the region."""
    span = np.ptp(train, axis=0) + 1e-9
    floor = np.where(np.isinf(low), train.min(axis=0) - span, low)
    ceiling = np.where(np.isinf(high), train.max(axis=0) + span, high)
    random = floor + (ceiling - floor) * rng.random((4_000, len(low)))
    known = train[rng.integers(len(train), size=2_000)]
    fixed = ~np.isinf(low)
    known = np.where(fixed, floor + (ceiling - floor) * rng.random(known.shape), known)
    seen = np.asarray(detector.anomaly_score(np.concatenate([random, known])))
    threshold = detector.rule.threshold
    if seen.min() <= threshold < seen.max():  # mixed: nothing more to find out
        return seen
    starts = (known[:STARTS] - floor) / np.where(ceiling > floor, ceiling - floor, 1.0)
    rows = follow_gradient(score, floor, ceiling, np.clip(starts, 0.0, 1.0), STEPS)
    return np.concatenate([seen, detector.anomaly_score(rows)])


def measure(path: Path, decoder: str, kind: str, n_regions: int) -> list[dict[str, Any]]:
    """One line per region."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    train, test, _ = make_trial(read_adbench(path), 0, "inliers")
    detector = DiffInt(decoder=decoder, random_state=0, n_jobs=1).fit(train)
    score, threshold = TorchScore(detector.model_), detector.rule.threshold
    rng = np.random.default_rng(0)
    lines: list[dict[str, Any]] = []
    wanted = {True: n_regions // 2, False: n_regions // 2}
    for _ in range(50 * n_regions):
        if not any(wanted.values()):
            break
        low, high = draw_region(train, test, kind, rng)
        scores = search(detector, score, train, low, high, rng)
        truth = (
            "all flagged" if scores.min() > threshold
            else "none flagged" if scores.max() <= threshold else "mixed"
        )  # fmt: skip
        certain = truth != "mixed"
        if not wanted[certain]:
            continue
        wanted[certain] -= 1
        line: dict[str, Any] = {
            "table": path.stem,
            "decoder": decoder,
            "kind": kind,
            "truth": truth,
        }
        started = time.perf_counter()
        plain = detector.certify_region(low, high)
        line["verdict"], line["seconds"] = plain.verdict, time.perf_counter() - started
        started = time.perf_counter()
        finer = detector.certify_region(low, high, splits=1_000_000, seconds=SECONDS)
        line["finer"], line["finer_seconds"] = finer.verdict, time.perf_counter() - started
        line["n_boxes"] = finer.n_boxes
        line["lower"], line["found_lower"] = finer.lower / threshold, scores.min() / threshold
        line["upper"], line["found_upper"] = finer.upper / threshold, scores.max() / threshold
        line["violations"] = int(((scores < finer.lower) | (scores > finer.upper)).sum())
        lines.append(line)
    return lines


def report(lines: list[dict[str, Any]], options: Any) -> list[str]:
    """The page."""
    text: list[str] = []
    emit(
        text,
        "# Regions that get decided",
        "",
        f"Created by `python benchmarks/regions.py --data FOLDER --out docs/results/regions "
        f"--regions {options.regions}`, which describes what is measured.",
        "",
        f"{len(lines):,} regions, **{sum(line['violations'] for line in lines)} scores outside a "
        "bound**. Decided: the share of regions that are truly certain (all rows flagged, or none) "
        "for which this is proven: by default (32 splits), and within 10 seconds. Mixed: the share "
        "of the other regions for which a flagged and a passed row are found, within 10 seconds.",
        "",
        "| decoder | other features | truth | regions | decided by default | within 10 s | "
        "seconds by default: median | longest |",
        "|---|---|---|---|---|---|---|---|",
    )
    for decoder in options.decoders.split(","):
        for kind in (*KINDS, "all"):
            for truth in ("all flagged", "none flagged", "certain", "mixed"):
                own = [
                    line
                    for line in lines
                    if line["decoder"] == decoder
                    and kind in (line["kind"], "all")
                    and (line["truth"] == truth or (truth == "certain" != line["truth"] != "mixed"))
                ]
                if own:
                    emit(text, _cells(own, decoder, kind, truth))
    emit(text, "", "## By table", "", "Decided, of the truly certain regions.", "")
    emit(text, "| table | decoder | regions | by default | within 10 s |", "|---|---|---|---|---|")
    for table in options.tables.split(","):
        for decoder in options.decoders.split(","):
            own = [
                line
                for line in lines
                if (line["table"], line["decoder"]) == (table, decoder) and line["truth"] != "mixed"
            ]
            if own:
                shares = [np.mean([line[k] != "undecided" for line in own]) for k in _VERDICTS]
                cells = " | ".join(f"{share:.2f}" for share in shares)
                emit(text, f"| {table} | {decoder} | {len(own)} | {cells} |")
    return text


_VERDICTS = ("verdict", "finer")


def _cells(lines: list[dict[str, Any]], decoder: str, kind: str, truth: str) -> str:
    decided = [np.mean([line[k] != "undecided" for line in lines]) for k in _VERDICTS]
    seconds = [line["seconds"] for line in lines]
    return (
        f"| {decoder} | {kind} | {truth} | {len(lines)} | {decided[0]:.2f} | {decided[1]:.2f} "
        f"| {np.median(seconds):.2f} | {max(seconds):.2f} |"
    )


def main() -> None:
    """Measure all tables and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, default=os.environ.get("DIFFINT_ADBENCH"))
    parser.add_argument("--out", required=True, help="page without its ending")
    parser.add_argument("--regions", type=int, default=40, help="of each table, decoder and kind")
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--decoders", default="certified,free")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    files = adbench_files(options.data)
    lines: list[dict[str, Any]] = []
    with ProcessPoolExecutor(options.jobs) as pool:
        tasks = [
            pool.submit(measure, files[table], decoder, kind, options.regions)
            for table in options.tables.split(",")
            for decoder in options.decoders.split(",")
            for kind in KINDS
        ]
        for n, future in enumerate(as_completed(tasks)):
            lines += future.result()
            print(f"{n + 1} of {len(tasks)} done", file=sys.stderr)
    with open(f"{options.out}.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, lines[0].keys())
        writer.writeheader()
        writer.writerows(lines)
    Path(f"{options.out}.md").write_text("\n".join(report(lines, options)) + "\n")


if __name__ == "__main__":
    main()
