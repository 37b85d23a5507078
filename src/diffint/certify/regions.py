"""Proven bounds on the score of every row in an axis-aligned region.

Intervals are propagated through the same steps as scoring: scaler, encoder, decoder, error.

- Scaling is monotone even in floating point, so the scaled ends are exact.
- log I of an interval unit is unimodal around its center: its extremes are at the ends of the
  range and at the point nearest to the center. A code is extreme when all other units are at their
  opposite extreme.
- A code sums to 1. The extremes of a linear function of it, with every component between bounds,
  are those of a fractional knapsack, found by sorting.
- The hidden layer is replaced by linear bounds: a ReLU whose input may have either sign lies
  between 0 and the chord over its range. Outputs are then bounded by linear functions of the code,
  and these by knapsacks. The errors of all features together are bounded by `decoder_image`.
- LayerNorm: subtracting the mean is linear and part of the weights. The deviation is bounded from
  the ranges of its terms, and along fixed directions. For a fixed code the linear bounds are linear
  in the inverse deviation, so both ends of its range are enough.

Intervals lose the information that the row to reconstruct and its code come from the same row;
splitting the region recovers part of it (`branch_and_bound`). `float_error` bounds the error of
float32.
"""

from __future__ import annotations

import itertools
import numbers
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.checks import check_real
from ..core.errors import InputError
from ..core.immutable import Immutable
from ..core.kinds import value_text
from ..core.model import QUANTILE_LEVELS
from ..score.prepared import PreparedModel
from ..tables.atomic_write import atomic_write
from . import document
from .branch_and_bound import Budget, Parts, Progress, Searched, search
from .region_ends import Categories, read_missing, read_region

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

DEFAULT_SPLITS = 32
AIMS = ("verdict", "bounds")
_TRIED_ROWS = 200  # stored rows, moved into the region, that are scored before it is split


@dataclass(frozen=True, eq=False)
class RegionCertificate(Immutable):
    """Bounds on the score of every row in a region.

    feature_names: names of the features.
    region_lower, region_upper: (features,) ends of the region in original units; of a category,
        positions of its values, the last of which is that of new values.
    lower, upper: no row in the region scores below `lower` or above `upper`.
    n_boxes: number of parts that the region was split into.
    threshold: rows that score higher are flagged; None if not given.
    categories: the values of the features that are categories, by position of the feature.
    missing: positions of the features that may be missing; all others have a value.
    flagged_row, passed_row: (features,) a row of the region that is flagged, and one that is not;
        None if none was found.
    open_lower, open_upper: (boxes, features) the parts that are not decided, NaN where the value is
        missing.
    parts_lower, parts_upper: (boxes, features) all parts, likewise.
    model: the SHA-256 of the model (`FittedModel.identity`); None if it is not known.
    false_positive_rate, confidence: those to which the threshold belongs.
    sample: (rows, features) stored calibration rows, for the picture.
    not_considered: what `predict` considers beside scores and the threshold, such as "segments".
    """

    feature_names: tuple[str, ...]
    region_lower: Array
    region_upper: Array
    lower: float
    upper: float
    n_boxes: int
    threshold: float | None = None
    categories: Categories = field(default_factory=dict)
    missing: tuple[int, ...] = ()
    flagged_row: Array | None = None
    passed_row: Array | None = None
    open_lower: Array = field(default_factory=lambda: np.empty((0, 0)))
    open_upper: Array = field(default_factory=lambda: np.empty((0, 0)))
    parts_lower: Array = field(default_factory=lambda: np.empty((0, 0)))
    parts_upper: Array = field(default_factory=lambda: np.empty((0, 0)))
    model: str | None = None
    false_positive_rate: float | None = None
    confidence: float | None = None
    sample: Array = field(default_factory=lambda: np.empty((0, 0)))
    not_considered: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"RegionCertificate(scores from {self.lower:.4g} to {self.upper:.4g})"

    def _repr_html_(self) -> str:
        from ..show.notebook import html_text

        return html_text(self.text())

    def certainly_flagged(self, threshold: float | None = None) -> bool:
        """Whether every row in the region scores above the threshold."""
        return self.lower > self._threshold(threshold)

    def certainly_passed(self, threshold: float | None = None) -> bool:
        """Whether no row in the region scores above the threshold."""
        return self.upper <= self._threshold(threshold)

    @property
    def verdict(self) -> str:
        """``"all flagged"``, ``"none flagged"``, ``"mixed"`` or ``"undecided"``

        "mixed": there is a row that is flagged and one that is not.
        """
        if self.certainly_flagged():
            return "all flagged"
        if self.certainly_passed():
            return "none flagged"
        both = self.flagged_row is not None and self.passed_row is not None
        return "mixed" if both else "undecided"

    @property
    def rows(self) -> pandas.DataFrame:
        """Rows of the region on both sides of the threshold, as far as they were found.

        One line each, "flagged" and "passed"; a category has its value.
        """
        found = {"flagged": self.flagged_row, "passed": self.passed_row}
        return self._frame({name: row for name, row in found.items() if row is not None})

    @property
    def undecided(self) -> pandas.DataFrame:
        """The parts that are not decided: two lines each, with their lower and upper ends."""
        lower, upper, categories = self.open_lower.copy(), self.open_upper.copy(), self.categories
        for j in categories:  # parts may end between two positions, where no row is
            lower[:, j], upper[:, j] = np.ceil(lower[:, j]), np.floor(upper[:, j])
        there = np.flatnonzero(~(lower > upper).any(axis=1)).tolist()
        ends = {"lower": lower, "upper": upper}
        return self._frame({(i, w): rows[i] for i in there for w, rows in ends.items()})

    def _frame(self, lines: Mapping[Any, Array]) -> pandas.DataFrame:
        import pandas

        frame = pandas.DataFrame(
            list(lines.values()), list(lines), list(self.feature_names), dtype=float
        )
        for j, values in self.categories.items():
            name = self.feature_names[j]
            if values:
                frame[name] = [value_text(values, place) for place in frame[name]]
        return frame

    def text(self) -> str:
        """The region, its bounds and the verdict as text."""
        from ..show.wording.certificates import region_text

        return region_text(self)

    def to_dict(self) -> dict[str, Any]:
        """All that is claimed, and the parts for which it was proven, of values that JSON has."""
        return document.to_dict(self)

    def to_json(self) -> str:
        """The certificate as a JSON document, which `DiffInt.verify` and the command check."""
        return document.to_json(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the JSON document to a file, completely or not at all."""
        atomic_write(path, self.to_json().encode("ascii"))

    def plot(self, features: str | int | Sequence[str | int] | None = None) -> Figure:
        """The region, its parts and stored calibration rows, in one or two features.

        features: by name or number; by default those with an end, of which there may be two.
        """
        from ..show.plots import region_plot

        return region_plot(self, features)

    def _threshold(self, threshold: float | None) -> float:
        threshold = self.threshold if threshold is None else threshold
        if threshold is None:
            raise InputError("this region has no threshold; pass threshold=")
        return threshold


def certify_region(
    prepared: PreparedModel,
    lower: Any,
    upper: Any,
    splits: int = DEFAULT_SPLITS,
    *,
    seconds: float | None = None,
    missing: Sequence[str] = (),
    aim: str = "verdict",
    threshold: float | None = None,
    progress: Progress | None = None,
) -> RegionCertificate:
    """Bounds on the score of every row in a region.

    lower, upper: ends in original units: one per feature, or a mapping (or labelled series) from
    feature names to ends, all others being unbounded; None: unbounded. An end of a category is one
    of its values.
    splits, seconds: how many times a part may be halved to tighten the bounds, and how long that
    may take.
    aim: "verdict" ends as soon as the region is decided; "bounds" tightens both bounds.
    missing: names of features that may also be missing.
    """
    if isinstance(splits, bool) or not isinstance(splits, numbers.Integral) or splits < 0:
        raise InputError(f"splits={splits!r} must be a whole number of at least 0")
    if seconds is not None:
        seconds = check_real("seconds", seconds, above=0.0)
    if aim not in AIMS:
        raise InputError(f"aim={aim!r} must be one of {', '.join(map(repr, AIMS))}")
    names, categories = prepared.model.feature_names, prepared.model.categories
    ends = read_region(names, prepared.model.kinds, lower, upper)
    absent = read_missing(names, categories, missing)
    start = Parts.bounded(prepared, *(_with_missing(end, absent) for end in ends))
    typical = prepared.model.features.quantiles[:, QUANTILE_LEVELS.index(0.5)]
    searched = search(
        prepared,
        start,
        _rows_inside(prepared, *ends),
        np.where(np.isnan(typical), 0.0, typical),
        threshold if aim == "verdict" else None,
        Budget(int(splits), seconds),
        progress,
    )
    return _certificate(prepared, ends, absent, threshold, searched)


def _certificate(
    prepared: PreparedModel,
    ends: tuple[Array, Array],
    absent: tuple[int, ...],
    threshold: float | None,
    searched: Searched,
) -> RegionCertificate:
    parts, rows, scores, _ = searched
    low, high = parts.score
    found: dict[str, Any] = {"flagged_row": None, "passed_row": None}
    is_open = np.zeros(len(parts), dtype=bool)
    if threshold is not None:
        is_open = (low <= threshold) & (high > threshold)
        if len(rows) and scores.max() > threshold:
            found["flagged_row"] = rows[scores.argmax()]
        if len(rows) and scores.min() <= threshold:
            found["passed_row"] = rows[scores.argmin()]
    return RegionCertificate(
        feature_names=prepared.model.feature_names,
        region_lower=ends[0],
        region_upper=ends[1],
        lower=max(float(low.min()), 0.0),
        upper=float(high.max()),
        n_boxes=len(parts),
        threshold=threshold,
        categories=prepared.model.categories,
        missing=absent,
        open_lower=parts.lower[is_open],
        open_upper=parts.upper[is_open],
        parts_lower=parts.lower,
        parts_upper=parts.upper,
        model=prepared.model.identity,
        sample=prepared.model.calibration.sample,
        not_considered=document.not_considered(prepared.model),
        **found,
    )


def _with_missing(end: Array, absent: tuple[int, ...]) -> Array:
    """The end of each part: one for every combination of missing features. → (parts, features)"""
    ends = []
    for n in range(len(absent) + 1):
        for chosen in itertools.combinations(absent, n):
            ends.append(end.copy())
            ends[-1][list(chosen)] = np.nan
    return np.array(ends)


def _rows_inside(prepared: PreparedModel, lower: Array, upper: Array) -> Array:
    """Stored rows, and mixtures of them, with each value moved to the nearest one in the region.

    Stored rows are as normal as rows of the region can be, mixtures hardly ever. → (rows, features)
    """
    stored = prepared.model.calibration.sample
    rows = stored[~np.isnan(stored).any(axis=1)][:_TRIED_ROWS].astype(np.float64)
    mixed = np.random.default_rng(0).permuted(rows, axis=0)
    return np.asarray(np.clip(np.concatenate([rows, mixed]), lower, upper))
