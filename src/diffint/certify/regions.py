"""Proven bounds on the score of every row in an axis-aligned region.

Intervals are propagated through the same steps as scoring: scaler, encoder, decoder, error. Every
step is inclusion monotone: the bounds of a smaller region lie within those of a larger one.

- Scaling is monotone even in floating point, so the scaled ends are exact.
- log I of an interval unit is unimodal around its center: its extremes are at the ends of the
  range and at the point nearest to the center. A code is extreme when all other units are at their
  opposite extreme.
- A code sums to 1. The extremes of a linear function of it, with every component between bounds,
  are those of a fractional knapsack, found by sorting.
- The hidden layer is replaced by linear bounds: a ReLU whose input may have either sign lies
  between 0 and the chord over its range. Outputs are then bounded by linear functions of the code,
  and these by knapsacks.
- LayerNorm: subtracting the mean is linear and part of the weights. The deviation is bounded from
  the ranges of its terms, and along fixed directions. For a fixed code the linear bounds are linear
  in the inverse deviation, so both ends of its range are enough.

Intervals lose the information that the row to reconstruct and its code come from the same row;
splitting the region recovers part of it. `float_error` bounds the error of float32.
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InputError, InputTypeError
from ..core.formatting import exact_number
from ..core.immutable import Immutable
from ..core.scaling import Range
from ..score.prepared import PreparedMembers, PreparedModel
from ..score.scoring import anomaly_scores
from ..tables.frames import default_names
from .bound_propagation import IntervalNetwork

Array = NDArray[np.float64]
Categories = Mapping[int, tuple[str, ...]]

_BATCH_PARTS = 16  # parts split at a time
_BATCH_CELLS = 1_000_000  # largest size of a (boxes, functions of the code, units) array
_ALONE = 1e-9  # a row's score may differ by this between being scored alone and with others


@dataclass(frozen=True, eq=False)
class RegionCertificate(Immutable):
    """Bounds on the score of every complete row in a region.

    feature_names: names of the features.
    region_lower, region_upper: (features,) ends of the region in original units; of a category, the
        positions of its values.
    lower, upper: no row in the region scores below `lower` or above `upper`.
    n_boxes: number of parts that the region was split into.
    threshold: rows that score higher are flagged; None if not given.
    categories: the values of the features that are categories, by position of the feature.
    """

    feature_names: tuple[str, ...]
    region_lower: Array
    region_upper: Array
    lower: float
    upper: float
    n_boxes: int
    threshold: float | None = None
    categories: Categories = field(default_factory=dict)

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
        """``"all flagged"``, ``"none flagged"`` or ``"undecided"``"""
        if self.certainly_flagged():
            return "all flagged"
        return "none flagged" if self.certainly_passed() else "undecided"

    def text(self) -> str:
        """The region, its bounds and the verdict as text."""
        from ..show.wording.certificates import region_text

        return region_text(self)

    def _threshold(self, threshold: float | None) -> float:
        threshold = self.threshold if threshold is None else threshold
        if threshold is None:
            raise InputError("this region has no threshold; pass threshold=")
        return threshold


def certify_region(
    prepared: PreparedModel,
    lower: Any,
    upper: Any,
    splits: int = 0,
    *,
    threshold: float | None = None,
) -> RegionCertificate:
    """Bounds on the score of every complete row in a region.

    lower, upper: ends in original units: one per feature, or a mapping (or labelled series) from
    feature names to ends, all others being unbounded; None: unbounded. An end of a category is one
    of its values.
    splits: how many times a part may be halved to tighten the bounds.
    """
    if isinstance(splits, bool) or not isinstance(splits, numbers.Integral) or splits < 0:
        raise InputError(f"splits={splits!r} must be a whole number of at least 0")
    names, categories = prepared.model.feature_names, prepared.model.categories
    region = _read_region(names, categories, lower, upper)
    parts = _Parts.bounded(prepared, region[0][None], region[1][None])
    left = int(splits)
    while left > 0:
        chosen = parts.loosest(min(_BATCH_PARTS, left))
        if not len(chosen):
            break
        left -= len(chosen)
        parts = parts.with_split(chosen, prepared)
    return RegionCertificate(
        feature_names=names,
        region_lower=region[0],
        region_upper=region[1],
        lower=max(float(parts.score.low.min()), 0.0),
        upper=float(parts.score.high.max()),
        n_boxes=len(parts),
        threshold=threshold,
        categories=categories,
    )


# --- Reading a region --------------------------------------------------------------------------


def _read_region(
    names: tuple[str, ...], categories: Categories, lower: Any, upper: Any
) -> tuple[Array, Array]:
    values_of = {names[j]: values for j, values in categories.items()}
    low = _read_ends(names, values_of, lower, "lower")
    high = _read_ends(names, values_of, upper, "upper")
    for j in np.flatnonzero(low > high):
        if j in categories:
            raise InputError(
                f"the region is empty: category {names[j]!r} has different ends, and its values "
                "have no order; give one value as both ends"
            )
        raise InputError(
            f"the region is empty: feature {names[j]!r} has lower end {exact_number(low[j])}, "
            f"above its upper end {exact_number(high[j])}; swap them"
        )
    for j in np.flatnonzero(np.isposinf(low) | np.isneginf(high)):
        raise InputError(
            f"the region is empty: it contains no finite value of feature {names[j]!r}; pass "
            "a finite end"
        )
    return low, high


def _read_ends(
    names: tuple[str, ...], values_of: Mapping[str, tuple[str, ...]], ends: Any, which: str
) -> Array:
    unbounded = -np.inf if which == "lower" else np.inf
    if ends is None:
        return np.full(len(names), unbounded)
    if isinstance(ends, Mapping):
        ends = _ends_by_name(names, values_of, list(ends), list(ends.values()), which)
    elif hasattr(ends, "index") and getattr(ends, "ndim", 0) == 1:  # a pandas series
        labels = list(ends.index)
        by_position = labels == list(range(len(names)))
        if not by_position or list(names) != default_names(len(names)):
            ends = _ends_by_name(names, values_of, labels, list(ends), which)
    elif hasattr(ends, "columns"):
        raise InputTypeError(
            f"{which} is a table; pass one row of it (.iloc[0]), or a mapping from feature names "
            "to ends"
        )
    try:
        array = np.asarray(ends)
        if array.dtype.kind in "USmMc":
            raise TypeError(f"{array.dtype} values")
        array = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputTypeError(
            f"{which} must have one number per feature, or map feature names to numbers ({error})"
        ) from error
    if array.shape != (len(names),):
        raise InputError(
            f"{which} has shape {array.shape}, but there are {len(names)} features; pass one end "
            "per feature, or a mapping from feature names to ends"
        )
    for j in np.flatnonzero(np.isnan(array)):
        raise InputError(
            f"{which} is NaN for feature {names[j]!r}; use {unbounded} for an unbounded side"
        )
    return array


def _ends_by_name(
    names: tuple[str, ...],
    values_of: Mapping[str, tuple[str, ...]],
    labels: list[Any],
    ends: list[Any],
    which: str,
) -> Any:
    """One end per feature, infinite for features not named. Names are compared as strings."""
    values = np.full(len(names), -np.inf if which == "lower" else np.inf, dtype=object)
    named = set()
    for label, end in zip(labels, ends, strict=True):
        name = str(label)
        if name not in names:
            known = ", ".join(repr(n) for n in names[:8]) + (", …" if len(names) > 8 else "")
            raise InputError(
                f"{which} names {label!r}, which is not a feature; the features are {known}. To "
                "give ends by position, pass a list or an array with one end per feature"
            )
        if name in named:
            raise InputError(f"{which} names feature {name!r} more than once; give it one end")
        named.add(name)
        if isinstance(end, str) and name in values_of:
            end = _position(values_of[name], end, name)
        values[names.index(name)] = end
    return values


def _position(values: tuple[str, ...], value: str, name: str) -> int:
    if value not in values:
        shown = ", ".join(repr(v) for v in values[:8]) + (", …" if len(values) > 8 else "")
        raise InputError(f"category {name!r} has no value {value!r}; its values are {shown}")
    return values.index(value)


# --- Splitting ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Parts:
    """Parts of a region in original units, with bounds on the score in each.

    lower, upper: (boxes, features); score: (boxes,); influence: (boxes, features) expected gain
    of splitting on a feature, 0 where it cannot be split.
    """

    lower: Array
    upper: Array
    score: Range
    influence: Array

    def __len__(self) -> int:
        return len(self.lower)

    @classmethod
    def bounded(cls, prepared: PreparedMembers, lower: Array, upper: Array) -> _Parts:
        """Parts with their bounds, which are means over the members."""
        n_boxes, n_features = lower.shape
        config, networks = prepared.config, prepared.derived(IntervalNetwork)
        cells = config.n_units * max(n_features, config.hidden_width, config.n_units)
        step = max(1, _BATCH_CELLS // cells)
        low, high, influence = np.zeros(n_boxes), np.zeros(n_boxes), np.zeros(lower.shape)
        single = np.ones(n_boxes, dtype=bool)
        for start in range(0, n_boxes, step):
            part = slice(start, start + step)
            for network in networks:
                scaled = network.scale(lower[part], upper[part])
                bounds = network.bound(scaled)
                low[part] += bounds.score.low / len(networks)
                high[part] += bounds.score.high / len(networks)
                influence[part] += bounds.influence
                for ends in scaled:
                    single[part] &= ~(ends.low < ends.high).any(axis=1)
        for member in prepared.members:
            found, n_seen = member.associations, member.scaler.n_seen
            if len(found.categories):
                least, most = found.bounds(lower, upper)
                low += least * (1 - _ALONE) / n_seen / len(networks)
                high += most * (1 + _ALONE) / n_seen / len(networks)
                # Rows that scale to the same values may be in different bins.
                single &= (lower == upper).all(axis=1)
        if single.any():
            # Every row in the box scales to the same values, so the score itself is the bound.
            rows = np.where(np.isfinite(lower), lower, np.where(np.isfinite(upper), upper, 0.0))
            scores = anomaly_scores(prepared, rows[single])
            margin = _ALONE * (1.0 + scores)
            low[single], high[single] = scores - margin, scores + margin
            influence[single] = 0.0
        return cls(lower, upper, Range(low, high), np.where(lower < upper, influence, 0.0))

    def loosest(self, count: int) -> NDArray[np.intp]:
        """The boxes that determine the bounds: lowest lower and highest upper bound in turn."""
        open_boxes = np.flatnonzero(self.influence.max(axis=1) > 0)
        lowest = open_boxes[np.argsort(self.score.low[open_boxes], kind="stable")]
        highest = open_boxes[np.argsort(-self.score.high[open_boxes], kind="stable")]
        both = np.stack([lowest, highest], axis=1).ravel()
        return np.asarray(list(dict.fromkeys(both.tolist()))[:count], dtype=np.intp)

    def with_split(self, chosen: NDArray[np.intp], prepared: PreparedMembers) -> _Parts:
        """These parts with the chosen boxes split on their most influential feature."""
        networks = prepared.derived(IntervalNetwork)
        influence = self.influence.copy()
        lower, upper, parents = [], [], []
        for i in chosen:
            cut, j = None, 0
            while cut is None and influence[i].max() > 0:
                j = int(influence[i].argmax())
                cut = _cut(networks, self.lower[i, j], self.upper[i, j], j)
                if cut is None:
                    influence[i, j] = 0.0
            if cut is None:
                continue
            for low, high in ((self.lower[i, j], cut[0]), (cut[1], self.upper[i, j])):
                lower.append(self.lower[i].copy())
                upper.append(self.upper[i].copy())
                lower[-1][j], upper[-1][j] = low, high
            parents += [i, i]
        if not parents:
            return _Parts(self.lower, self.upper, self.score, influence)
        new = _Parts.bounded(prepared, np.array(lower), np.array(upper))
        kept = np.setdiff1d(np.arange(len(self)), parents)
        score = Range(
            np.maximum(new.score.low, self.score.low[parents]),
            np.minimum(new.score.high, self.score.high[parents]),
        )
        return _Parts(
            np.concatenate([self.lower[kept], new.lower]),
            np.concatenate([self.upper[kept], new.upper]),
            Range(
                np.concatenate([self.score.low[kept], score.low]),
                np.concatenate([self.score.high[kept], score.high]),
            ),
            np.concatenate([influence[kept], new.influence]),
        )


def _cut(
    networks: tuple[IntervalNetwork, ...], low: float, high: float, j: int
) -> tuple[float, float] | None:
    """Split [low, high] of feature j: upper end of the left and lower end of the right half.

    None if a split gains nothing.
    """
    for network in networks:
        cut = network.scaler.cut(low, high, j, network.error)
        if cut is not None:
            return cut
    return None
