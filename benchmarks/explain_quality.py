"""Measure whether explanations find features that were changed on purpose (planted errors).

    python benchmarks/explain_quality.py [--data FOLDER] [--tables NAME ...] [--seeds 3] [--rows 20]
        [--without METHOD[:KIND] ...] [--rankings] [--jobs 16] [-o docs/results/explain_quality]
    python benchmarks/explain_quality.py --from-csv FILE ... [-o docs/results/explain_quality]

Tables: those of ADBench with 5–70 features and at least 120 rows; trained on at most 10,000 rows.
Features of test inliers are replaced, and the rows are explained with every method.
*Out of range*: 1–3 features, 5–50 % of the training range beyond one of its ends. *In range*: 1–3
features; of 200 values of the feature's training column, the one farthest from the median of the
row's 20 nearest training rows. *Broken*: exactly 1, 2 or 3 features; of 100 training values within
1.5 standard deviations of the mean, the one farthest from that median, so that it is ordinary by
itself and wrong for this row only. The reasons shown are measured as they are: a row without one is
a miss, as is a row in which a rival names nothing. Also measured is how often each method is right
in the rows where a reason is shown.

Also measured: properties of the reasons shown, with a second detector on the same rows and on fresh
rows; broken dependencies in tables with categories; and the known errors of the diamonds.

With `-o`, results are added to a CSV file as they come, and `--from-csv` makes the report again
from one or more of them. A method or table whose package is not installed is left out with a note.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import explain_reasons
from diffint import DiffInt
from diffint.bench.protocol import TABLES, make_trial
from diffint.explain.responsibility import responsibilities
from diffint.score.parts import feature_parts
from diffint.tables.datasets import adbench_files, read_adbench
from explain_lines import Line, LineFile, Lines, read_lines
from explain_measures import MEASURES, WHERE_SHOWN, features_needed, right_first
from explain_mixed import MIXED, measure_diamonds, measure_mixed
from explain_planting import FITTING_TABLES, KINDS, plant
from explain_report import report
from explain_rivals import (
    GRADIENT_STEPS,
    GRADIENTS,
    METHODS,
    SHOWN,
    Setting,
    counted_rows,
    missing_package,
    reasons_shown,
)
from real_data import PackageMissing

MOST_TRAINING_ROWS = 10_000
_OTHER_SEED = 1_000  # added to the seed of the second detector


class Task(NamedTuple):
    """One table and seed, measured in a process of its own."""

    section: str
    table: str
    seed: int
    n_rows: int
    settings: dict[str, Any]  # of the detector
    path: Path = Path()
    methods: tuple[str, ...] = ()
    without: tuple[str, ...] = ()  # METHOD:KIND
    rankings_only: bool = False


def measure(task: Task) -> list[Line]:
    """The lines of one task."""
    warnings.simplefilter("ignore")
    try:
        if task.section == "diamonds":
            return list(measure_diamonds(task.seed, task.settings))
        if task.section == "mixed":
            return list(measure_mixed(task.table, task.seed, task.n_rows, task.settings))
    except PackageMissing as missing:  # cannot be passed on to another process
        raise RuntimeError(str(missing)) from None
    return list(measure_planted(task))


def measure_planted(task: Task) -> Iterator[Line]:
    """Every method on every kind of planted rows; properties of the reasons."""
    train, x_test, y_test = make_trial(read_adbench(task.path), task.seed, "inliers")
    train = train[:MOST_TRAINING_ROWS]  # in random order
    rng = np.random.default_rng(task.seed)
    fresh = x_test[y_test == 0]
    fresh = fresh[rng.permutation(len(fresh))]

    def fitted(seed: int) -> DiffInt:
        return DiffInt(random_state=seed, n_jobs=1, **task.settings).fit(train)

    setting = Setting(fitted(task.seed), train, task.seed)
    other = None if task.rankings_only else fitted(task.seed + _OTHER_SEED)
    _warm_up(setting)

    def line(figure: str, value: float, kind: str = "", method: str = "") -> Line:
        return Line("planted", task.table, task.seed, kind, method, figure, float(value))

    explained = []
    for kind in KINDS:
        planted = plant(train, fresh[: task.n_rows], kind, rng)
        yield line("rows", len(planted.rows), kind)
        if not len(planted.rows):
            continue
        has_reason = reasons_shown(setting, planted).any(axis=1)
        for name in task.methods:
            if f"{name}:{kind}" in task.without:
                continue
            started = time.perf_counter()
            with counted_rows() as count:
                attribution = METHODS[name](setting, planted)
            seconds = time.perf_counter() - started
            for figure, function in MEASURES.items():
                yield line(figure, function(attribution, planted.changed), kind, name)
            right = right_first(attribution, planted.changed)[has_reason]
            if len(right):
                yield line(WHERE_SHOWN, right.mean(), kind, name)
            # Gradients are computed in torch, where rows are not counted.
            evaluations = GRADIENT_STEPS if name == GRADIENTS else count.rows / len(planted.rows)
            yield line("evaluations", evaluations, kind, name)
            yield line("ms per row", 1e3 * seconds / len(planted.rows), kind, name)
        if other is None:
            continue
        for figure, value in explain_reasons.of_one_kind(setting.detector, other, planted):
            yield line(figure, value, kind, SHOWN)
        explained.append((setting.detector.explain(planted.rows), planted))
    if other is None:
        return
    yield line("features", train.shape[1])
    yield line("training rows", len(train))
    for figure, value in explain_reasons.of_all(explained, fresh, train):
        yield line(figure, value)
    for figure, value in explain_reasons.of_time(setting.detector, x_test, planted, rng):
        yield line(figure, value)
    anomalies, prepared = x_test[y_test == 1], setting.prepared
    if len(anomalies):
        parts, responsible = (
            feature_parts(prepared, anomalies),
            responsibilities(prepared, anomalies),
        )
        yield line("features for 80 % of the score", features_needed(parts))
        yield line("features for 80 % of the responsibility", features_needed(responsible))


def _warm_up(setting: Setting) -> None:
    """Compile and prepare what the first explanation needs, which no row should pay for."""
    why = setting.detector.explain(setting.train[:20])
    for i in range(len(why)):
        why.reasons_of(i)


def planted_tables(data: Path, chosen: list[str] | None) -> dict[str, Path]:
    """The tables to plant errors in, largest first; says which ones are not in the folder."""
    files, names = adbench_files(data), FITTING_TABLES if chosen is None else chosen
    missing = [name for name in names if name not in files]
    if missing:
        print(f"not in {data}: {', '.join(missing)}", file=sys.stderr)
    by_size = sorted(names, key=lambda n: -TABLES[n].n_features if n in TABLES else 0)
    return {name: files[name] for name in by_size if name in files}


def tasks_of(options: argparse.Namespace) -> list[Task]:
    """What is to be measured; the longest first, so that no process is left with one at the end."""
    methods = []
    for name in METHODS:
        package = missing_package(name)
        if package:
            print(f"left out: {name} (the package {package} is not installed)", file=sys.stderr)
        elif name not in options.without:
            methods.append(name)
    settings = {} if options.epochs is None else {"epochs": options.epochs}
    seeds, n_rows = range(options.seeds), options.rows
    other = tuple(options.without), options.rankings
    tasks = []
    if "diamonds" in options.sections:
        tasks += [Task("diamonds", "diamonds", seed, n_rows, settings) for seed in seeds]
    if "planted" in options.sections:
        tasks += [
            Task("planted", name, seed, n_rows, settings, path, tuple(methods), *other)
            for name, path in planted_tables(options.data, options.tables).items()
            for seed in seeds
        ]
    if "mixed" in options.sections:
        tasks += [Task("mixed", name, seed, n_rows, settings) for name in MIXED for seed in seeds]
    return tasks


def run(tasks: list[Task], jobs: int, path: Path | None) -> tuple[Lines, list[str]]:
    """The lines of all tasks, in several processes, and notes on those that failed.

    The lines are also written to a file as they come.
    """
    file = None if path is None else LineFile(path)
    lines, failed = Lines(), []
    # Each process has one thread: set before NumPy is imported there.
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        started = time.perf_counter()
        running = {pool.submit(measure, task): task for task in tasks}
        for done in as_completed(running):
            task = running[done]
            name = f"{task.section} {task.table}, seed {task.seed}"
            try:
                found = done.result()
            except Exception as error:  # the other tables are measured all the same
                failed.append(f"not measured: {name}: {error}")
                continue
            lines += found
            if file is not None:
                file.add(found)
            print(f"{time.perf_counter() - started:6.0f} s  {name}", file=sys.stderr, flush=True)
    return lines, failed


def main() -> None:
    """Run the benchmark; print and write the report and all single results."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("DIFFINT_ADBENCH"))
    parser.add_argument("--tables", nargs="+", help="of ADBench, instead of all that fit")
    sections = ["planted", "mixed", "diamonds"]
    parser.add_argument("--sections", nargs="+", choices=sections, default=sections)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=20, help="planted rows per table, kind, seed")
    parser.add_argument("--epochs", type=int, help="of the detector, for a quick try")
    without = [*METHODS, *(f"{method}:{kind}" for method in METHODS for kind in KINDS)]
    parser.add_argument(
        "--without", nargs="+", choices=without, default=[], metavar="METHOD[:KIND]"
    )
    parser.add_argument(
        "--rankings", action="store_true", help="no second detector, no properties of the reasons"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes, each with one thread")
    parser.add_argument("--from-csv", nargs="+", type=Path, help="measure nothing; earlier results")
    parser.add_argument(
        "-o", "--output", type=Path, help="files to write, without suffix (.md and .csv)"
    )
    options = parser.parse_args()
    table_file = None if options.output is None else options.output.with_suffix(".csv")
    failed: list[str] = []
    if options.from_csv:
        lines = read_lines(options.from_csv)
    else:
        if options.data is None and "planted" in options.sections:
            parser.error("give the folder of ADBench tables with --data or DIFFINT_ADBENCH")
        lines, failed = run(tasks_of(options), options.jobs, table_file)
    lines = lines.sorted()
    if table_file is not None:
        LineFile(table_file).add(lines)
    text = report(lines, " ".join(["python", *sys.argv]))
    print(text)
    if options.output is not None:
        options.output.with_suffix(".md").write_text(text, encoding="utf-8")
    if failed:
        sys.exit("\n".join(sorted(failed)))


if __name__ == "__main__":
    main()
