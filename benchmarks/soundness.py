"""Check that certificates hold, and measure how tight they are.

    python benchmarks/soundness.py --data FOLDER [--jobs N] [--out docs/results/soundness.md]

FOLDER (or DIFFINT_ADBENCH) contains the ADBench tables (NN_name.npz). The recommended configuration
is fitted on the inliers of the training part of the 60/40 split, seed 0. `certify` is checked on
all test rows and a million random rows, many of them far outside the training range.
`certify_region` is checked on random regions. In each, random rows and a gradient-based adversary
(Adam, maximising and minimising the score through the network in float64) search for a score
outside the bounds; the library scores all these rows. Then the same for detectors of many shapes,
fitted on random tables (`soundness_shapes.py`), with rows at corners, units and training rows and
in the neighbourhood of the best rows found. A violation is a computed score below a lower
or above an upper bound, without any tolerance.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch

from diffint import DiffInt
from diffint.bench.protocol import make_trial
from diffint.tables.datasets import adbench_files, read_adbench
from result_lines import emit
from score_search import TorchScore, follow_gradient
from soundness_shapes import REGIONS as REGIONS_PER_SHAPE
from soundness_shapes import SEARCHED, Outcome, check_shapes

CERTIFIED_TABLES = [
    *("4_breastw", "6_cardio", "7_Cardiotocography", "12_fault", "14_glass", "18_Ionosphere"),
    *("20_letter", "28_pendigits", "29_Pima", "30_satellite", "37_Stamps", "38_thyroid"),
    *("39_vertebral", "40_vowels", "42_WBC", "45_wine"),
]
REGION_TABLES = ["6_cardio", "14_glass", "18_Ionosphere", "29_Pima", "38_thyroid", "45_wine"]
BOUNDED = ("certified", "spectral")
RATE_TABLES = ["14_glass", "18_Ionosphere", "6_cardio"]
RANDOM_ROWS = 1_000_000
REGIONS = 20  # per table and decoder
SAMPLES = 4_500  # per region
STARTS, STEPS = 8, 40  # of the adversary, each for maximising and minimising


class Split:
    """Training inliers and test rows of one table."""

    def __init__(self, path: Path) -> None:
        self.train, self.test, self.is_anomaly = make_trial(read_adbench(path), 0, "inliers")


def fit(detector: DiffInt, x: np.ndarray) -> DiffInt:
    """Fit without showing warnings about short training or few rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return detector.fit(x)


def random_rows(x: np.ndarray, n_rows: int, rng: np.random.Generator) -> np.ndarray:
    """Uniform rows, up to a thousand ranges beyond the training range, a tenth with missing cells.

    x: (rows, features) → (n_rows, features)
    """
    low, span = x.min(axis=0), np.ptp(x, axis=0) + 1e-9
    reach = 10.0 ** rng.uniform(-2, 3, size=(n_rows, 1))
    rows = low + span * (0.5 + reach * rng.uniform(-1, 1, size=(n_rows, x.shape[1])))
    holes = rng.random(rows.shape) < 0.3
    holes[n_rows // 10 :] = False
    rows[holes] = np.nan
    return np.asarray(rows)


# --- certify -----------------------------------------------------------------------------------


def check_certificates(files: dict[str, Path], jobs: int, lines: list[str]) -> int:
    """Add one line per table and decoder; return the number of violations."""
    emit(
        lines,
        "## `certify`",
        "",
        "Violations of `bound` and `bound_at_row` together. Tightness: mean bound / score over the "
        "flagged test rows, of the whole score and of the error alone (the rest of the score is "
        "computed, not bounded); and the share of random rows with a positive bound on the error. "
        "L: mean Lipschitz bound of the members.",
        "",
        "| table | decoder | test rows | violations | random rows | violations | bound / score | "
        "of the error | at row / score | random rows with a bound | L |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    )
    names = [name for name in CERTIFIED_TABLES if name in files]
    n_random = -(-RANDOM_ROWS // (2 * len(names)))
    tasks = [(files[name], decoder, n_random) for name in names for decoder in BOUNDED]
    total, seen = 0, np.zeros(2, dtype=int)
    with ProcessPoolExecutor(jobs) as pool:
        for line, broken, counts in pool.map(check_table, *zip(*tasks, strict=True)):
            emit(lines, line)
            total, seen = total + broken, seen + counts
    emit(
        lines,
        "",
        f"Total: {seen[0]:,} test rows and {seen[1]:,} random rows, **{total} violations**.",
        "",
    )
    return total


def check_table(path: Path, decoder: str, n_random: int) -> tuple[str, int, tuple[int, int]]:
    """One line of a table and a decoder, its violations, and rows tested and drawn."""
    split, rng = Split(path), np.random.default_rng(0)
    detector = fit(DiffInt(decoder=decoder, random_state=0, n_jobs=1), split.train)
    tested = detector.certify(split.test)
    tried = detector.certify(random_rows(split.train, n_random, rng))
    broken = [
        int(((c.bound > c.score) | (c.bound_at_row > c.score)).sum()) for c in (tested, tried)
    ]
    flagged = detector.predict(split.test) == -1
    beside = tested.beside_error.mean(axis=0)
    shares = [
        tested.bound / tested.score,
        (tested.bound - beside) / (tested.score - beside),
        tested.bound_at_row / tested.score,
    ]
    shown = [f"{share[flagged].mean():.3f}" if flagged.any() else "–" for share in shares]
    positive = (tried.bound > tried.beside_error.mean(axis=0)).mean()
    line = (
        f"| {path.stem} | {decoder} | {len(tested):,} | {broken[0]} | {len(tried):,} | {broken[1]} "
        f"| {' | '.join(shown)} | {positive:.2f} | {tested.lipschitz_bound.mean():.2f} |"
    )
    return line, sum(broken), (len(tested), len(tried))


def check_flags(files: dict[str, Path], lines: list[str]) -> None:
    """Add a table of how often training inliers and test anomalies raise the flags."""
    emit(
        lines,
        "## Flags",
        "",
        "Share of rows that raise a flag: training inliers, then test anomalies. The flags alone "
        "do not separate the two; `paper` is one member and 200 epochs, as in the paper's table.",
        "",
        "| table | configuration | out of support | strict (some unit) | strict (envelope) | "
        "beyond the envelope | vacuous units |",
        "|---|---|---|---|---|---|---|",
    )
    for name in RATE_TABLES:
        if name not in files:
            continue
        split = Split(files[name])
        for label, detector in {
            "paper": DiffInt.paper(decoder="spectral", epochs=200, random_state=0),
            "recommended": DiffInt(decoder="certified", random_state=0),
        }.items():
            fit(detector, split.train)
            certificate = detector.certify(split.test[split.is_anomaly == 1])
            cells = [
                f"{100 * a:.0f} %, {100 * b:.0f} %"
                for a, b in zip(
                    certificate.rates()["inlier_rate"], certificate.rates()["share"], strict=True
                )
            ]
            vacuous = f"{certificate.n_vacuous_units.mean():.0f} of {certificate.n_units}"
            emit(lines, f"| {name} | {label} | {' | '.join(cells)} | {vacuous} |")
    emit(lines, "")


# --- certify_region ----------------------------------------------------------------------------


def random_region(x: np.ndarray, test: np.ndarray, rng: np.random.Generator) -> Any:
    """A small box around a test row, some features beyond their range, or a box of any size."""
    d, span = x.shape[1], np.ptp(x, axis=0) + 1e-9
    center, kind = test[rng.integers(len(test))], rng.integers(3)
    lower, upper = np.full(d, -np.inf), np.full(d, np.inf)
    if kind == 0:
        reach = span * 10.0 ** rng.uniform(-4, -1)
        return center - reach, center + reach
    chosen = np.less(rng.random(d), 0.5)
    chosen[rng.integers(d)] = True
    if kind == 1:
        above = rng.random(d) < 0.5
        lower[chosen & above] = (x.max(axis=0) + span * rng.random(d))[chosen & above]
        upper[chosen & ~above] = (x.min(axis=0) - span * rng.random(d))[chosen & ~above]
        return lower, upper
    reach = span * 10.0 ** rng.uniform(-3, 0, size=(2, d))
    lower[chosen], upper[chosen] = (center - reach[0])[chosen], (center + reach[1])[chosen]
    return lower, upper


def check_regions(files: dict[str, Path], jobs: int, lines: list[str]) -> int:
    """Add one line per table and decoder; return the number of violations."""
    emit(
        lines,
        "## `certify_region`",
        "",
        f"{REGIONS} regions per line; {SAMPLES:,} random rows and {2 * STARTS * STEPS:,} rows of "
        f"the adversary in each ({STARTS} starts, counted twice, and {STEPS - 1} steps up and down "
        "from each). Width: median of upper − lower as a multiple of the range of "
        "scores that was found (at least 0.001), without and with 64 splits, for small boxes "
        "around a test row and for the other regions. Decided: share of regions with a verdict "
        "(64 splits).",
        "",
        "| table | decoder | rows scored | violations | width: small boxes | 64 splits | other "
        "regions | 64 splits | decided | seconds per region |",
        "|---|---|---|---|---|---|---|---|---|---|",
    )
    total = total_scored = 0
    names = [name for name in REGION_TABLES if name in files]
    tasks = [(files[name], decoder) for name in names for decoder in ("free", "certified")]
    with ProcessPoolExecutor(jobs) as pool:
        for line, broken, scored in pool.map(check_table_regions, *zip(*tasks, strict=True)):
            emit(lines, line)
            total, total_scored = total + broken, total_scored + scored
    emit(lines, "", f"Total: {total_scored:,} rows scored, **{total} violations**.", "")
    return total


def check_table_regions(path: Path, decoder: str) -> tuple[str, int, int]:
    """One line of a table and a decoder, its violations, and rows scored."""
    torch.set_num_threads(1)  # with small arrays more threads are slower
    rng, split = np.random.default_rng(1), Split(path)
    detector = fit(DiffInt(decoder=decoder, n_members=2, random_state=0, n_jobs=1), split.train)
    score, span = TorchScore(detector.model_), np.ptp(split.train, axis=0) + 1e-9
    broken = scored = decided = 0
    widths, seconds = [], 0.0
    for _ in range(REGIONS):
        lower, upper = random_region(split.train, split.test, rng)
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plain = detector.certify_region(lower, upper, splits=0)
            finer = detector.certify_region(lower, upper, splits=64, aim="bounds")
        seconds += time.perf_counter() - started
        middle = split.train.mean(axis=0)
        low = np.where(np.isinf(lower), np.minimum(upper, middle) - 3 * span, lower)
        high = np.where(np.isinf(upper), np.maximum(low, middle) + 3 * span, upper)
        rows = low + (high - low) * rng.random((SAMPLES, len(low)))
        ends = rng.random(rows.shape) < rng.random((SAMPLES, 1)) / 2
        rows = np.where(ends, np.where(rng.random(rows.shape) < 0.5, low, high), rows)
        starts = rng.random((STARTS, len(low)))
        scores = detector.anomaly_score(
            np.concatenate([rows, follow_gradient(score, low, high, starts, STEPS)])
        )
        for region in (plain, finer):
            broken += int(((scores < region.lower) | (scores > region.upper)).sum())
        scored += len(scores)
        decided += finer.verdict != "undecided"
        found = max(float(np.ptp(scores)), 1e-3)
        small = bool(np.isfinite(lower).all() and np.isfinite(upper).all())
        widths.append(
            (small, *((region.upper - region.lower) / found for region in (plain, finer)))
        )
    table = np.array(widths, dtype=float)
    shown = []
    for kind in (1, 0):
        part = table[table[:, 0] == kind]
        shown += [f"{np.median(part[:, c]):.1f}" if len(part) else "–" for c in (1, 2)]
    line = (
        f"| {path.stem} | {decoder} | {scored:,} | {broken} | {' | '.join(shown)} "
        f"| {decided / REGIONS:.2f} | {seconds / REGIONS:.2f} |"
    )
    return line, broken, scored


def check_many_shapes(count: int, jobs: int, lines: list[str]) -> int:
    """Add one line per kind of detector; return the number of regions with a violation."""
    emit(
        lines,
        "## `certify_region` over many shapes",
        "",
        f"{count} detectors on random tables: 2–60 features, 1–200 units, hidden width 2–64, "
        "temperature 0.01–0.5, every scaling and error, all decoders, 1–3 members, 0–500 kept "
        f"rows; {REGIONS_PER_SHAPE} regions each, a third with features that may be missing; "
        f"bounds without splits and with up to 16, and verdicts. {SEARCHED}.",
        "",
        "| detectors | regions | with pinned features | rows scored | regions with a violation |",
        "|---|---|---|---|---|",
    )
    outcomes = check_shapes(count, seed=0, jobs=jobs)
    kinds: dict[str, Callable[[Outcome], bool]] = {
        "free decoder": lambda o: not o.certified,
        "decoders without LayerNorm": lambda o: o.certified,
        "at most 10 units": lambda o: o.few_units,
        "temperature below 0.05": lambda o: o.low_temperature,
        "all": lambda _: True,
    }
    for kind, belongs in kinds.items():
        chosen = [o for o in outcomes if belongs(o)]
        counts = [sum(getattr(o, n) for o in chosen) for n in ("regions", "pinned", "rows")]
        broken = sum(o.broken for o in chosen)
        emit(lines, f"| {kind} | {' | '.join(f'{c:,}' for c in counts)} | **{broken}** |")
    for outcome in outcomes:
        if outcome.broken:
            emit(lines, "", outcome.worst)
    emit(lines, "")
    return sum(o.broken for o in outcomes)


def main() -> None:
    """Run all checks, print and write the results, and fail if there is a violation."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("DIFFINT_ADBENCH"))
    parser.add_argument("--shapes", type=int, default=480, help="Detectors with random settings")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="Processes")
    parser.add_argument("--out", type=Path, help="Markdown file to write")
    options = parser.parse_args()
    if options.data is None:
        parser.error("give the folder of ADBench tables with --data or DIFFINT_ADBENCH")
    torch.set_num_threads(1)  # with small arrays more threads are slower
    files = adbench_files(options.data)
    lines: list[str] = []
    emit(
        lines,
        "# Checks of the certificates",
        "",
        "Created by `python benchmarks/soundness.py --data FOLDER --out "
        "docs/results/soundness.md`; the method is described at the top of the script. Recommended "
        "configuration, fitted on the training inliers of one split (seed 0); a violation is a "
        "computed score outside a bound, without any tolerance.",
        "",
    )
    for name in sorted({*CERTIFIED_TABLES, *REGION_TABLES} - set(files)):
        emit(lines, f"{name} is missing from the folder.", "")
    started = time.perf_counter()
    total = check_certificates(files, options.jobs, lines)
    check_flags(files, lines)
    total += check_regions(files, options.jobs, lines)
    total += check_many_shapes(options.shapes, options.jobs, lines)
    print(f"{time.perf_counter() - started:.0f} s")
    if options.out:
        options.out.write_text("\n".join(lines).rstrip() + "\n")
    if total:
        raise SystemExit(f"{total} violations")


if __name__ == "__main__":
    main()
