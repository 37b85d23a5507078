"""Result rows, checked and summarised: one cell per regime, table and method."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas

from ..core.errors import InputError
from ..core.formatting import counted, listed
from .baselines import DIFFINT_METHODS, METHODS
from .paper_numbers import METRICS, Metric
from .protocol import REGIMES, SCALES, TABLES, Regime
from .selection import Selection
from .store import LIMIT_STATES
from .suites import ADBENCH, SUITES, Suite

_KEYS = ["regime", "table", "method"]
_NEEDED = ["table", "method", "regime", "seed", "state", *METRICS]
_NUMBERS = [
    *METRICS, "fit_seconds", "score_seconds", "peak_memory_mb", "n_train", "n_test",
    "seeds_together", "one_core_seconds", "time_limit", "memory_limit_gb",
]  # fmt: skip
_TEXTS = ["table", "method", "regime", "state", "message", "processor", "versions", "suite"]
_FEWEST_OF_PAPER = 12  # with fewer of its 23 methods, all methods are ranked together


@dataclass(frozen=True)
class Results:
    """Result rows and their summary.

    rows: one per regime, table, method and seed, sorted.
    cells: one per regime, table and method, whether it was run or not (`state`: 'ok', or why it is
        missing: 'timeout', 'out of memory', 'error', 'not run'); roc_auc, roc_auc_sd,
        average_precision, average_precision_sd, n_seeds (that finished), n_failed (seeds);
        fit_seconds, score_seconds (means per seed, on one core), measured_fit_seconds (on the
        processor that was used), estimated (whether fit_seconds is an estimate), peak_memory_mb
        (the largest), time_limit, over_limit (whether a fit on one core takes longer than the
        baselines' time limit).
    n_repeated: number of rows replaced by a later row of the same table, method, regime, seed.
    suite: the suite of all rows.
    expected_tables: those that should have rows: the selected ones, else the paper's if the suite
        is the paper's, else none in particular.
    selected: whether the expected tables are those of a selection.
    """

    rows: pandas.DataFrame
    cells: pandas.DataFrame
    n_repeated: int
    suite: Suite[Any]
    expected_tables: tuple[str, ...]
    selected: bool

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """The groups of tables that are ranked: 'overall', and the scales of the paper's suite."""
        return ("overall", *(SCALES if self.suite.in_paper else ()))

    @cached_property
    def regimes(self) -> list[Regime]:
        """The regimes with rows."""
        present = set(self.rows["regime"])
        return [regime for regime in REGIMES if regime in present]

    @cached_property
    def tables(self) -> list[str]:
        """The tables with rows, in the protocol's order, unknown ones last."""
        return sorted_tables(set(self.rows["table"]))

    @cached_property
    def absent_tables(self) -> list[str]:
        """The expected tables without any row."""
        return [name for name in self.expected_tables if name not in self.tables]

    def tables_of_other_regime(self, regime: Regime) -> list[str]:
        """The tables with rows in the other regime only."""
        here = set(self.cells.loc[self.cells["regime"] == regime, "table"])
        return [name for name in self.tables if name not in here]

    @cached_property
    def time_limit(self) -> float:
        """The time limit of the baselines in seconds; NaN if there is none."""
        return _baselines_time_limit(self.rows)

    @cached_property
    def all_methods(self) -> list[str]:
        """The methods with rows: DiffInt, plugins, baselines."""
        return sorted_methods(set(self.rows["method"]))

    def methods(self, regime: Regime) -> list[str]:
        """The methods with rows in a regime."""
        return self._methods[regime]

    @cached_property
    def _methods(self) -> dict[Regime, list[str]]:
        of = {regime: self.rows["method"][self.rows["regime"] == regime] for regime in REGIMES}
        return {regime: sorted_methods(set(names)) for regime, names in of.items()}

    def line_up(self, regime: Regime) -> list[str]:
        """The methods that are ranked together.

        In the paper regime: the paper's 23 methods and plugins, so that ranks can be compared with
        the paper's. In the fair regime, on other tables, or with few of the paper's methods: all
        methods.
        """
        everyone = self.methods(regime)
        papers = [name for name in everyone if name in METHODS and METHODS[name].in_paper]
        if regime == "fair" or not self.suite.in_paper or len(papers) < _FEWEST_OF_PAPER:
            return everyone
        return [name for name in everyone if name in papers or name not in METHODS]

    def values(
        self,
        regime: Regime,
        metric: Metric,
        methods: Sequence[str],
        group: str = "overall",
        within_limit: bool = False,
    ) -> pandas.DataFrame:
        """Means over seeds (tables of the group, methods), NaN if missing.

        within_limit: whether runs that would exceed the time limit on one core are missing too
        """
        values = self._values[regime, metric]
        if within_limit:
            values = values.mask(self._over_limit[regime])
        if group != "overall":
            here = [name in TABLES and TABLES[name].scale == group for name in values.index]
            values = values[here]
        return values[list(methods)]

    @cached_property
    def _over_limit(self) -> dict[Regime, pandas.DataFrame]:
        """Whether a fit on one core takes longer than the limit (tables, methods)."""
        found: dict[Regime, pandas.DataFrame] = {}
        for regime in self.regimes:
            cells = self.cells[self.cells["regime"] == regime]
            wide = cells.pivot(index="table", columns="method", values="over_limit")
            found[regime] = wide.eq(True)
        return found

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
    rows: pandas.DataFrame,
    tables: Sequence[str] = (),
    methods: Sequence[str] = (),
    selection: Selection | None = None,
) -> Results:
    """The checked rows of these tables and methods (default: all), all of one suite."""
    missing = [name for name in _NEEDED if name not in rows.columns]
    if missing:
        raise InputError(f"the results have no column {', '.join(map(repr, missing))}")
    rows = _clean(rows)
    unknown = sorted(set(rows["regime"]) - set(REGIMES))
    if unknown:
        raise InputError(f"regime {unknown[0]!r} is not one of {', '.join(REGIMES)}")
    suite = _suite(rows)
    rows = _restricted(rows, suite, tables, methods)
    expected: Iterable[str] = TABLES if suite.in_paper else ()
    if selection is not None:
        expected = selection.of(suite.name)
        rows = rows[rows["table"].isin(expected)]
    n_all = len(rows)
    rows = rows.drop_duplicates([*_KEYS, "seed"], keep="last")
    if not (rows["state"] == "ok").any():
        what = "no rows" if rows.empty else f"{counted(len(rows), 'row')}, none with state 'ok'"
        raise InputError(f"there is nothing to report: the results have {what}")
    order = pandas.DataFrame(
        {
            "regime": rows["regime"].map(REGIMES.index),
            "table": rows["table"].map(_positions(sorted_tables(set(rows["table"])))),
            "method": rows["method"].map(_positions(sorted_methods(set(rows["method"])))),
            "seed": rows["seed"],
        }
    ).sort_values([*_KEYS, "seed"])
    rows = rows.loc[order.index].reset_index(drop=True)
    n_repeated = n_all - len(rows)
    cells = _cells(rows, suite)
    return Results(rows, cells, n_repeated, suite, tuple(expected), selection is not None)


def sorted_tables(names: Iterable[str]) -> list[str]:
    """Tables in the protocol's order, unknown ones last by name."""
    places = _positions(TABLES)
    return sorted(names, key=lambda name: (places.get(name, len(places)), name))


def sorted_methods(names: Iterable[str]) -> list[str]:
    """Methods in order: DiffInt, plugins by name, baselines as in `METHODS`."""
    places = _positions(METHODS)

    def place(name: str) -> tuple[int, int, str]:
        group = 0 if name in DIFFINT_METHODS else 1 if is_plugin(name) else 2
        return group, places.get(name, 0), name

    return sorted(names, key=place)


def each(frame: pandas.DataFrame) -> Iterable[Any]:
    """The rows of a frame, with columns as attributes."""
    return frame.itertuples(index=False)


def is_plugin(method: str) -> bool:
    """Whether a method is a plugin."""
    return method not in METHODS


def _positions(names: Iterable[str]) -> dict[str, int]:
    return {name: place for place, name in enumerate(names)}


def _clean(rows: pandas.DataFrame) -> pandas.DataFrame:
    """Every column that is used, with its type; missing optional columns are empty."""
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


def _suite(rows: pandas.DataFrame) -> Suite[Any]:
    """The suite of all rows; rows without one are from before there were several."""
    names = sorted({name or ADBENCH.name for name in rows["suite"]}) or [ADBENCH.name]
    if len(names) > 1:
        raise InputError(
            f"the results are of the suites {listed(names)}; make one report for each suite"
        )
    if names[0] not in SUITES:
        raise InputError(
            f"the results are of the suite {names[0]!r}, which is not one of {', '.join(SUITES)}"
        )
    return SUITES[names[0]]


def _restricted(
    rows: pandas.DataFrame, suite: Suite[Any], tables: Sequence[str], methods: Sequence[str]
) -> pandas.DataFrame:
    if tables:
        rows = rows[rows["table"].isin(suite.choose(tables, sorted(set(rows["table"]))))]
    if methods:
        by_lower = {name.lower(): name for name in sorted(set(rows["method"]), reverse=True)}
        unknown = [name for name in methods if name.lower() not in by_lower]
        if unknown:
            known = ", ".join(sorted_methods(set(rows["method"])))
            raise InputError(f"the results have no method {unknown[0]!r}; they have {known}")
        rows = rows[rows["method"].isin([by_lower[name.lower()] for name in methods])]
    return rows


def _cells(rows: pandas.DataFrame, suite: Suite[Any]) -> pandas.DataFrame:
    """One row per regime, table and method, from sorted `rows`."""
    first = rows.groupby(_KEYS, sort=False).first()[["state", "time_limit"]]
    ok = rows[rows["state"] == "ok"].copy()
    # The seeds of one launch on a GPU each have the time of the whole launch.
    ok["measured"] = ok["fit_seconds"] / ok["seeds_together"]
    ok["one_core"] = ok["one_core_seconds"].fillna(ok["measured"])
    seeds = ok.groupby(_KEYS, sort=False)
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
    stopped = cells["state"].isin(LIMIT_STATES)
    # After an error in the first seed, the other seeds still count.
    cells["state"] = cells["state"].where(stopped | cells["n_seeds"].isna(), "ok")
    cells.loc[stopped, list(finished)] = np.nan

    keys = []
    for regime in rows["regime"].unique():
        in_regime = rows[rows["regime"] == regime]
        keys += [
            (regime, table, method)
            for table in sorted_tables(set(in_regime["table"]))
            for method in sorted_methods(set(in_regime["method"]))
        ]
    cells = cells.reindex(pandas.MultiIndex.from_tuples(keys, names=_KEYS)).reset_index()
    cells["state"] = cells["state"].fillna("not run")
    cells["n_seeds"] = cells["n_seeds"].fillna(0).astype(np.int64)
    cells["n_failed"] = cells["n_failed"].fillna(0).astype(np.int64)
    cells["estimated"] = cells["estimated"] == 1.0
    scales = {name: table.scale for name, table in TABLES.items() if suite.in_paper}
    cells.insert(2, "scale", [scales.get(table, "") for table in cells["table"]])
    cells["over_limit"] = cells["fit_seconds"] > _baselines_time_limit(rows)
    return cells


def _baselines_time_limit(rows: pandas.DataFrame) -> float:
    return float(rows.loc[~rows["method"].isin(DIFFINT_METHODS), "time_limit"].max())
