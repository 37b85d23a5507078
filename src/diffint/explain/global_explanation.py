"""What the model learned: the importance of features and the ranges of its units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.checks import check_count, check_index
from ..core.immutable import Immutable
from ..core.kinds import ONLY_NUMBERS, Kinds
from ..core.model import FittedModel, joint_depth
from .constraints import box_ends, readable, training_range, values_between
from .importance import feature_importance, importance_factors, label_free_importance

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class GlobalExplanation(Immutable):
    """What the model learned. Computed from the fitted model alone, without labels or rows.

    A constraint is the range of one feature in one unit. Units are numbered consecutively over all
    members. Arrays have shape (units, features) unless stated; values are in original units.

    feature_names: names of the features.
    feature_importance: (features,) importance of each feature, in [0, 1].
    importance: support · tightness · stability of every constraint.
    support: share of the training rows that satisfy the constraint; with ``importance="paper"``
        the running mean of their memberships during training.
    mean_membership: mean membership of the training rows in the interval (soft support).
    tightness: share of the training range that the constraint excludes; with
        ``importance="paper"``, 1 − half-width / range.
    stability: agreement of the members on the bounds.
    lower, upper: the range, cut to the training range.
    binds_below, binds_above: whether the end lies inside the training range.
    coverage: share of the measured rows that satisfy the constraint.
    joint_coverage: (units, n) share of rows that satisfy a unit's 1, 2, …, n most important
        constraints together.
    is_pattern: (units,) whether the unit is a pattern; rows are matched to patterns only.
    box_rows: (units,) how many of `counted_rows` training rows lie inside the unit's box in every
        feature; 0 if rows were not counted.
    counted_rows: number of training rows in that count.
    coverage_counts: number of rows with a value that the coverage was measured on.
    constant: (features,) whether the feature had a single value in training; such features get no
        constraint.
    held_out: whether the coverage was measured on rows left out of training.
    n_rows, n_members: number of training rows and of members.
    kinds: the columns that are not numbers; the ends of the range of a category are positions in
        the list of its values.
    """

    feature_names: tuple[str, ...]
    feature_importance: Array
    importance: Array
    support: Array
    mean_membership: Array
    tightness: Array
    stability: Array
    lower: Array
    upper: Array
    binds_below: NDArray[np.bool_]
    binds_above: NDArray[np.bool_]
    coverage: Array
    joint_coverage: Array
    is_pattern: NDArray[np.bool_]
    box_rows: NDArray[np.int64]
    counted_rows: int
    coverage_counts: NDArray[np.int64]
    constant: NDArray[np.bool_]
    held_out: bool
    n_rows: int
    n_members: int
    kinds: Kinds = ONLY_NUMBERS

    @property
    def categories(self) -> Mapping[int, tuple[str, ...]]:
        """The features that are categories, with their values."""
        return self.kinds.categories

    def __repr__(self) -> str:
        return (
            f"GlobalExplanation({len(self.feature_names)} features, {int(self.is_pattern.sum())} "
            f"patterns in {self.n_members} members)"
        )

    def _repr_html_(self) -> str:
        from ..show.notebook import learned_html

        return learned_html(self)

    @property
    def feature_order(self) -> NDArray[np.intp]:
        """(features,) features, most important first."""
        return np.argsort(-self.feature_importance, kind="stable")

    def top_units(self, n_units: int = 3, n_constraints: int = 3) -> list[int]:
        """The units to show: patterns with the largest sum over their most important constraints.

        A pattern whose top features are those of an earlier one is used only if there are too few
        others.
        """
        n_units = check_count(n_units, "units")
        n_constraints = check_count(n_constraints, "constraints")
        ordered = -np.sort(-self.importance, axis=1)
        strength = np.where(self.is_pattern, ordered[:, :n_constraints].sum(axis=1), -1.0)
        shown: list[int] = []
        repeating: list[int] = []
        subjects: set[frozenset[int]] = set()
        for unit in np.argsort(-strength, kind="stable")[: int((strength > 0).sum())].tolist():
            subject = frozenset(self.constraint_order(unit)[:n_constraints].tolist())
            (repeating if subject in subjects else shown).append(unit)
            subjects.add(subject)
            if len(shown) == n_units:
                break
        return (shown + repeating)[:n_units]

    def constraint_order(self, unit: int) -> NDArray[np.intp]:
        """(features,) the unit's features, most important constraint first."""
        return np.argsort(-self.importance[unit], kind="stable")

    def to_frame(self, n_units: int = 3, n_constraints: int = 3) -> pandas.DataFrame:
        """The top constraints of the top units, one row each, most important first.

        Columns: unit, feature, lower, upper, binds_below, binds_above, importance, support,
        tightness, stability, coverage (of this constraint), joint_coverage (together with the
        unit's constraints above it in the frame; NaN beyond the tenth), box_rows; with categories
        also values, a list of those in the range, instead of lower and upper.
        """
        import pandas

        units: list[int] = []
        features: list[int] = []
        places: list[int] = []
        for unit in self.top_units(n_units, n_constraints):
            order = self.constraint_order(unit)[:n_constraints]
            units += [unit] * len(order)
            features += order.tolist()
            places += range(len(order))
        k, j, place = (np.array(index, dtype=np.intp) for index in (units, features, places))
        depth = self.joint_coverage.shape[1]
        together = self.joint_coverage[k, np.minimum(place, depth - 1)]
        frame = pandas.DataFrame(
            {
                "unit": k,
                "feature": np.array(self.feature_names, dtype=object)[j],
                **{
                    name: getattr(self, name)[k, j]
                    for name in (
                        *("lower", "upper", "binds_below", "binds_above", "importance"),
                        *("support", "tightness", "stability", "coverage"),
                    )
                },
                "joint_coverage": np.where(place < depth, together, np.nan),
                "box_rows": self.box_rows[k],
            }
        )
        if not self.categories:
            return frame
        is_category = np.isin(j, list(self.categories))
        values: Any = [
            values_between(self.categories[f], self.lower[u, f], self.upper[u, f])
            if known
            else None
            for u, f, known in zip(units, features, is_category, strict=True)
        ]
        numbers = {name: frame[name].mask(is_category) for name in ("lower", "upper")}
        return frame.assign(**numbers, values=values)

    def features_to_frame(self) -> pandas.DataFrame:
        """Importance of every feature, most important first. Columns: feature, importance."""
        import pandas

        order = self.feature_order
        return pandas.DataFrame(
            {
                "feature": np.array(self.feature_names, dtype=object)[order],
                "importance": self.feature_importance[order],
            }
        )

    def text(self, n_features: int = 5, n_units: int = 3, n_constraints: int = 3) -> str:
        """The most important features and constraints as text, at most the given numbers."""
        from ..show.wording.learned import model_text

        n_features = check_count(n_features, "features")
        return model_text(self, n_features, n_units, n_constraints)

    def unit_text(self, unit: int, n_constraints: int = 3) -> list[str]:
        """A unit's most important constraints, one line each, without constant features."""
        from ..show.wording.learned import unit_lines

        unit = check_index(unit, len(self.importance), "unit", "in the model")
        return unit_lines(self, unit, check_count(n_constraints, "constraints"))

    def rows_inside(self, unit: int) -> str:
        """How many training rows lie inside all ranges of a unit; empty if not counted."""
        from ..show.wording.ranges import rows_inside

        return rows_inside(int(self.box_rows[unit]), self.counted_rows, self.n_rows)

    def constraint_text(self, unit: int, feature: int) -> str:
        """One constraint as text."""
        from ..show.wording.learned import constraint_text

        unit = check_index(unit, len(self.importance), "unit", "in the model")
        j = check_index(feature, len(self.feature_names), "feature", "in the model")
        return constraint_text(self, unit, j)

    def plot(self) -> Figure:
        """Heat map of the importance of features and of the top units' constraints."""
        from ..show.plots import importance_heat_map

        return importance_heat_map(self)


def explain_model(model: FittedModel) -> GlobalExplanation:
    """Explain a fitted model from its stored statistics."""
    members = model.members
    ends = [readable(box_ends(model.config, m), model.features) for m in members]

    def stacked(arrays: list[Any]) -> NDArray[Any]:
        return np.concatenate(arrays)

    factors = [importance_factors(model.config, m) for m in members]

    depth, n_units = joint_depth(model.n_features), model.config.n_units
    smallest, largest = training_range(model.features)
    return GlobalExplanation(
        feature_names=model.feature_names,
        feature_importance=feature_importance(model),
        importance=stacked([label_free_importance(*f) for f in factors]),
        support=stacked([f.support for f in factors]).astype(np.float64),
        mean_membership=stacked([m.mean_membership for m in members]).astype(np.float64),
        tightness=stacked([f.tightness for f in factors]),
        stability=stacked([m.stability for m in members]).astype(np.float64),
        lower=stacked([e.lower for e in ends]),
        upper=stacked([e.upper for e in ends]),
        binds_below=stacked([e.binds_below for e in ends]),
        binds_above=stacked([e.binds_above for e in ends]),
        coverage=stacked([m.coverage for m in members]).astype(np.float64),
        joint_coverage=stacked([m.joint_coverage[:, :depth] for m in members]).astype(np.float64),
        is_pattern=stacked([m.is_pattern for m in members]),
        box_rows=stacked([m.box_rows for m in members]),
        counted_rows=min(m.counted_rows for m in members),
        coverage_counts=np.repeat([m.coverage_counts for m in members], n_units, axis=0),
        constant=smallest == largest,
        held_out=all(m.coverage_held_out for m in members),
        n_rows=model.training.n_rows,
        n_members=len(members),
        kinds=model.kinds,
    )
