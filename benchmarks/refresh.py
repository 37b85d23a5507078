"""`refresh`: is it as accurate as a new fit, in how much of its time, and what does it report?

    python benchmarks/refresh.py --data FOLDER --out docs/results/refresh [--seeds 3]
    python benchmarks/refresh.py --times --out docs/results/refresh_times

Ten ADBench tables. Of the inliers, 40 % (at most 3,000) train the former model, as many are the
recent rows, and the others (at most 2,000) are test rows, with all anomalies. In the first world
the recent rows and the test rows are like the former ones; in the second, half of the features,
drawn at random, have moved by one standard deviation and vary 1.2 times as much; in the third,
these features have exchanged their places, so that all their relations are others. Measured: the
ROC-AUC of a refresh minus that of a new fit on the recent rows; the share of test inliers that are
flagged (at most 5 % are promised); the share of units that are still nearest to themselves, of all
units of their member (Hungarian assignment, in scaled units); and the share of ranges that are
reported as moved, for features that moved and for the others.

Times are those of synthetic tables of ten correlated features, moved in the same way, as a ratio of
a refresh and a new fit in one process, after both have run once; the median of three.
"""

from __future__ import annotations

import argparse
import copy
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from diffint import DiffInt
from diffint.core.model import Member
from diffint.engine.cpu import training
from diffint.fit.unit_matching import match_units
from diffint.tables.datasets import adbench_files, read_adbench
from result_lines import emit

TABLES = (
    *("6_cardio", "7_Cardiotocography", "12_fault", "19_landsat", "20_letter", "28_pendigits"),
    *("29_Pima", "37_Stamps", "38_thyroid", "40_vowels"),
)
WORLDS = ("as before", "moved", "other relations")
SIZES = (2_000, 10_000, 50_000)
RATE, MOST_RECENT, MOST_TESTED, REPEATS = 0.05, 3_000, 2_000, 3

Table = NDArray[Any]


def mover(world: str, inliers: Table, moved: NDArray[np.intp]) -> Callable[[Table], Table]:
    """The function that brings rows into a world; moved: the features concerned."""
    mean, deviation = inliers.mean(axis=0)[moved], inliers.std(axis=0)[moved]

    def move(x: Table) -> Table:
        x = x.copy()
        if world == "moved":
            x[:, moved] = mean + 1.2 * (x[:, moved] - mean) + deviation
        elif world == "other relations":
            x[:, moved] = x[:, np.roll(moved, 1)]
        return x

    return move


def measure(path: Path, seed: int) -> dict[str, list[float]]:
    """What is measured in each world."""
    table, rng = read_adbench(path), np.random.default_rng(seed)
    order = rng.permutation(np.flatnonzero(table.y == 0))
    n = min(int(0.4 * len(order)), MOST_RECENT)
    old, recent, test = (table.x[part] for part in (order[:n], order[n : 2 * n], order[2 * n :]))
    test, odd = test[:MOST_TESTED], table.x[table.y == 1]
    labels = np.r_[np.zeros(len(test)), np.ones(len(odd))]
    varies = np.flatnonzero(np.ptp(old, axis=0) > 0)
    moved = rng.permutation(varies)[: len(varies) // 2]
    detector = DiffInt(random_state=seed, false_positive_rate=RATE).fit(old)
    former, found = detector.model_, {}
    for world in WORLDS:
        move = mover(world, table.x[order], moved)
        refreshed = copy.deepcopy(detector)
        compared = refreshed.refresh(move(recent))
        fresh = DiffInt(random_state=seed + 100, false_positive_rate=RATE).fit(move(recent))
        rows = move(np.concatenate([test, odd]))
        accuracy = [roc_auc_score(labels, d.anomaly_score(rows)) for d in (fresh, refreshed)]
        flagged = [float((d.predict(rows[: len(test)]) == -1).mean()) for d in (fresh, refreshed)]
        same = [
            float((match_units(_box(a), _box(b)) == np.arange(len(a.center))).mean())
            for a, b in zip(former.members, refreshed.model_.members, strict=True)
        ]
        names = {former.feature_names[j] for j in moved}
        per_feature = compared.n_ranges / max(len(varies), 1)
        n_moved = sum(shift.feature in names for shift in compared.ranges)
        shares = (
            n_moved / (per_feature * len(moved)),
            (len(compared.ranges) - n_moved) / (per_feature * (len(varies) - len(moved))),
        )
        found[world] = [
            accuracy[0],
            accuracy[1] - accuracy[0],
            *flagged,
            float(np.mean(same)),
            *shares,
        ]
    return found


def _box(member: Member) -> tuple[Table, Table]:
    return member.center.astype(np.float64), member.half_width.astype(np.float64)


def times(n_rows: int) -> tuple[float, float, float]:
    """Seconds of a fit, share of them that is training, and the ratio of a refresh and a fit."""
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(10, 10))
    old, recent = (rng.normal(size=(n_rows, 10)) @ mixing for _ in range(2))
    recent = mover("moved", old, np.arange(5))(recent)
    spent, train = [0.0], training.train_members

    def timed(*arguments: Any) -> Any:
        started = time.perf_counter()
        result = train(*arguments)
        spent[0] += time.perf_counter() - started
        return result

    setattr(training, "train_members", timed)  # noqa: B010
    fits, shares, ratios = [], [], []
    former = DiffInt(random_state=0).fit(old)
    for _ in range(REPEATS + 1):
        detector = copy.deepcopy(former)
        spent[0], started = 0.0, time.perf_counter()
        DiffInt(random_state=1).fit(recent)
        fits.append(time.perf_counter() - started)
        shares.append(spent[0] / fits[-1])
        started = time.perf_counter()
        detector.refresh(recent)
        ratios.append((time.perf_counter() - started) / fits[-1])
    training.train_members = train
    middle = [statistics.median(values[1:]) for values in (fits, shares, ratios)]
    return middle[0], middle[1], middle[2]


def write_times(out: Path) -> None:
    """Measure all sizes, and write the page."""
    text: list[str] = []
    emit(
        text,
        "# Refreshing: times",
        "",
        "Created by `python benchmarks/refresh.py --times --out docs/results/refresh_times`, which "
        "describes what is measured.",
        "",
        "| rows | a new fit | of it training | a refresh, as a share of the fit |",
        "|---|---|---|---|",
    )
    for n_rows in SIZES:
        seconds, share, ratio = times(n_rows)
        emit(text, f"| {n_rows:,} | {seconds:.2f} s | {share:.0%} | {ratio:.2f} |")
    out.with_suffix(".md").write_text("\n".join(text) + "\n")


def write_accuracy(data: Path, out: Path, seeds: int) -> None:
    """Measure all tables, and write the page; after every seed, as all of them take long."""
    files = adbench_files(data)
    runs: dict[str, list[dict[str, list[float]]]] = {name: [] for name in TABLES}
    for seed in range(seeds):
        for name in TABLES:
            runs[name].append(measure(files[name], seed))
            print(name, {world: runs[name][-1][world][1] for world in WORLDS}, flush=True)
        out.with_suffix(".md").write_text("\n".join(accuracy_page(runs, seed + 1)) + "\n")


def accuracy_page(runs: dict[str, list[dict[str, list[float]]]], seeds: int) -> list[str]:
    """The lines of the page; runs: by table, one for each seed."""
    text: list[str] = []
    emit(
        text,
        "# Refreshing",
        "",
        "Created by `python benchmarks/refresh.py --data FOLDER --out docs/results/refresh "
        f"--seeds {seeds}`, which describes what is measured; means over seeds. "
        "[Times](refresh_times.md) are on a page of their own.",
    )
    for world in WORLDS:
        emit(
            text,
            "",
            f"## Rows {'with other relations' if world == WORLDS[2] else world}",
            "",
            "| table | ROC-AUC of a new fit | of a refresh | inliers flagged: fit | refresh | "
            "units still themselves | ranges reported: features that moved | others |",
            "|---|---|---|---|---|---|---|---|",
        )
        means = [np.mean([run[world] for run in runs[name]], axis=0) for name in TABLES]
        lines = zip((*TABLES, "**mean**"), (*means, np.mean(means, axis=0)), strict=True)
        for name, values in lines:
            shares = " | ".join(f"{value:.3f}" for value in values[2:])
            emit(text, f"| {name} | {values[0]:.4f} | {values[1]:+.4f} | {shares} |")
    return text


def main() -> None:
    """Write one of the two pages."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--times", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.times:
        write_times(options.out)
    elif options.data is None:
        parser.error("give the folder of ADBench with --data, or --times")
    else:
        write_accuracy(options.data, options.out, options.seeds)


if __name__ == "__main__":
    main()
