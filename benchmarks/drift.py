"""How often `drift` sees a drift, with and without one, against a test of each feature.

    python benchmarks/drift.py --adbench FOLDER --batches 300

Every batch is a new division of a table's inliers into stored and new rows. The rival is the
two-sample test of Kolmogorov and Smirnov for every feature, with Bonferroni's correction.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import ks_2samp

from diffint.decide.drift import Columns, Comparison, compare_rows

Array = NDArray[np.float64]

LEVEL, N_STORED, N_NEW = 0.01, 2_000, 1_000
TABLES = ("22_magic.gamma", "32_shuttle", "26_optdigits", "30_satellite")


def synthetic(n_rows: int, rng: np.random.Generator) -> Array:
    """12 related numbers, with a long tail, whole numbers and many zeros among them."""
    loads = np.random.default_rng(5).normal(size=(3, 12)) * 0.8
    x = rng.normal(size=(n_rows, 3)) @ loads + 0.6 * rng.normal(size=(n_rows, 12))
    x[:, 0], x[:, 1], x[:, 2] = np.exp(x[:, 0]), np.round(2 * x[:, 1]), np.maximum(x[:, 2], 0)
    return np.asarray(x)


def source(table: str, folder: Path) -> Callable[[np.random.Generator], Array]:
    """A function that draws stored and new rows of a table."""
    n_rows = N_STORED + N_NEW
    if table == "synthetic":
        return lambda rng: synthetic(n_rows, rng)
    data = np.load(folder / f"{table}.npz")
    inliers = data["X"][data["y"] == 0].astype(np.float64)
    return lambda rng: inliers[rng.permutation(len(inliers))[:n_rows]]


def by_drift(stored: Array, new: Array) -> Comparison:
    names = [str(j) for j in range(stored.shape[1])]
    rng = np.random.default_rng([len(stored), len(new), len(names)])
    columns = Columns(names, np.concatenate([stored, new]), {}, [])
    return compare_rows(columns, len(stored), True, LEVEL, rng)


def by_feature(stored: Array, new: Array) -> tuple[bool, int]:
    """Whether any feature differs, and the one with the smallest p-value."""
    p = [
        ks_2samp(a[~np.isnan(a)], b[~np.isnan(b)], method="asymp").pvalue
        for a, b in zip(stored.T, new.T, strict=True)
    ]
    return bool(min(p) * len(p) <= LEVEL), int(np.argmin(p))


def moved(kind: str, stored: Array, new: Array, rng: np.random.Generator) -> tuple[Array, int]:
    """New rows with a drift in a feature chosen at random, and that feature; −1 if none can."""
    x = new.copy()
    usable = [j for j in range(x.shape[1]) if len(np.unique(stored[:, j])) > 10]
    if kind == "correlation":
        with np.errstate(invalid="ignore"):
            related = np.abs(np.nan_to_num(np.corrcoef(stored.T))) - np.eye(x.shape[1])
        usable = [j for j in usable if related[j].max() > 0.5]
    if not usable:
        return x, -1
    j = int(rng.choice(usable))
    middle = np.median(stored[:, j])
    size = np.clip(stored[:, j], *np.quantile(stored[:, j], [0.01, 0.99])).std()
    what, _, amount = kind.partition(" ")
    if what == "mean":
        x[:, j] += float(amount) * size
    elif what == "spread":
        x[:, j] = middle + (x[:, j] - middle) * float(amount)
    elif what == "correlation":
        x[:, j] = rng.permutation(x[:, j])
    else:
        x[rng.random(len(x)) < float(amount), j] = np.nan
    return x, j


def anomalies(new: Array, alike: bool, rng: np.random.Generator) -> Array:
    """New rows of which 1 % are moved by 10 standard deviations in every feature."""
    x, n = new.copy(), len(new) // 100
    x[:n] += 10 * new.std(axis=0) * np.sign(rng.normal(size=(1 if alike else n, x.shape[1])))
    return x


KINDS = ("mean 0.5", "mean 0.2", "spread 1.5", "spread 1.2", "correlation", "missing 0.1")


def measure(draw: Callable[[np.random.Generator], Array], n_batches: int) -> list[str]:
    """Lines of a table: kind of drift; seen, and first named, by `drift` and by feature."""
    rng = np.random.default_rng(0)
    lines = []
    for kind in ("none", "anomalies", "anomalies alike", *KINDS):
        counts, n = np.zeros(5), n_batches if kind == "none" else max(n_batches // 10, 1)
        for _ in range(n):
            rows = draw(rng)
            stored, new, j = rows[:N_STORED], rows[N_STORED:], -1
            if kind.startswith("anomalies"):
                new = anomalies(new, kind.endswith("alike"), rng)
            elif kind != "none":
                new, j = moved(kind, stored, new, rng)
            found, (differs, k) = by_drift(stored, new), by_feature(stored, new)
            seen = found.p_value <= LEVEL
            others = sum(s.p_value <= LEVEL and s.feature != str(j) for s in found.shifts)
            first = seen and found.shifts[0].feature == str(j)
            counts += [seen, first, others, differs, differs and k == j]
        shares = " | ".join(f"{count / n:.3f}" for count in counts)
        lines.append(f"| {kind} | {n} | {shares} |")
    return lines


def main(arguments: Any = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--adbench", type=Path, help="folder of the ADBench tables")
    parser.add_argument("--batches", type=int, default=300)
    parser.add_argument("--tables", nargs="*", default=["synthetic", *TABLES])
    options = parser.parse_args(arguments)
    for table in options.tables:
        lines = measure(source(table, options.adbench), options.batches)
        print(f"\n{table}\n\n| drift | batches | seen | first | others | KS: seen | first |")
        print("|---|---|---|---|---|---|---|", *lines, sep="\n", flush=True)


if __name__ == "__main__":
    main()
