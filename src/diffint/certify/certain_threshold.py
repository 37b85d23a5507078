"""From which value of one feature on is every row certain to be flagged?

The rows beyond a value lie among those beyond a smaller one, so whether all of them are flagged
changes once. That value is enclosed by halving: by regions that are proven, and by regions that
are not, which have a row that is not flagged or are not decided.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InputError
from ..core.immutable import Immutable
from ..score.prepared import PreparedModel
from .regions import RegionCertificate, certify_region

SIDES = ("above", "below")
_HALVINGS = 12


@dataclass(frozen=True, eq=False)
class CertainThreshold(Immutable):
    """From which value of a feature on every row of a region is certain to be flagged.

    feature: its name; side: "above" or "below".
    value: all rows at it and beyond are certain to be flagged; None if this is proven for no value.
    certificate: of the region from there on; without a value, of the farthest region tried.
    not_proven: the nearest value for which it is not proven; None if it is for all.
    passed_row: (features,) a row of the region from `not_proven` on that is not flagged; None if
        none was found.
    """

    feature: str
    side: str
    value: float | None
    certificate: RegionCertificate
    not_proven: float | None
    passed_row: NDArray[np.float64] | None

    def text(self) -> str:
        """The threshold as text."""
        from ..show.wording.certificates import threshold_text

        return threshold_text(self)

    def __repr__(self) -> str:
        sign = "≥" if self.side == "above" else "≤"
        certain = "never certain" if self.value is None else f"certain for {sign} {self.value!r}"
        return f"CertainThreshold({self.feature!r}, {certain})"

    def _repr_html_(self) -> str:
        from ..show.notebook import html_text

        return html_text(self.text())


def certain_threshold(
    prepared: PreparedModel,
    feature: str,
    side: str = "above",
    *,
    lower: Any = None,
    upper: Any = None,
    threshold: float,
    **budget: Any,
) -> CertainThreshold:
    """Find the threshold. lower, upper: other ends of the region, as mappings; budget: of each part

    Values are given with four digits, rounded so that the statement stays proven.
    """
    names = prepared.model.feature_names
    if feature not in names:
        raise InputError(f"{feature!r} is not a feature of the model")
    if side not in SIDES:
        raise InputError(f"side={side!r} must be one of {', '.join(map(repr, SIDES))}")
    j = names.index(feature)
    if j in prepared.model.categories:
        raise InputError(f"{feature!r} is a category; a threshold needs a number")
    if j in prepared.model.starts:
        raise InputError(
            f"{feature!r} has no threshold: times outside of the training times have no such value"
        )
    for which, ends in (("lower", lower), ("upper", upper)):
        if ends is not None and not isinstance(ends, Mapping):
            raise InputError(f"{which} must map names of other features to ends")
        if ends is not None and feature in ends:
            raise InputError(f"{which} must not have an end for {feature!r}")

    def region_from(value: float) -> RegionCertificate:
        low, high = dict(lower or {}), dict(upper or {})
        (low if side == "above" else high)[feature] = value
        return certify_region(prepared, low, high, threshold=threshold, **budget)

    first, last = prepared.model.features.quantiles[j, [0, -1]].tolist()
    if not first < last:
        raise InputError(f"{feature!r} has no two different training values, and no threshold")
    # Scores do not change beyond one training range from its ends.
    near, far = (first, 2 * last - first) if side == "above" else (last, 2 * first - last)
    far = _rounded(far, side)
    proven, open_ = region_from(far), None
    if proven.verdict != "all flagged":
        return CertainThreshold(feature, side, None, proven, far, proven.passed_row)
    for _ in range(_HALVINGS):
        value = _rounded((near + far) / 2, side)
        if value in (near, far) or not min(near, far) < value < max(near, far):
            break
        found = region_from(value)
        if found.verdict == "all flagged":
            far, proven = value, found
        else:
            near, open_ = value, found
    row = None if open_ is None else open_.passed_row
    return CertainThreshold(feature, side, far, proven, None if open_ is None else near, row)


def _rounded(value: float, side: str) -> float:
    """The value with four digits, away from the values that may not be certain."""
    if value == 0.0:
        return 0.0
    step = 10.0 ** (np.floor(np.log10(abs(value))) - 3)
    rounded = np.ceil(value / step) if side == "above" else np.floor(value / step)
    return float(f"{rounded * step:.12g}")
