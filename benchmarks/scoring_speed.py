"""How fast are scores and explanations? Ratios, each measured in one run.

    python benchmarks/scoring_speed.py [--data FOLDER] [--rows 200000] [--repeats 5]

Against isolation forests, on two cores: PyOD's for many rows, scikit-learn's for a single row. The
tables are ADBench's, by default from the folder that DIFFINT_ADBENCH names. On a shared machine
wall times are noisy, so besides the ratio of the medians of interleaved repeats there is that of
the processor times, which other programs hardly change.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from diffint import DiffInt
from diffint.tables.datasets import read_adbench

TABLES = ("31_satimage-2", "32_shuttle")
THREADS = 2

Work = Callable[[], Any]


def medians(works: dict[str, Work], repeats: int, times: int = 1) -> dict[str, tuple[float, float]]:
    """Median wall and processor seconds of each, measured in turns; `times` calls at a time."""
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
    for turn in range(repeats + 1):
        for name, work in works.items():
            wall, processor = time.perf_counter(), time.process_time()
            for _ in range(times):
                work()
            taken = time.perf_counter() - wall, time.process_time() - processor
            if turn:  # the first turn compiles and warms up
                seconds[name].append((taken[0] / times, taken[1] / times))
    return {
        name: (float(np.median([w for w, _ in all_])), float(np.median([p for _, p in all_])))
        for name, all_ in seconds.items()
    }


def ratio(found: dict[str, tuple[float, float]], ours: str, theirs: str) -> str:
    """How many times as fast ours is."""
    wall, processor = (found[theirs][i] / found[ours][i] for i in (0, 1))
    return f"{wall:5.2f} x as fast by wall time, {processor:5.2f} x by processor time"


def many_rows(detector: DiffInt, x: np.ndarray, rows: np.ndarray, repeats: int) -> None:
    """Scores of many rows against PyOD's isolation forest, which scores on one core by default."""
    from joblib import parallel_config
    from pyod.models.iforest import IForest

    forest = IForest(n_jobs=THREADS, random_state=0).fit(x)
    packed = detector.prepared.packed

    def forest_on_all_threads() -> None:
        with parallel_config(backend="threading", n_jobs=THREADS):
            forest.decision_function(rows)

    found = medians(
        {
            "packed": lambda: packed.scores(rows, THREADS),
            "estimator": lambda: detector.anomaly_score(rows),
            "forest": forest_on_all_threads,
        },
        repeats,
    )
    for name in ("packed", "estimator"):
        rate = len(rows) / found[name][0]
        print(f"  {name:9s} {rate:9,.0f} rows/s: {ratio(found, name, 'forest')} as IForest")


def one_row(detector: DiffInt, x: np.ndarray, repeats: int) -> None:
    """A single row, as an array and as a frame, against scikit-learn's isolation forest."""
    import pandas
    from sklearn.ensemble import IsolationForest

    columns = [f"x{j}" for j in range(x.shape[1])]
    table = pandas.DataFrame(x, columns=columns)
    row, frame = x[:1].copy(), table[:1].copy()
    forest, frame_forest = (IsolationForest(random_state=0).fit(t) for t in (x, table))
    frame_detector = DiffInt(random_state=0, n_jobs=THREADS, epochs=1).fit(table)
    certified = DiffInt(random_state=0, decoder="certified", epochs=1).fit(x)
    packed = detector.prepared.packed
    found = medians(
        {
            "kernel": lambda: packed.scores(row),
            "array": lambda: detector.anomaly_score(row),
            "frame": lambda: frame_detector.anomaly_score(frame),
            "forest of an array": lambda: forest.score_samples(row),
            "forest of a frame": lambda: frame_forest.score_samples(frame),
            "explain": lambda: frame_detector.explain(frame),
            "certify": lambda: certified.certify(row),
        },
        repeats,
        times=20,
    )
    times = ", ".join(f"{name} {1e6 * seconds:,.0f} µs" for name, (seconds, _) in found.items())
    print(f"  one row: {times}")
    for name in ("array", "frame"):
        of = "forest of an array" if name == "array" else "forest of a frame"
        print(f"  one row, {name}: {found[of][0] / found[name][0]:.1f} x as fast as the {of}")


def explanations(detector: DiffInt, rows: np.ndarray, repeats: int) -> None:
    """The time to explain rows, in multiples of that to score them."""
    packed = detector.prepared.packed
    found = medians(
        {
            "score": lambda: packed.scores(rows, THREADS),
            "kernels": lambda: (packed.parts(rows, THREADS), packed.explained(rows, THREADS)),
            "explain": lambda: detector.explain(rows),
        },
        repeats,
    )
    for name in ("kernels", "explain"):
        wall, processor = (found[name][i] / found["score"][i] for i in (0, 1))
        print(
            f"  {name:9s} of {len(rows):,} rows: {wall:5.2f} x the time to score them, "
            f"{processor:5.2f} x by processor time"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("DIFFINT_ADBENCH"))
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    if options.data is None:
        parser.error("name a folder of ADBench tables with --data or DIFFINT_ADBENCH")
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    for name in TABLES:
        x = np.asarray(read_adbench(Path(options.data) / f"{name}.npz").x, dtype=np.float64)
        rows = x[rng.integers(0, len(x), options.rows)]
        detector = DiffInt(random_state=0, n_jobs=THREADS).fit(x)
        print(f"{name}, {x.shape[1]} features")
        many_rows(detector, x, rows, options.repeats)
        one_row(detector, x, 5 * options.repeats)
        explanations(detector, rows[:10_000], options.repeats)


if __name__ == "__main__":
    main()
