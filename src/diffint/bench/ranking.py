"""Ranks and the tests that rest on them; nothing here knows of files, tables or methods.

`values` is always (tables, methods): a frame with one row per table, one column per method, higher
is better, NaN where the method did not finish.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
import pandas
from numpy.typing import NDArray
from scipy import stats

Scheme = Literal["A", "B", "C"]
SCHEMES: tuple[Scheme, ...] = get_args(Scheme)

ALPHA = 0.05
TIE = 0.0005  # a smaller difference is a tie: it is lost when values are written with 3 digits
_DIGITS = 10  # values that agree to so many are one: sums differ in the last bits by their order


def ranked_tables(values: pandas.DataFrame) -> pandas.DataFrame:
    """The tables with something to rank: those that at least one method finished."""
    return values[values.notna().any(axis=1)]


def complete_tables(values: pandas.DataFrame) -> list[str]:
    """The tables that every method finished."""
    return list(values.index[values.notna().all(axis=1)])


def table_ranks(values: pandas.DataFrame, scheme: Scheme = "A") -> pandas.DataFrame:
    """(ranked tables, methods) 1 is best, ties share their mean rank.

    Methods that finished are ranked among themselves. One that did not gets
    A: the worst rank, the number of methods;
    B: nothing, as its table is left out;
    C: the median of the ranks of those that finished.
    """
    values = ranked_tables(values)
    if scheme == "B":
        values = values.loc[complete_tables(values)]
    ranks = values.round(_DIGITS).rank(axis=1, ascending=False)
    if scheme == "A":
        return ranks.fillna(float(values.shape[1]))
    return ranks.T.fillna(ranks.median(axis=1)).T


def mean_ranks(values: pandas.DataFrame, scheme: Scheme = "A") -> pandas.Series:
    """(methods,) best first; NaN where no table is left."""
    ranks = table_ranks(values, scheme).mean(axis=0)
    return ranks.iloc[np.argsort(ranks.to_numpy(), kind="stable")]


# --- All methods at once -------------------------------------------------------------------------


class Friedman(NamedTuple):
    """Whether the methods' ranks differ at all."""

    chi2: float
    p: float


def friedman(values: pandas.DataFrame) -> Friedman | None:
    """Over all ranked tables, methods that did not finish tied at the end.

    None where it says nothing: fewer than three methods or two tables, or all of them tied.
    """
    ranks = table_ranks(values, "A")
    if ranks.shape[0] < 2 or ranks.shape[1] < 3 or ranks.nunique(axis=1).max() == 1:
        return None
    result = stats.friedmanchisquare(*ranks.to_numpy().T)
    return Friedman(float(result.statistic), float(result.pvalue))


def critical_difference(n_methods: int, n_tables: int, alpha: float = ALPHA) -> float:
    """Nemenyi's: mean ranks further apart than this differ (Demšar 2006, q_α √(k(k+1)/6N))."""
    if n_methods < 2 or n_tables < 1:
        return math.nan
    q = stats.studentized_range.ppf(1.0 - alpha, n_methods, np.inf) / math.sqrt(2.0)
    return float(q * math.sqrt(n_methods * (n_methods + 1) / (6.0 * n_tables)))


def undecided_groups(ranks: Sequence[float], difference: float) -> list[tuple[int, int]]:
    """First and last place of each largest run of ranks, in order, that the difference spans.

    None where the difference is NaN.
    """
    groups: list[tuple[int, int]] = []
    for first, rank in enumerate(ranks):
        spanned = [i for i, other in enumerate(ranks) if other - rank <= difference]
        last = max(spanned, default=first)
        if last > first and (not groups or last > groups[-1][1]):
            groups.append((first, last))
    return groups


# --- One method against the others ---------------------------------------------------------------


def compare(values: pandas.DataFrame, one: str) -> pandas.DataFrame:
    """One method against each other, over the tables that both finished.

    A row per opponent: n_tables, wins, ties, losses, mean_difference, and the two-sided Wilcoxon
    signed-rank test's p and p_holm, which is corrected for the number of opponents. p is NaN where
    there is no common table, 1 where no value differs.
    """
    rows = []
    for other in values.columns.drop(one):
        both = values[[one, other]].dropna()
        difference = (both[one] - both[other]).to_numpy(dtype=np.float64).round(_DIGITS)
        rows.append(
            {
                "opponent": other,
                "n_tables": len(difference),
                "wins": int((difference >= TIE).sum()),
                "ties": int((np.abs(difference) < TIE).sum()),
                "losses": int((difference <= -TIE).sum()),
                "mean_difference": float(difference.mean()) if len(difference) else math.nan,
                "p": _wilcoxon(difference),
            }
        )
    columns = ["opponent", "n_tables", "wins", "ties", "losses", "mean_difference", "p"]
    table = pandas.DataFrame(rows, columns=columns)
    table["p_holm"] = holm(table["p"].to_numpy(dtype=np.float64))
    return table


def _wilcoxon(difference: NDArray[np.float64]) -> float:
    if not len(difference):
        return math.nan
    moved = difference[difference != 0]
    return float(stats.wilcoxon(moved).pvalue) if len(moved) else 1.0


def holm(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """(tests,) p-values such that the chance of any false finding is held; NaN stays and is none.

    Holm's step-down: the smallest of m is multiplied by m, the next by m − 1, never decreasing.
    """
    corrected = np.full(len(p), np.nan)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    steps = p[order] * np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return corrected
