"""Measure the detector on real tables with numbers and text.

    python benchmarks/real_tables.py [--only diamonds flights …] [--out docs/results/real_tables]

diamonds: the 66 known errors of a raw table of 53,940 rows, with `find_anomalies`, on all columns,
on the numbers alone, and without a search for suspects.

flights: 16,000 flights, half of them to train on. In 1 % of the other half a carrier, origin or
destination is one that no flight in the whole table has with the other two; or an air time,
distance or arrival delay is that of another, quite different flight. The same rows are scored by
OutlierTree, also with lenient settings, by the mean distance to five neighbours, and by an
isolation forest; the latter two get one column per value of a category, standardised.

msleep: 83 mammals, and the house mouse among them with a weight of 22 kg instead of 22 g.

weather: hours of weather with 8 of 9 numbers missing, by a detector of 5,000 ordinary hours.

false-positives: half of a table to train on, the other half to score.

Errors and encodings are in `real_data.py`.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import IsolationForest
from sklearn.metrics import average_precision_score
from sklearn.neighbors import NearestNeighbors

import real_data
from diffint import DiffInt, find_anomalies
from result_lines import emit

FLIGHT_ROWS, CHANGED_SHARE = 16_000, 0.01
TRAINING_ROWS = 5_000  # of the largest tables
N_NEIGHBOURS = 5
LENIENT = {"z_outlier": 4.0, "pct_outliers": 0.05}  # instead of 8 and 0.01: finds more rows
RATES = (0.01, 0.05, 0.1)

Floats = NDArray[np.float64]


class Line(NamedTuple):
    """One number of one run."""

    section: str
    case: str
    method: str
    seed: int
    figure: str
    value: float


class Options(NamedTuple):
    """How much to measure: seeds, None for the usual number; the largest number of rows; settings
    of the detector."""

    seeds: int | None
    most_rows: int | None
    settings: dict[str, Any]

    def n_seeds(self, usual: int) -> range:
        """The seeds of a section."""
        return range(self.seeds or usual)

    def n_rows(self, usual: int) -> int:
        """The rows of a sample."""
        return min(usual, self.most_rows or usual)


def measure_diamonds(options: Options) -> Iterator[Line]:
    """Average precision on the known errors of the whole table."""
    table = real_data.diamonds()
    errors, gross = real_data.diamond_errors(table)
    if options.most_rows:
        ordinary = np.flatnonzero(~errors)[: options.most_rows]
        rows = np.sort(np.concatenate([ordinary, np.flatnonzero(errors)]))
        table, errors, gross = table.iloc[rows], errors[rows], gross[rows]
    numbers = table.select_dtypes("number")
    cases: list[tuple[str, pd.DataFrame, dict[str, Any]]] = [
        ("all columns", table, {}),
        ("numbers", numbers, {}),
        ("all columns, no search for suspects", table, {"suspected_share": 0.0}),
        ("numbers, no search for suspects", numbers, {"suspected_share": 0.0}),
    ]
    for seed in options.n_seeds(3):
        for case, columns, settings in cases:
            found = find_anomalies(columns, random_state=seed, **options.settings, **settings)
            for figure, known in (("AP of all errors", errors), ("AP of gross errors", gross)):
                value = average_precision_score(known, found.scores)
                yield Line("diamonds", case, "DiffInt", seed, figure, value)
            yield Line("diamonds", case, "DiffInt", seed, "suspects", found.suspects.sum())


def measure_flights(options: Options) -> Iterator[Line]:
    """Average precision on planted errors, against other detectors on the same rows."""
    table = real_data.flights()
    for seed in options.n_seeds(3):
        rng = np.random.default_rng(seed)
        rows = rng.choice(len(table), options.n_rows(FLIGHT_ROWS), replace=False)
        train, test = np.array_split(rows, 2)
        known, plain = table.iloc[train], table.iloc[test].reset_index(drop=True)
        complete = np.flatnonzero(plain.notna().all(axis=1))
        changed = np.zeros(len(plain), dtype=bool)
        n_changed = max(round(CHANGED_SHARE * len(plain)), 2)
        changed[rng.choice(complete, n_changed, replace=False)] = True
        cases = {
            "category swapped": real_data.swap_category(plain, changed, table, rng),
            "number swapped": real_data.swap_number(plain, changed, table, rng),
        }
        scorers: dict[str, Scorer] = {
            "DiffInt": _diffint_scorer(known, seed, options.settings),
            "OutlierTree": _outlier_tree_scorer(known),
            "OutlierTree, lenient": _outlier_tree_scorer(known, **LENIENT),
            "KNN": partial(_neighbour_distances, known),
            "IForest": partial(_forest_scores, known, seed),
        }
        for case, new in cases.items():
            for method, scores in scorers.items():
                value = average_precision_score(changed, scores(new))
                yield Line("flights", case, method, seed, "AP", value)


Scorer = Callable[[pd.DataFrame], Floats]


def _diffint_scorer(known: pd.DataFrame, seed: int, settings: dict[str, Any]) -> Scorer:
    detector = DiffInt(random_state=seed, **settings).fit(known)
    return lambda new: np.asarray(detector.anomaly_score(new))


def _outlier_tree_scorer(known: pd.DataFrame, **settings: float) -> Scorer:
    """OutlierTree scores only the rows that it finds; low is anomalous."""
    try:
        from outliertree import OutlierTree
    except ImportError as error:
        raise real_data.PackageMissing("outliertree") from error
    tree = OutlierTree(nthreads=1, **settings)
    tree.fit(_as_categories(known), outliers_print=0)

    def scores(new: pd.DataFrame) -> Floats:
        found = tree.predict(_as_categories(new), outliers_print=0)["outlier_score"]
        return -np.asarray(found.fillna(1.0), dtype=float)

    return scores


def _as_categories(table: pd.DataFrame) -> pd.DataFrame:
    return table.astype(dict.fromkeys(table.select_dtypes(exclude="number"), "category"))


def _neighbour_distances(known: pd.DataFrame, new: pd.DataFrame) -> Floats:
    x, rows = real_data.one_hot(known, new)
    distances, _ = NearestNeighbors(n_neighbors=N_NEIGHBOURS).fit(x).kneighbors(rows)
    return np.asarray(distances.mean(axis=1))


def _forest_scores(known: pd.DataFrame, seed: int, new: pd.DataFrame) -> Floats:
    x, rows = real_data.one_hot(known, new)
    return -np.asarray(IsolationForest(random_state=seed).fit(x).score_samples(rows))


def measure_msleep(options: Options) -> Iterator[Line]:
    """The p-value of a mouse with the weight of a large dog, and that of the mouse as it is."""
    table = real_data.sleep()
    mouse = table.loc[["House mouse"]]
    rows = pd.concat([mouse.assign(bodywt=22.0), mouse])
    for seed in options.n_seeds(5):
        detector = DiffInt(random_state=seed, **options.settings).fit(table)
        for case, p in zip(("22 kg", "22 g"), detector.p_values(rows), strict=True):
            yield Line("msleep", case, "DiffInt", seed, "p", p)


def measure_weather(options: Options) -> Iterator[Line]:
    """The share of nearly empty rows that are flagged, and that of the same rows when complete."""
    table = real_data.weather()
    for seed in options.n_seeds(5):
        rng = np.random.default_rng(seed)
        usual = table.dropna(subset=[n for n in real_data.WEATHER_COLUMNS if n != "wind_gust"])
        rows = rng.permutation(len(usual))[: 2 * options.n_rows(TRAINING_ROWS)]
        train, test = np.array_split(rows, 2)
        columns = {"numbers": real_data.WEATHER_COLUMNS, "with the airport": list(table.columns)}
        for case, names in columns.items():
            detector = DiffInt(random_state=seed, **options.settings).fit(usual.iloc[train][names])
            new = usual.iloc[test][names]
            flagged = (detector.p_values(new) <= 0.05).mean()
            yield Line("weather", case, "DiffInt", seed, "complete rows flagged", flagged)
            flagged = (detector.p_values(_all_but_one_missing(new, rng)) <= 0.05).mean()
            yield Line("weather", case, "DiffInt", seed, "nearly empty rows flagged", flagged)


def _all_but_one_missing(rows: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """The rows with one number each, a present one chosen at random."""
    names = real_data.WEATHER_COLUMNS
    numbers = rows[names].to_numpy(dtype=float)
    chance = np.where(np.isnan(numbers), -1.0, rng.random(numbers.shape))
    others = np.arange(len(names)) != chance.argmax(axis=1)[:, None]
    return rows.assign(**dict(zip(names, np.where(others, np.nan, numbers).T, strict=True)))


def measure_false_positives(options: Options) -> Iterator[Line]:
    """The share of p-values up to a rate among rows like those of the training."""
    tables = {
        "diamonds": real_data.diamonds(),
        "flights": real_data.flights(),
        "weather": real_data.weather(),
        "penguins": real_data.penguins(),
        "msleep": real_data.sleep(),
    }
    for case, table in tables.items():
        for seed in options.n_seeds(5):
            rng = np.random.default_rng(seed)
            rows = rng.permutation(len(table))[: 2 * options.n_rows(TRAINING_ROWS)]
            train, test = np.array_split(rows, 2)
            detector = DiffInt(random_state=seed, **options.settings).fit(table.iloc[train])
            p = detector.p_values(table.iloc[test])
            for rate in RATES:
                share = float((p <= rate).mean())
                yield Line("false-positives", case, "DiffInt", seed, f"p ≤ {rate:g}", share)


class Section(NamedTuple):
    """What is measured, and what is expected."""

    measure: Callable[[Options], Iterator[Line]]
    title: str
    text: str


SECTIONS = {
    "diamonds": Section(
        measure_diamonds,
        "Errors in a raw table",
        "53,940 diamonds with 66 known errors, 23 of them gross (a size of zero or ten times too "
        "large), searched by `find_anomalies`.",
    ),
    "flights": Section(
        measure_flights,
        "Planted errors",
        "Flights from New York, trained on 8,000 rows; in 1 % of 8,000 others one category or one "
        "number is swapped for an ordinary one that does not go with the rest of the row. Average "
        "precision.",
    ),
    "msleep": Section(
        measure_msleep,
        "A mouse of 22 kg",
        "83 mammals with many missing cells; the house mouse with 22 kg instead of 22 g.",
    ),
    "weather": Section(
        measure_weather,
        "Nearly empty rows",
        "Hours of weather with 8 of 9 numbers missing: the share with p ≤ 0.05.",
    ),
    "false-positives": Section(
        measure_false_positives,
        "False positives",
        "Trained on half of a table (at most 5,000 rows), which has text columns, and scored on "
        "the other half.",
    ),
}


def goals(name: str, lines: list[Line]) -> list[tuple[str, bool]]:
    """What was expected of a section, and whether it came true. lines: those of the section"""

    def mean(figure: str, case: str | None = None, method: str = "DiffInt") -> float:
        chosen = [x for x in lines if (x.figure, x.method) == (figure, method)]
        return float(np.mean([x.value for x in chosen if case in (None, x.case)]))

    if name == "diamonds":
        every, gross = "AP of all errors", "AP of gross errors"
        loss = mean(every, "numbers") - mean(every, "all columns")
        return [
            ("AP of all errors at least 0.75", mean(every, "all columns") >= 0.75),
            ("AP of gross errors at least 0.95", mean(gross, "all columns") >= 0.95),
            (f"categories lose less than 0.01 on all errors (they lose {loss:.3f})", loss < 0.01),
        ]
    if name == "flights":
        met = []
        for case in dict.fromkeys(line.case for line in lines):
            methods = {line.method for line in lines} - {"DiffInt"}
            factor = mean("AP", case) / max(mean("AP", case, other) for other in methods)
            met.append((f"{case}: best ({factor:.2f} times the next)", factor > 1))
        return met
    if name == "msleep":
        values = [line.value for line in lines if line.case == "22 kg"]
        return [("p ≤ 0.05 with every seed", max(values) <= 0.05)]
    if name == "weather":
        shares = [x.value for x in lines if x.figure.startswith("nearly")]
        return [("at least 0.99 of the nearly empty rows flagged", min(shares) >= 0.99)]
    met = []
    for rate in RATES:
        value, error = _mean_and_error(lines, f"p ≤ {rate:g}")
        met.append((f"at most {rate:g}, within two standard errors", value <= rate + 2 * error))
    return met


def report(lines: list[Line]) -> list[str]:
    """The page."""
    text: list[str] = []
    emit(
        text,
        "# Real tables with text",
        "",
        "Created by `python benchmarks/real_tables.py --out docs/results/real_tables`: means over "
        "the seeds, and in parentheses the seeds; every number is in `real_tables.csv`. The method "
        "is described at the top of the script.",
        "",
    )
    for name, section in SECTIONS.items():
        own = [line for line in lines if line.section == name]
        if own:
            emit(text, f"## {section.title}", "", section.text, "", *_table(own))
            if name == "false-positives":
                emit(text, *_pooled(own))
            emit(text, "")
            for goal, met in goals(name, own):
                emit(text, f"- {'met' if met else '**not met**'}: {goal}")
            emit(text, "")
    return text


def _table(lines: list[Line]) -> list[str]:
    figures = list(dict.fromkeys(line.figure for line in lines))
    values: dict[tuple[str, str], dict[str, list[float]]] = {}
    for line in lines:
        row = values.setdefault((line.case, line.method), {})
        row.setdefault(line.figure, []).append(line.value)
    rows = [f"| | | {' | '.join(figures)} |", "|---" * (2 + len(figures)) + "|"]
    for (case, method), row in values.items():
        cells = [
            f"{np.mean(row[figure]):.3g} ({', '.join(f'{v:.3g}' for v in row[figure])})"
            for figure in figures
        ]
        rows.append(f"| {case} | {method} | {' | '.join(cells)} |")
    return rows


def _pooled(lines: list[Line]) -> list[str]:
    """The mean over tables and seeds, with its standard error."""
    cells = []
    for figure in dict.fromkeys(line.figure for line in lines):
        value, error = _mean_and_error(lines, figure)
        cells.append(f"{value:.4f} ± {error:.4f}")
    return [f"| **all, with standard error** | | {' | '.join(cells)} |"]


def _mean_and_error(lines: list[Line], figure: str) -> tuple[float, float]:
    """The mean over tables and seeds, and its standard error."""
    values = [line.value for line in lines if line.figure == figure]
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.inf
    return float(np.mean(values)), float(error)


def read_lines(path: Path) -> list[Line]:
    """The lines of an earlier run; none if there is no file."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [
            Line(section, case, method, int(seed), figure, float(value))
            for section, case, method, seed, figure, value in list(csv.reader(file))[1:]
        ]


def write_lines(path: Path, lines: list[Line]) -> None:
    """All lines as CSV."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Line._fields)
        writer.writerows(line._replace(value=round(float(line.value), 5)) for line in lines)


def main() -> None:
    """Measure the sections, and write them with those of earlier runs."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="*", choices=list(SECTIONS), default=list(SECTIONS))
    parser.add_argument("--seeds", type=int, help="instead of 3 or 5")
    parser.add_argument("--rows", type=int, help="use at most so many rows of each table")
    parser.add_argument("--epochs", type=int, help="of the detector")
    parser.add_argument("--out", type=Path, help="without an extension: .csv and .md are written")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    settings = {} if chosen.epochs is None else {"epochs": chosen.epochs}
    options = Options(chosen.seeds, chosen.rows, settings)
    table_file = chosen.out.with_suffix(".csv") if chosen.out else None
    lines = read_lines(table_file) if table_file else []
    started = time.perf_counter()
    try:
        for name in chosen.only:
            lines = [line for line in lines if line.section != name]
            for line in SECTIONS[name].measure(options):
                lines.append(line)
                print(f"{time.perf_counter() - started:5.0f} s ", *line, flush=True)
    except real_data.PackageMissing as missing:
        sys.exit(f"error: {missing}")
    text = report(lines)
    if table_file:
        write_lines(table_file, lines)
        table_file.with_suffix(".md").write_text("\n".join(text))


if __name__ == "__main__":
    main()
