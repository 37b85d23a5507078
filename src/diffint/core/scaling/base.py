"""What every scaler is: a map between original units and the scaled units of the intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..constants import (
    CONSTANT_DISTANCE,
    LARGEST_ORIGINAL,
    LARGEST_TRAINING_VALUE,
    UNCLIPPED_LIMIT,
)
from ..immutable import Immutable
from .curves import Curve

Vector = NDArray[np.float64]
Rows32 = NDArray[np.float32]

# Half of a range of subnormal values, or their deviation, may round to 0; the divisor must not.
_SMALLEST = float(np.nextafter(0.0, 1.0))
# The ratio of two members' training ranges can overflow; stretch and shift are limited to this.
_FAR = 1e6


class Range(NamedTuple):
    """The smallest and the largest value, two arrays of one shape."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @property
    def width(self) -> NDArray[np.float64]:
        """The largest value minus the smallest."""
        return self.high - self.low


class ScaledRegion(NamedTuple):
    """The scaled values that rows of a region can take, each (regions, features)."""

    encoded: Range  # the encoder's input
    target: Range  # what the error is measured against


@dataclass(frozen=True, eq=False)
class Scaler(Immutable):
    """One map per feature: ``scaled = (value − offset) / divisor``, or a curve.

    A feature is of one of three kinds: it varies in the training rows, it is constant, or it has no
    value at all. `is_constant` and `varies` tell which; nothing else asks the divisor.

    Attributes
    ----------
    offset, divisor: (features,); the divisor is 0 for a constant feature or one without values.
    constant: (features,) the training value of a constant feature, NaN for the others.
    lower, upper: (features,) the scaled training range.
    """

    offset: Vector
    divisor: Vector
    constant: Vector
    lower: Vector
    upper: Vector

    name: ClassVar[str]
    clips: ClassVar[bool]  # whether values are clipped to the training range before the encoder
    largest_input: ClassVar[float]  # the largest magnitude that the encoder can be given

    @classmethod
    def fit(cls, x: NDArray[Any]) -> Scaler:
        """The scaler of the rows `x` (rows, features); missing cells are ignored."""
        raise NotImplementedError

    def transform(self, x: NDArray[Any]) -> tuple[Rows32, Rows32]:
        """Scaled rows as (clipped, unclipped), each (rows, features) float32; NaN stays NaN.

        The clipped rows feed the encoder, the unclipped ones are what errors are measured against.
        """
        raise NotImplementedError

    def bounds_of(self, lower: Vector, upper: Vector, error: str) -> ScaledRegion:
        """What `transform` can return for rows of a region. lower, upper: (regions, features)

        Subtracting, dividing, clipping and rounding keep the order of two values, so the ends of
        the result are the transformed ends.
        """
        ends = [self.transform(end) for end in (lower, upper)]
        clipped, unclipped = (Range(*(e[i].astype(np.float64) for e in ends)) for i in (0, 1))
        return ScaledRegion(clipped, unclipped if error == "unclipped" else clipped)

    def is_possible(self) -> bool:
        """Whether `fit` can produce these values; checked when a model file is read."""
        largest = LARGEST_TRAINING_VALUE
        return bool(
            (np.abs(self.offset) <= largest).all()
            and ((self.divisor >= 0) & (self.divisor <= 2 * largest)).all()
            and (np.isnan(self.constant) | (np.abs(self.constant) <= largest)).all()
            and not self.divisor[self.is_constant].any()
            and (self.lower <= self.upper).all()
        )

    @property
    def curves(self) -> Mapping[int, Curve]:
        """The features that have a curve instead of a linear map, with their curves."""
        return {}

    # --- The same for every scaler ---------------------------------------------------------

    def scaled(self, x: NDArray[Any]) -> NDArray[np.float64]:
        """Values (…, features) in scaled units, not clipped; constants are not treated apart."""
        x = np.asarray(x, dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = np.asarray((x - self.offset) / np.where(self.varies, self.divisor, 1.0))
        for j, curve in self.curves.items():
            scaled[..., j] = curve.scale(x[..., j])
        return scaled

    @property
    def is_constant(self) -> NDArray[np.bool_]:
        """(features,) whether the training rows have a single value."""
        return ~np.isnan(self.constant)

    @property
    def varies(self) -> NDArray[np.bool_]:
        """(features,) whether the training rows have more than one value."""
        return (self.divisor > 0) & ~self.is_constant

    @property
    def seen(self) -> NDArray[np.bool_]:
        """(features,) whether the training rows have any value."""
        return self.varies | self.is_constant

    @property
    def n_seen(self) -> int:
        """The number of features with any value in the training rows, at least 1."""
        return max(int(self.seen.sum()), 1)

    @property
    def span(self) -> Vector:
        """(features,) width of the scaled training range."""
        return self.upper - self.lower

    def target(self, x: NDArray[Any], error: str) -> Rows32:
        """What errors of the kind ``"clipped"`` or ``"unclipped"`` are measured against."""
        clipped, unclipped = self.transform(x)
        return unclipped if error == "unclipped" else clipped

    def to_original(self, scaled: NDArray[Any]) -> NDArray[np.float64]:
        """Scaled values (…, features) in original units; a constant feature gives its constant."""
        scaled = np.asarray(scaled, dtype=np.float64)
        with np.errstate(over="ignore"):
            original = np.asarray(scaled * self.divisor + self.offset)
        for j, curve in self.curves.items():
            original[..., j] = curve.to_original(scaled[..., j])
        original = np.clip(original, -LARGEST_ORIGINAL, LARGEST_ORIGINAL)
        return np.where(self.varies, original, self.constant)

    def in_units_of(
        self, other: Scaler, center: NDArray[Any], half_width: NDArray[Any]
    ) -> tuple[Vector, Vector]:
        """Intervals in this scaler's units as (lower, upper) in the units of another scaler.

        center, half_width: (units, features)
        """
        same = other.varies & self.varies
        divisor = np.where(same, other.divisor, 1.0)
        with np.errstate(over="ignore", invalid="ignore"):
            stretch = np.where(same, np.minimum(self.divisor / divisor, _FAR), 1.0)
            shift = np.where(same, self.offset / divisor - other.offset / divisor, 0.0)
        shift = np.clip(np.nan_to_num(shift), -_FAR, _FAR)
        middle, half = center * stretch + shift, half_width * stretch
        lower, upper = middle - half, middle + half
        curved = [j for j in sorted({*self.curves, *other.curves}) if same[j]]
        if curved:
            ends = center - half_width, center + half_width
            for result, end in zip((lower, upper), ends, strict=True):
                result[:, curved] = other.scaled(self.to_original(end))[:, curved]
        return lower, upper

    def cut(self, low: float, high: float, feature: int, error: str) -> tuple[float, float] | None:
        """Where to split the values [low, high] of a feature into two ranges, in original units.

        → (end of the left range, start of the right range), or None if a split gains nothing.
        """
        constant = self.constant[feature]
        if low <= constant <= high and low < high:  # split off the constant
            if low < constant:
                return float(np.nextafter(constant, -np.inf)), float(constant)
            return float(constant), float(np.nextafter(constant, np.inf))
        if not self.varies[feature]:
            return None
        ends = np.zeros((2, len(self.offset)))
        ends[:, feature] = low, high
        first, last = self.target(ends, error)[:, feature].astype(np.float64)
        if not first < last:
            return None
        middle = (first + last) / 2
        # Prefer the ends of the training range: beyond them the encoder's input does not change.
        edge = min(max(middle, self.lower[feature]), self.upper[feature])
        scaled = edge if first < edge < last else middle
        cut = self.to_original(np.full(len(self.offset), scaled))[feature]
        return (float(cut), float(cut)) if low < cut < high else None


class RangeScaler(Scaler):
    """The training range to [bottom, top]; values beyond it are clipped before the encoder.

    Errors are measured against values that may lie one range beyond each end, so that one
    extreme cell cannot dominate the score. A constant feature's value maps to the bottom and any
    other value to the top; unclipped, other values keep their side of the constant.
    """

    clips = True
    largest_input = 1.0
    bottom: ClassVar[float]
    top: ClassVar[float]

    @property
    def unclipped_ends(self) -> tuple[float, float]:
        """The smallest and the largest unclipped value."""
        return 2 * self.bottom - self.top, 2 * self.top - self.bottom

    def transform(self, x: NDArray[Any]) -> tuple[Rows32, Rows32]:
        x = np.asarray(x, dtype=np.float64)
        varies, scaled = self.varies, self.scaled(x)
        lowest, highest = self.unclipped_ends
        clipped, unclipped = (
            np.clip(scaled, self.bottom, self.top),
            np.clip(scaled, lowest, highest),
        )
        clipped[:, ~varies] = np.nan  # no value in training
        unclipped[:, ~varies] = np.nan
        for j in np.flatnonzero(self.is_constant):
            value, constant = x[:, j], self.constant[j]
            same, missing = value == constant, np.isnan(value)
            side = np.where(value > constant, highest, lowest)
            clipped[:, j] = np.where(missing, np.nan, np.where(same, self.bottom, self.top))
            unclipped[:, j] = np.where(missing, np.nan, np.where(same, self.bottom, side))
        return _as_rows(clipped), _as_rows(unclipped)

    def bounds_of(self, lower: Vector, upper: Vector, error: str) -> ScaledRegion:
        region = super().bounds_of(lower, upper, error)
        clipped, target = region.encoded, region.target
        lowest, highest = self.unclipped_ends
        # The map of a constant feature is the only one that does not keep the order of values.
        for j in np.flatnonzero(self.is_constant):
            below, above = lower[:, j] < self.constant[j], upper[:, j] > self.constant[j]
            within = (lower[:, j] <= self.constant[j]) & (upper[:, j] >= self.constant[j])
            clipped.low[:, j] = np.where(within, self.bottom, self.top)
            clipped.high[:, j] = np.where(below | above, self.top, self.bottom)
            if error == "unclipped":
                other = np.where(within, self.bottom, highest)
                target.low[:, j] = np.where(below, lowest, other)
                other = np.where(within, self.bottom, lowest)
                target.high[:, j] = np.where(above, highest, other)
            for ends in (*clipped, *target):
                ends[np.isnan(lower[:, j]), j] = np.nan
        return region

    def is_possible(self) -> bool:
        ends = (self.lower == self.bottom).all() and (self.upper == self.top).all()
        return super().is_possible() and bool(ends)

    @classmethod
    def _from_columns(cls, columns: ColumnSummary, offset: Vector, divisor: Vector) -> Scaler:
        return cls(
            offset=np.where(columns.varies, offset, 0.0),
            divisor=np.where(columns.varies, np.maximum(divisor, _SMALLEST), 0.0),
            constant=columns.constant,
            lower=np.full(len(offset), cls.bottom),
            upper=np.full(len(offset), cls.top),
        )


class UnclippedScaler(Scaler):
    """A linear map without clipping; values that differ from a constant get a fixed distance."""

    clips = False
    largest_input = np.inf

    def transform(self, x: NDArray[Any]) -> tuple[Rows32, Rows32]:
        x = np.asarray(x, dtype=np.float64)
        scaled = self.scaled(x)
        with np.errstate(over="ignore", invalid="ignore"):
            for j in np.flatnonzero(self.is_constant):
                side = np.sign(x[:, j] - self.constant[j])
                scaled[:, j] = self.lower[j] + CONSTANT_DISTANCE * side
        scaled[:, ~self.seen] = np.nan
        rows = _as_rows(np.clip(scaled, -UNCLIPPED_LIMIT, UNCLIPPED_LIMIT))
        return rows, rows.copy()

    def is_possible(self) -> bool:
        within = (self.lower >= -UNCLIPPED_LIMIT).all() and (self.upper <= UNCLIPPED_LIMIT).all()
        return super().is_possible() and bool(within)

    @classmethod
    def _from_columns(cls, columns: ColumnSummary, offset: Vector, divisor: Vector) -> Scaler:
        divisor = np.where(columns.varies, np.maximum(divisor, _SMALLEST), 0.0)
        safe = np.where(columns.varies, divisor, 1.0)

        def scaled(value: Vector) -> Vector:
            ends = np.clip(value / safe - offset / safe, -UNCLIPPED_LIMIT, UNCLIPPED_LIMIT)
            return np.where(columns.any, ends, 0.0)

        return cls(
            offset=np.where(columns.any, offset, 0.0),
            divisor=divisor,
            constant=columns.constant,
            lower=scaled(columns.smallest),
            upper=scaled(columns.largest),
        )


class ColumnSummary(NamedTuple):
    """The values of a table's columns in brief, (features,) each.

    any: whether there is any value; varies: whether there is more than one; smallest, largest: NaN
    if there is no value; constant: the only value, NaN if there is none or more than one.
    """

    any: NDArray[np.bool_]
    varies: NDArray[np.bool_]
    smallest: Vector
    largest: Vector
    constant: Vector

    @classmethod
    def of(cls, x: NDArray[Any]) -> ColumnSummary:
        seen = ~np.all(np.isnan(x), axis=0)
        smallest, largest = np.full((2, x.shape[1]), np.nan)
        if seen.any():
            smallest[seen] = np.nanmin(x[:, seen], axis=0)
            largest[seen] = np.nanmax(x[:, seen], axis=0)
        varies = seen & (largest > smallest)
        return cls(seen, varies, smallest, largest, np.where(seen & ~varies, smallest, np.nan))


def _as_rows(x: NDArray[np.float64]) -> Rows32:
    return x.astype(np.float32, order="C")  # the compiled loops expect this layout


def mean_and_deviation(x: NDArray[Any]) -> tuple[Vector, Vector]:
    # Dividing by the largest magnitude first keeps squares of huge and tiny values in range.
    unit = np.maximum(np.nanmax(np.abs(x), axis=0).astype(np.float64), np.finfo(float).tiny)
    shrunk = x / unit
    return np.nanmean(shrunk, axis=0) * unit, np.nanstd(shrunk, axis=0) * unit
