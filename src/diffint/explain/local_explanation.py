"""Why rows score as they do: nearest pattern, violated ranges, responsible features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.associations import Clashes
from ..core.checks import check_count, check_index
from ..core.errors import InputError
from ..core.formatting import counted
from ..core.immutable import Immutable
from ..core.kinds import value_text
from ..core.row_labels import index_for
from .alert_groups import AlertGroups, group_alerts
from .comparable_rows import ComparableRows
from .constraints import values_between
from .reasons import MOST_DOUBTED, Reason, find_reasons, reason_of

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
    threshold: the score above which a row is flagged; (rows,) of them if the model has segments.
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
    smallest, largest: (features,) of all training values.
    constant, whole: (features,) whether the feature had a single value in training; whether it had
        only whole numbers.
    missing_share: (features,) share of the training rows that miss the value.
    counted_rows, n_rows: number of training rows that were counted, and of all training rows.
    held_out: whether the p-values are based on rows left out of training.
    categories: the features that are categories, with their values; their numbers above are the
        positions of values in this list.
    clashes: for features whose values can be surprising, with which other feature they go together
        least, and how often.
    comparable: the training rows that values are compared with; None if the model keeps too few.
    new_texts: values of categories that are not in `categories`, and the dates of times beyond the
    training times, by row and feature, where known.
    starts: the features that are days of times, with the day from which they are counted.
    index: the labels of the rows, None if they have positions only.
    """

    feature_names: tuple[str, ...]
    score: Array
    p_value: Array
    threshold: float | Array
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
    smallest: Array
    largest: Array
    constant: NDArray[np.bool_]
    missing_share: Array
    whole: NDArray[np.bool_]
    counted_rows: int
    n_rows: int
    held_out: bool
    categories: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    clashes: Mapping[int, Clashes] = field(default_factory=dict)
    comparable: ComparableRows | None = None
    new_texts: Mapping[tuple[int, int], str] = field(default_factory=dict)
    starts: Mapping[int, str] = field(default_factory=dict)
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
        return np.asarray(self.score > self.threshold)

    def threshold_of(self, row: int) -> float:
        """The score above which this row is flagged."""
        row = check_index(row, len(self), "row", "explained")
        return float(np.broadcast_to(self.threshold, len(self))[row])

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """(rows, features) the features of each row, the most doubted first."""
        return np.argsort(-self.doubt, axis=1, kind="stable")

    def features_for(self, part: float = 0.8) -> NDArray[np.int64]:
        """(rows,) the smallest number of features whose shares sum to at least `part`."""
        if isinstance(part, bool) or not isinstance(part, Real) or not 0 < part <= 1:
            raise InputError(f"part={part!r} must be above 0 and at most 1")
        cumulated = np.cumsum(-np.sort(-self.share, axis=1), axis=1)
        return np.asarray(1 + (cumulated < part * cumulated[:, -1:] * (1 - 1e-12)).sum(axis=1))

    def to_frame(self, n_features: int | None = None) -> pandas.DataFrame:
        """One line per (row, feature), the most doubted feature of each row first.

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

    def reasons_frame(self, n_reasons: int = 3) -> pandas.DataFrame:
        """One line per reason, the most doubted value of each row first; at most `n_reasons` each.

        Columns: row (the position, counted from 0), rank (from 1), feature, kind, value, expected,
        lower, upper, conditions (as text), support (comparable training rows that were looked at),
        coverage (the share of new comparable rows expected inside the range, or with another
        value), share (of the score). Of a category, value and expected are texts. The index has the
        row's label, or again its position.
        """
        import pandas

        from ..show.wording.reasons import conditions_text

        count = check_count(n_reasons, "reasons")
        lines = []
        for row in range(len(self)):
            for rank, r in enumerate(self._reasons_of(row, count), 1):
                category = r.feature in self.categories
                value = self.value_text(row, r.feature) if category else r.value
                conditions = conditions_text(self, row, r)
                numbers: tuple[object, ...] = (r.expected, r.lower, r.upper)
                if category:
                    numbers = (self._category_text(r.feature, r.expected), np.nan, np.nan)
                start = row, rank, self.feature_names[r.feature], r.kind.value, value
                end = conditions, r.support, r.coverage, self.share[row, r.feature]
                lines.append((*start, *numbers, *end))
        columns = "row rank feature kind value expected lower upper conditions support coverage"
        frame = pandas.DataFrame(lines, columns=[*columns.split(), "share"])
        rows = frame["row"].to_numpy(dtype=np.intp)
        frame.index = index_for(rows, self.index, len(self))
        return frame

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
        row, feature = self._cell(row, feature)
        if feature not in self.categories:
            raise InputError(f"feature={feature} is no category, and has no texts")
        values, code = self.categories[feature], self.value[row, feature]
        if np.isnan(code):
            return None
        return self.new_texts.get((row, feature), value_text(values, code))

    def _category_text(self, feature: int, code: float) -> str | float:
        return value_text(self.categories[feature], code) if code >= 0 else np.nan

    def beyond_text(self, row: int, feature: int) -> str | None:
        """The date of a time beyond the training times; None for every other cell."""
        row, feature = self._cell(row, feature)
        return None if feature in self.categories else self.new_texts.get((row, feature))

    def text(self, row: int | None = None, n_reasons: int = 3) -> str:
        """The explanation as text, of one row or of all rows.

        row: its position, counted from 0, also if the rows have labels; the text has the label.
        n_reasons: largest number of features to name.
        """
        if row is None:
            return "\n\n".join(self.text(i, n_reasons) for i in range(len(self)))
        from ..show.wording.reasons import explanation_text

        return explanation_text(self, check_index(row, len(self), "row", "explained"), n_reasons)

    def plot(self, row: int, n_features: int = 10) -> Figure:
        """Waterfall plot of a row's score, one bar per feature."""
        from ..show.plots import waterfall

        return waterfall(self, row, n_features)

    def headline(self, row: int) -> str:
        """A row's score and nearest pattern in two sentences."""
        from ..show.wording.reasons import headline

        return headline(self, check_index(row, len(self), "row", "explained"))

    def reasons(self, row: int, n_reasons: int = 3) -> list[str]:
        """One sentence for each reason of a row, the most doubted value first, at most `n_reasons`.

        A value inside the range that comparable training rows keep is no reason. If a flagged row
        has none, one sentence says which values most of its score comes from, and which one is most
        in doubt. Whether a row has a reason does not depend on `n_reasons`.
        """
        from ..show.wording.reasons import sentences

        return sentences(self, check_index(row, len(self), "row", "explained"), n_reasons)

    def reasons_of(self, row: int, most: int = 3) -> tuple[Reason, ...]:
        """The reasons of a row as values, the most doubted first; none if nothing is odd."""
        row = check_index(row, len(self), "row", "explained")
        return self._reasons_of(row, check_count(most, "reasons"))

    def _reasons_of(self, row: int, most: int) -> tuple[Reason, ...]:
        count = max(most, MOST_DOUBTED)
        if (row, count) not in self._known_reasons:
            self._known_reasons[row, count] = find_reasons(self, row, count)
        return self._known_reasons[row, count][:most]

    @cached_property
    def scaled(self) -> Array:
        """(rows, features) the values as comparable rows are scaled."""
        return self.value if self.comparable is None else self.comparable.scale(self.value)

    @cached_property
    def _known_reasons(self) -> dict[tuple[int, int], tuple[Reason, ...]]:
        """By row and how many reasons were looked for: those found."""
        return {}

    def alert_groups(self) -> AlertGroups:
        """The flagged rows in groups that break the same thing in the same way."""
        return group_alerts(self)

    def doubted(self, row: int, most: int = 3) -> list[int]:
        """The features of a row with a reason, the most doubted first."""
        return [reason.feature for reason in self.reasons_of(row, most)]

    def reason_of(self, row: int, feature: int) -> Reason | None:
        """The reason to doubt one value, None if it is not odd."""
        return reason_of(self, *self._cell(row, feature))

    def reason(self, row: int, feature: int) -> str:
        """One sentence about one feature of a row."""
        from ..show.wording.reasons import reason

        return reason(self, *self._cell(row, feature))

    def _cell(self, row: int, feature: int) -> tuple[int, int]:
        """The numbers of a row and of a feature, checked."""
        row = check_index(row, len(self), "row", "explained")
        return row, check_index(feature, len(self.feature_names), "feature", "explained")

    def brief(self, row: int, n_reasons: int = 3) -> str:
        """A row's reasons on one line: ``a = 9, not 2–5 where b 3–4; …``"""
        from ..show.wording.reasons import brief

        return brief(self, row, n_reasons)
