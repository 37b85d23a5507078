"""Which rows to look at, so that few of them are false alerts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..core.calibration import Calibration
from ..core.checks import check_choice
from ..core.errors import CalibrationWarning, InputError, warn
from ..core.flag_rule import FlagRule
from ..core.formatting import counted
from ..core.immutable import Immutable
from ..core.row_labels import index_for
from .false_alerts import false_alert_bounds

if TYPE_CHECKING:
    import pandas

Array = NDArray[np.float64]
METHODS = ("benjamini-hochberg", "storey")
_STOREY_LEVEL = 0.5  # p-values above it are nearly all of normal rows


@dataclass(frozen=True, eq=False)
class Selection(Immutable):
    """The rows to look at, and how many of them are false alerts at most.

    selected: (rows,) whether each row is selected.
    scores, p_values: (rows,) of all rows.
    bounds: (rows,) the largest share of false alerts, if all rows are looked at whose p-values are
        at most that of this one. They hold for all rows together with probability `confidence`, so
        any of them may be picked after looking.
    false_discovery_rate: the expected share of false alerts among the selected rows, at most.
    proven: whether theorems say so: calibration="holdout" without suspects, rows without groups,
        and in a model with segments only rows of segments with thresholds of their own. Otherwise
        it is measured, and for rows of new segments not known.
    index: the labels of the rows, None if they have positions only.
    """

    selected: NDArray[np.bool_]
    scores: Array
    p_values: Array
    bounds: Array
    false_discovery_rate: float
    confidence: float
    proven: bool
    index: pandas.Index | None = None

    def __len__(self) -> int:
        return len(self.selected)

    @property
    def n_selected(self) -> int:
        """How many rows are selected."""
        return int(self.selected.sum())

    @property
    def bound(self) -> float:
        """The largest share of false alerts among the selected rows; 0 if none is selected."""
        return float(self.bounds[self.selected].max(initial=0.0))

    @property
    def order(self) -> NDArray[np.intp]:
        """(selected rows,) their positions, the highest score first."""
        rows = np.flatnonzero(self.selected)
        return rows[np.argsort(-self.scores[rows], kind="stable")]

    def to_frame(self) -> pandas.DataFrame:
        """One line per row: score, p_value, selected, bound."""
        import pandas

        return pandas.DataFrame(
            {
                "score": self.scores,
                "p_value": self.p_values,
                "selected": self.selected,
                "bound": self.bounds,
            },
            index=index_for(np.arange(len(self)), self.index, len(self)),
        )

    def text(self) -> str:
        """How many rows are selected, and what is promised about them."""
        from ..show.wording.selections import selection_text

        return selection_text(self)

    def __repr__(self) -> str:
        return (
            f"Selection({self.n_selected} of {counted(len(self), 'row')}, "
            f"false_discovery_rate={self.false_discovery_rate:g}, bound={self.bound:.3g})"
        )

    def _repr_html_(self) -> str:
        from ..show.notebook import selection_html

        return selection_html(self)


def select_rows(
    rule: FlagRule,
    scores: Array,
    false_discovery_rate: float,
    method: str = "benjamini-hochberg",
    confidence: float = 0.95,
    index: pandas.Index | None = None,
) -> Selection:
    """Select rows by their p-values. scores: (rows,); rule: their segments and calibration"""
    check_choice("method", method, METHODS)
    calibration = rule.calibration
    if not calibration.held_out:
        raise InputError(
            "the threshold is based on scores of training rows, from which no false discovery rate "
            "follows; fit with calibration='auto' on at least 5 rows or groups"
        )
    p = rule.p_values(scores)
    parts = _parts(rule, len(scores))
    smallest = 1.0 / (1.0 + max((part.n_groups for part, _ in parts), default=0))
    if len(p) and smallest > false_discovery_rate:
        known = counted(calibration.n_groups, f"calibration {calibration.unit}")
        warn(
            f"no row can be selected at a false discovery rate of {false_discovery_rate:g}: the "
            f"smallest p-value of {known} is {smallest:.2g}; fit on more {calibration.unit}s, or "
            "raise the rate",
            CalibrationWarning,
        )
    level = false_discovery_rate
    if method == "storey":
        level /= _normal_share(p, calibration.n_groups)
    return Selection(
        selected=step_up(p, level),
        scores=scores,
        p_values=p,
        bounds=_bounds(p, parts, confidence),
        false_discovery_rate=false_discovery_rate,
        confidence=confidence,
        proven=rule.proven and not calibration.grouped,
        index=index,
    )


def selection_bounds(rule: FlagRule, scores: Array, confidence: float) -> Array:
    """`Selection.bounds` of rows with these scores. (rows,) → (rows,)"""
    rule = replace(rule, confidence=None)
    return _bounds(rule.p_values(scores), _parts(rule, len(scores)), confidence)


def step_up(p_values: Array, level: float) -> NDArray[np.bool_]:
    """The procedure of Benjamini and Hochberg: which p-values (rows,) are small enough."""
    ordered = np.sort(p_values)
    # A relative error of a few roundings must not decide between p-values on a grid.
    allowed = level * np.arange(1, len(ordered) + 1) / max(len(ordered), 1) * (1.0 + 1e-12)
    below = np.flatnonzero(ordered <= allowed)
    return p_values <= ordered[below[-1]] if len(below) else np.zeros(len(p_values), dtype=bool)


def _normal_share(p_values: Array, n_calibration: int) -> float:
    """Storey's estimate of the share of normal rows, at most 1.

    Of conformal p-values the level must be one of their values (Bates et al. 2023, theorem 5).
    """
    level = max(int(_STOREY_LEVEL * (n_calibration + 1)), 1) / (n_calibration + 1)
    above = 1.0 + float((p_values > level * (1.0 + 1e-12)).sum())
    return min(above / (max(len(p_values), 1) * (1.0 - level)), 1.0)


def _parts(rule: FlagRule, n_rows: int) -> list[tuple[Calibration, NDArray[np.intp]]]:
    """The calibration scores that rows are compared with, and which rows. → one per set of them"""
    if rule.codes is None:
        return [(rule.calibration, np.arange(n_rows))]
    rows_of: dict[int, list[NDArray[np.intp]]] = {}
    parts: dict[int, Calibration] = {}
    for code in np.unique(rule.codes):
        part = rule.part(int(code))
        parts[id(part)] = part
        rows_of.setdefault(id(part), []).append(np.flatnonzero(rule.codes == code))
    return [(parts[key], np.concatenate(rows)) for key, rows in rows_of.items()]


def _bounds(
    p_values: Array, parts: list[tuple[Calibration, NDArray[np.intp]]], confidence: float
) -> Array:
    """The bounds of all rows; with several calibrations, those of each part added up.

    Each part may fail with an equal share of 1 − confidence, so that all hold together.
    """
    if len(parts) == 1:
        return false_alert_bounds(p_values, parts[0][0].n_groups, confidence)
    each = 1.0 - (1.0 - confidence) / max(len(parts), 1)
    total = np.zeros(len(p_values))
    for part, rows in parts:
        own = np.sort(p_values[rows])
        share = false_alert_bounds(own, part.n_groups, each)
        false = np.append(0.0, share * np.searchsorted(own, own, side="right"))
        # The false alerts among this part's rows with p-values of at most each row's.
        total += false[np.searchsorted(own, p_values, side="right")]
    n_all = np.searchsorted(np.sort(p_values), p_values, side="right")
    return np.minimum(total / np.maximum(n_all, 1), 1.0)
