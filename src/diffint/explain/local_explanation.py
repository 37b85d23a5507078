"""Why rows score as they do: nearest pattern, violated ranges, responsible features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.checks import check_count, check_index
from ..core.constants import COMMONLY_MISSING
from ..core.errors import InputError
from ..core.formatting import counted
from ..core.immutable import Immutable
from ..core.kinds import value_text
from ..core.model import FeatureSummary, FittedModel
from ..core.row_labels import index_for
from ..engine.threads import run_blocks
from ..score.nearest_pattern import Matches
from ..score.prepared import PreparedModel
from .constraints import (
    BoxEnds,
    Ends,
    box_ends,
    readable,
    readable_for,
    training_range,
    values_between,
)
from .doubt import doubts
from .reasons import ComparableRows, Reason

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

SIDES = ("below", "inside", "above")
_BLOCK_ROWS = 512
_MORE_TRIED = 3  # features that are looked at beyond the number of reasons
_MOST_DOUBTED = 3  # features that cannot tell which rows are comparable


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
    responsibility: (rows, features) how far the value is from what the units expect that match most
        of the row.
    doubt: (rows, features) ranks the features of a row, the one most likely wrong first.
    constant, whole: (features,) whether the feature had a single value in training; whether it had
        only whole numbers.
    missing_share: (features,) share of the training rows that miss the value.
    counted_rows, n_rows: number of training rows that were counted, and of all training rows.
    held_out: whether the p-values are based on rows left out of training.
    categories: the features that are categories, with their values; their numbers above are the
        positions of values in this list.
    clashes: for features whose values can be surprising a (rows, 5) array: the column with which a
        row's value goes together least (−1 if there is none), the training rows alike in it, those
        of them with the same value (or a similar one if it is a number), and of all training rows
        those with this value, and how many have any.
    comparable: the training rows that values are compared with; None if the model keeps too few.
    new_texts: values of categories that are not in `categories`, and the days of times beyond the
    training times, by row and feature, where known.
    index: the labels of the rows, None if they have positions only.
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
    doubt: Array
    constant: NDArray[np.bool_]
    missing_share: Array
    whole: NDArray[np.bool_]
    counted_rows: int
    n_rows: int
    held_out: bool
    categories: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    clashes: Mapping[int, NDArray[np.int64]] = field(default_factory=dict)
    comparable: ComparableRows | None = None
    new_texts: Mapping[tuple[int, int], str] = field(default_factory=dict)
    index: pandas.Index | None = None

    def __len__(self) -> int:
        return len(self.score)

    def __repr__(self) -> str:
        return f"LocalExplanation({counted(len(self), 'row')}, {self.flagged.sum()} flagged)"

    def _repr_html_(self) -> str:
        from ..show.notebook import explanation_html

        return explanation_html(self)

    @property
    def flagged(self) -> NDArray[np.bool_]:
        """(rows,) whether the score is above the threshold."""
        return self.score > self.threshold

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """(rows, features) the features of each row, the most doubted first."""
        return np.argsort(-self.doubt, axis=1, kind="stable")

    def features_for(self, part: float = 0.8) -> NDArray[np.int64]:
        """(rows,) the smallest number of features whose shares sum to at least `part`."""
        if not 0 < part <= 1:
            raise InputError(f"part={part!r} must be above 0 and at most 1")
        cumulated = np.cumsum(-np.sort(-self.share, axis=1), axis=1)
        return np.asarray(1 + (cumulated < part * cumulated[:, -1:] * (1 - 1e-12)).sum(axis=1))

    def to_frame(self, n_features: int | None = None) -> pandas.DataFrame:
        """One line per (row, feature), most responsible feature of each row first.

        Columns: row (the position, counted from 0), feature, value, lower, upper, side, distance,
        share, unit. Categories have no lower, upper and distance, but values, a list of those in
        the pattern's range, and are inside or outside of it. The index has the row's label for each
        of its lines, or again its position if the explained table had no index.
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

        row = np.repeat(np.arange(len(self)), order.shape[1])
        frame = pandas.DataFrame(
            {
                "row": row,
                "feature": np.array(self.feature_names, dtype=object)[order].ravel(),
                "value": ranked(self.value),
                "lower": ranked(self.lower),
                "upper": ranked(self.upper),
                "side": sides[ranked(kind)],
                "distance": ranked(self.distance),
                "share": ranked(self.share),
                "unit": np.repeat(self.unit, order.shape[1]),
            },
            index=index_for(row, self.index, len(self)),
        )
        return self._with_texts(frame, order) if self.categories else frame

    def _with_texts(self, frame: pandas.DataFrame, order: NDArray[np.intp]) -> pandas.DataFrame:
        """The frame of `to_frame` with the values of categories. order: (rows, n) its features"""
        value = frame["value"].to_numpy(dtype=object)
        values: list[list[str] | None] = [None] * len(frame)
        side = frame["side"].to_numpy(dtype=object)
        is_category = np.isin(order.ravel(), list(self.categories))
        for place in np.flatnonzero(is_category).tolist():
            row, j = int(frame["row"].iloc[place]), int(order.ravel()[place])
            value[place] = self.value_text(row, j)
            ends = self.lower[row, j], self.upper[row, j]
            values[place] = values_between(self.categories[j], *ends)
            side[place] = "outside" if side[place] in ("below", "above") else side[place]
        numbers = {name: frame[name].mask(is_category) for name in ("lower", "upper", "distance")}
        texts: dict[str, Any] = {"value": value, "side": side, "values": values}
        return frame.assign(**numbers, **texts)

    def value_text(self, row: int, feature: int) -> str | None:
        """The value of a category in a row; None if it is missing."""
        values, code = self.categories[feature], self.value[row, feature]
        if np.isnan(code):
            return None
        return self.new_texts.get((row, feature), value_text(values, code))

    def text(self, row: int | None = None, n_reasons: int = 3) -> str:
        """The explanation as text, of one row or of all rows.

        row: its position, counted from 0, also if the rows have labels; the text has the label.
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
        """One sentence for each of a row's most doubted features, at most `n_reasons`.

        Numbers inside the range that comparable training rows keep are skipped, unless nothing else
        is in doubt.
        """
        row = check_index(row, len(self), "row", "explained")
        return [self.reason(row, j) for j in self.doubted(row, check_count(n_reasons, "reasons"))]

    def doubted(self, row: int, most: int = 3) -> list[int]:
        """The features of a row with a reason, the most doubted first."""
        order = [int(j) for j in self.order[row] if self.doubt[row, j] > 0]
        found = []
        for j in order[: most + _MORE_TRIED]:
            number = not np.isnan(self.value[row, j]) and j not in self.categories
            if not number or self.comparable is None or self.conditional(row, j) is not None:
                found.append(j)
            if len(found) == most:
                break
        return found or order[:1]

    def conditional(self, row: int, feature: int) -> Reason | None:
        """The range that comparable training rows keep, if a number is outside of it."""
        if self.comparable is None or self.constant[feature]:
            return None
        n_doubted = min(_MOST_DOUBTED, len(self.feature_names) // 2)
        doubted = [int(j) for j in self.order[row][:n_doubted]]
        return self.comparable.reason(self.value[row], feature, doubted)

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


@dataclass(frozen=True)
class _Boxes:
    """What explanations need of all units' boxes, numbered through all members.

    ends: (units, features) in original units; readable: the same for people; rows, peers,
    peers_inside: as in `Member`.
    """

    ends: BoxEnds
    readable: Ends
    rows: NDArray[np.int64]
    peers: NDArray[np.int64]
    peers_inside: NDArray[np.int64]

    @classmethod
    def of(cls, model: FittedModel) -> _Boxes:
        """The boxes of a model."""
        each = [box_ends(model.config, member) for member in model.members]
        ends = BoxEnds(*map(np.concatenate, zip(*each, strict=True)))
        return cls(
            ends,
            readable(ends, model.features),
            np.concatenate([member.box_rows for member in model.members]),
            np.concatenate([member.peers for member in model.members]),
            np.concatenate([member.peers_inside for member in model.members]),
        )

    def ends_for(self, unit: NDArray[np.intp], value: Array, features: FeatureSummary) -> Ends:
        """The ends of each row's own unit. unit: (rows,); value: (rows, features)"""
        ends = self.readable
        own = Ends(
            ends.lower[unit], ends.upper[unit], ends.binds_below[unit], ends.binds_above[unit]
        )
        return readable_for(value, own, self.ends, unit, features)


def _move_beside(
    ends: Array,
    value: Array,
    where: NDArray[np.bool_],
    exact: Array,
    unit: NDArray[np.intp],
    towards: float,
) -> None:
    """Move rounded ends that a value does not lie beyond, though it lies beyond the exact ones.

    ends, value, where: (rows, features); exact: (units, features); unit: (rows,); towards: the
    infinity on the other side of the end.
    """
    row, j = np.nonzero(where)
    nearest = np.nextafter(value[row, j], towards)
    closer = np.fmax if towards > 0 else np.fmin
    ends[row, j] = closer(exact[unit[row], j], nearest)


def _clashes(
    model: FittedModel, x: Array, member: NDArray[np.intp]
) -> dict[int, NDArray[np.int64]]:
    """`LocalExplanation.clashes`, counted by the member whose pattern is reported."""
    each = [m.associations for m in model.members]
    found = {int(j): np.zeros((len(x), 5), dtype=np.int64) for j in each[0].columns}
    for m, associations in enumerate(each):
        rows = np.flatnonzero(member == m)
        for i, j in enumerate(associations.columns):
            found[j][rows] = associations.clashes(x[rows], i)
    return found


def explain_rows(
    prepared: PreparedModel,
    x: NDArray[Any],
    threshold: float,
    n_jobs: int = 1,
    index: pandas.Index | None = None,
    new_texts: Mapping[tuple[int, int], str] | None = None,
) -> LocalExplanation:
    """Explain rows in original units.

    x: (rows, features); index: their labels; new_texts: as in `LocalExplanation`
    """
    x = np.array(x, dtype=np.float64)  # a copy, so that the caller may change the rows later
    model, packed = prepared.model, prepared.packed
    score, parts = packed.parts(x, n_jobs)
    found = packed.explained(x, n_jobs)
    matches = Matches.of(found)
    boxes = prepared.once(_Boxes.of)
    n_units = model.config.n_units
    smallest, largest = training_range(model.features)
    varies = smallest < largest
    side = np.empty(x.shape, dtype=np.int8)
    low, up, distance, share = np.empty((4, *x.shape))
    binds_below, binds_above = np.empty((2, *x.shape), dtype=bool)

    def explain_block(start: int) -> None:
        """Cell by cell, a few rows at a time, so that all arrays stay in cache."""
        rows = slice(start, start + _BLOCK_ROWS)
        unit = matches.member[rows] * n_units + matches.unit[rows]
        value, sides = x[rows], np.sign(matches.excess[rows]).astype(np.int8)
        ends = boxes.ends_for(unit, value, model.features)
        lower, upper = ends.lower, ends.upper
        # The side comes from scaled float32 values; adjust the ends so that they agree with it.
        inside = (sides == 0) & ~np.isnan(value) & ~np.isnan(lower)
        np.copyto(lower, np.fmin(lower, value), where=inside)
        np.copyto(upper, np.fmax(upper, value), where=inside)
        below, above = (sides < 0) & (value >= lower), (sides > 0) & (value <= upper)
        _move_beside(lower, value, below & varies, boxes.ends.lower, unit, np.inf)
        _move_beside(upper, value, above & varies, boxes.ends.upper, unit, -np.inf)
        with np.errstate(over="ignore"):  # a value may be the largest float
            outside = np.where(sides > 0, value - upper, np.where(sides < 0, lower - value, 0.0))
        outside = np.minimum(outside, np.finfo(float).max)
        total = parts[rows].sum(axis=1, keepdims=True)
        side[rows], low[rows], up[rows], distance[rows] = sides, lower, upper, outside
        binds_below[rows], binds_above[rows] = ends.binds_below, ends.binds_above
        share[rows] = parts[rows] / np.where(total > 0, total, 1.0)

    run_blocks(explain_block, range(0, len(x), _BLOCK_ROWS), n_jobs)
    missing_share = model.features.missing_share
    # A missing cell is responsible for what it adds, unless training rows often miss the value.
    surprising = np.isnan(x) & (missing_share < COMMONLY_MISSING)
    n_seen = max(int((missing_share < 1.0).sum()), 1)
    surprising[:, list(model.categories)] = True  # so is a category for its surprise
    responsibility = np.where(surprising, n_seen * parts, found.responsibility)
    if model.categories:  # beside them numbers can be surprising too
        surprise = np.mean([member.associations.parts(x) for member in model.members], axis=0)
        responsibility += np.where(surprising, 0.0, surprise)
    unit = matches.member * n_units + matches.unit
    return LocalExplanation(
        feature_names=model.feature_names,
        score=score,
        p_value=model.calibration.p_values(score),
        threshold=threshold,
        unit=unit,
        box_rows=boxes.rows[unit],
        nearest=matches.units + np.arange(len(model.members)) * n_units,
        value=x,
        lower=low,
        upper=up,
        binds_below=binds_below,
        binds_above=binds_above,
        peers=boxes.peers[unit],
        peers_inside=boxes.peers_inside[unit],
        side=side,
        distance=distance,
        expected=found.expected,
        share=share,
        responsibility=responsibility,
        doubt=doubts(prepared, x, responsibility, share, n_jobs),
        constant=smallest == largest,
        missing_share=missing_share,
        whole=model.features.whole,
        counted_rows=min(member.counted_rows for member in model.members),
        n_rows=model.training.n_rows,
        held_out=model.calibration.held_out,
        categories=model.categories,
        clashes=_clashes(model, x, matches.member),
        comparable=prepared.once(ComparableRows.of),
        new_texts=dict(new_texts or {}),
        index=index,
    )
