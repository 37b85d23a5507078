"""Why rows score as they do: nearest pattern, violated ranges, responsible features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.checks import check_count, check_index
from ..core.errors import InputError
from ..core.formatting import counted
from ..core.immutable import Immutable
from ..core.model import Member
from ..score.nearest_pattern import Matches, match_rows
from ..score.parts import scores_and_parts
from ..score.prepared import PreparedModel
from .constraints import box_ends, readable, training_range
from .responsibility import attribute

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

SIDES = ("below", "inside", "above")


@dataclass(frozen=True, eq=False)
class LocalExplanation(Immutable):
    """Explanations of rows as plain arrays; texts and frames are made from them.

    Arrays are (rows,) or (rows, features), in the order of the explained rows.

    feature_names: names of the features.
    score, p_value: (rows,) the anomaly score and its conformal p-value.
    threshold: the score above which a row is flagged.
    unit: (rows,) the row's nearest pattern; units are numbered consecutively over all members.
    box_rows: (rows,) how many of `counted_rows` training rows lie inside the pattern's box in every
        feature; 0 if rows were not counted.
    nearest: (rows, members) the nearest pattern of every member.
    value: (rows, features) the row in original units, NaN where missing.
    lower, upper: (rows, features) the pattern's ranges in original units, cut to the training
        range.
    binds_below, binds_above: (rows, features) whether that end lies inside the training range.
    peers: (rows, features) how many counted rows have a value in this feature and lie inside the
        box in all other features; peers_inside: how many of them lie inside it in this one too.
    side: (rows, features) −1 below the range, 0 inside, 1 above.
    distance: (rows, features) distance to the range in original units, 0 inside.
    expected: (rows, features) the value that the model expects, in original units.
    share: (rows, features) the feature's share of the score; a row's shares sum to 1 unless its
        score is 0.
    responsibility: (rows, features) ranks the features of a row, largest first.
    constant, whole: (features,) whether the feature had a single value in training; whether it had
        only whole numbers.
    counted_rows, n_rows: number of training rows that were counted, and of all training rows.
    held_out: whether the p-values are based on rows left out of training.
    """

    feature_names: tuple[str, ...]
    score: Array
    p_value: Array
    threshold: float
    unit: NDArray[np.intp]
    box_rows: NDArray[np.int64]
    nearest: NDArray[np.intp]
    value: Array
    lower: Array
    upper: Array
    binds_below: NDArray[np.bool_]
    binds_above: NDArray[np.bool_]
    peers: NDArray[np.int64]
    peers_inside: NDArray[np.int64]
    side: NDArray[np.int8]
    distance: Array
    expected: Array
    share: Array
    responsibility: Array
    constant: NDArray[np.bool_]
    whole: NDArray[np.bool_]
    counted_rows: int
    n_rows: int
    held_out: bool

    def __len__(self) -> int:
        return len(self.score)

    def __repr__(self) -> str:
        return f"LocalExplanation({counted(len(self), 'row')}, {self.flagged.sum()} flagged)"

    @property
    def flagged(self) -> NDArray[np.bool_]:
        """(rows,) whether the score is above the threshold."""
        return self.score > self.threshold

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """(rows, features) the features of each row, most responsible first."""
        return np.argsort(-self.responsibility, axis=1, kind="stable")

    def features_for(self, part: float = 0.8) -> NDArray[np.int64]:
        """(rows,) the smallest number of features whose shares sum to at least `part`."""
        if not 0 < part <= 1:
            raise InputError(f"part={part!r} must be above 0 and at most 1")
        cumulated = np.cumsum(-np.sort(-self.share, axis=1), axis=1)
        return 1 + (cumulated < part * cumulated[:, -1:] * (1 - 1e-12)).sum(axis=1)

    def to_frame(self, n_features: int | None = None) -> pandas.DataFrame:
        """One line per (row, feature), most responsible feature of each row first.

        Columns: row, feature, value, lower, upper, side, distance, share, unit.
        n_features: number of features per row, all by default.
        """
        import pandas

        order = self.order
        if n_features is not None:
            order = order[:, : check_count(n_features, "features")]
        each = np.arange(len(self))[:, None]
        missing = np.isnan(self.value)
        sides = np.array([*SIDES, "missing"], dtype=object)
        kind = np.where(missing, 3, self.side + 1)

        def ranked(array: NDArray[Any]) -> NDArray[Any]:
            return array[each, order].ravel()

        return pandas.DataFrame(
            {
                "row": np.repeat(np.arange(len(self)), order.shape[1]),
                "feature": np.array(self.feature_names, dtype=object)[order].ravel(),
                "value": ranked(self.value),
                "lower": ranked(self.lower),
                "upper": ranked(self.upper),
                "side": sides[ranked(kind)],
                "distance": ranked(self.distance),
                "share": ranked(self.share),
                "unit": np.repeat(self.unit, order.shape[1]),
            }
        )

    def text(self, row: int | None = None, n_reasons: int = 3) -> str:
        """The explanation as text, of one row (counted from 0) or of all rows.

        n_reasons: largest number of features to name.
        """
        if row is None:
            return "\n\n".join(self.text(i, n_reasons) for i in range(len(self)))
        row = check_index(row, len(self), "row", "explained")
        lines = [self.headline(row)]
        lines += [f"  {i}. {reason}" for i, reason in enumerate(self.reasons(row, n_reasons), 1)]
        return "\n".join(lines)

    def plot(self, row: int, n_features: int = 10) -> Figure:
        """Waterfall plot of a row's score, one bar per feature."""
        from ..show.plots import waterfall

        return waterfall(self, row, n_features)

    def headline(self, row: int) -> str:
        """A row's score and nearest pattern in two sentences."""
        from ..show.wording.reasons import headline

        return headline(self, check_index(row, len(self), "row", "explained"))

    def reasons(self, row: int, n_reasons: int = 3) -> list[str]:
        """One sentence for each of a row's most responsible features, at most `n_reasons`.

        Features with responsibility 0 are skipped.
        """
        row = check_index(row, len(self), "row", "explained")
        order = self.order[row][: check_count(n_reasons, "reasons")]
        return [self.reason(row, int(j)) for j in order if self.responsibility[row, j] > 0]

    def reason(self, row: int, feature: int) -> str:
        """One sentence about one feature of a row."""
        from ..show.wording.reasons import reason

        row = check_index(row, len(self), "row", "explained")
        return reason(
            self, row, check_index(feature, len(self.feature_names), "feature", "explained")
        )

    def brief(self, row: int, n_reasons: int = 3) -> str:
        """A row's most responsible features on one line: ``a = 9 above 2–5 (40 %); b = …``"""
        from ..show.wording.reasons import brief

        return brief(self, row, n_reasons)


def explain_rows(
    prepared: PreparedModel, x: NDArray[Any], threshold: float, n_jobs: int = 1
) -> LocalExplanation:
    """Explain rows in original units. x: (rows, features)"""
    x = np.array(x, dtype=np.float64)  # a copy, so that the caller may change the rows later
    model = prepared.model
    score, parts = scores_and_parts(prepared, x, n_jobs)
    found = attribute(prepared, x, n_jobs)
    matches = match_rows(prepared, x, n_jobs)
    lower, upper = _own_ranges(prepared, matches)
    side = np.sign(matches.excess).astype(np.int8)
    ends = readable(lower, upper, model.features, x)
    # The side comes from scaled float32 values; adjust the ends so that they agree with it.
    inside = (side == 0) & ~np.isnan(x) & ~np.isnan(ends.lower)
    low, up = ends.lower.copy(), ends.upper.copy()
    low[inside], up[inside] = np.fmin(low, x)[inside], np.fmax(up, x)[inside]
    low[side < 0], up[side > 0] = np.fmax(low, x)[side < 0], np.fmin(up, x)[side > 0]
    distance = np.where(side > 0, x - up, np.where(side < 0, low - x, 0.0))
    smallest, largest = training_range(model.features)
    total = parts.sum(axis=1, keepdims=True)
    n_units = model.config.n_units

    def own(what: Callable[[Member], NDArray[Any]]) -> NDArray[Any]:
        """A statistic of each row's own unit."""
        return np.stack([what(member) for member in model.members])[matches.member, matches.unit]

    return LocalExplanation(
        feature_names=model.feature_names,
        score=score,
        p_value=model.calibration.p_values(score),
        threshold=threshold,
        unit=matches.member * n_units + matches.unit,
        box_rows=own(lambda member: member.box_rows),
        nearest=matches.units + np.arange(len(model.members)) * n_units,
        value=x,
        lower=low,
        upper=up,
        binds_below=ends.binds_below,
        binds_above=ends.binds_above,
        peers=own(lambda member: member.peers),
        peers_inside=own(lambda member: member.peers_inside),
        side=side,
        distance=distance,
        expected=found.expected,
        share=parts / np.where(total > 0, total, 1.0),
        responsibility=found.responsibility,
        constant=smallest == largest,
        whole=model.features.whole,
        counted_rows=min(member.counted_rows for member in model.members),
        n_rows=model.training.n_rows,
        held_out=model.calibration.held_out,
    )


def _own_ranges(prepared: PreparedModel, matches: Matches) -> tuple[Array, Array]:
    """The box of each row's own unit, in original units. → (rows, features) each"""
    ends = prepared.derived(box_ends)
    lower, upper = (np.stack([end[side] for end in ends]) for side in (0, 1))
    return lower[matches.member, matches.unit], upper[matches.member, matches.unit]
