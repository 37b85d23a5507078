"""Result rows as what is reported: one cell per regime, table and method."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas

from ..core.errors import InputError
from .baselines import METHODS, OURS
from .paper_numbers import METRICS, Metric
from .protocol import REGIMES, SCALES, TABLES, Regime, chosen_tables
from .store import TOO_MUCH

GROUPS: tuple[str, ...] = ("overall", *SCALES)

_KEYS = ["regime", "table", "method"]
_NEEDED = ["table", "method", "regime", "seed", "state", *METRICS]
_NUMBERS = [
    *METRICS, "fit_seconds", "score_seconds", "peak_memory_mb", "n_train", "n_test",
    "seeds_together", "one_core_seconds", "time_limit", "memory_limit_gb",
]  # fmt: skip
_TEXTS = ["table", "method", "regime", "state", "message", "processor", "versions"]
_FEWEST_OF_PAPER = 12  # of its 23 methods, from which on they are a line-up of their own


@dataclass(frozen=True)
class Results:
    """What was run.

    rows: one per regime, table, method and seed, as given, in order.
    cells: one per regime, table and method, whether it was run or not (`state`: 'ok', or why it is
        missing: 'timeout', 'out of memory', 'error', 'not run'); roc_auc, roc_auc_sd,
        average_precision, average_precision_sd, n_seeds (that finished), n_failed (seeds);
        fit_seconds, score_seconds (means per seed, on one core), measured_fit_seconds (on whatever
        it ran on), estimated (whether fit_seconds is), peak_memory_mb (the largest), time_limit,
        over_limit (whether it would not have finished on one core in the baselines' time).
    n_repeated: rows that a later one of the same table, method, regime and seed replaced.
    """

    rows: pandas.DataFrame
    cells: pandas.DataFrame
    n_repeated: int

    @cached_property
    def regimes(self) -> list[Regime]:
        """Those with rows."""
        there = set(self.rows["regime"])
        return [regime for regime in REGIMES if regime in there]

    @cached_property
    def tables(self) -> list[str]:
        """In the protocol's order, unknown ones last."""
        return sorted_tables(set(self.rows["table"]))

    @cached_property
    def absent_tables(self) -> list[str]:
        """Of the evaluation's 48, those without any row."""
        return [name for name in TABLES if name not in self.tables]

    def tables_only_elsewhere(self, regime: Regime) -> list[str]:
        """Those with rows in the other regime only."""
        here = set(self.cells.loc[self.cells["regime"] == regime, "table"])
        return [name for name in self.tables if name not in here]

    @cached_property
    def time_limit(self) -> float:
        """Of the baselines, in seconds; NaN if none is given."""
        return _baselines_limit(self.rows)

    @cached_property
    def all_methods(self) -> list[str]:
        """Ours, those from outside, the baselines."""
        return sorted_methods(set(self.rows["method"]))

    def methods(self, regime: Regime) -> list[str]:
        """Those with rows in a regime."""
        return self._methods[regime]

    @cached_property
    def _methods(self) -> dict[Regime, list[str]]:
        of = {regime: self.rows["method"][self.rows["regime"] == regime] for regime in REGIMES}
        return {regime: sorted_methods(set(names)) for regime, names in of.items()}

    def line_up(self, regime: Regime) -> list[str]:
        """The methods that are ranked together.

        In the paper's regime the paper's 23 and those from outside, so that ranks compare with
        the paper's; a small selection of methods, and the fair regime, have no such rival.
        """
        everyone = self.methods(regime)
        papers = [name for name in everyone if name in METHODS and METHODS[name].in_paper]
        if regime == "fair" or len(papers) < _FEWEST_OF_PAPER:
            return everyone
        return [name for name in everyone if name in papers or name not in METHODS]

    def values(
        self, regime: Regime, metric: Metric, methods: Sequence[str], group: str = "overall"
    ) -> pandas.DataFrame:
        """(tables of the group, methods) means over seeds, NaN where missing."""
        values = self._values[regime, metric]
        if group != "overall":
            here = [name in TABLES and TABLES[name].scale == group for name in values.index]
            values = values[here]
        return values[list(methods)]

    @cached_property
    def _values(self) -> dict[tuple[Regime, Metric], pandas.DataFrame]:
        found: dict[tuple[Regime, Metric], pandas.DataFrame] = {}
        for regime in self.regimes:
            cells = self.cells[self.cells["regime"] == regime]
            for metric in METRICS:
                wide = cells.pivot(index="table", columns="method", values=metric)
                found[regime, metric] = wide.loc[sorted_tables(wide.index)]
        return found


def read_results(
    rows: pandas.DataFrame, tables: Sequence[str] = (), methods: Sequence[str] = ()
) -> Results:
    """The rows of the asked tables and methods (all, if none is asked for), checked."""
    lacking = [name for name in _NEEDED if name not in rows.columns]
    if lacking:
        raise InputError(f"the results have no column {', '.join(map(repr, lacking))}")
    rows = _clean(rows)
    unknown = sorted(set(rows["regime"]) - set(REGIMES))
    if unknown:
        raise InputError(f"regime {unknown[0]!r} is neither of {', '.join(REGIMES)}")
    rows = _restricted(rows, tables, methods)
    n_all = len(rows)
    rows = rows.drop_duplicates([*_KEYS, "seed"], keep="last")
    if not (rows["state"] == "ok").any():
        what = "no row at all" if rows.empty else f"{len(rows)} rows, but none with state 'ok'"
        raise InputError(f"there is nothing to report: the results have {what}")
    order = pandas.DataFrame(
        {
            "regime": rows["regime"].map(REGIMES.index),
            "table": rows["table"].map(_places(sorted_tables(set(rows["table"])))),
            "method": rows["method"].map(_places(sorted_methods(set(rows["method"])))),
            "seed": rows["seed"],
        }
    ).sort_values([*_KEYS, "seed"])
    rows = rows.loc[order.index].reset_index(drop=True)
    return Results(rows, _cells(rows), n_all - len(rows))


def sorted_tables(names: Iterable[str]) -> list[str]:
    """In the protocol's order, unknown ones last by name."""
    places = _places(TABLES)
    return sorted(names, key=lambda name: (places.get(name, len(places)), name))


def sorted_methods(names: Iterable[str]) -> list[str]:
    """Ours, those from outside by name, the baselines in the registry's order."""
    places = _places(METHODS)

    def place(name: str) -> tuple[int, int, str]:
        group = 0 if name in OURS else 1 if is_plugin(name) else 2
        return group, places.get(name, 0), name

    return sorted(names, key=place)


def each(frame: pandas.DataFrame) -> Iterable[Any]:
    """The rows of a frame, cells as attributes."""
    return frame.itertuples(index=False)


def is_plugin(method: str) -> bool:
    """Whether it came from outside."""
    return method not in METHODS


def _places(names: Iterable[str]) -> dict[str, int]:
    return {name: place for place, name in enumerate(names)}


def _clean(rows: pandas.DataFrame) -> pandas.DataFrame:
    """Every column that is used, with its type; optional ones empty where they are not given."""
    clean = pandas.DataFrame(index=pandas.RangeIndex(len(rows)))
    for name in _TEXTS:
        texts = rows[name].tolist() if name in rows.columns else [""] * len(rows)
        clean[name] = ["" if pandas.isna(text) else str(text).strip() for text in texts]
    for name in ["seed", *_NUMBERS]:
        given = rows[name].to_numpy() if name in rows.columns else np.full(len(rows), np.nan)
        try:
            clean[name] = pandas.to_numeric(pandas.Series(given)).astype(np.float64)
        except (ValueError, TypeError) as error:
            raise InputError(f"column {name!r} of the results: {error}") from error
    if clean["seed"].isna().any():
        raise InputError("column 'seed' of the results has empty cells")
    clean["seed"] = clean["seed"].astype(np.int64)
    clean["seeds_together"] = clean["seeds_together"].fillna(1.0).clip(lower=1.0)
    return clean


def _restricted(
    rows: pandas.DataFrame, tables: Sequence[str], methods: Sequence[str]
) -> pandas.DataFrame:
    if tables:
        rows = rows[rows["table"].isin(chosen_tables(tables, sorted(set(rows["table"]))))]
    if methods:
        by_lower = {name.lower(): name for name in sorted(set(rows["method"]), reverse=True)}
        strangers = [name for name in methods if name.lower() not in by_lower]
        if strangers:
            there = ", ".join(sorted_methods(set(rows["method"])))
            raise InputError(f"no row is of the method {strangers[0]!r}; there are {there}")
        rows = rows[rows["method"].isin([by_lower[name.lower()] for name in methods])]
    return rows


def _cells(rows: pandas.DataFrame) -> pandas.DataFrame:
    """One row per regime and each of its tables and methods; `rows` in order."""
    first = rows.groupby(_KEYS, sort=False).first()[["state", "time_limit"]]
    fine = rows[rows["state"] == "ok"].copy()
    # Side by side on a GPU, one launch's time is that of all its seeds.
    fine["measured"] = fine["fit_seconds"] / fine["seeds_together"]
    fine["one_core"] = fine["one_core_seconds"].fillna(fine["measured"])
    seeds = fine.groupby(_KEYS, sort=False)
    finished: dict[str, pandas.Series] = {
        **{metric: seeds[metric].mean() for metric in METRICS},
        **{f"{metric}_sd": seeds[metric].std() for metric in METRICS},
        "n_seeds": seeds.size(),
        "fit_seconds": seeds["one_core"].mean(),
        "measured_fit_seconds": seeds["measured"].mean(),
        "estimated": (seeds["one_core_seconds"].count() > 0).astype(np.float64),
        "score_seconds": seeds["score_seconds"].mean(),
        "peak_memory_mb": seeds["peak_memory_mb"].max(),
    }
    cells = first.join(pandas.DataFrame(finished))
    failed = rows[rows["state"] != "ok"].groupby(_KEYS, sort=False).size()
    cells["n_failed"] = failed.reindex(cells.index).fillna(0).astype(np.int64)
    stopped = cells["state"].isin(TOO_MUCH)
    # An error in the first seed says nothing about the others.
    cells["state"] = cells["state"].where(stopped | cells["n_seeds"].isna(), "ok")
    cells.loc[stopped, list(finished)] = np.nan

    whole = []
    for regime in rows["regime"].unique():
        there = rows[rows["regime"] == regime]
        whole += [
            (regime, table, method)
            for table in sorted_tables(set(there["table"]))
            for method in sorted_methods(set(there["method"]))
        ]
    cells = cells.reindex(pandas.MultiIndex.from_tuples(whole, names=_KEYS)).reset_index()
    cells["state"] = cells["state"].fillna("not run")
    cells["n_seeds"] = cells["n_seeds"].fillna(0).astype(np.int64)
    cells["n_failed"] = cells["n_failed"].fillna(0).astype(np.int64)
    cells["estimated"] = cells["estimated"] == 1.0
    scales = {name: table.scale for name, table in TABLES.items()}
    cells.insert(2, "scale", [scales.get(table, "") for table in cells["table"]])
    cells["over_limit"] = cells["fit_seconds"] > _baselines_limit(rows)
    return cells


def _baselines_limit(rows: pandas.DataFrame) -> float:
    return float(rows.loc[~rows["method"].isin(OURS), "time_limit"].max())
