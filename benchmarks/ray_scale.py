"""Measure how Ray scores a large Parquet file, against ``diffint score`` on the same file.

    python benchmarks/ray_scale.py [--rows 10000000] [--actors 2] [-o docs/results/ray_scale.md]

Needs the extra ``ray``. Writes a Parquet file of rows × 10 features, fits a model on similar rows,
and scores the file: with the command on all cores, and with `diffint.ray.score` on one actor and on
several, for a tenth of the rows and for all of them. All write score, p_value, flagged and reasons
to Parquet. Times include the start of the command, or of the actors, but not of the Ray cluster.
Each number is the least of `--repeats` runs.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path

import pandas
import pyarrow.parquet
import ray

import diffint.ray
from command_scale import NAMES, rows, run_and_measure, write_table
from diffint import DiffInt

COLUMNS = ["score", "p_value", "flagged", "reasons"]


def start_cluster(actors: int) -> None:
    """A cluster of this machine; a CPU more than actors, for the tasks that write."""
    if ray.is_initialized():
        ray.shutdown()
    ray.init(
        num_cpus=actors + 1, include_dashboard=False, log_to_driver=False, logging_level="ERROR"
    )
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)


def seconds_of_ray(model: Path, table: Path, output: Path, actors: int) -> float:
    started = time.perf_counter()
    dataset = ray.data.read_parquet(str(table))
    scored = diffint.ray.score(model, dataset, keep=[], actors=actors)
    scored.write_parquet(str(output))
    return time.perf_counter() - started


def seconds_of_command(model: Path, table: Path, output: Path) -> float:
    command = [sys.executable, "-m", "diffint", "score", str(model), str(table), "-o", str(output)]
    return run_and_measure(command)[0]


def scored(path: Path) -> pandas.DataFrame:
    """What was written, in an order that does not depend on who wrote it."""
    frame: pandas.DataFrame = pyarrow.parquet.read_table(path, columns=COLUMNS).to_pandas()
    return frame.sort_values(["score", "p_value", "reasons"]).reset_index(drop=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--actors", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lines, times = [], {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = folder / "model.diffint"
        train = pandas.DataFrame(rows(20_000, 0), columns=NAMES)
        DiffInt(random_state=0).fit(train).save(model)
        for n_rows in (options.rows // 10, options.rows):
            table, output = folder / f"{n_rows}.parquet", folder / "scored.parquet"
            write_table(table, n_rows)
            times[n_rows, 0] = min(
                seconds_of_command(model, table, output) for _ in range(options.repeats)
            )
            wanted = scored(output)
            for actors in (1, options.actors):
                start_cluster(actors)
                # The first job of a cluster also starts its processes, and is not counted.
                outputs = [folder / f"{n_rows}-{actors}-{i}" for i in range(1 + options.repeats)]
                measured = [seconds_of_ray(model, table, path, actors) for path in outputs]
                times[n_rows, actors] = min(measured[1:])
                pandas.testing.assert_frame_equal(scored(outputs[-1]), wanted, check_exact=True)
            one, several = times[n_rows, 1], times[n_rows, options.actors]
            lines.append(
                f"| {n_rows:,} | {times[n_rows, 0]:.1f} | {one:.1f} | {several:.1f} | "
                f"{one / several:.2f} | {several / times[n_rows, 0]:.2f} |"
            )
            print(lines[-1], flush=True)
    ray.shutdown()
    growth = times[options.rows, options.actors] / times[options.rows // 10, options.actors]
    text = (
        "# Scoring with Ray\n\n"
        f"Created by `python benchmarks/ray_scale.py --rows {options.rows}`: Parquet rows of "
        f"{len(NAMES)} features, with reasons for the flagged ones, on one machine with "
        f"{os.cpu_count()} cores; the least of {options.repeats} runs. Scores, p-values, flags and "
        "reasons were the same bits.\n\n"
        f"| rows | seconds of `diffint score` | of 1 actor | of {options.actors} actors | "
        f"1 actor / {options.actors} actors | {options.actors} actors / the command |\n"
        "|---|---|---|---|---|---|\n" + "\n".join(lines) + "\n\n"
        f"Ten times as many rows take {growth:.1f} times as long on {options.actors} actors. Load "
        f"of the machine at the end: {os.getloadavg()[0]:.1f}.\n"
    )
    print(text)
    if options.output:
        options.output.write_text(text)


if __name__ == "__main__":
    main()
