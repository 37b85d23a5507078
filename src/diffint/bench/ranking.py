"""Ranks and statistical tests, as pure functions of values.

`values` is always (tables, methods): a frame with one row per table and one column per method;
higher is better, NaN if the method did not finish.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
import pandas
from numpy.typing import NDArray
from scipy import stats

Scheme = Literal["A", "B", "C", "D"]
SCHEMES: tuple[Scheme, ...] = get_args(Scheme)

ALPHA = 0.05
TIE = 0.0005  # smaller differences are ties: values are printed with 3 digits
_DIGITS = 10  # values are rounded to this, as the order of a sum changes its last bits


def ranked_tables(values: pandas.DataFrame) -> pandas.DataFrame:
    """The tables that at least one method finished."""
    return values[values.notna().any(axis=1)]


def complete_tables(values: pandas.DataFrame) -> list[str]:
    """The tables that every method finished."""
    return list(values.index[values.notna().all(axis=1)])


def table_ranks(values: pandas.DataFrame, scheme: Scheme = "A") -> pandas.DataFrame:
    """Ranks (ranked tables, methods): 1 is best, ties share their mean rank.

    Methods that finished are ranked among themselves. A method that did not finish gets
    A: the worst rank, that is, the number of methods;
    B: no rank, as the table is left out;
    C: the median rank of those that finished;
    D: as A; which runs count as finished is for the caller to say.
    """
    values = ranked_tables(values)
    if scheme == "B":
        values = values.loc[complete_tables(values)]
    ranks = values.round(_DIGITS).rank(axis=1, ascending=False)
    if scheme in ("A", "D"):
        return ranks.fillna(float(values.shape[1]))
    return ranks.T.fillna(ranks.median(axis=1)).T


def mean_ranks(values: pandas.DataFrame, scheme: Scheme = "A") -> pandas.Series:
    """Mean ranks (methods,), best first; NaN if no table is left."""
    ranks = table_ranks(values, scheme).mean(axis=0)
    return ranks.iloc[np.argsort(ranks.to_numpy(), kind="stable")]


# --- All methods at once -------------------------------------------------------------------------


class Friedman(NamedTuple):
    """Friedman's test of whether the methods' ranks differ."""

    chi2: float
    p: float


def friedman(values: pandas.DataFrame) -> Friedman | None:
    """Friedman's test over all ranked tables; methods that did not finish share the worst rank.

    None if it cannot be made: fewer than three methods or two tables, or only ties.
    """
    ranks = table_ranks(values, "A")
    if ranks.shape[0] < 2 or ranks.shape[1] < 3 or ranks.nunique(axis=1).max() == 1:
        return None
    result = stats.friedmanchisquare(*ranks.to_numpy().T)
    return Friedman(float(result.statistic), float(result.pvalue))


def critical_difference(n_methods: int, n_tables: int, alpha: float = ALPHA) -> float:
    """Nemenyi's critical difference of mean ranks (Demšar 2006, q_α √(k(k+1)/6N))."""
    if n_methods < 2 or n_tables < 1:
        return math.nan
    q = stats.studentized_range.ppf(1.0 - alpha, n_methods, np.inf) / math.sqrt(2.0)
    return float(q * math.sqrt(n_methods * (n_methods + 1) / (6.0 * n_tables)))


def undecided_groups(ranks: Sequence[float], difference: float) -> list[tuple[int, int]]:
    """First and last index of each largest group of sorted ranks within the critical difference.

    No groups if the difference is NaN.
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
    """One method compared with each other method, over the tables that both finished.

    A row per opponent: n_tables, wins, ties, losses, mean_difference, and p of the two-sided
    Wilcoxon signed-rank test, also corrected for the number of opponents (p_holm). p is NaN if
    there is no common table, 1 if no value differs.
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
    nonzero = difference[difference != 0]
    return float(stats.wilcoxon(nonzero).pvalue) if len(nonzero) else 1.0


def holm(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """p-values (tests,) corrected for the number of tests; NaN stays NaN and is not counted.

    Holm's step-down method: the smallest of m is multiplied by m, the next by m − 1, and so on,
    never decreasing.
    """
    corrected = np.full(len(p), np.nan)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    steps = p[order] * np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return corrected
