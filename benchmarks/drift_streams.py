"""How often does `DriftMonitor` alarm without drift, and how soon after a change?

    python benchmarks/drift_streams.py --out docs/results/drift_streams [--streams 500]
        [--rows 100000] [--change-streams 50] [--jobs 2] [--tables 10]

Runs are kept in OUT.runs.csv, and not run again if the command is given again.

Streams are fresh draws from ten synthetic distributions (`TABLES`), so that rows are independent
and any number of them is there; rows drawn again from a finite table would repeat, which rows of a
stream do not. For every stream a detector is fitted on fresh rows of its own (a quick fit: how well
it finds anomalies does not matter here), as the rate is an average over reference rows too.

- Without drift: the share of streams that ever alarm at a rate of 1 %.
- Changes (`CHANGES`) of one feature drawn at random, after `BEFORE` rows: the share of streams with
  an alarm within 1,000 rows of the change and none before, the delay, and whether the feature named
  first is the one that changed; for a correlation, whether it is one of the first pair.
- The same streams with a Kolmogorov–Smirnov test of every feature of every batch of 100 or 500 rows
  against the stored calibration rows, missing values in front, Bonferroni over features and the
  batches of a stream of `--rows` rows. A new category is a value behind all others.
"""

from __future__ import annotations

import argparse
import csv
import os
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import beta, kstwo

from diffint import DiffInt, DriftMonitor
from result_lines import emit

RATE, WITHIN, AFTER, BLOCK = 0.01, 1_000, 3_000, 20_000
BEFORE = (0, 5_000)
FIT_ROWS = 8_000
QUICK: dict[str, Any] = {
    "n_units": 16,
    "hidden_width": 16,
    "epochs": 3,
    "n_members": 2,
    "n_jobs": 1,
}
CHANGES = ("mean", "spread", "correlation", "missing", "new category")
WAYS = ("monitor", "KS, 100 rows", "KS, 500 rows")
COLUMNS = ("table", "seed", "change", "before", "way", "alarm", "delay", "first", "p")

Line = dict[str, Any]


# --- Distributions -------------------------------------------------------------------------------


def _frame(x: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(x, columns=[f"x{j}" for j in range(x.shape[1])])


def _correlated(rng: np.random.Generator, n: int, d: int, r: float) -> np.ndarray:
    own, common = rng.normal(size=(n, d)), rng.normal(size=(n, 1))
    return np.asarray(np.sqrt(1 - r) * own + np.sqrt(r) * common)


def _factors(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    loadings = np.random.default_rng(d).normal(size=(3, d))
    return rng.normal(size=(n, 3)) @ loadings + rng.normal(size=(n, d))


def _clusters(rng: np.random.Generator, n: int, _: int) -> np.ndarray:
    centres = 3 * np.random.default_rng(7).normal(size=(5, 6))
    return np.asarray(centres[rng.integers(5, size=n)] + _correlated(rng, n, 6, 0.5))


def _missing(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    x = _correlated(rng, n, d, 0.5)
    x[rng.random((n, d)) < 0.05] = np.nan
    return x


def _mixed(rng: np.random.Generator, n: int, _: int) -> pd.DataFrame:
    frame = _frame(_correlated(rng, n, 6, 0.4))
    frame["few"] = np.array(list("abcde"))[np.minimum(rng.geometric(0.4, n), 5) - 1]
    frame["some"] = [f"v{k}" for k in rng.integers(12, size=n)]
    frame["many"] = [f"w{k}" for k in np.minimum(rng.zipf(1.6, n), 3_000)]  # new ones ever after
    return frame


TABLES: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "independent": lambda rng, n: rng.normal(size=(n, 10)),
    "correlated": lambda rng, n: _correlated(rng, n, 10, 0.6),
    "factors": lambda rng, n: _factors(rng, n, 15),
    "heavy tails": lambda rng, n: (
        _correlated(rng, n, 8, 0.5) / np.sqrt(rng.gamma(1.5, size=(n, 1)))
    ),
    "log-normal": lambda rng, n: np.exp(_correlated(rng, n, 8, 0.5)),
    "counts": lambda rng, n: rng.poisson(3 * np.exp(0.5 * _correlated(rng, n, 8, 0.7))) * 1.0,
    "clusters": lambda rng, n: _clusters(rng, n, 6),
    "missing": lambda rng, n: _missing(rng, n, 10),
    "mixed": lambda rng, n: _mixed(rng, n, 9),
    "wide": lambda rng, n: _factors(rng, n, 40),
}


def draw(table: str, rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Fresh rows of a table."""
    rows = TABLES[table](rng, n)
    return rows if isinstance(rows, pd.DataFrame) else _frame(rows)


def changed(frame: pd.DataFrame, change: str, feature: str, rng: np.random.Generator, sd: float,
            middle: float) -> pd.DataFrame:  # fmt: skip
    """Rows after a change of one feature; sd, middle: of the feature before."""
    frame = frame.copy()
    column = frame[feature]
    if change == "mean":
        frame[feature] = column + 0.5 * sd
    elif change == "spread":
        frame[feature] = middle + 1.5 * (column - middle)
    elif change == "correlation":  # the same values, of other rows
        frame[feature] = rng.permutation(column.to_numpy())
    elif change == "missing":
        frame[feature] = column.where(rng.random(len(frame)) >= 0.1)
    else:
        frame[feature] = column.where(rng.random(len(frame)) >= 0.05, "new")
    return frame


def possible(table: str, change: str) -> bool:
    """Whether a table can change like this."""
    if change == "new category":
        return table == "mixed"
    return change != "correlation" or table != "independent"


# --- Streams -------------------------------------------------------------------------------------


def fit(table: str, rng: np.random.Generator, seed: int) -> tuple[DiffInt, pd.DataFrame]:
    """A detector of fresh rows, and these rows."""
    rows = draw(table, rng, FIT_ROWS)
    return DiffInt(calibration="holdout", random_state=seed, **QUICK).fit(rows), rows


def without_drift(table: str, seed: int, n_rows: int) -> list[Line]:
    """Whether a stream without drift ever alarms."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng([seed, list(TABLES).index(table)])
    detector, _ = fit(table, rng, seed)
    monitor = DriftMonitor(detector, RATE)
    for start in range(0, n_rows, BLOCK):
        monitor.update(draw(table, rng, min(BLOCK, n_rows - start)))
    return [_line(table, seed, "none", n_rows, "monitor", monitor.alarm_row, None, "",
                  monitor.state.p_value)]  # fmt: skip


def with_change(table: str, seed: int, change: str, before: int, n_rows: int) -> list[Line]:
    """When each way alarms after a change, and what it names first."""
    warnings.simplefilter("ignore")
    key = [1_000_000 + seed, list(TABLES).index(table), before, CHANGES.index(change)]
    rng = np.random.default_rng(key)
    detector, trained = fit(table, rng, seed)
    numbers = trained.select_dtypes("number").columns
    kind = numbers if change != "new category" else trained.columns.difference(numbers)
    if change == "new category":
        kind = kind.drop("many")  # has new values without drift
    feature = str(rng.choice(kind))
    sd, middle = (0.0, 0.0) if feature not in numbers else (
        float(trained[feature].std()), float(trained[feature].median()))  # fmt: skip
    after = changed(draw(table, rng, AFTER), change, feature, rng, sd, middle)
    rows = after if not before else pd.concat([draw(table, rng, before), after], ignore_index=True)
    monitor = DriftMonitor(detector, RATE)
    first = ""
    for start in range(0, len(rows), 100):
        state = monitor.update(rows[start : start + 100])
        if state.drifted:
            named = state.features[:1]
            if change == "correlation":
                named = next((c.features for c in state.changes if c.features), ())
            first = str(feature in named)
            break
    lines = [_line(table, seed, change, before, "monitor", monitor.alarm_row, before, first)]
    for size in (100, 500):
        row, strongest = _ks_alarm(detector, rows, size, n_rows)
        right = "" if row is None else str(strongest == feature)
        lines.append(_line(table, seed, change, before, f"KS, {size} rows", row, before, right))
    return lines


def _line(table: str, seed: int, change: str, before: int, way: str, alarm: int | None,
          changed_at: int | None, first: str, p: Any = "") -> Line:  # fmt: skip
    delay = "" if alarm is None or changed_at is None else alarm - changed_at + 1
    cells = (table, seed, change, before, way, "" if alarm is None else alarm, delay, first, p)
    return dict(zip(COLUMNS, cells, strict=True))


def _ks_alarm(
    detector: DiffInt, rows: pd.DataFrame, size: int, n_rows: int
) -> tuple[int | None, str]:
    """The last row of the first batch with a small enough p-value, and the feature; None."""
    known = np.nan_to_num(detector.model_.calibration.sample, nan=-1e300)
    x = np.nan_to_num(np.asarray(detector._read(rows), dtype=np.float64), nan=-1e300)
    n, features = len(known), known.shape[1]
    level = RATE / (features * np.ceil(n_rows / size))
    critical = kstwo.isf(level, round(n * size / (n + size)))
    ordered = np.sort(known, axis=0)
    for start in range(0, len(x) - size + 1, size):
        distances = []
        for j in range(features):
            batch = np.sort(x[start : start + size, j])
            both = np.concatenate([ordered[:, j], batch])
            shares = [np.searchsorted(v, both, "right") / len(v) for v in (ordered[:, j], batch)]
            distances.append(np.abs(shares[0] - shares[1]).max())
        if max(distances) >= critical:
            return start + size - 1, str(detector.model_.feature_names[int(np.argmax(distances))])
    return None, ""


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
        f"--streams {options.streams} --rows {options.rows} --change-streams "
        f"{options.change_streams}`. What is measured is described at the top of the script.",
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
            f"Share with an alarm within {WITHIN:,} rows of the change, the median and the 95th "
            "percentile of the delay in rows (– if there are fewer alarms), and the share of "
            "alarms that name the feature first.",
            "",
            "| change | way | streams | within 1,000 rows | median | 95 % | right feature first |",
            "|---|---|---|---|---|---|---|",
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
    return text


def _change_lines(lines: list[Line], change: str, before: int, way: str) -> list[str]:
    own = _where(lines, change=change, before=before, way=way)
    if not own:
        return []
    delays = np.sort([line["delay"] if line["delay"] != "" else np.inf for line in own])
    shown = []
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
    parser.add_argument("--streams", type=int, default=500, help="without drift, over all tables")
    parser.add_argument("--rows", type=int, default=100_000, help="of a stream without drift")
    parser.add_argument("--change-streams", type=int, default=50, help="of each table and change")
    parser.add_argument("--tables", type=int, default=len(TABLES), help="how many of the tables")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    runs = Path(f"{options.out}.runs.csv")
    lines = _read(runs)
    done = {(line["table"], line["seed"], line["change"], line["before"]) for line in lines}
    tables = list(TABLES)[: options.tables]
    tasks: list[tuple[Any, ...]] = [
        (without_drift, tables[i % len(tables)], i // len(tables), options.rows)
        for i in range(options.streams)
        if (tables[i % len(tables)], i // len(tables), "none", options.rows) not in done
    ]
    tasks += [
        (with_change, table, seed, change, before, options.rows)
        for seed in range(options.change_streams)
        for before in BEFORE
        for change in CHANGES
        for table in tables
        if possible(table, change) and (table, seed, change, before) not in done
    ]
    os.environ["OMP_NUM_THREADS"] = "1"
    is_new = not runs.exists()
    runs.parent.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(options.jobs) as pool, open(runs, "a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if is_new:
            writer.writeheader()
        for future in as_completed([pool.submit(*task) for task in tasks]):
            found = future.result()
            writer.writerows(found)
            file.flush()
            lines += found
    text = report(lines, options)
    Path(f"{options.out}.md").write_text("\n".join(text) + "\n")


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
