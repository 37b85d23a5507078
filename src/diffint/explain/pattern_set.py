"""The model on one page: a few patterns with a few conditions each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.checks import check_index
from ..core.errors import InputError
from ..core.immutable import Immutable
from ..core.kinds import ONLY_NUMBERS, Kinds
from ..core.model import FeatureSummary
from ..core.scaling import Scaler
from ..tables.frames import read_rows
from .compact import Box, Usual, excess_lengths
from .constraints import values_between

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

WANTED_COVERAGE = 0.92  # share of new normal rows to be inside at least one pattern


@dataclass(frozen=True, eq=False)
class PatternSet(Immutable):
    """A few patterns with a few conditions each, which describe the normal rows of a model.

    A condition is a range of one feature, or the allowed values of a category. A row is inside a
    pattern if it meets all its conditions; a missing value meets every condition. Arrays have the
    shape (patterns, features) unless stated.

    columns: names of the columns of a table; feature_names: of the features.
    has_condition: whether the pattern has a condition on the feature.
    lower, upper: the range in original units, both ends included, rounded; NaN without a condition.
        Of a category, positions in the list of its values.
    coverage: (patterns,) share of the measured rows inside the pattern.
    anomalies_outside: (patterns,) share of the measured anomalies outside the pattern.
    set_coverage, set_anomalies_outside: the same shares, of rows inside at least one pattern, and
        of anomalies outside all.
    n_measured: number of rows that the coverage was measured on; patterns were chosen by others.
    n_anomalies: number of artificial rows that the model takes for anomalies.
    kept: whether the measured rows are training rows; else they were drawn from the model's boxes,
        since it keeps no rows, and the coverage is an estimate.
    boxes: what `distance` is computed from, in the units of `scaler`.
    usual: what is usual for the measured rows, in the units of the boxes; usual_distance: the
        excess length that 95 % of them do not exceed.
    kinds: the columns that are not numbers.
    """

    columns: tuple[str, ...]
    feature_names: tuple[str, ...]
    has_condition: Mask
    lower: Array
    upper: Array
    coverage: Array
    anomalies_outside: Array
    set_coverage: float
    set_anomalies_outside: float
    n_measured: int
    n_anomalies: int
    kept: bool
    boxes: tuple[Box, ...]
    scaler: Scaler
    usual: Usual
    usual_distance: float
    features: FeatureSummary
    kinds: Kinds = ONLY_NUMBERS

    def __len__(self) -> int:
        return len(self.has_condition)

    def __repr__(self) -> str:
        return (
            f"PatternSet({len(self)} patterns, {int(self.has_condition.sum())} conditions on "
            f"{int(self.has_condition.any(axis=0).sum())} of {len(self.feature_names)} features)"
        )

    @property
    def categories(self) -> Mapping[int, tuple[str, ...]]:
        """The features that are categories, with their values."""
        return self.kinds.categories

    @cached_property
    def starts(self) -> Mapping[int, str]:
        """The features that are days of times, with the day from which they are counted."""
        return self.kinds.starts(self.feature_names)

    def inside(self, X: Any) -> Mask:
        """Whether each row is inside each pattern. → (rows, patterns)"""
        return inside(self._read(X), self.has_condition, self.lower, self.upper)

    def covers(self, X: Any) -> Mask:
        """Whether each row is inside at least one pattern. → (rows,)"""
        return np.asarray(self.inside(X).any(axis=1))

    def distance(self, X: Any) -> Array:
        """How far each row is from what the patterns say. → (rows,), high is anomalous

        0 is an average normal row, and 1 is farther than 95 % of the measured ones. A pattern
        brings a row nearer by all that it is worth if the row is inside, and by less the farther
        outside the row lies; a value beyond the training range makes it farther. A missing cell
        counts as an average one.
        """
        lengths = excess_lengths(scaled_rows(self.scaler, self._read(X)), self.boxes, self.usual)
        return lengths / self.usual_distance

    def _read(self, X: Any) -> NDArray[np.floating[Any]]:
        return read_rows(X, self.columns, self.kinds)

    def conditions(self, pattern: int) -> list[int]:
        """The features that a pattern has conditions on; first those that fewest rows meet."""
        pattern = check_index(pattern, len(self), "pattern", "in the set")
        found = np.flatnonzero(self.has_condition[pattern]).tolist()
        return sorted(found, key=lambda j: (self._share_within(pattern, j), j))

    def _share_within(self, pattern: int, feature: int) -> float:
        """Share of training rows that meet a condition, about: from quantiles."""
        quantiles, levels = self.features.quantiles[feature], self.features.levels
        first = np.searchsorted(quantiles, self.lower[pattern, feature], "left")
        last = np.searchsorted(quantiles, self.upper[pattern, feature], "right") - 1
        return float(levels[last] - levels[first]) if first <= last else 0.0

    def allowed_values(self, pattern: int, feature: int) -> list[str]:
        """The allowed values of a category."""
        pattern = check_index(pattern, len(self), "pattern", "found")
        feature = check_index(feature, len(self.feature_names), "feature", "known")
        if feature not in self.categories:
            raise InputError(f"feature={feature} is no category, and has no list of values")
        ends = self.lower[pattern, feature], self.upper[pattern, feature]
        return values_between(self.categories[feature], *ends)

    def to_frame(self) -> pandas.DataFrame:
        """One line per pattern and condition.

        Columns: pattern (from 1), feature, lower, upper, coverage and anomalies_outside (of the
        whole pattern); with categories also values, a list, instead of lower and upper.
        """
        import pandas

        lines = [
            {
                "pattern": k + 1,
                "feature": self.feature_names[j],
                "lower": np.nan if j in self.categories else self.lower[k, j],
                "upper": np.nan if j in self.categories else self.upper[k, j],
                "values": self.allowed_values(k, j) if j in self.categories else None,
                "coverage": self.coverage[k],
                "anomalies_outside": self.anomalies_outside[k],
            }
            for k in range(len(self))
            for j in self.conditions(k)
        ]
        names = ["pattern", "feature", "lower", "upper", "values", "coverage", "anomalies_outside"]
        if not self.categories:
            names.remove("values")
        return pandas.DataFrame(lines, columns=names)

    def text(self) -> str:
        """All patterns, with their conditions and shares."""
        from ..show.wording.patterns import set_text

        return set_text(self)

    def to_sql(self, table: str) -> str:
        """A SELECT of all columns of `table` and `outside_all_patterns`, 1 for rows not covered.

        table: name of the table, with dots between its parts (``schema.table``). Names are quoted
        as in standard SQL. A NULL meets every condition, and so does a text without characters.
        """
        from ..show.wording.pattern_query import select_statement

        return select_statement(self, table)

    def plot(self) -> Figure:
        """The ranges of all patterns, one column per pattern."""
        from ..show.plots import pattern_set_plot

        return pattern_set_plot(self)

    def _repr_html_(self) -> str:
        from ..show.notebook import patterns_html

        return patterns_html(self)


def scaled_rows(scaler: Scaler, x: NDArray[Any]) -> Array:
    """Rows in scaled units, limited beyond the training range; NaN where missing or unknown."""
    return scaler.target(x, "unclipped").astype(np.float64)


def inside(x: NDArray[Any], has_condition: Mask, lower: Array, upper: Array) -> Mask:
    """Whether rows (rows, features) are inside patterns. → (rows, patterns)"""
    found = np.ones((len(x), len(has_condition)), dtype=bool)
    for k, j in zip(*np.nonzero(has_condition), strict=True):
        value = x[:, j]
        found[:, k] &= np.isnan(value) | ((value >= lower[k, j]) & (value <= upper[k, j]))
    return found
