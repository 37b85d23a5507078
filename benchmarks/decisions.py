"""Do the promised error rates of selections hold, and how many anomalies are found at these rates?

    python benchmarks/decisions.py --adbench FOLDER --macrodata FOLDER --selection FILE
        --out docs/results/decisions [--seeds 20] [--jobs 2]

Runs are kept in OUT.runs.csv, and not run again if the command is given again.

Tables: those of the half that no setting was chosen on, of ADBench and of macrOData: all of at most
SMALL_CELLS training cells, and a few larger ones with fewer seeds. For each seed the inliers are
split 60 : 40 at random; the detector is trained on the first part (at most MOST_ROWS rows), and the
second, with anomalies added, is tested. (`false_positives.py` measures `predict` on the same rows.)

- `select`: anomalies are added to the test inliers until they are 1, 5, 10 or 20 % of all rows, or
  all that there are. Measured at false discovery rates of 0.05, 0.1 and 0.2: the share of inliers
  among the selected rows (0 if none is selected), and the share of anomalies selected (power).
  Beside it, with the same rows: split conformal p-values (`calibration="holdout"`) of the same
  detector, and of an isolation forest that is trained on 80 % of the rows and calibrated on the
  others, both with the procedure of Benjamini and Hochberg.
- The bound at every threshold: whether it held at all thresholds together.
- Segments: the rows are cut into four segments by the quartiles of a feature drawn at random, and
  the rate is measured in each.
- Accuracy of the default calibration beside `calibration="members"`, which was the default before.

A table is above a rate if the mean over its seeds is, by a one-sided t-test, Holm over all tables
and rates.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import ttest_1samp, wilcoxon
from sklearn.ensemble import IsolationForest
from sklearn.metrics import average_precision_score, roc_auc_score

from diffint import DiffInt
from diffint.bench.selection import read_selection
from diffint.core.calibration import Calibration
from diffint.core.flag_rule import FlagRule
from diffint.decide.selection import select_rows
from diffint.tables.datasets import adbench_files, macrodata_files, read_adbench, read_macrodata
from result_lines import emit

SMALL_CELLS, MOST_ROWS, MOST_TEST = 100_000, 20_000, 3_000
LARGE_SEEDS = 3
RATES, FALSE_DISCOVERY_RATES = (0.01, 0.05, 0.1), (0.05, 0.1, 0.2)
SHARES = (0.01, 0.05, 0.1, 0.2)
WAYS = ("default", "storey", "split", "iforest")
COLUMNS = ("suite", "table", "seed", "rows", "measure", "way", "rate", "share", "value")

Array = NDArray[np.float64]
Line = dict[str, Any]


def rows_of(suite: str, path: Path) -> tuple[Array, NDArray[np.bool_]]:
    """All rows (rows, features) of a table, and which are anomalies (rows,)."""
    if suite == "adbench":
        table = read_adbench(path)
        return table.x, table.y.astype(bool)
    split = read_macrodata(path)
    return (
        np.concatenate([split.train, split.test]),
        np.r_[np.zeros(len(split.train), dtype=bool), split.test_labels.astype(bool)],
    )


def split_rows(suite: str, path: Path, seed: int) -> tuple[Array, Array, Array]:
    """Training rows, other inliers and anomalies of a table: (rows, features) each."""
    x, anomalous = rows_of(suite, path)
    rng = np.random.default_rng(1_000 + seed)
    inliers, anomalies = (rng.permutation(np.flatnonzero(anomalous == a)) for a in (False, True))
    n_train = int(0.6 * len(inliers))
    train, normal = x[inliers[:n_train][:MOST_ROWS]], x[inliers[n_train:][:MOST_TEST]]
    return train, normal, x[anomalies[:MOST_TEST]]


def measure(suite: str, name: str, path: Path, seed: int) -> list[Line]:
    """All measures of one table and seed."""
    warnings.simplefilter("ignore")
    train, normal, odd = split_rows(suite, path, seed)
    lines: list[Line] = []

    def add(
        measured: str, value: float, way: str = "default", rate: Any = "", share: Any = ""
    ) -> None:
        cells = (suite, name, seed, len(train), measured, way, rate, share, round(float(value), 5))
        lines.append(dict(zip(COLUMNS, cells, strict=True)))

    detector = DiffInt(random_state=seed, n_jobs=1).fit(train)
    scores = [detector.anomaly_score(rows) for rows in (normal, odd)]
    calibration = detector.model_.calibration
    before = detector
    if calibration.kind != "members":
        before = DiffInt(random_state=seed, n_jobs=1, calibration="members").fit(train)
    labels = np.r_[np.zeros(len(normal)), np.ones(len(odd))]
    for way, fitted in (("default", detector), ("before", before)):
        each = np.concatenate([fitted.anomaly_score(rows) for rows in (normal, odd)])
        add("roc_auc", roc_auc_score(labels, each), way)
        add("ap", average_precision_score(labels, each), way)
    rules = {"default": FlagRule(calibration, 0.1), "storey": FlagRule(calibration, 0.1)}
    each_scores = {"default": scores, "storey": scores}
    split = detector
    if calibration.kind != "holdout":
        split = DiffInt(random_state=seed, n_jobs=1, calibration="holdout").fit(train)
    rules["split"] = FlagRule(split.model_.calibration, 0.1)
    each_scores["split"] = [split.anomaly_score(rows) for rows in (normal, odd)]
    rules["iforest"], each_scores["iforest"] = _isolation_forest(train, normal, odd, seed)
    for share in SHARES:
        count = min(max(round(share / (1 - share) * len(normal)), 1), len(odd))
        chosen = np.random.default_rng(seed).permutation(len(odd))[:count]
        _select(add, rules, each_scores, chosen, share)
    _segments(add, train, normal, seed)
    return lines


def _isolation_forest(
    train: Array, normal: Array, odd: Array, seed: int
) -> tuple[FlagRule, list[Array]]:
    """Trained on 80 % of the rows and calibrated on the others; missing cells get the mean."""
    with np.errstate(all="ignore"):
        means = np.nan_to_num(np.nanmean(train, axis=0))
    train, normal, odd = (np.where(np.isnan(rows), means, rows) for rows in (train, normal, odd))
    order = np.random.default_rng(seed).permutation(len(train))
    n_held = int(0.2 * len(train))
    forest = IsolationForest(random_state=seed, n_jobs=1).fit(train[order[n_held:]])
    known = np.sort(-forest.score_samples(train[order[:n_held]]))
    calibration = Calibration("holdout", known, np.ones(len(known), dtype=np.int64))
    return FlagRule(calibration, 0.1), [-forest.score_samples(rows) for rows in (normal, odd)]


def _select(
    add: Any, rules: dict[str, FlagRule], scores: Any, chosen: NDArray[np.intp], share: float
) -> None:
    for way in WAYS:
        normal, odd = scores[way]
        together = np.concatenate([normal, odd[chosen]])
        is_normal = np.arange(len(together)) < len(normal)
        for rate in FALSE_DISCOVERY_RATES:
            method = "storey" if way == "storey" else "benjamini-hochberg"
            found = select_rows(rules[way], together, rate, method)
            false = (found.selected & is_normal).sum() / max(found.n_selected, 1)
            add("false discoveries", false, way, rate, share)
            add("power", found.selected[~is_normal].mean(), way, rate, share)
            if way == "default":
                add("bound", found.bound, way, rate, share)
        if way == "default":
            order = np.argsort(found.p_values, kind="stable")
            last = np.searchsorted(found.p_values[order], found.p_values[order], side="right")
            shares = np.cumsum(is_normal[order])[last - 1] / last
            add("bound held", (shares <= found.bounds[order] + 1e-12).all(), way, "", share)


def _segments(add: Any, train: Array, normal: Array, seed: int) -> None:
    rng = np.random.default_rng(seed)
    varies = [j for j in range(train.shape[1]) if len(np.unique(train[:, j])) >= 4]
    if not varies:
        return
    j = int(rng.choice(varies))
    cuts = np.nanquantile(train[:, j], [0.25, 0.5, 0.75])
    in_train, in_test = (np.searchsorted(cuts, rows[:, j]) for rows in (train, normal))
    detector = DiffInt(random_state=seed, n_jobs=1, epochs=5).fit(train, segments=in_train)
    for rate in RATES:
        detector.false_positive_rate = rate
        flagged = detector.predict(normal, segments=in_test) == -1
        own = {
            int(detector.model_.calibration.segment_names[k]) for k in detector.rule.own_segments
        }
        for segment in range(4):
            inside = in_test == segment
            if inside.any() and segment in own:
                add("in a segment", flagged[inside].mean(), f"segment {segment}", rate)


# --- The page ------------------------------------------------------------------------------------


def holm(lines: list[Line], keys: tuple[str, ...]) -> tuple[int, int, float]:
    """Of all tests (one for each value of the keys): rejected ones, their number, smallest p."""
    groups: dict[tuple[Any, ...], list[float]] = {}
    for line in lines:
        groups.setdefault(tuple(line[key] for key in keys), []).append(line["value"] - line["rate"])
    p_values = []
    for values in groups.values():
        if len(values) < 2:
            continue
        if np.ptp(values) == 0:
            p_values.append(0.0 if values[0] > 0 else 1.0)
        else:
            p_values.append(float(ttest_1samp(values, 0.0, alternative="greater").pvalue))
    ordered = np.sort(p_values)
    limits = 0.05 / (len(ordered) - np.arange(len(ordered)))
    above = ordered > limits
    rejected = int(np.argmax(above)) if above.any() else len(ordered)
    return rejected, len(ordered), float(ordered[0] * len(ordered)) if len(ordered) else 1.0


def report(lines: list[Line], options: Any) -> list[str]:
    """The page."""
    text: list[str] = []
    tables = {(line["suite"], line["table"]) for line in lines}
    n_seeds = len({line["seed"] for line in lines})
    n_suite = {suite: sum(s == suite for s, _ in tables) for suite in ("adbench", "macrodata")}
    emit(
        text,
        "# Decisions: error rates and power",
        "",
        "Created by `python benchmarks/decisions.py --adbench FOLDER --macrodata FOLDER "
        f"--selection FILE --out docs/results/decisions --seeds {options.seeds}`; every table's "
        "means are in `decisions.csv`. What is measured is described at the top of the script.",
        "",
        f"{len(tables)} tables ({n_suite['adbench']} of ADBench, {n_suite['macrodata']} of "
        f"macrOData) of the half that no setting was chosen on, up to {n_seeds} seeds each "
        f"({LARGE_SEEDS} for those above {SMALL_CELLS:,} cells). From 5,000 training rows on the "
        "default calibration is a holdout, whose rates are proven; below, rows are scored by the "
        "members that left them out, and the rates are only measured. Standard errors are over "
        "tables. What `predict` flags is on [a page of its own](false_positives.md).",
    )
    _report_selection(text, lines)
    _report_segments(text, lines)
    _report_accuracy(text, lines)
    return text


def _report_selection(text: list[str], lines: list[Line]) -> None:
    emit(
        text,
        "",
        "## False discoveries of `select`",
        "",
        "The share of inliers among the selected rows (0 where none is selected), means over "
        "tables and shares of anomalies (1, 5, 10 and 20 %).",
        "",
        "| false discovery rate | default | with Storey's estimate | split | isolation forest | "
        "tables above the rate (default, Holm) |",
        "|---|---|---|---|---|---|",
    )
    false = [line for line in lines if line["measure"] == "false discoveries"]
    for rate in FALSE_DISCOVERY_RATES:
        cells = [mean_text(_where(false, way=way, rate=rate)) for way in WAYS]
        above = above_text(_where(false, way="default", rate=rate), ("suite", "table", "share"))
        emit(text, f"| {rate} | {' | '.join(cells)} | {above} |")
    emit(
        text,
        "",
        "## Power of `select`",
        "",
        'The share of anomalies selected. The split is `calibration="holdout"` of the same '
        "detector, which from 5,000 rows on is the default itself.",
        "",
        "| anomalies | false discovery rate | default | with Storey's estimate | split | isolation "
        "forest | default above split |",
        "|---|---|---|---|---|---|---|",
    )
    for share in (*SHARES, ""):
        for rate in (0.1,) if share != "" else FALSE_DISCOVERY_RATES:
            where = {"rate": rate} | ({"share": share} if share != "" else {})
            means = [_mean(_where(lines, measure="power", way=way, **where)) for way in WAYS]
            each = " | ".join(f"{mean:.3f}" for mean in means)
            shown = "all" if share == "" else f"{100 * share:g} %"
            more = 100 * (means[0] / means[2] - 1) if means[2] else float("nan")
            emit(text, f"| {shown} | {rate} | {each} | {more:+.0f} % |")
    held = _where(lines, measure="bound held")
    proven = [line for line in held if line["rows"] >= 5_000]
    emit(
        text,
        "",
        "## The bound at every threshold",
        "",
        "Share of runs in which the bound on the share of false alerts held at all thresholds "
        f"together (it should be 0.95 or more): **{_run_mean(held):.3f}** of {len(held):,} runs; "
        f"with a proven calibration {_run_mean(proven):.3f} of {len(proven):,}. The bound for the "
        "rows selected at a false discovery rate of 0.1, where any are: "
        + ", ".join(
            f"{np.median([v for v in _values(lines, 'bound', 0.1, share) if v > 0]):.2f} with "
            f"{100 * share:g} % anomalies"
            for share in SHARES
            if any(v > 0 for v in _values(lines, "bound", 0.1, share))
        )
        + " (medians).",
    )


def _report_segments(text: list[str], lines: list[Line]) -> None:
    inside = _where(lines, measure="in a segment")
    emit(
        text,
        "",
        "## False positives in segments",
        "",
        "Four segments by the quartiles of a feature, those with a threshold of their own; five "
        "epochs.",
        "",
        "| rate | mean over tables and segments | segments above the rate (Holm) |",
        "|---|---|---|",
    )
    for rate in RATES:
        own = _where(inside, rate=rate)
        above = above_text(own, ("suite", "table", "way"))
        emit(text, f"| {rate} | {mean_text(own)} | {above} |")


def _report_accuracy(text: list[str], lines: list[Line]) -> None:
    emit(
        text,
        "",
        "## Accuracy",
        "",
        'The default calibration beside `calibration="members"`, the default before; below 5,000 '
        "rows they are the same.",
        "",
        "| tables | ROC-AUC, default | before | average precision, default | before |",
        "|---|---|---|---|---|",
    )
    for label, least in (("all", 0), ("from 5,000 rows on", 5_000)):
        own = [line for line in lines if line["rows"] >= least]
        cells = [
            f"{_mean(_where(own, measure=measured, way=way)):.4f}"
            for measured in ("roc_auc", "ap")
            for way in ("default", "before")
        ]
        emit(text, f"| {label} | {' | '.join(cells)} |")
    large = [line for line in lines if line["rows"] >= 5_000]
    differences = []
    for measured in ("roc_auc", "ap"):
        new, old = (
            _table_means(_where(large, measure=measured, way=way)) for way in ("default", "before")
        )
        p = wilcoxon(new - old).pvalue if (new != old).any() else 1.0
        differences.append(f"{(new - old).mean():+.4f} (p = {p:.2g})")
    emit(
        text,
        "",
        f"From 5,000 rows on the differences are {' and '.join(differences)}; Wilcoxon's test over "
        "tables.",
    )


def _where(lines: list[Line], **values: Any) -> list[Line]:
    return [line for line in lines if all(line[k] == v for k, v in values.items())]


def _values(lines: list[Line], measured: str, rate: float, share: float) -> list[float]:
    return [line["value"] for line in _where(lines, measure=measured, rate=rate, share=share)]


def _table_means(lines: list[Line]) -> Array:
    by_table: dict[tuple[str, str], list[float]] = {}
    for line in lines:
        by_table.setdefault((line["suite"], line["table"]), []).append(float(line["value"]))
    return np.array([np.mean(values) for values in by_table.values()])


def _mean(lines: list[Line]) -> float:
    means = _table_means(lines)
    return float(means.mean()) if len(means) else float("nan")


def _run_mean(lines: list[Line]) -> float:
    return float(np.mean([line["value"] for line in lines])) if lines else float("nan")


def mean_text(lines: list[Line]) -> str:
    means = _table_means(lines)
    if len(means) < 2:
        return "–"
    return f"{means.mean():.4f} ± {means.std(ddof=1) / np.sqrt(len(means)):.4f} ({len(means)})"


def above_text(lines: list[Line], keys: tuple[str, ...] = ("suite", "table")) -> str:
    rejected, n_tests, _ = holm(lines, keys)
    return f"{rejected} of {n_tests}"


# --- Running -------------------------------------------------------------------------------------


def jobs_of(options: Any) -> list[tuple[str, str, Path, int]]:
    """Suite, table, file and seed, the first seeds first."""
    chosen = read_selection(options.selection, "report")
    files = {
        "adbench": adbench_files(options.adbench),
        "macrodata": macrodata_files(options.macrodata),
    }
    jobs = []
    for suite, found in files.items():
        names = [name for name in chosen.of(suite) if name in found]
        for name in names if suite == "adbench" else names[:: options.every]:
            x, anomalous = rows_of(suite, found[name])
            n_train = min(int(0.6 * (~anomalous).sum()), MOST_ROWS)
            if n_train < 50:
                continue
            small = n_train * x.shape[1] <= SMALL_CELLS
            for seed in range(options.seeds if small else min(LARGE_SEEDS, options.seeds)):
                jobs.append((seed, suite, name, found[name]))
    return [(suite, name, path, seed) for seed, suite, name, path in sorted(jobs)]


def arguments(description: str) -> argparse.ArgumentParser:
    """The options of a run over all tables."""
    parser = argparse.ArgumentParser(description=description)
    for name in ("--adbench", "--macrodata", "--selection"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--every", type=int, default=5, help="every how many-th macrOData table")
    parser.add_argument("--limit", type=float, default=np.inf, help="seconds")
    parser.add_argument("--page-only", action="store_true", help="from the lines in --out")
    return parser


def main() -> None:
    """Run all tables and write the page."""
    options = arguments(__doc__.split("\n")[0]).parse_args()
    raw = options.out.with_suffix(".runs.csv")
    if not options.page_only:
        run(options, raw, measure, COLUMNS)
    lines = [_typed(line) for line in csv.DictReader(raw.open())]
    text = report(lines, options)
    options.out.with_suffix(".md").write_text("\n".join(text) + "\n")
    _write_means(options.out.with_suffix(".csv"), lines)


def run(
    options: Any, raw: Path, measure: Callable[..., list[Line]], columns: tuple[str, ...]
) -> None:
    """Run what is not in the file yet, and add it."""
    done_before = set()
    if raw.exists():
        with raw.open() as file:
            done_before = {
                (line["suite"], line["table"], int(line["seed"])) for line in csv.DictReader(file)
            }
    jobs = [job for job in jobs_of(options) if (job[0], job[1], job[3]) not in done_before]
    started = time.perf_counter()
    print(f"{len(jobs)} runs, {len(done_before)} done before", flush=True)
    raw.parent.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with raw.open("a", newline="") as file, ProcessPoolExecutor(options.jobs) as pool:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        if not done_before:
            writer.writeheader()
        waiting = {pool.submit(measure, *job): job for job in jobs}
        for done, future in enumerate(as_completed(waiting), 1):
            try:
                writer.writerows(future.result())
                file.flush()
            except Exception as error:  # one table must not lose the others
                print(f"{waiting[future][:2]}: {error!r}", flush=True)
            if done % 50 == 0:
                print(f"{done} of {len(jobs)}, {time.perf_counter() - started:.0f} s", flush=True)
            if time.perf_counter() - started > options.limit:
                print(f"stopped after {done} runs", flush=True)
                pool.shutdown(wait=False, cancel_futures=True)
                break


def _typed(line: dict[str, str]) -> Line:
    numbers = {key: float(line[key]) if line[key] else "" for key in ("rate", "share", "value")}
    return {**line, "seed": int(line["seed"]), "rows": int(line["rows"]), **numbers}


def _write_means(path: Path, lines: list[Line]) -> None:
    """One line per table and measure: the mean over its seeds."""
    keys = ("suite", "table", "rows", "measure", "way", "rate", "share")
    means: dict[tuple[Any, ...], list[float]] = {}
    for line in lines:
        means.setdefault(tuple(line[key] for key in keys), []).append(line["value"])
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*keys, "mean", "seeds"])
        for key, values in sorted(means.items(), key=lambda item: list(map(str, item[0]))):
            writer.writerow([*key, round(float(np.mean(values)), 5), len(values)])


if __name__ == "__main__":
    main()
