"""Shared by the pages: statistics, names, and texts that are on every page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas

from .. import standings
from ..baselines import DIFFINT_METHODS
from ..markdown import bold, escaped, wrapped_names
from ..paper_numbers import N_METHODS, N_TABLES, Metric
from ..protocol import SCALES, Regime
from ..ranking import Scheme
from ..results import Results, is_plugin

METRIC_NAMES: dict[Metric, str] = {"roc_auc": "ROC-AUC", "average_precision": "average precision"}
REGIME_TEXTS: dict[Regime, str] = {
    "paper": "As in the paper: DiffInt, TCCM, AutoEncoder and VAE train on the inliers of the "
    "training part, the others on all of it, including anomalies.",
    "fair": "Every method trains on the inliers of the training part only.",
}
BRACKETS = (
    f"In square brackets: the paper's own number, over {N_TABLES} tables and {N_METHODS} methods."
)
_MOST_NAMES = 12  # of tables in a list


@dataclass(frozen=True)
class Report:
    """The results and their statistics, each computed once."""

    results: Results

    @cached_property
    def ranks(self) -> pandas.DataFrame:
        """See `standings.rank_records`."""
        return standings.rank_records(self.results)

    @cached_property
    def friedman(self) -> pandas.DataFrame:
        """See `standings.friedman_records`."""
        return standings.friedman_records(self.results)

    @cached_property
    def comparisons(self) -> pandas.DataFrame:
        """See `standings.comparison_records`."""
        return standings.comparison_records(self.results)

    @cached_property
    def cells(self) -> pandas.DataFrame:
        """See `standings.cell_records`."""
        return standings.cell_records(self.results)

    @cached_property
    def times(self) -> pandas.DataFrame:
        """See `standings.time_records`."""
        return standings.time_records(self.results)

    def ranking(
        self, regime: str, pool: str, scheme: Scheme, group: str, metric: Metric
    ) -> pandas.DataFrame:
        """The rank records of one ranking, by method, best first."""
        ranks = self.ranks
        chosen = ranks[
            (ranks["regime"] == regime)
            & (ranks["pool"] == pool)
            & (ranks["scheme"] == scheme)
            & (ranks["group"] == group)
            & (ranks["metric"] == metric)
        ]
        return chosen.set_index("method")

    def groups(self, regime: Regime) -> list[str]:
        """'overall' and the scales that have tables in that regime."""
        cells = self.results.cells
        scales = set(cells.loc[cells["regime"] == regime, "scale"])
        return ["overall", *(scale for scale in SCALES if scale in scales)]


def sentence(text: str) -> str:
    """The text with a capital first letter."""
    return text[:1].upper() + text[1:]


def absent_line(results: Results) -> str:
    """A sentence that names the expected tables without rows; empty if nothing is expected."""
    absent, n_expected = results.absent_tables, len(results.expected_tables)
    have = "has" if len(absent) == 1 else "have"
    tables = f"the {n_expected} selected" if results.selected else f"the paper's {N_TABLES}"
    line = f"All of {tables} tables have rows here." if n_expected else ""
    if absent:
        text = f"{len(absent)} of {tables} tables {have} no rows here"
        names = some_names(absent) if results.selected else wrapped_names(absent)
        line = f"{bold(text)}: {names}."
    for regime in results.regimes:
        other = results.tables_of_other_regime(regime)
        if other:
            line += f" With rows in the other, but not in the {regime} regime: "
            line += f"{wrapped_names(other)}."
    return line.strip() + "\n" if line else ""


def page_of(parts: Iterable[str]) -> str:
    """A page from its paragraphs; empty ones are left out."""
    return "\n".join(part for part in parts if part)


def some_names(names: Sequence[str]) -> str:
    """The first names of a list, and the number of the others."""
    if len(names) <= _MOST_NAMES:
        return wrapped_names(names)
    return f"{wrapped_names(names[:_MOST_NAMES])} and {len(names) - _MOST_NAMES} more"


def shown_method(method: str) -> str:
    """A method's name, bold for DiffInt and plugins."""
    name = escaped(method, 40)
    return bold(name) if method in DIFFINT_METHODS or is_plugin(method) else name
