"""How often `drift` sees a drift, with and without one, against a test of each feature.

    python benchmarks/drift.py --adbench FOLDER --out docs/results/drift.md [--batches 100]

A synthetic table and eleven of ADBench (inliers only; columns with two to five values are
categories). Every batch is a new division of rows into stored and new ones, drawn without
replacement, so that rows without drift are exchangeable. A drift is a change of one feature, drawn
at random from those that can change like this (benchmarks/drift_tables.py): a spread must move a
fifth of the cells by a tenth of a standard deviation, and a correlation must have been above 0.5,
of columns in which a fifth of the cells are not the most common value; columns with mostly one
value hardly change. The rival is what Evidently does: the two-sample test of Kolmogorov and Smirnov
for every number without its missing cells, χ² for categories, with Bonferroni's correction.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import chi2_contingency, ks_2samp

from diffint.decide.drift import Columns, Comparison, compare_rows
from drift_tables import REAL, as_frame, changeable, changed, inliers
from result_lines import emit

LEVEL, N_STORED, N_NEW = 0.01, 2_000, 1_000
TABLES = ("synthetic", *REAL, "26_optdigits")
ANOMALIES = ("anomalies", "anomalies alike")
# Kind and amount of a drift, and what it is called.
DRIFTS = {
    ("mean", 0.5): "mean by 0.5 standard deviations",
    ("mean", 0.2): "mean by 0.2 standard deviations",
    ("spread", 1.5): "spread × 1.5",
    ("spread", 1.2): "spread × 1.2",
    ("correlation", 0.0): "relations of a feature lost, its own distribution as before",
    ("missing", 0.1): "10 % of a feature's cells missing",
    ("new category", 0.05): "5 % of a feature's cells with a new category",
}
NAMES = {
    "none": "no drift",
    "anomalies": "no drift, 1 % anomalies (10 standard deviations in every number)",
    "anomalies alike": "the same, all in the same direction",
} | {f"{kind} {amount}": name for (kind, amount), name in DRIFTS.items()}


class Found(NamedTuple):
    """What was found in one batch: seen and right feature first, by `drift` and by KS; others:
    features named by `drift` that have not moved."""

    seen: bool
    first: bool
    ks_seen: bool
    ks_first: bool
    others: bool


def synthetic(n_rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """12 related numbers, with a long tail, whole numbers and many zeros, and two categories."""
    loads = np.random.default_rng(5).normal(size=(3, 12)) * 0.8
    x = rng.normal(size=(n_rows, 3)) @ loads + 0.6 * rng.normal(size=(n_rows, 12))
    x[:, 0], x[:, 1], x[:, 2] = np.exp(x[:, 0]), np.round(2 * x[:, 1]), np.maximum(x[:, 2], 0)
    shares = [[0.7, 0.2, 0.1], [0.25, 0.25, 0.5]]
    codes = np.column_stack([rng.choice(3, n_rows, p=p) for p in shares])
    texts = [None] * 12 + [["v0", "v1", "v2"]] * 2
    return as_frame(np.concatenate([x, codes], axis=1), texts)


def source(table: str, folder: Path) -> Callable[[np.random.Generator], pd.DataFrame]:
    """A function that draws stored and new rows of a table."""
    n_rows = N_STORED + N_NEW
    if table == "synthetic":
        return lambda rng: synthetic(n_rows, rng)
    known, _, texts = inliers(folder / f"{table}.npz")
    return lambda rng: as_frame(known[rng.permutation(len(known))[:n_rows]], texts)


def coded(frame: pd.DataFrame, texts: dict[int, tuple[str, ...]]) -> np.ndarray:
    """Rows as numbers; a value of a category that is not among its texts is behind all others."""
    columns = []
    for j, name in enumerate(frame):
        column = frame[name]
        if j in texts:
            codes = {value: float(k) for k, value in enumerate(texts[j])}
            column = column.map(lambda v, c=codes: c.get(v, len(c)), na_action="ignore")
        columns.append(column.to_numpy(dtype=np.float64))
    return np.column_stack(columns)


def by_drift(rows: np.ndarray, names: list[str], texts: dict[int, tuple[str, ...]]) -> Comparison:
    rng = np.random.default_rng([N_STORED, len(rows) - N_STORED, len(names)])
    return compare_rows(Columns(names, rows, texts, []), N_STORED, False, LEVEL, rng)


def by_feature(rows: np.ndarray, texts: dict[int, tuple[str, ...]]) -> tuple[bool, int]:
    """Whether any feature differs, and the one with the smallest p-value."""
    p = []
    for j, column in enumerate(rows.T):
        stored, new = (part[~np.isnan(part)] for part in (column[:N_STORED], column[N_STORED:]))
        if j in texts:
            size = len(texts[j]) + 1
            counts = [np.bincount(part.astype(np.intp), minlength=size) for part in (stored, new)]
            table = np.array(counts)[:, np.sum(counts, axis=0) > 0]
            p.append(chi2_contingency(table).pvalue if table.shape[1] > 1 else 1.0)
        else:
            p.append(ks_2samp(stored, new, method="asymp").pvalue)
    return bool(min(p) * len(p) <= LEVEL), int(np.argmin(p))


def anomalies(new: pd.DataFrame, alike: bool, rng: np.random.Generator) -> pd.DataFrame:
    """New rows of which 1 % are moved by 10 standard deviations in every number."""
    new, n = new.copy(), len(new) // 100
    numbers = new.select_dtypes("number")
    signs = np.sign(rng.normal(size=(1 if alike else n, numbers.shape[1])))
    new.iloc[:n, new.columns.get_indexer(numbers.columns)] += 10 * numbers.std().to_numpy() * signs
    return new


def measure(
    draw: Callable[[np.random.Generator], pd.DataFrame], kind: str, amount: float, n_batches: int
) -> list[Found]:
    """What is found in batches with a kind of drift; no batches if the table cannot have it."""
    rng = np.random.default_rng(0)
    results = []
    for _ in range(n_batches):
        rows = draw(rng)
        texts = {
            j: tuple(sorted(rows[name].unique()))
            for j, name in enumerate(rows)
            if not pd.api.types.is_numeric_dtype(rows[name])
        }
        stored, new = rows[:N_STORED], rows[N_STORED:]
        moved = ""
        if kind in ANOMALIES:
            new = anomalies(new, kind == ANOMALIES[1], rng)
        elif kind != "none":
            possible = changeable(kind, stored)
            if not possible:
                break
            moved = str(rng.choice(possible))
            new = changed(new, kind, moved, rng, stored, amount)
        names = [str(name) for name in rows]
        x = coded(pd.concat([stored, new]), texts)
        found, (differs, j) = by_drift(x, names, texts), by_feature(x, texts)
        seen = found.p_value <= LEVEL
        first = seen and found.shifts[0].feature == moved
        others = any(s.p_value <= LEVEL and s.feature != moved for s in found.shifts)
        results.append(Found(seen, first, differs, differs and names[j] == moved, others))
    return results


def main(arguments: Any = None) -> None:
    """Run all tables and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--adbench", type=Path, required=True, help="folder of the tables")
    parser.add_argument("--out", type=Path, help="page")
    parser.add_argument("--batches", type=int, default=100, help="without drift; others a third")
    parser.add_argument("--tables", nargs="*", default=TABLES)
    options = parser.parse_args(arguments)
    kinds = [("none", 0.0), *((kind, 0.0) for kind in ANOMALIES), *DRIFTS]
    results: dict[tuple[str, str], list[Found]] = {}
    for table in options.tables:
        draw = source(table, options.adbench)
        for kind, amount in kinds:
            n = options.batches if kind == "none" else max(options.batches // 3, 1)
            key = kind if kind in NAMES else f"{kind} {amount}"
            results[table, key] = measure(draw, kind, amount, n)
            print(f"{table}, {key}: {_shares(results[table, key])}", flush=True)
    text: list[str] = []
    emit(
        text,
        "# Drift of one batch",
        "",
        f"Created by `python benchmarks/drift.py --adbench FOLDER --out docs/results/drift.md "
        f"--batches {options.batches}`, which describes what is measured: {N_STORED:,} stored and "
        f"{N_NEW:,} new rows, level {LEVEL:g}. Shares of batches in which a drift is seen, and the "
        "right feature is first; and in which `drift` names a feature that has not moved.",
        "",
        "| batches of 1,000 rows | number | `drift`: seen | the feature is first | "
        "Kolmogorov–Smirnov: seen | first | `drift`: another feature named |",
        "|---|---|---|---|---|---|---|",
    )
    for key, name in NAMES.items():
        own = [found for table in options.tables for found in results[table, key]]
        emit(text, f"| {name} | {len(own):,} | {_shares(own)} |")
    emit(
        text,
        "",
        "## By table",
        "",
        "`drift`: seen, and the right feature first.",
        "",
        f"| table | {' | '.join(NAMES)} |",
        f"|---|{'---|' * len(NAMES)}",
    )
    for table in options.tables:
        cells = [_pair(results[table, key], key) for key in NAMES]
        emit(text, f"| {table} | {' | '.join(cells)} |")
    if options.out:
        options.out.write_text("\n".join(text) + "\n")


def _shares(found: list[Found]) -> str:
    if not found:
        return "no such feature"
    means = np.mean(np.array(found, dtype=np.float64), axis=0)
    return " | ".join(f"{mean:.3f}" for mean in means)


def _pair(found: list[Found], key: str) -> str:
    if not found:
        return "–"
    seen, first = np.mean([(one.seen, one.first) for one in found], axis=0)
    return f"{seen:.3f}" if key == "none" or key in ANOMALIES else f"{seen:.2f}, {first:.2f}"


if __name__ == "__main__":
    main()
