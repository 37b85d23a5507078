"""Spark against our own command, on large files; and a Spark fit against a fit on all rows.

    python benchmarks/spark_scale.py [--rows 10000000] -o docs/results/spark_scale.md
    python benchmarks/spark_scale.py --accuracy --data FOLDER --csv docs/results/spark_fit.csv \\
        -o docs/results/spark_fit.md [--seeds 2]

Times: Parquet files of rows × 10 features and an id are scored to Parquet by ``diffint score`` and
by `diffint.spark.score` with local[1] and local[2], one after the other, each in a process of its
own, with and without reasons. Spark's time is given with and without the start of its session; the
command's contains its start. All scores and flags are compared, bit by bit. A Spark fit is timed on
the same file.

Accuracy: the ten ADBench tables with most rows. 80 % of the inliers are training rows, the others
(at most 20,000) and all anomalies (at most 20,000) are test rows. Measured: the ROC-AUC of a Spark
fit with a sample of some size minus that of a fit on all training rows. Rows of the CSV file are
kept, and only missing ones are measured.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow
import pyarrow.parquet
from sklearn.metrics import roc_auc_score

from diffint import DiffInt
from diffint.tables.datasets import adbench_files, read_adbench
from result_lines import emit

FEATURES, BATCH = 10, 500_000
NAMES = [f"f{j}" for j in range(FEATURES)]
TABLES = (
    *("28_pendigits", "22_magic.gamma", "5_campaign", "32_shuttle", "1_ALOI", "34_smtp"),
    *("33_skin", "10_cover", "16_http", "11_donors"),
)
SAMPLES = (5_000, 20_000, 100_000)
TRAIN_SHARE, MOST_TESTED = 0.8, 20_000


# --- Times ------------------------------------------------------------------------------------


def rows(n_rows: int, seed: int) -> np.ndarray:
    """Random rows with correlated features. → (n_rows, FEATURES)"""
    mixing = np.random.default_rng(0).normal(size=(FEATURES, FEATURES))
    return np.random.default_rng(seed).normal(size=(n_rows, FEATURES)) @ mixing


def write_table(path: Path, n_rows: int) -> None:
    """A Parquet file of ids and random rows."""
    fields = [("id", pyarrow.int64()), *((name, pyarrow.float64()) for name in NAMES)]
    with pyarrow.parquet.ParquetWriter(path, pyarrow.schema(fields)) as writer:
        for seed, start in enumerate(range(0, n_rows, BATCH), 1):
            count = min(BATCH, n_rows - start)
            part = {"id": np.arange(start, start + count)}
            part |= dict(zip(NAMES, rows(count, seed).T, strict=True))
            writer.write_table(pyarrow.table(part))


def session(workers: int, folder: str) -> Any:
    """A local Spark session with so many workers."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local[{workers}]").config("spark.ui.enabled", "false")
    for name in ("spark.driver.host", "spark.driver.bindAddress"):
        builder = builder.config(name, "127.0.0.1")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    spark = builder.config("spark.local.dir", folder).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def spark_times(task: dict[str, Any]) -> dict[str, float]:
    """Seconds of the parts of one task: to start a session, and to fit or score."""
    import diffint.spark

    warnings.simplefilter("ignore")
    started = time.perf_counter()
    spark = session(task["workers"], task["folder"])
    ready = time.perf_counter()
    df = spark.read.parquet(task["table"])
    if task["what"] == "fit":
        diffint.spark.fit(df, ignore=["id"], random_state=0)
    else:
        scored = diffint.spark.score(task["model"], df, reasons=task["reasons"], keep=["id"])
        scored.write.mode("overwrite").parquet(task["out"])
    done = time.perf_counter()
    spark.stop()
    return {"start": ready - started, "work": done - ready}


def run_spark(**task: Any) -> dict[str, float]:
    """`spark_times` in a process of its own."""
    command = [sys.executable, __file__, "--task", json.dumps(task)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def run_command(model: Path, table: Path, out: Path, reasons: bool) -> float:
    """Seconds of ``diffint score``."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "diffint", "score", str(model), str(table), "-o", str(out)]
    command += ["--id", "id", "--reasons" if reasons else "--no-reasons"]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    return time.perf_counter() - started


def check_same(command: Path, spark: Path) -> float:
    """Raise an error unless two results are the same bits. → the share of flagged rows"""
    one, two = (
        pyarrow.parquet.read_table(path).sort_by("id").combine_chunks() for path in (command, spark)
    )
    for name in one.column_names:
        if not one[name].equals(two[name]):
            raise SystemExit(f"the command and Spark differ in {name}")
    return float(np.mean(one["flagged"].to_numpy()))


def measure_times(n_rows: int) -> list[str]:
    """Lines of the results file."""
    lines: list[str] = []
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        tables = {n: Path(folder) / f"{n}.parquet" for n in (n_rows // 10, n_rows)}
        for n, path in tables.items():
            write_table(path, n)
        model, out = Path(folder) / "m.diffint", Path(folder) / "command.parquet"
        by_spark = Path(folder) / "spark.parquet"
        DiffInt(random_state=0).fit(pandas.DataFrame(rows(20_000, 0), columns=NAMES)).save(model)
        task = {"what": "score", "model": str(model), "out": str(by_spark), "folder": folder}
        emit(
            lines,
            "# Spark on a large file",
            "",
            f"Created by `python benchmarks/spark_scale.py --rows {n_rows}`: {n_rows:,} × "
            f"{FEATURES} rows and an id, from Parquet to Parquet, with the default model, one run "
            f"of each. {os.cpu_count()} cores, load {load:.1f} before. All scores, p-values, flags "
            "and reasons of both are the same bits.",
            "",
            "| | `diffint score` | Spark, `local[2]` | ratio | with the start of the session |",
            "|---|---|---|---|---|",
        )
        times, flagged = {}, 0.0
        run_command(model, tables[n_rows // 10], out, True)  # compiles what is not yet compiled
        for reasons in (False, True):
            own = run_command(model, tables[n_rows], out, reasons)
            table = str(tables[n_rows])
            two = run_spark(**task, table=table, workers=2, reasons=reasons)
            flagged = check_same(out, by_spark)
            times[reasons] = two["work"]
            whole = two["work"] + two["start"]
            name = "with reasons" if reasons else "without reasons"
            emit(
                lines,
                f"| {name} | {own:.1f} s | {two['work']:.1f} s | {two['work'] / own:.2f}× | "
                f"{whole:.1f} s, {whole / own:.2f}× |",
            )
        small = run_spark(**task, table=str(tables[n_rows // 10]), workers=2, reasons=True)
        one = run_spark(**task, table=str(tables[n_rows]), workers=1, reasons=True)
        fit = run_spark(what="fit", table=str(tables[n_rows]), workers=2, folder=folder)
    line = 2 * (times[True] - times[False]) / max(n_rows * flagged, 1)
    emit(
        lines,
        "",
        f"Reasons are for the {flagged:.1%} of the rows that are flagged. With reasons:",
        "",
        "| | |",
        "|---|---|",
        f"| one row scored, without reasons | {2e6 * times[False] / n_rows:.1f} µs of a worker |",
        f"| one line of reasons | {1e3 * line:.1f} ms of a worker |",
        f"| {n_rows // 10:,} rows, `local[2]` | {small['work']:.1f} s |",
        f"| ten times as many rows take | {times[True] / small['work']:.1f}× as long |",
        f"| `local[1]` | {one['work']:.1f} s |",
        f"| two workers instead of one | {one['work'] / times[True]:.2f}× as fast |",
        f"| `diffint.spark.fit` on the file, `local[2]` | {fit['work']:.1f} s |",
    )
    return lines


# --- Accuracy ---------------------------------------------------------------------------------


def measure_accuracy(data: Path, seeds: int, path: Path) -> list[str]:
    """Lines of the results file; measurements are added to the CSV file `path`."""
    import diffint.spark

    columns = ("table", "seed", "sample", "rows", "roc_auc", "seconds")
    if not path.exists():
        path.write_text(",".join(columns) + "\n")
    known = pandas.read_csv(path)
    done = set(zip(known["table"], known["seed"], known["sample"], strict=True))
    warnings.simplefilter("ignore")
    files = adbench_files(data)
    with tempfile.TemporaryDirectory() as folder:
        spark = session(2, folder)
        for seed in range(seeds):
            for name in reversed(TABLES):  # those that say most first
                train, test, labels = split(read_adbench(files[name]), seed)
                train.to_parquet(Path(folder) / "train.parquet", index=False, row_group_size=20_000)
                for sample in (0, *reversed(SAMPLES)):
                    if (name, seed, sample) in done or 1.25 * sample >= len(train):
                        continue
                    started = time.perf_counter()
                    if sample:
                        df = spark.read.parquet(str(Path(folder) / "train.parquet"))
                        how: dict[str, Any] = {"sample_rows": sample, "n_jobs": 1}
                        fitted = diffint.spark.fit(df, random_state=seed, **how)
                    else:
                        fitted = DiffInt(random_state=seed, n_jobs=1).fit(train)
                    seconds = time.perf_counter() - started
                    found = roc_auc_score(labels, fitted.anomaly_score(test))
                    with path.open("a") as file:
                        line = (name, seed, sample, len(train), f"{found:.6f}", f"{seconds:.1f}")
                        csv.writer(file, lineterminator="\n").writerow(line)
                    print(*line, flush=True)
        spark.stop()
    return accuracy_lines(path)


def split(table: Any, seed: int) -> tuple[pandas.DataFrame, pandas.DataFrame, np.ndarray]:
    """Training rows, test rows, and which of these are anomalies."""
    rng = np.random.default_rng(seed)
    normal = rng.permutation(np.flatnonzero(table.y == 0))
    cut = int(TRAIN_SHARE * len(normal))
    anomalies = rng.permutation(np.flatnonzero(table.y == 1))[:MOST_TESTED]
    tested = np.concatenate([normal[cut:][:MOST_TESTED], anomalies])
    frame = pandas.DataFrame(table.x, columns=list(map(str, table.feature_names)))
    return frame.iloc[normal[:cut]], frame.iloc[tested], table.y[tested]


def accuracy_lines(path: Path) -> list[str]:
    """A table of differences, and their means, from the CSV file."""
    found: dict[tuple[str, int], list[float]] = {}
    n_rows: dict[str, int] = {}
    seeds = set()
    with path.open() as file:
        for row in csv.DictReader(file):
            found.setdefault((row["table"], int(row["sample"])), []).append(float(row["roc_auc"]))
            n_rows[row["table"]] = int(row["rows"])
            seeds.add(row["seed"])
    lines: list[str] = []
    emit(
        lines,
        "# A Spark fit against a fit on all rows",
        "",
        "Created by `python benchmarks/spark_scale.py --accuracy`: the ten ADBench tables with "
        f"most rows, {len(seeds)} seed{'s' if len(seeds) > 1 else ''}. ROC-AUC on test rows of a "
        "fit on all training rows, and what is added to it by a Spark fit that trains on a sample. "
        "A table of at most 1.25 × the sample is fitted whole (—), as by the library.",
        "",
        f"| table | training rows | all rows | {' | '.join(f'{n:,}' for n in SAMPLES)} |",
        f"|---|---|---|{'---|' * len(SAMPLES)}",
    )
    differences: dict[int, list[float]] = {sample: [] for sample in SAMPLES}
    for name in (name for name in TABLES if (name, 0) in found):
        whole, shown = found[name, 0], []
        for sample in SAMPLES:
            # Only seeds that both were measured with.
            both = list(zip(found.get((name, sample), []), whole, strict=False))
            shown.append(f"{np.mean([s - w for s, w in both]):+.4f}" if both else "—")
            differences[sample] += [float(np.mean([s - w for s, w in both]))] if both else []
        cells = f"{n_rows[name]:,} | {np.mean(whole):.4f} | {' | '.join(shown)}"
        emit(lines, f"| {name} | {cells} |")
    for text, count in (("the sampled tables", None), (f"all {len(n_rows)} (— is 0)", len(n_rows))):
        means = [f"{sum(d) / (count or max(len(d), 1)):+.4f}" for d in differences.values()]
        emit(lines, f"| mean of {text} | | | {' | '.join(means)} |")
    if len(seeds) > 1:
        spread = np.mean([np.ptp(every) for (_, sample), every in found.items() if not sample])
        emit(
            lines,
            "",
            "For comparison: on one table, fits on all rows with different seeds (and splits) are "
            f"{spread:.4f} apart on average, from the best to the worst.",
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--accuracy", action="store_true")
    parser.add_argument("--data", type=Path, default=os.environ.get("DIFFINT_ADBENCH"))
    parser.add_argument("--csv", type=Path, default=Path("docs/results/spark_fit.csv"))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--task", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        print(json.dumps(spark_times(json.loads(options.task))))
        return
    if options.accuracy:
        lines = measure_accuracy(Path(options.data), options.seeds, options.csv)
    else:
        lines = measure_times(options.rows)
    if options.output:
        options.output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
