"""What the pages share: the statistics, names, and what is said on every one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pandas

from .. import standings
from ..baselines import OURS
from ..markdown import bold, escaped, wrapped_names
from ..paper_numbers import N_METHODS, N_TABLES, Metric
from ..protocol import SCALES, Regime
from ..ranking import Scheme
from ..results import Results, is_plugin

METRIC_NAMES: dict[Metric, str] = {"roc_auc": "ROC-AUC", "average_precision": "average precision"}
REGIME_TEXTS: dict[Regime, str] = {
    "paper": "As in the paper: DiffInt, TCCM, AutoEncoder and VAE train on the inliers of the "
    "train part, the others on all of it, anomalies included.",
    "fair": "Every method trains on the inliers of the train part only.",
}
BRACKETS = (
    f"In square brackets: the paper's own number, over {N_TABLES} tables and {N_METHODS} methods."
)


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
    """With a capital at its beginning."""
    return text[:1].upper() + text[1:]


def absent_line(results: Results) -> str:
    """Which of the paper's tables are not there; on every page."""
    absent = results.absent_tables
    be = "is" if len(absent) == 1 else "are"
    text = f"{len(absent)} of the paper's {N_TABLES} tables {be} not among these rows"
    line = f"All of the paper's {N_TABLES} tables are among these rows."
    if absent:
        line = f"{bold(text)}: {wrapped_names(absent)}."
    for regime in results.regimes:
        elsewhere = results.tables_only_elsewhere(regime)
        if elsewhere:
            line += f" Without rows in the {regime} regime only: {wrapped_names(elsewhere)}."
    return line + "\n"


def shown_method(method: str) -> str:
    """Ours and those from outside stand out."""
    name = escaped(method, 40)
    return bold(name) if method in OURS or is_plugin(method) else name
