"""Which regions there are, and how the ends of one are read.

Rows hold the positions of the values of categories (`tables.categories`). So the ends of a category
are such positions; no row is anywhere else, whatever its score would be there. The positions of
times do not go beyond those of the training times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InputError, InputTypeError
from ..core.formatting import exact_number
from ..core.kinds import Kinds
from ..tables.categories import OTHER, code_of_others, distinct_texts
from ..tables.frames import default_names

Array = NDArray[np.float64]
Categories = Mapping[int, tuple[str, ...]]

_MOST_MISSING = 8  # features that may be missing: a part for each combination


def all_rows(names: Sequence[str], kinds: Kinds) -> tuple[Array, Array]:
    """The ends of the region of all complete rows. → (features,) each"""
    low, high = _all_values(len(names), kinds.categories)
    for j, days in kinds.spans(names).items():
        low[j], high[j] = 0.0, days
    return low, high


def _all_values(n_features: int, categories: Categories) -> tuple[Array, Array]:
    """Infinite ends, and of a category the first and the last position.

    The last one is that of new values, unless these count like a listed one. A category without
    values is ignored, and its cells are missing. → (features,) each
    """
    low, high = np.full(n_features, -np.inf), np.full(n_features, np.inf)
    for j, values in categories.items():
        if values:
            low[j], high[j] = 0.0, max(code_of_others(values), len(values) - 1)
    return low, high


def bounded_features(lower: Array, upper: Array, categories: Categories) -> list[int]:
    """The features that not all rows have values of in a region. lower, upper: (features,) its ends

    Positions of times are always among them, as later rows have none.
    """
    low, high = _all_values(len(lower), categories)
    return np.flatnonzero((lower > low) | (upper < high)).tolist()


def has_new_values(values: Sequence[str], upper: float) -> bool:
    """Whether a range of positions in a category that ends at `upper` has that of new values."""
    return upper >= len(values)


def check_region(names: Sequence[str], kinds: Kinds, lower: Array, upper: Array) -> None:
    """Raise an error unless a region could have rows. lower, upper: (features,) its ends"""
    (low, high), categories = all_rows(names, kinds), kinds.categories
    for j, days in kinds.spans(names).items():
        if min(lower[j], upper[j]) < 0 or max(lower[j], upper[j]) > days:
            raise InputError(
                f"feature {names[j]!r} is from 0 to {exact_number(days)}: times outside of the "
                "training times have no such value"
            )
    for j, values in categories.items():
        for end in (lower[j], upper[j]):
            if not values and np.isfinite(end):
                raise InputError(f"category {names[j]!r} has no values; leave it out")
            if values and not (low[j] <= end <= high[j] and end == np.floor(end)):
                new = "" if OTHER in values else f", {len(values)} for any new value"
                raise InputError(
                    f"category {names[j]!r} has no value at position {exact_number(end)}; its "
                    f"positions are 0 to {len(values) - 1}{new}"
                )
    for j in np.flatnonzero(lower > upper).tolist():
        raise InputError(
            f"the region is empty: feature {names[j]!r} has lower end {exact_number(lower[j])}, "
            f"above its upper end {exact_number(upper[j])}; swap them"
        )
    for j in np.flatnonzero(np.isposinf(lower) | np.isneginf(upper)).tolist():
        raise InputError(
            f"the region is empty: it contains no finite value of feature {names[j]!r}; pass "
            "a finite end"
        )


def read_region(
    names: tuple[str, ...], kinds: Kinds, lower: Any, upper: Any
) -> tuple[Array, Array]:
    """The ends of a region, from what a user gives. → (features,) each

    An end of a category is one of its values if it is given by name, and a position if not.
    """
    categories = kinds.categories
    values_of = {names[j]: values for j, values in categories.items()}
    low = _read_ends(names, values_of, lower, "lower")
    high = _read_ends(names, values_of, upper, "upper")
    by_name = _has_names(lower) or _has_names(upper)
    for j in categories:
        unbounded = np.isneginf(low[j]) and np.isposinf(high[j])
        if low[j] > high[j] or (by_name and low[j] != high[j] and not unbounded):
            raise InputError(
                f"category {names[j]!r} has different ends, and its values have no order; give "
                "one value as both ends"
            )
    first, last = all_rows(names, kinds)
    low, high = np.where(np.isneginf(low), first, low), np.where(np.isposinf(high), last, high)
    check_region(names, kinds, low, high)
    return low, high


def read_missing(
    names: Sequence[str], categories: Categories, missing: Sequence[str]
) -> tuple[int, ...]:
    """The positions of features that may be missing, from their names."""
    if isinstance(missing, str):
        raise InputError(f"missing={missing!r} must be a list of feature names")
    unknown = [name for name in missing if str(name) not in names]
    if unknown:
        raise InputError(f"missing names {unknown[0]!r}, which is not a feature")
    if missing and categories:
        raise InputError("regions of a model with categories have complete rows only")
    if len(missing) > _MOST_MISSING:
        raise InputError(
            f"{len(missing)} features may be missing; at most {_MOST_MISSING} are possible, as "
            "every combination is a part of its own"
        )
    return tuple(sorted({list(names).index(str(name)) for name in missing}))


def _has_names(ends: Any) -> bool:
    return isinstance(ends, Mapping) or (hasattr(ends, "index") and getattr(ends, "ndim", 0) == 1)


def _read_ends(
    names: tuple[str, ...], values_of: Mapping[str, tuple[str, ...]], ends: Any, which: str
) -> Array:
    unbounded = -np.inf if which == "lower" else np.inf
    if ends is None:
        return np.full(len(names), unbounded)
    if isinstance(ends, Mapping):
        ends = _ends_by_name(names, values_of, list(ends), list(ends.values()), which)
    elif _has_names(ends):  # a pandas series
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
        if names[j] in values_of:
            raise InputError(f"{which} has no value for category {names[j]!r}; leave it out")
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
            raise InputError(
                f"{which} names {label!r}, which is not a feature; {features_like(name, names)}. "
                "To give ends by position, pass a list or an array with one end per feature"
            )
        if name in named:
            raise InputError(f"{which} names feature {name!r} more than once; give it one end")
        named.add(name)
        if name in values_of and not (isinstance(end, Real) and np.isinf(float(end))):
            end = _position(values_of[name], end, name)
        values[names.index(name)] = end
    return values


def features_like(name: str, names: Sequence[str]) -> str:
    """The features that can be named instead: those of a column of times if it is one."""
    parts = [known for known in names if known.startswith(f"{name} (")]
    if parts:
        return f"its features are {', '.join(map(repr, parts))}"
    known = ", ".join(map(repr, names[:8])) + (", …" if len(names) > 8 else "")
    return f"the features are {known}"


def _position(values: tuple[str, ...], value: Any, name: str) -> float:
    """The position of a value of a category, read like a cell of a table; NaN if it is missing."""
    import pandas

    places, texts = distinct_texts(pandas.Series([value], dtype=object))
    if places[0] < 0:
        return np.nan
    if texts[0] not in values:
        shown = ", ".join(repr(v) for v in values[:8]) + (", …" if len(values) > 8 else "")
        raise InputError(f"category {name!r} has no value {texts[0]!r}; its values are {shown}")
    return float(values.index(texts[0]))
