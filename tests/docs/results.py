"""Figures from the results files: cells of Markdown tables, and the benchmark's CSV files."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pandas

from diffint.bench.markdown import p_text
from diffint.bench.ranking import compare, mean_ranks

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
METRICS = ("roc_auc", "average_precision")

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


def lines_of(page: str, before: str) -> list[list[str]]:
    """The lines of a table, without its head."""
    return _table(page, before)[2:]


def cell(page: str, before: str, row: str | tuple[str, ...], column: str | int) -> str:
    """One cell of a results page.

    before: words between the table and the one before it, such as its heading
    row: the first cell of its line, or the first cells
    column: the head of the column, or its position
    """
    head, *lines = _table(page, before)
    names = (row,) if isinstance(row, str) else row
    lines = [line for line in lines if tuple(line[: len(names)]) == names]
    assert len(lines) == 1, f"{page}, {before!r}: {len(lines)} lines {row!r}"
    return lines[0][head.index(column) if isinstance(column, str) else column]


def value(page: str, before: str, row: str | tuple[str, ...], column: str | int) -> float:
    """The first number of a cell."""
    return number(cell(page, before, row, column))


def percent(page: str, before: str, row: str | tuple[str, ...], column: str | int) -> float:
    """100 times the first number of a cell."""
    return 100 * value(page, before, row, column)


def sentence(page: str, words: str, which: int = 0) -> float:
    """A number that follows these words of a results page."""
    text = " ".join((RESULTS / page).read_text().replace("*", "").split())
    assert words in text, f"{page} does not say {words!r}"
    return number(text.split(words, 1)[1], which)


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
    return [row(f"{folder}/ranks.csv", metric=metric, **chosen)[column] for metric in METRICS]


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
    found = frame(f"{folder}/values.csv")
    found = found[(found["metric"] == metric) & (found["regime"] == regime)]
    return found.pivot(index="table", columns="method", values="mean")


def selected(path: str, suite: str, half: str | None = None) -> list[str]:
    """The tables of a suite that a selection lists, or those of one half."""
    found = frame(path)
    found = found[found["suite"] == suite]
    return list(found["table"] if half is None else found["table"][found["half"] == half])


def ranks_on(tables: list[str], method: str, folder: str = "bench") -> list[float]:
    """Mean ranks on some of the tables, by both metrics."""
    return [mean_ranks(values(folder, metric).loc[tables])[method] for metric in METRICS]


def mean_value(folder: str, metric: str, methods: list[str], tables: list[str] | None = None):
    """Mean values of methods over the tables that all of them finished, and their number."""
    found = values(folder, metric)[methods]
    found = (found if tables is None else found.loc[tables]).dropna()
    return [*found.mean(), len(found)]


class Comparison:
    """DiffInt against another method: the numbers of the report, or those on some tables."""

    def __init__(
        self, metric: str, opponent: str, folder: str = "bench", tables: list[str] | None = None
    ) -> None:
        if tables is None:
            where = {"regime": "fair", "metric": metric, "method": "DiffInt", "opponent": opponent}
            found = row(f"{folder}/comparisons.csv", **where)
        else:
            table = compare(values(folder, metric).loc[tables], "DiffInt")
            found = table.set_index("opponent").loc[opponent]
        counts = ["n_tables", "wins", "ties", "losses"]
        self.n_tables, self.wins, ties, self.losses = (int(found[name]) for name in counts)
        self.counts = f"{self.wins}–{ties}–{self.losses}"
        self.difference = signed(found["mean_difference"])
        self.p, self.p_holm = p(found["p"]), p(found["p_holm"])


def largest(metric: str, opponent: str, n: int, losses: bool) -> str:
    """The tables on which DiffInt loses (or gains) most: ``smtp 0.865, 0.936; satellite …``"""
    both = values("bench", metric)[["DiffInt", opponent]].dropna()
    order = (both["DiffInt"] - both[opponent]).sort_values(ascending=losses).index[:n]
    return "; ".join(
        f"{name.split('_', 1)[1]} {both.loc[name, 'DiffInt']:.3f}, {both.loc[name, opponent]:.3f}"
        for name in order
    )
