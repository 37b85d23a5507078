"""Figures from the results files: cells of Markdown tables, and the benchmark's CSV files.

A figure knows what it is of, in the words of its file: the method, the metric, the regime, the half
of the tables, their number and that of the seeds, or the row and the column of a Markdown table.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pandas
from scipy.stats import ttest_1samp

from diffint.bench.markdown import p_text
from diffint.bench.ranking import compare, mean_ranks

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
METRICS = ("roc_auc", "average_precision")

BOTH_HALVES = "both halves"


class Number(float):
    """A number with the words of what it is of."""

    of: tuple[str, ...] = ()


class Text(str):
    """The same, written out."""

    of: tuple[str, ...] = ()


def labelled(value: float | str, *of: str) -> Any:
    """A figure with what it is of."""
    found = Text(value) if isinstance(value, str) else Number(value)
    found.of = of
    return found


_NUMBER = re.compile(r"[+−-]?\d[\d,]*(?:\.\d+)?")


def number(text: str, which: int = 0) -> float:
    """The first number of a text, or a later one."""
    return float(_NUMBER.findall(text)[which].replace(",", "").replace("−", "-"))


def p(value: float) -> str:
    """A p-value as the guides write it: 0.12, 0.036, 0.002, 1·10⁻⁴."""
    return f"{value:.2f}" if value >= 0.0995 else p_text(value)


def signed(value: float, digits: int = 3) -> str:
    """+0.024, −0.002"""
    return f"{value:+.{digits}f}".replace("-", "−")


# --- Markdown -------------------------------------------------------------------------------------


@cache
def _tables(page: str) -> list[tuple[str, list[list[str]]]]:
    """Every table of a results page: the text since the table before, and its lines of cells."""
    found, before, lines = [], "", []
    for line in [*(RESULTS / page).read_text().splitlines(), ""]:
        if line.startswith("|"):
            cells = re.split(r"(?<!\\)\|", line)[1:-1]
            lines.append([cell.replace("*", "").replace("\\", "").strip() for cell in cells])
        elif lines:
            found.append((before, lines))
            before, lines = line, []
        else:
            before += "\n" + line
    return found


def _table(page: str, before: str) -> list[list[str]]:
    tables = [lines for text, lines in _tables(page) if before in text]
    assert tables, f"{page} has no table after {before!r}"
    return tables[0]


def lines_after(page: str, earlier: str, before: str) -> list[list[str]]:
    """The lines of the first such table after the one that follows earlier words."""
    tables = _tables(page)
    start = next(i for i, (text, _) in enumerate(tables) if earlier in text)
    return next(lines[2:] for text, lines in tables[start:] if before in text)


def lines_of(page: str, before: str) -> list[list[str]]:
    """The lines of a table, without its head."""
    return _table(page, before)[2:]


def cell(page: str, before: str, row: str | tuple[str, ...], column: str | int) -> Text:
    """One cell of a results page.

    before: words between the table and the one before it, such as its heading
    row: the first cell of its line, or the first cells
    column: the head of the column, or its position
    """
    head, *lines = _table(page, before)
    names = (row,) if isinstance(row, str) else row
    lines = [line for line in lines if tuple(line[: len(names)]) == names]
    assert len(lines) == 1, f"{page}, {before!r}: {len(lines)} lines {row!r}"
    place = head.index(column) if isinstance(column, str) else column
    return labelled(lines[0][place], *names, head[place])


def value(page: str, before: str, row: str | tuple[str, ...], column: str | int) -> float:
    """The first number of a cell."""
    found = cell(page, before, row, column)
    return labelled(number(found), *found.of)


def percent(page: str, before: str, row: str | tuple[str, ...], column: str | int) -> float:
    """100 times the first number of a cell."""
    found = value(page, before, row, column)
    return labelled(100 * found, *found.of)


def sentence(page: str, words: str, which: int = 0) -> float:
    """A number that follows these words of a results page."""
    text = " ".join((RESULTS / page).read_text().replace("*", "").split())
    assert words in text, f"{page} does not say {words!r}"
    return number(text.split(words, 1)[1], which)


# --- Runs with a confidence -----------------------------------------------------------------------


def above_the_rate(rate: float, rows: int = 0, confidence: float = 0.95) -> dict[str, float]:
    """Of fits with a confidence, computed from their rows: how often more than the rate is flagged.

    rows: only fits to at least so many; share and expected: percent, means over tables; p: of
    one-sided t-tests over tables, against what the confidence leaves and against what a kept
    promise has on so many test rows
    """
    runs = frame("false_positives.csv").dropna(subset="confident_flagged")
    runs = runs.query("rate == @rate and rows >= @rows")
    above = 100.0 * (runs["confident_flagged"] / runs["inliers"] > rate + 1e-12)
    tables = runs.assign(above=above, expected=100 * runs["expected"]).groupby(["suite", "table"])
    means = tables[["above", "expected"]].mean()
    level = 100 * (1 - confidence)
    of = (f"{rate:g}", "runs above the rate")
    return {
        "share": labelled(means["above"].mean(), *of),
        "expected": labelled(means["expected"].mean(), *of),
        "p": ttest_1samp(means["above"], level, alternative="greater").pvalue,
        "p_expected": ttest_1samp(
            means["above"] - means["expected"], 0.0, alternative="greater"
        ).pvalue,
    }


# --- The benchmark --------------------------------------------------------------------------------


@cache
def frame(path: str) -> pandas.DataFrame:
    """A CSV file of the results."""
    return pandas.read_csv(RESULTS / path)


def row(path: str, **where: object) -> pandas.Series:
    """The row of a CSV file with these values."""
    found = frame(path)
    for column, wanted in where.items():
        found = found[found[column] == wanted]
    assert len(found) == 1, f"{path} has {len(found)} rows with {where}"
    return found.iloc[0]


def ranks(
    method: str,
    folder: str = "bench",
    regime: str = "fair",
    scheme: str = "A",
    pool: str = "line-up",
    group: str = "overall",
    column: str = "mean_rank",
) -> list[float]:
    """The mean ranks of a method by both metrics."""
    chosen = {"regime": regime, "scheme": scheme, "pool": pool, "group": group, "method": method}
    of = [method, f"{regime} regime", BOTH_HALVES]
    of += [word for word in (f"scheme {scheme}", group) if word not in ("scheme A", "overall")]
    return [
        labelled(row(f"{folder}/ranks.csv", metric=metric, **chosen)[column], *of, metric)
        for metric in METRICS
    ]


def best(
    folder: str = "bench", place: int = 0, columns: str = "method", **where: str
) -> list[object]:
    """By both metrics, the method with the best mean rank (or the next ones), or its number."""
    wanted = {"regime": "fair", "scheme": "A", "pool": "line-up", "group": "overall", **where}
    found = frame(f"{folder}/ranks.csv")
    for column, one in wanted.items():
        found = found[found[column] == one]
    by = [found[found["metric"] == m].sort_values("mean_rank", kind="stable") for m in METRICS]
    return [sorted_rows.iloc[place][columns] for sorted_rows in by]


@cache
def values(folder: str, metric: str, regime: str = "fair") -> pandas.DataFrame:
    """Means over seeds (tables, methods)."""
    found = frame(f"{folder}/values.csv").dropna(subset="method")  # tables without rows
    found = found[(found["metric"] == metric) & (found["regime"] == regime)]
    return found.pivot(index="table", columns="method", values="mean")


def seeds(folder: str, regime: str = "fair") -> str:
    """How many seeds DiffInt has on every table: ``10 seeds``"""
    found = frame(f"{folder}/values.csv").query("method == 'DiffInt' and regime == @regime")
    (number_of_seeds,) = found["n_seeds"][found["state"] == "ok"].unique()
    return f"{number_of_seeds} seeds"


class Tables(list[str]):
    """Some of the tables, and which half of them this is."""

    half = BOTH_HALVES


def selected(path: str, suite: str, half: str | None = None) -> Tables:
    """The tables of a suite that a selection lists, or those of one half."""
    found = frame(path)
    found = found[found["suite"] == suite]
    tables = Tables(found["table"] if half is None else found["table"][found["half"] == half])
    tables.half = tables.half if half is None else half
    return tables


def ranks_on(tables: Tables, method: str, folder: str = "bench") -> list[float]:
    """Mean ranks on some of the tables, by both metrics."""
    of = (method, "fair regime", tables.half, f"{len(tables)} tables", seeds(folder))
    return [
        labelled(mean_ranks(values(folder, metric).loc[tables])[method], *of, metric)
        for metric in METRICS
    ]


def mean_value(folder: str, metric: str, methods: list[str], tables: Tables | None = None):
    """Mean values of methods over the tables that all of them finished, and their number."""
    found = values(folder, metric)[methods]
    found = (found if tables is None else found.loc[tables]).dropna()
    of = (metric, "fair regime", getattr(tables, "half", BOTH_HALVES), f"{len(found)} tables")
    return [*(labelled(mean, name, *of) for name, mean in found.mean().items()), len(found)]


class Comparison:
    """DiffInt against another method: the numbers of the report, or those on some tables."""

    def __init__(
        self, metric: str, opponent: str, folder: str = "bench", tables: Tables | None = None
    ) -> None:
        if tables is None:
            where = {"regime": "fair", "metric": metric, "method": "DiffInt", "opponent": opponent}
            found = row(f"{folder}/comparisons.csv", **where)
        else:
            table = compare(values(folder, metric).loc[tables], "DiffInt")
            found = table.set_index("opponent").loc[opponent]
        counts = ["n_tables", "wins", "ties", "losses"]
        self.n_tables, self.wins, ties, self.losses = (int(found[name]) for name in counts)
        half = getattr(tables, "half", BOTH_HALVES)
        of = (opponent, metric, "fair regime", half, f"{self.n_tables} tables", seeds(folder))
        self.counts = labelled(f"{self.wins}–{ties}–{self.losses}", *of)
        self.difference = labelled(signed(found["mean_difference"]), *of)
        self.size = labelled(self.difference[1:], *of)
        self.p, self.p_holm = (labelled(p(found[name]), *of) for name in ("p", "p_holm"))


def both_values(metric: str, opponent: str, name: str) -> list[float]:
    """DiffInt's mean on a table, and that of another method."""
    found = values("bench", metric)
    (table,) = (one for one in found.index if one.split("_", 1)[1] == name)
    return [
        labelled(found.loc[table, method], method, metric, "fair regime", name)
        for method in ("DiffInt", opponent)
    ]


def largest(metric: str, opponent: str, n: int, losses: bool) -> Text:
    """The tables on which DiffInt loses (or gains) most: ``smtp 0.865, 0.936; satellite …``"""
    both = values("bench", metric)[["DiffInt", opponent]].dropna()
    order = (both["DiffInt"] - both[opponent]).sort_values(ascending=losses).index[:n]
    listed = "; ".join(
        f"{name.split('_', 1)[1]} {both.loc[name, 'DiffInt']:.3f}, {both.loc[name, opponent]:.3f}"
        for name in order
    )
    return labelled(listed, opponent, metric, "fair regime", BOTH_HALVES)
