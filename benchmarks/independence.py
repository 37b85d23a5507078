"""Measure the false-positive rate when training rows are copies of each other or come in groups.

    python benchmarks/independence.py [--fits 20] [--data FOLDER ...] [--out FILE]

Detectors with default settings are fitted on rows of 8 normal features: independent, each several
times (with and without 1 % noise on the copies), and 20 or 200 rows per subject. The share of 4,000
new rows (of new subjects) that are flagged should be at most the rate, within two standard errors
over the fits. "As independent" gives every row a group of its own; "as found" leaves groups to the
library; "named" passes them.

Then the same for independent rows that repeat, because their columns have few different values.

Then the signs of dependence that the library looks for: on random tables of independent rows, where
each is a false alarm, and on the training rows of the tables (npz) in the folders.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from diffint import DiffInt
from diffint.core.errors import CalibrationWarning
from diffint.fit.row_groups import find_row_groups
from result_lines import emit

N_FEATURES, NEW_ROWS = 8, 4_000
RATES = (0.05, 0.01)
INDEPENDENT_TABLES = 1_000


class Kind(NamedTuple):
    """A way in which training rows depend on each other.

    times: rows per group; noise: standard deviation within a group, relative to that between
    groups; new_noise: the same for new rows; ways: how the groups are given to the detector.
    """

    name: str
    times: int
    noise: float
    new_noise: float
    ways: tuple[str, ...]
    n_rows: int = 400


FOUND = ("as independent", "as found")
KINDS = (
    Kind("independent", 1, 0.0, 0.0, ("as found",)),
    Kind("each row twice", 2, 0.0, 0.0, FOUND),
    Kind("each row five times", 5, 0.0, 0.0, FOUND),
    Kind("each row twice, 1 % noise", 2, 0.01, 0.0, FOUND),
    Kind("each row five times, 1 % noise", 5, 0.01, 0.0, FOUND),
    Kind("20 rows per subject, spread 0.1", 20, 0.1, 0.1, (*FOUND, "named")),
    Kind("20 rows per subject, spread 0.3", 20, 0.3, 0.3, (*FOUND, "named")),
    Kind("20 rows per subject, spread 0.5", 20, 0.5, 0.5, (*FOUND, "named")),
    Kind("20 rows per subject, spread 1", 20, 1.0, 1.0, (*FOUND, "named")),
    Kind("200 rows per subject, spread 0.1, 10,000 rows", 200, 0.1, 0.1, (*FOUND, "named"), 10_000),
)


def flagged(kind: Kind, way: str, seed: int) -> tuple[list[float], bool]:
    """The share of new rows flagged at each rate, and whether the fit gave a warning."""
    rng = np.random.default_rng(seed)
    names = np.repeat(np.arange(kind.n_rows // kind.times), kind.times)
    rows = rng.normal(size=(names[-1] + 1, N_FEATURES))[names]
    rows = rows + kind.noise * rng.normal(size=rows.shape)
    new = rng.normal(size=(NEW_ROWS, N_FEATURES))
    new = new + kind.new_noise * rng.normal(size=new.shape)
    groups = {"as independent": np.arange(kind.n_rows), "as found": None, "named": names}[way]
    detector = DiffInt(random_state=seed, false_positive_rate=RATES[0])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        detector.fit(rows, groups=groups)
    p_values = detector.p_values(new)
    warned = any(issubclass(w.category, CalibrationWarning) for w in caught)
    return [float((p_values <= rate).mean()) for rate in RATES], warned


def check_rates(fits: int, lines: list[str]) -> None:
    """Add one line per kind of dependence and way of naming the groups."""
    emit(
        lines,
        f"## Share of new rows flagged ({fits} fits)",
        "",
        "| training rows | groups | rate 0.05 (s.e.) | rate 0.01 (s.e.) | fits with a warning |",
        "|---|---|---|---|---|",
    )
    for kind in KINDS:
        for way in kind.ways:
            results = [flagged(kind, way, seed) for seed in range(fits)]
            shares = np.array([shares for shares, _ in results])
            errors = shares.std(axis=0, ddof=1) / np.sqrt(fits)
            cells = [f"{m:.3f} ({e:.3f})" for m, e in zip(shares.mean(axis=0), errors, strict=True)]
            warned = sum(w for _, w in results)
            emit(lines, f"| {kind.name} | {way} | {' | '.join(cells)} | {warned} of {fits} |")
    emit(lines, "")


def whole_numbers(rng: np.random.Generator, n_rows: int) -> np.ndarray:
    """Three columns, binomial with three draws of probability 0.3."""
    return rng.binomial(3, 0.3, size=(n_rows, 3)).astype(float)


def texts(rng: np.random.Generator, n_rows: int) -> pd.DataFrame:
    """Three independent categories with six values each."""
    shares = (0.4, 0.25, 0.18, 0.1, 0.05, 0.02)
    return pd.DataFrame(rng.choice(list("abcdef"), size=(n_rows, 3), p=shares), columns=list("xyz"))


def one_hot(rng: np.random.Generator, n_rows: int) -> np.ndarray:
    """The categories of `texts`, with four values each, as columns of 0 and 1."""
    codes = rng.choice(4, size=(n_rows, 3), p=(0.5, 0.3, 0.15, 0.05))
    return np.eye(4)[codes].reshape(n_rows, 12)


REPEATING: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "3 columns of binomial(3, 0.3)": whole_numbers,
    "the same, with noise of 0.001": lambda rng, n: (
        whole_numbers(rng, n) + 1e-3 * rng.normal(size=(n, 3))
    ),
    "4 columns of 0, 1, 2 or 3": lambda rng, n: rng.integers(0, 4, size=(n, 4)).astype(float),
    "3 normal columns, rounded to whole numbers": lambda rng, n: np.round(rng.normal(size=(n, 3))),
    "3 one-hot categories": one_hot,
    "3 categories": texts,
    "2 normal columns, 3 of binomial(3, 0.3)": lambda rng, n: np.hstack(
        [rng.normal(size=(n, 2)), whole_numbers(rng, n)]
    ),
    "4 normal columns": lambda rng, n: rng.normal(size=(n, 4)),
}
SIZES, REPEATING_RATES = (100, 300, 1_000), (0.1, 0.05, 0.01)


def check_repeating(fits: int, lines: list[str]) -> None:
    """Add one line per kind of table whose rows repeat."""
    emit(
        lines,
        f"## Rows that repeat by chance: share of new rows flagged ({fits} fits)",
        "",
        "| columns | rows | rate 0.1 (s.e.) | rate 0.05 (s.e.) | rate 0.01 (s.e.) |",
        "|---|---|---|---|---|",
    )
    for name, make in REPEATING.items():
        for n_rows in SIZES:
            shares = np.empty((fits, len(REPEATING_RATES)))
            for seed in range(fits):
                rng = np.random.default_rng(seed)
                detector = DiffInt(random_state=seed, n_jobs=1).fit(make(rng, n_rows))
                p_values = detector.p_values(make(rng, NEW_ROWS))
                shares[seed] = [(p_values <= rate).mean() for rate in REPEATING_RATES]
            errors = shares.std(axis=0, ddof=1) / np.sqrt(fits)
            cells = [f"{m:.3f} ({e:.3f})" for m, e in zip(shares.mean(axis=0), errors, strict=True)]
            emit(lines, f"| {name} | {n_rows:,} | {' | '.join(cells)} |")
    emit(lines, "")


SIGNS: dict[str, Callable[[Any, int], bool]] = {
    "copies grouped (over 5 % of the rows)": lambda found, n: found.n_copies > 0.05 * n,
    "rows that share own values (over 20 %)": lambda found, n: found.n_equal > 0.2 * n,
    "groups of close rows": lambda found, n: found.close > 0,
}


def independent_table(rng: np.random.Generator) -> np.ndarray:
    """60 to 5,000 independent rows of 1 to 20 features, of one of five distributions."""
    shape = (int(60 * 80 ** rng.random()), int(rng.integers(1, 21)))
    x = rng.normal(size=shape)
    kind = rng.integers(5)
    if kind == 1:
        x = rng.random(shape)
    elif kind == 2:
        x = np.exp(x)
    elif kind == 3:
        x = x @ rng.normal(size=(shape[1], shape[1]))
    elif kind == 4:
        centers = 4 * rng.normal(size=(int(rng.integers(2, 6)), shape[1]))
        x = x + centers[rng.integers(len(centers), size=len(x))]
    return np.asarray(x)


def check_signs(folders: list[Path], lines: list[str]) -> None:
    """Add the number of tables with each sign of dependence."""
    rng = np.random.default_rng(0)
    tables: dict[str, list[np.ndarray]] = {
        "independent": [independent_table(rng) for _ in range(INDEPENDENT_TABLES)]
    }
    for folder in folders:
        tables[folder.name] = [training_rows(path) for path in sorted(folder.glob("*.npz"))]
    found = {name: [(find_row_groups(x), len(x)) for x in xs] for name, xs in tables.items()}
    columns = [f"{name} ({len(xs):,} tables)" for name, xs in tables.items()]
    emit(
        lines,
        "## Tables with a sign of dependence",
        "",
        f"| sign | {' | '.join(columns)} |",
        "|---" * (len(columns) + 1) + "|",
    )
    for sign, shows in SIGNS.items():
        counts = [sum(shows(groups, n) for groups, n in results) for results in found.values()]
        emit(lines, f"| {sign} | {' | '.join(str(c) for c in counts)} |")
    emit(lines, "")


def training_rows(path: Path) -> np.ndarray:
    """The normal rows of an ADBench table or the training rows of a macrOData table."""
    with np.load(path, allow_pickle=True) as file:
        rows = file["train"] if "train" in file else file["X"][file["y"] == 0]
    return np.asarray(rows, dtype=np.float64)


def main() -> None:
    """Measure, print and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    known = [os.environ.get(f"DIFFINT_{suite}") for suite in ("ADBENCH", "MACRODATA")]
    parser.add_argument("--fits", type=int, default=20)
    parser.add_argument("--data", type=Path, nargs="*", default=[Path(f) for f in known if f])
    parser.add_argument("--out", type=Path, help="Markdown file to write")
    options = parser.parse_args()
    lines: list[str] = []
    emit(
        lines,
        "# Training rows that are not independent",
        "",
        "Created by `python benchmarks/independence.py --out docs/results/independence.md`; the "
        "method is described at the top of the script.",
        "",
    )
    check_rates(options.fits, lines)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_repeating(options.fits, lines)
    check_signs(options.data, lines)
    if options.out:
        options.out.write_text("\n".join(lines).rstrip() + "\n")


if __name__ == "__main__":
    main()
