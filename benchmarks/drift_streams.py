"""How often does `DriftMonitor` alarm without drift, and how soon after a change?

    python benchmarks/drift_streams.py --out docs/results/drift_streams --adbench FOLDER
        [--streams 500] [--rows 100000] [--change-streams 50] [--mmd-streams 10] [--jobs 2]

Runs are kept in OUT.runs.csv, and not run again if the command is given again.

Streams are independent draws from ten synthetic distributions and, with `--adbench`, from ten real
tables (a smoothed bootstrap of their inliers; benchmarks/drift_tables.py). Every stream without
drift has a detector of its own, fitted on fresh rows (a quick fit: how well it finds anomalies does
not matter here), as the rate is an average over reference rows too; the changes of one table and
seed share one.

- Without drift: the share of streams that ever alarm at a rate of 1 %.
- Changes (`CHANGES`) of one feature drawn at random, after `BEFORE` rows: the share of streams with
  an alarm within 1,000 rows of the change and none before, the delay, and whether the feature named
  first is the one that changed; for a correlation, whether it is one of the first pair. If only the
  anomaly scores have moved at the alarm, batches of 100 rows follow until a feature is named.
  Features are those that can change like this: a spread must move a fifth of the cells by a tenth
  of a standard deviation, and a correlation must have been above 0.5 (Spearman's), of columns in
  which a fifth of the cells are not the most common value.
- The same streams with a Kolmogorov–Smirnov test of every feature and, for some of them, MMD, of
  batches of 100 or 500 rows, at the same rate of false alarms over `--rows` rows
  (benchmarks/drift_rivals.py).
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import os
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import beta

from diffint import DiffInt, DriftMonitor
from drift_rivals import (
    KolmogorovSmirnov,
    MeanDiscrepancy,
    difference_from_alibi_detect,
    first_alarm,
    read,
)
from drift_tables import CHANGES, SYNTHETIC, TABLES, changeable, changed, draw
from result_lines import emit

RATE, WITHIN, AFTER, BLOCK, BATCH = 0.01, 1_000, 3_000, 20_000, 100
BEFORE = (0, 5_250)  # the second is in the middle of a batch of either size
SIZES = (100, 500)
AGREEING = ("correlated", "missing", "mixed")  # tables for the comparison with alibi-detect
FIT_ROWS = 8_000
QUICK: dict[str, Any] = {
    "n_units": 16,
    "hidden_width": 16,
    "epochs": 3,
    "n_members": 2,
    "n_jobs": 1,
}
WAYS = ("monitor", *(f"{test}, {size} rows" for test in ("KS", "MMD") for size in SIZES))
COLUMNS = ("table", "seed", "change", "before", "way", "alarm", "delay", "first", "p")

Line = dict[str, Any]


# --- Streams -------------------------------------------------------------------------------------


def fit(
    table: str, rng: np.random.Generator, seed: int, folder: Path | None
) -> tuple[DiffInt, pd.DataFrame]:
    """A detector of fresh rows, and these rows."""
    rows = draw(table, rng, FIT_ROWS, folder)
    detector = DiffInt(calibration="holdout", random_state=seed, **QUICK)
    # Rows that are drawn again are independent, and no copies.
    return detector.fit(rows, groups=np.arange(FIT_ROWS)), rows


def without_drift(table: str, seed: int, n_rows: int, folder: Path | None) -> list[Line]:
    """Whether a stream without drift ever alarms."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng([seed, TABLES.index(table)])
    detector, _ = fit(table, rng, seed, folder)
    monitor = DriftMonitor(detector, RATE)
    for start in range(0, n_rows, BLOCK):
        monitor.update(draw(table, rng, min(BLOCK, n_rows - start), folder))
    return [_line(table, seed, "none", n_rows, "monitor", monitor.alarm_row, None, "",
                  monitor.state.p_value)]  # fmt: skip


def with_changes(table: str, seed: int, changes: list[tuple[str, int]], n_rows: int, with_mmd: bool,
                 folder: Path | None) -> list[Line]:  # fmt: skip
    """When each way alarms after each change, and what it names first."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng([1_000_000 + seed, TABLES.index(table)])
    detector, trained = fit(table, rng, seed, folder)
    tests: dict[str, tuple[int, Any]] = {
        f"KS, {size} rows": (size, KolmogorovSmirnov(detector, size, RATE, n_rows))
        for size in SIZES
    }
    if with_mmd:
        for size in SIZES:
            test = MeanDiscrepancy(
                detector, size, RATE, n_rows,
                lambda n: read(detector, draw(table, rng, n, folder)),
            )  # fmt: skip
            tests[f"MMD, {size} rows"] = size, test
    lines = []
    for change, before in changes:
        own = np.random.default_rng(
            [2_000_000 + seed, TABLES.index(table), before, CHANGES.index(change)]
        )
        possible = changeable(change, trained)
        if not possible:
            continue
        feature = str(own.choice(possible))
        first_rows = draw(table, own, before, folder)
        after = changed(draw(table, own, AFTER, folder), change, feature, own, trained)
        found: list[tuple[str, int | None, tuple[str, ...] | None]] = [
            ("monitor", *_monitor_alarm(detector, first_rows, after, change))
        ]
        x = read(detector, pd.concat([first_rows, after], ignore_index=True))
        for way, (size, test) in tests.items():
            row, name = first_alarm(test, x, size)
            found.append((way, row, (name,) if name else None))
        for way, row, named in found:
            right = "" if row is None or named is None else str(feature in named)
            lines.append(_line(table, seed, change, before, way, row, before, right))
    return lines


def _monitor_alarm(
    detector: DiffInt, before: pd.DataFrame, after: pd.DataFrame, change: str
) -> tuple[int | None, tuple[str, ...]]:
    """The row of the alarm, and the feature named first; of a correlation, both.

    If only the anomaly scores have moved at the alarm, a later batch may name a feature.
    """
    monitor = DriftMonitor(detector, RATE)
    state = monitor.update(before)
    for start in range(0, len(after), BATCH):
        if state.features or (state.drifted and start >= WITHIN):
            break
        state = monitor.update(after[start : start + BATCH])
    named = state.features[:1]
    if change == "correlation":
        named = next((c.features for c in state.changes if c.features), ())
    return monitor.alarm_row, named


def _line(table: str, seed: int, change: str, before: int, way: str, alarm: int | None,
          changed_at: int | None, first: str, p: Any = "") -> Line:  # fmt: skip
    delay = "" if alarm is None or changed_at is None else alarm - changed_at + 1
    cells = (table, seed, change, before, way, "" if alarm is None else alarm, delay, first, p)
    return dict(zip(COLUMNS, cells, strict=True))


def agreement() -> float:
    """The largest difference of our MMD² from alibi-detect's, over some batches."""
    warnings.simplefilter("ignore")
    return max(_disagreement(table, shift) for table in AGREEING for shift in (0.0, 0.5))


def _disagreement(table: str, shift: float) -> float:
    rng = np.random.default_rng(0)
    detector, _ = fit(table, rng, 0, None)

    def rows(n: int) -> np.ndarray:
        return read(detector, draw(table, rng, n, None))

    test = MeanDiscrepancy(detector, 100, RATE, 100_000, rows)
    batch = test.encoded(rows(100)) + np.float32(shift)
    return difference_from_alibi_detect(test.stored, batch, test.value(batch))


# --- The page ------------------------------------------------------------------------------------


def report(lines: list[Line], options: Any) -> list[str]:
    """The page."""
    text: list[str] = []
    none = [line for line in lines if line["change"] == "none"]
    emit(
        text,
        "# Drift: false alarms and delays",
        "",
        "Created by `python benchmarks/drift_streams.py --out docs/results/drift_streams "
        f"{'--adbench FOLDER ' if options.adbench else ''}--streams {options.streams} "
        f"--rows {options.rows} --change-streams {options.change_streams} --mmd-streams "
        f"{options.mmd_streams}`. What is measured is described at the top of the script.",
        "",
        "## Without drift",
        "",
        f"Streams of {options.rows:,} rows that ever alarm, at a rate of {RATE:g}.",
        "",
        "Also the shares with p ≤ 0.1 and p ≤ 0.5 at any time.",
        "",
        "| table | streams | with an alarm | share | 95 % interval | p ≤ 0.1 | p ≤ 0.5 |",
        "|---|---|---|---|---|---|---|",
    )
    for table in (*TABLES, "all"):
        own = [line for line in none if table in (line["table"], "all")]
        if own:
            n, k = len(own), sum(line["alarm"] != "" for line in own)
            low, high = beta.ppf(0.025, k, n - k + 1) if k else 0.0, beta.ppf(0.975, k + 1, n - k)
            interval = f"{low:.4f}–{1.0 if k == n else high:.4f}"
            p = np.array([line["p"] for line in own])
            shares = " | ".join(f"{(p <= level).mean():.3f}" for level in (0.1, 0.5))
            emit(text, f"| {table} | {n} | {k} | {k / n:.4f} | {interval} | {shares} |")
    for before in BEFORE:
        emit(
            text,
            "",
            f"## Changes after {before:,} rows",
            "",
            f"Share with an alarm within {WITHIN:,} rows of the change and none before; the mean "
            f"delay in rows ({AFTER:,} without an alarm in as many rows), its median and 95th "
            "percentile (– if there are fewer alarms); and the share of alarms that name the "
            "feature first (MMD names none).",
            "",
            "| change | way | streams | within 1,000 rows | mean | median | 95 % | feature first |",
            "|---|---|---|---|---|---|---|---|",
        )
        for change in CHANGES:
            for way in WAYS:
                emit(text, *_change_lines(lines, change, before, way))
    weak = [
        (table, change, before, own)
        for before in BEFORE
        for change in CHANGES
        for table in TABLES
        if (own := _where(lines, table=table, change=change, before=before, way="monitor"))
        and np.mean([_soon(line) for line in own]) < 0.95
    ]
    emit(text, "", "Tables with fewer than 95 % of alarms within 1,000 rows (monitor):", "")
    for table, change, before, own in weak:
        share = np.mean([_soon(line) for line in own])
        emit(text, f"- {table}, {change}, after {before:,} rows: {share:.2f} of {len(own)}")
    if not weak:
        emit(text, "None.")
    return text


def _change_lines(lines: list[Line], change: str, before: int, way: str) -> list[str]:
    own = _where(lines, change=change, before=before, way=way)
    if not own:
        return []
    # An alarm before the change is none of it.
    found = [line["delay"] if line["delay"] != "" and line["delay"] > 0 else np.inf for line in own]
    delays = np.sort(found)
    shown = [f"{np.minimum(delays, AFTER).mean():.0f}"]
    for level in (0.5, 0.95):
        delay = delays[int(np.ceil(level * len(delays))) - 1]
        shown.append(f"{delay:.0f}" if np.isfinite(delay) else "–")
    named = [line["first"] == "True" for line in own if line["first"] != ""]
    right = f"{np.mean(named):.3f}" if named else "–"
    soon = np.mean([_soon(line) for line in own])
    return [f"| {change} | {way} | {len(own)} | {soon:.3f} | {' | '.join(shown)} | {right} |"]


def _soon(line: Line) -> bool:
    return bool(line["delay"] != "" and 0 < line["delay"] <= WITHIN)


def _where(lines: list[Line], **values: Any) -> list[Line]:
    return [line for line in lines if all(line[key] == value for key, value in values.items())]


# --- The runs ------------------------------------------------------------------------------------


def main() -> None:
    """Run what is missing and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--out", required=True, help="page without its ending")
    parser.add_argument("--adbench", type=Path, help="folder of the ADBench tables")
    parser.add_argument("--streams", type=int, default=500, help="without drift, over all tables")
    parser.add_argument("--rows", type=int, default=100_000, help="of a stream without drift")
    parser.add_argument("--change-streams", type=int, default=50, help="of each table and change")
    parser.add_argument("--mmd-streams", type=int, default=10, help="of these, compared with MMD")
    parser.add_argument("--alibi-detect", action="store_true", help="compare our MMD² with its own")
    parser.add_argument("--tables", nargs="*", choices=TABLES, help="only these")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    if options.alibi_detect:
        print(f"largest difference of MMD²: {agreement():.1e}")
        return
    runs = Path(f"{options.out}.runs.csv")
    lines = _read(runs)
    tables = options.tables or list(TABLES if options.adbench else SYNTHETIC)
    tasks = _tasks(tables, options, lines)
    # Of the processes, which read this when they import NumPy: so they are spawned, not forked.
    os.environ.update(OMP_NUM_THREADS="1", NUMBA_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    context = multiprocessing.get_context("spawn")
    is_new = not runs.exists()
    runs.parent.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    with ProcessPoolExecutor(options.jobs, context) as pool, open(runs, "a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if is_new:
            writer.writeheader()
        futures = [pool.submit(*task) for task in tasks]
        for n_done, future in enumerate(as_completed(futures), 1):
            found = future.result()
            writer.writerows(found)
            file.flush()
            lines += found
            left = (time.monotonic() - start) * (len(tasks) / n_done - 1)
            print(f"\r{n_done:,} of {len(tasks):,} runs, {left / 60:.1f} minutes left  ", end="",
                  file=sys.stderr, flush=True)  # fmt: skip
    print(file=sys.stderr)
    Path(f"{options.out}.md").write_text("\n".join(report(lines, options)) + "\n")


def _tasks(tables: list[str], options: Any, lines: list[Line]) -> list[tuple[Any, ...]]:
    """What has not been run yet: functions and their arguments."""
    done = {(line["table"], line["seed"], line["change"], line["before"]) for line in lines}
    folder = options.adbench
    tasks: list[tuple[Any, ...]] = []
    for i in range(options.streams):
        table, seed = tables[i % len(tables)], i // len(tables)
        if (table, seed, "none", options.rows) not in done:
            tasks.append((without_drift, table, seed, options.rows, folder))
    for seed in range(options.change_streams):
        for table in tables:
            left = [(c, b) for c in CHANGES for b in BEFORE if (table, seed, c, b) not in done]
            if ("mean", 0) in left:  # all tables have this change, and not all the others
                with_mmd = seed < options.mmd_streams
                tasks.append((with_changes, table, seed, left, options.rows, with_mmd, folder))
    return tasks


def _read(path: Path) -> list[Line]:
    if not path.exists():
        return []
    with open(path, newline="") as file:
        lines: list[Line] = list(csv.DictReader(file))
    for line in lines:
        for name in ("seed", "before", "alarm", "delay"):
            line[name] = int(line[name]) if line[name] != "" else ""
        line["p"] = float(line["p"]) if line["p"] != "" else ""
    return lines


if __name__ == "__main__":
    main()
