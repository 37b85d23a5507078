"""Compare the ONNX graph of fitted detectors with the library, and with the float64 definition.

    python benchmarks/onnx_agreement.py --data adbench --seed 1 --out docs/results/onnx_agreement.md

Ten tables, 100,000 rows each: detectors with the recommended settings are fitted on at most 10,000
normal rows, and rows of the whole table are drawn with replacement. Half of them get noise of a
tenth of each number's standard deviation; in a tenth, cells go missing; in another tenth, one
number lies far beyond its range, or one text is new. Both sides score on one core. The definition
is slow, so that it scores the 200 rows that differ most and 200 others. Times are the best of
three.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnxruntime
import pandas as pd

from diffint import DiffInt
from diffint.bench.suites import ADBENCH
from diffint.bench.worker import processor_name
from diffint.engine.reference.score import scores as defined_scores
from diffint.tables.datasets import read_adbench
from diffint.tables.frames import read_rows
from real_data import diamond_errors, diamonds, flights
from result_lines import emit

TABLES = (
    *("4_breastw", "6_cardio", "22_magic.gamma", "26_optdigits"),
    *("28_pendigits", "32_shuttle", "35_SpamBase", "38_thyroid"),
)
N_ROWS, MOST_TRAINING_ROWS, N_DEFINED = 100_000, 10_000, 200
LIMIT = 1e-5
NEW = "a value that no training row has"


class Measured(NamedTuple):
    """What was measured on one table; all differences are relative.

    apart: largest difference of a score from the library's; far: rows with a larger difference than
    LIMIT, and far_score: their largest score as a share of the threshold; at_threshold: the largest
    difference as a share of the threshold; graph, library: their largest differences from the
    definition;
    flips: flags that differ; flip_apart: the largest distance of their scores from the threshold;
    p_values: how many differ; speed: rows per second, as a ratio to the library
    """

    apart: float
    far: int
    far_score: float
    at_threshold: float
    graph: float
    library: float
    flips: int
    flip_apart: float
    p_values: int
    speed: float


def tables(folder: Path, names: list[str]) -> Iterator[tuple[str, pd.DataFrame, np.ndarray]]:
    """Each table with its name and which of its rows are normal."""
    files, _ = ADBENCH.find(folder, names)
    for name, path in files.items():
        table = read_adbench(path)
        columns = [f"x{j}" for j in range(table.x.shape[1])]
        yield name, pd.DataFrame(table.x, columns=columns), table.y == 0
    yield "diamonds", diamonds(), ~diamond_errors(diamonds())[0]
    yield "flights", flights(), np.ones(len(flights()), dtype=bool)


def varied(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Rows drawn from a table and changed, as described above."""
    rows = table.iloc[rng.integers(0, len(table), N_ROWS)].reset_index(drop=True)
    numbers = [name for name in rows if pd.api.types.is_numeric_dtype(rows[name])]
    noisy, holed, odd = rng.random((3, N_ROWS)) < np.array([[0.5], [0.1], [0.1]])
    odd_column = rng.choice(rows.columns, N_ROWS)
    for name in rows:
        if name in numbers:
            cells = rows[name].to_numpy(dtype=np.float64, copy=True)
            deviation = float(np.nanstd(cells))
            cells[noisy] += rng.normal(0.0, 0.1 * deviation, int(noisy.sum()))
            beyond = odd & (odd_column == name)
            cells[beyond] += rng.normal(0.0, 30.0 * deviation + 1.0, int(beyond.sum()))
            cells[holed & (rng.random(N_ROWS) < 0.2)] = np.nan
        else:
            cells = rows[name].to_numpy(dtype=object, copy=True)
            cells[odd & (odd_column == name)] = NEW
            cells[holed & (rng.random(N_ROWS) < 0.2)] = None
        rows[name] = cells
    return rows


def feeds(session: Any, rows: pd.DataFrame) -> dict[str, Any]:
    """The inputs of a graph from a table."""
    facts = session.get_modelmeta().custom_metadata_map
    given: dict[str, Any] = {}
    for one in json.loads(facts["diffint.inputs"]):
        if one["kind"] == "matrix":
            given[one["name"]] = rows.to_numpy(dtype=np.float64)
        elif one["kind"] == "text":
            given[one["name"]] = rows[one["column"]].fillna("").to_numpy(dtype=object)
        else:
            given[one["name"]] = rows[one["column"]].to_numpy(dtype=np.float64)
    return given


def timed(compute: Callable[[], Any]) -> tuple[Any, float]:
    """A result, and the shortest of three times that it took, in seconds."""
    times = []
    for _ in range(3):
        started = time.perf_counter()
        result = compute()
        times.append(time.perf_counter() - started)
    return result, min(times)


def measure(table: pd.DataFrame, normal: np.ndarray, seed: int) -> Measured:
    """Fit, export, score with both, and compare."""
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(np.flatnonzero(normal))[:MOST_TRAINING_ROWS]
    detector = DiffInt(random_state=seed, n_jobs=1, device="cpu").fit(table.iloc[chosen])
    rows = varied(table, rng)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        detector.to_onnx(path)
        one_core = onnxruntime.SessionOptions()
        one_core.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(path, one_core, ["CPUExecutionProvider"])
    detector.p_values(rows[:100])  # compiles

    scores, by_library = timed(lambda: detector.anomaly_score(rows))
    rule = detector.rule
    p_values, flagged = rule.p_values(scores), rule.flagged(scores)
    given = feeds(session, rows)
    (found, found_p, found_flagged), by_graph = timed(lambda: session.run(None, given))

    apart, threshold = np.abs(found - scores) / scores, float(rule.threshold)
    some = np.append(np.argsort(-apart)[:N_DEFINED], rng.integers(0, N_ROWS, N_DEFINED))
    model = detector.model_
    matrix = read_rows(rows.iloc[some], model.columns, model.kinds)
    defined = defined_scores(model, matrix)
    far = apart > LIMIT
    flips = np.flatnonzero(found_flagged != flagged)
    from_threshold = np.abs(scores[flips] - threshold) / threshold
    return Measured(
        apart=float(apart.max()),
        far=int(far.sum()),
        far_score=float((scores[far] / threshold).max(initial=0.0)),
        at_threshold=float(np.abs(found - scores).max() / threshold),
        graph=float((np.abs(found[some] - defined) / defined).max()),
        library=float((np.abs(scores[some] - defined) / defined).max()),
        flips=len(flips),
        flip_apart=float(from_threshold.max(initial=0.0)),
        p_values=int((found_p != p_values).sum()),
        speed=by_library / by_graph,
    )


def main() -> None:
    """Print and write one line per table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of ADBench tables")
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="Markdown file to write")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lines: list[str] = []
    emit(
        lines,
        "# The ONNX graph and the library",
        "",
        f"Created by `python benchmarks/onnx_agreement.py --data adbench --seed {options.seed} "
        "--out docs/results/onnx_agreement.md`, which describes what is measured.",
        f"{processor_name()}, one core each; ONNX Runtime {onnxruntime.__version__}; {N_ROWS:,} "
        f"rows of each table, of which {2 * N_DEFINED} are scored by the definition too.",
        "",
        "Largest differences of scores, relative unless it says otherwise:",
        "",
        "| table | features | graph and library | rows with more than 1e-5 (their largest score, "
        "as a share of the threshold) | graph and library, as a share of the threshold | graph and "
        "definition | library and definition | other flags (distance from the threshold) | other "
        "p-values | rows per second, library = 1 |",
        "|---|---|---|---|---|---|---|---|---|---|",
    )
    every: list[Measured] = []
    loads: list[float] = []
    for name, table, normal in tables(options.data, options.tables):
        one = measure(table, normal, options.seed)
        every.append(one)
        loads.append(os.getloadavg()[0])
        flips = f"{one.flips} ({one.flip_apart:.0e})" if one.flips else "0"
        far = f"{one.far:,} ({one.far_score:.2g})" if one.far else "0"
        emit(
            lines,
            f"| {name} | {table.shape[1]} | {one.apart:.1e} | {far} | {one.at_threshold:.1e} "
            f"| {one.graph:.1e} | {one.library:.1e} | {flips} | {one.p_values} "
            f"| {one.speed:.2f} |",
        )
    emit(
        lines,
        "",
        f"All {len(every) * N_ROWS:,} rows: the largest relative difference between graph and "
        f"library is {max(one.apart for one in every):.1e}, as a share of the threshold "
        f"{max(one.at_threshold for one in every):.1e}; between graph and definition, on "
        f"{2 * len(every) * N_DEFINED:,} of them, it is {max(one.graph for one in every):.1e}. "
        f"Of {sum(one.far for one in every):,} rows the score differs by more than "
        f"{LIMIT:g}; the largest of these scores is "
        f"{max(one.far_score for one in every):.2g} of the threshold. "
        f"{sum(one.flips for one in every)} flags and {sum(one.p_values for one in every):,} "
        "p-values differ.",
        "",
        "The library computes networks in float32, the graph and the definition in float64, and "
        "the library is as far from the definition as from the graph. The likely reason: an error "
        "is the difference of two numbers of about 1, so that a float32 rounding error of about "
        "1e-7 remains, however small the score is.",
        "",
        f"Other processes ran at the same time (load {max(loads):.0f} on {os.cpu_count()} cores), "
        "so that the ratios of speed are rough.",
    )
    if options.out is not None:
        options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
