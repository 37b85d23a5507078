"""The model on one page: a few patterns with a few conditions each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.checks import check_index, check_whole
from ..core.immutable import Immutable
from ..core.kinds import ONLY_NUMBERS, Kinds
from ..core.model import FeatureSummary, FittedModel
from ..core.scaling import Scaler
from ..score.prepared import PreparedModel
from ..score.scoring import anomaly_scores
from ..tables.frames import read_rows
from .compact import Box, Rows, cell_costs, choose_boxes
from .constraints import training_range, values_between
from .stored_rows import artificial_rows, stored_rows, unit_centers

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

_COVERAGE = 0.92  # share of normal rows to be inside at least one pattern
_MOST_ANOMALIES = 0.3  # share of anomalies inside a pattern
_CHOOSING_SHARE, _MOST_CHOOSING = 2 / 3, 800  # rows that patterns are chosen by
_FEWEST_CHOOSING = 30
_ARTIFICIAL_ROWS = 1_500
_FLAGGED_RATE = 0.05  # artificial rows that score above this share of normal rows are anomalies
_NARROWEST = 1e-3  # half-width of a range that can still be widened, in scaled units
_ROUNDING = 4e-6  # float32 error of a scaled value, twice
_FINEST = 0.02  # a range is rounded as one of this share of the training range if it is narrower
_STEPS_PER_WIDTH = 50  # ranges are rounded to at least so many steps


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
    n_anomalies: number of artificial rows that the model takes for anomalies (see `find_patterns`).
    kept: whether the measured rows are training rows; else they were drawn from the model's boxes,
        since it keeps no rows, and the coverage is an estimate.
    boxes: what `distance` is computed from, in the units of `scaler`.
    usual_cost: (features,) mean description length of a measured row's cell, in nats.
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
    usual_cost: Array
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

    def inside(self, X: Any) -> Mask:
        """Whether each row is inside each pattern. → (rows, patterns)"""
        return inside(self._read(X), self.has_condition, self.lower, self.upper)

    def covers(self, X: Any) -> Mask:
        """Whether each row is inside at least one pattern. → (rows,)"""
        return np.asarray(self.inside(X).any(axis=1))

    def distance(self, X: Any) -> Array:
        """How far each row is from what the patterns say, in bits. → (rows,), high is anomalous

        The description length of the row minus that of a normal row on average. A cell costs
        log₂ of the width of the range that describes it (of the pattern that fits the row best)
        and more the farther outside it is; where no pattern fits, the width of the whole range. A
        missing cell counts as an average one.
        """
        scaled = scaled_rows(self.scaler, self._read(X))
        costs = cell_costs(scaled, list(self.boxes))
        excess = np.where(np.isnan(scaled), 0.0, costs - self.usual_cost)
        return np.asarray(excess.sum(axis=1) / np.log(2.0))

    def _read(self, X: Any) -> NDArray[np.floating[Any]]:
        return read_rows(X, self.columns, self.kinds)

    def conditions(self, pattern: int) -> list[int]:
        """The features that a pattern has conditions on, the most restrictive first."""
        pattern = check_index(pattern, len(self), "pattern", "in the set")
        found = np.flatnonzero(self.has_condition[pattern])
        box = self.boxes[pattern]
        width = dict(zip(box.features.tolist(), (box.upper - box.lower).tolist(), strict=True))
        return sorted(found.tolist(), key=lambda j: (width[j], j))

    def allowed_values(self, pattern: int, feature: int) -> list[str]:
        """The allowed values of a category."""
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


def find_patterns(
    prepared: PreparedModel, max_patterns: int = 20, max_conditions: int = 5, n_jobs: int = 1
) -> PatternSet:
    """The compact set of patterns of a fitted model. The same model gives the same set.

    The rows that the model keeps are divided. Two thirds (at most 800) choose the patterns; the
    others set the width of all ranges together, so that 92 % of new normal rows are inside at
    least one pattern, and measure. The anomalies are artificial: rows made from kept ones
    (`artificial_rows`), from those that measure, that score above 95 % of the calibration rows.
    """
    max_patterns = check_whole("max_patterns", max_patterns, at_most=1_000)
    max_conditions = check_whole("max_conditions", max_conditions, at_most=1_000)
    model = prepared.model
    scaler = model.members[0].scaler
    rows, kept = stored_rows(model)
    n_choosing = min(max(int(len(rows) * _CHOOSING_SHARE), _FEWEST_CHOOSING), _MOST_CHOOSING)
    n_choosing = min(n_choosing, len(rows) - 1)
    # A single row, of which all others are copies, does both.
    choosing, measuring = rows[:n_choosing] if n_choosing else rows, rows[n_choosing:]
    judged = artificial_rows(model, choosing, _ARTIFICIAL_ROWS, seed=0, kinds=1)
    weight = model.members[0].kept_weight.astype(np.float64)
    mined = Rows.of(np.nan_to_num(scaled_rows(scaler, choosing)), weight)
    centers = np.clip(np.nan_to_num(unit_centers(model)), scaler.lower, scaler.upper)
    scaled_judged = np.nan_to_num(scaled_rows(scaler, judged))
    scores = anomaly_scores(prepared, judged, n_jobs)
    boxes = choose_boxes(mined, centers, scaled_judged, scores, max_patterns, max_conditions)
    threshold = model.calibration.threshold(_FLAGGED_RATE)
    boxes = _telling(boxes, scaled_judged[scores > threshold])
    ranges = _readable_ranges(model, boxes, scaled_rows(scaler, measuring))
    made = artificial_rows(model, measuring, _ARTIFICIAL_ROWS, seed=1)
    anomalies = made[anomaly_scores(prepared, made, n_jobs) > threshold]
    within, anomalies_within = inside(measuring, *ranges), inside(anomalies, *ranges)
    return PatternSet(
        columns=tuple(model.columns),
        feature_names=model.feature_names,
        has_condition=ranges[0],
        lower=ranges[1],
        upper=ranges[2],
        coverage=_means(within),
        anomalies_outside=1.0 - _means(anomalies_within),
        set_coverage=float(_means(np.asarray(within.any(axis=1)))),
        set_anomalies_outside=float(1.0 - _means(np.asarray(anomalies_within.any(axis=1)))),
        n_measured=len(measuring),
        n_anomalies=len(anomalies),
        kept=kept,
        boxes=tuple(boxes),
        scaler=scaler,
        usual_cost=cell_costs(scaled_rows(scaler, measuring), boxes).mean(axis=0),
        features=model.features,
        kinds=model.kinds,
    )


def _telling(boxes: list[Box], anomalies: Array) -> list[Box]:
    """The boxes that many anomalies (rows, features) are outside of; at least the best one.

    A box with half of all rows in it, as one value of a category, would cover them all, and leave
    nothing for the others.
    """
    if not len(anomalies):
        return boxes
    shares = []
    for box in boxes:
        away = np.abs(anomalies[:, box.features] - (box.lower + box.upper) / 2)
        shares.append(float((away <= _half_width(box)).all(axis=1).mean()))
    kept = [box for box, share in zip(boxes, shares, strict=True) if share <= _MOST_ANOMALIES]
    return kept or [boxes[int(np.argmin(shares))]]


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


def _means(within: NDArray[Any]) -> Any:
    return within.mean(axis=0) if len(within) else np.full(within.shape[1:], np.nan)


def _readable_ranges(
    model: FittedModel, boxes: list[Box], measured: Array
) -> tuple[Mask, Array, Array]:
    """The ranges of boxes in original units, as (has_condition, lower, upper).

    measured: (rows, features) scaled rows, of which the wanted share is to be inside.
    """
    n_features = model.n_features
    has_condition = np.zeros((len(boxes), n_features), dtype=bool)
    lower, upper = np.full((2, len(boxes), n_features), np.nan)
    factor = _covering_factor(boxes, measured)
    smallest, largest = training_range(model.features)
    span = largest - smallest
    scaler = model.members[0].scaler
    for k, box in enumerate(boxes):
        middle, half = (box.lower + box.upper) / 2, _half_width(box)
        has_condition[k, box.features] = True
        for ends, side in ((lower, -1.0), (upper, 1.0)):
            scaled = np.zeros(n_features)
            scaled[box.features] = middle + side * (factor * half + _ROUNDING)
            ends[k, box.features] = scaler.to_original(scaled)[box.features]
        for j in box.features:
            if model.features.whole[j] or j in model.categories:
                lower[k, j], upper[k, j] = _whole_ends(lower[k, j], upper[k, j])
            else:
                lower[k, j], upper[k, j] = _round_ends(lower[k, j], upper[k, j], span[j])
    for j, count in model.kinds.n_values.items():
        lower[:, j] = np.clip(lower[:, j], 0, count - 1)
        upper[:, j] = np.clip(upper[:, j], 0, count - 1)
        allows_all = has_condition[:, j] & (lower[:, j] == 0) & (upper[:, j] == count - 1)
        has_condition[allows_all & (has_condition.sum(axis=1) > 1), j] = False
    lower, upper = (np.where(has_condition, ends, np.nan) for ends in (lower, upper))
    return has_condition, lower, upper


def _half_width(box: Box) -> Array:
    return np.maximum((box.upper - box.lower) / 2, _NARROWEST)


def _covering_factor(boxes: list[Box], measured: Array) -> float:
    """Factor on all half-widths for which the wanted share of new rows is inside some box.

    Conformal: of n exchangeable rows, the ⌈(n + 1) · share⌉-th smallest factor that a row needs is
    enough for a new row with at least this probability.
    """
    if not boxes:
        return 1.0
    needed = np.full(len(measured), np.inf)
    for box in boxes:
        away = np.abs(measured[:, box.features] - (box.lower + box.upper) / 2) / _half_width(box)
        needed = np.minimum(needed, np.nan_to_num(away).max(axis=1))
    rank = min(int(np.ceil((len(needed) + 1) * _COVERAGE)), len(needed))
    return float(np.sort(needed)[rank - 1])


def _whole_ends(lower: float, upper: float) -> tuple[float, float]:
    """The first and the last whole number of a range, or the nearest one if it has none."""
    first, last = np.ceil(lower), np.floor(upper)
    if first > last:
        first = last = np.round((lower + upper) / 2)
    return float(first) + 0.0, float(last) + 0.0  # turns −0.0 into 0.0


def _round_ends(lower: float, upper: float, span: float) -> tuple[float, float]:
    """Round numbers just outside a range. span: width of the training range"""
    width = max(upper - lower, _FINEST * span)
    if not (width > 0 and np.isfinite(width)):
        return lower, upper  # a constant, or a range without end
    places = int(-np.floor(np.log10(width / _STEPS_PER_WIDTH)))
    step = 10.0**-places
    low, up = np.floor(lower / step), np.ceil(upper / step)
    if not max(abs(low), abs(up)) < 1e15:  # the ends have no digit at this place
        return lower, upper
    # Written and read again, as 3 · 0.1 is not 0.3.
    return tuple(float(f"{end * step:.{max(places, 0)}f}") + 0.0 for end in (low, up))  # type: ignore[return-value]
