"""Names of features and their values as texts; days that are counted from a start are dates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from ...core.formatting import (
    FINEST_MOMENT,
    beside_range,
    exact_number,
    moment_text,
    moments_beside,
    shown_name,
)
from .ranges import range_text


class Features(Protocol):
    """Has features, and knows which of them are days, and from which day these are counted."""

    @property
    def feature_names(self) -> Sequence[str]: ...
    @property
    def starts(self) -> Mapping[int, str]: ...


def plain_name(features: Features, j: int) -> str:
    """The name of a feature: of ``sold (days since 2013-01-01)`` that of the column, ``sold``."""
    name, start = features.feature_names[j], features.starts.get(j)
    return name if start is None else name.removesuffix(f" (days since {start})")


def name_of(features: Features, j: int) -> str:
    """`plain_name` as it is shown."""
    return shown_name(plain_name(features, j))


def texts_beside(
    features: Features, j: int, lower: float, upper: float, *values: float, exact: int = 3
) -> list[str]:
    """The ends of a range, and values, with as many digits as tell which are inside."""
    if j in features.starts:
        return moments_beside(features.starts[j], lower, upper, *values)
    return beside_range(lower, upper, *values, exact=exact)


def text_of(features: Features, j: int, value: float, *others: float) -> str:
    """A value, with as many digits as tell it from others."""
    return texts_beside(features, j, value, value, *others)[0]


def exact_text(features: Features, j: int, value: float) -> str:
    """A value with all its digits."""
    if j not in features.starts:
        return exact_number(value)
    text = moment_text(features.starts[j], value, FINEST_MOMENT)
    for nothing in (".000", ":00", " 00:00"):
        if not text.endswith(nothing):
            break
        text = text.removesuffix(nothing)
    return text


def span_text(features: Features, j: int, lower: float, upper: float, low: str, up: str) -> str:
    """A range from the texts of its ends."""
    if j in features.starts and low != up:
        return f"{low} to {up}"
    return range_text(lower, upper, low, up, True, True)
