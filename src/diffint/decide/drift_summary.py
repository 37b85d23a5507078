"""What is different in a feature between stored and new rows, in original units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .drift_dictionary import MEAN, PAIR, SPREAD, VALUES, Entry, normal_scores

Array = NDArray[np.float64]

CORRELATION = "rank correlation"

_RANGE = (0.1, 0.9)  # quantiles between which the spread is measured
_CUT = (0.01, 0.99)  # quantiles beyond which values do not count in a standard deviation


@dataclass(frozen=True)
class FeatureShift:
    """What differs most in a feature.

    p_value: counts all features, so that with probability 1 − level no p-value of a feature that
        has not moved is at most the level. statistic: difference of means in standard errors.
    kind: ``mean``, ``spread``, ``missing``, ``new values``, ``values``, or ``with OTHER`` if the
        relation to another feature has changed. value: the value of a category, else empty.
    measure: what `was` and `now` are: median, mean, 10–90 % range, standard deviation, share or
        rank correlation.
    shift: now − was; shift_sd: in standard deviations of the stored rows, NaN if it has none.
    """

    feature: str
    p_value: float
    statistic: float
    kind: str
    value: str
    measure: str
    was: float
    now: float
    shift: float
    shift_sd: float

    @property
    def is_relation(self) -> bool:
        """Whether the relation to another feature has changed."""
        return self.measure == CORRELATION


def describe(
    entry: Entry,
    feature: int,
    names: Sequence[str],
    values: Sequence[str],
    column: NDArray[np.float32],
    stored: Array,
    new: Array,
    p_value: float,
    statistic: float,
) -> FeatureShift:
    """The shift of a feature whose largest statistic is that of `entry`.

    values: of a category; column: (pooled rows,) of the entry; stored, new: (rows, features)
    """
    kind, value, deviation = entry.kind, "", np.nan
    then, now = stored[:, feature], new[:, feature]
    if kind == PAIR:
        other = entry.features[entry.features[0] == feature]
        kind, measure = f"with {names[other]}", CORRELATION
        pair = [feature, other]
        ends = _rank_correlation(stored[:, pair]), _rank_correlation(new[:, pair])
    elif kind == MEAN:
        measure, deviation = "median", _deviation(then)
        ends, means = (_median(then), _median(now)), (_cut_mean(then), _cut_mean(now))
        # Where many values are equal, or only a tail has moved, medians say nothing.
        if (ends[1] - ends[0]) * np.sign(means[1] - means[0]) < abs(means[1] - means[0]) / 2:
            measure, ends = "mean", means
    elif kind == SPREAD:
        measure, deviation = "10–90 % range", _deviation(then)
        ends = _width(then), _width(now)
        if ends[0] == ends[1]:
            measure, ends = "standard deviation", (_deviation(then), _deviation(now))
    else:
        measure = "share"
        value = values[entry.value] if kind == VALUES else ""
        ends = float(column[: len(stored)].mean()), float(column[len(stored) :].mean())
    was, after = (float(end) for end in ends)
    shift = after - was
    return FeatureShift(
        feature=names[feature],
        p_value=p_value,
        statistic=statistic,
        kind=kind,
        value=value,
        measure=measure,
        was=was,
        now=after,
        shift=shift,
        shift_sd=shift / deviation if deviation > 0 else np.nan,
    )


def _known(x: Array) -> Array:
    return x[~np.isnan(x)]


def _median(x: Array) -> float:
    known = _known(x)
    return float(np.median(known)) if len(known) else np.nan


def _width(x: Array) -> float:
    known = _known(x)
    return float(np.diff(np.quantile(known, _RANGE))[0]) if len(known) else np.nan


def _cut(x: Array) -> Array:
    """Values without the weight of a few very large ones."""
    known = _known(x)
    return np.clip(known, *np.quantile(known, _CUT)) if len(known) else np.full(1, np.nan)


def _cut_mean(x: Array) -> float:
    return float(_cut(x).mean())


def _deviation(x: Array) -> float:
    with np.errstate(over="ignore"):  # of values near the largest possible number
        return float(_cut(x).std())


def _rank_correlation(x: Array) -> float:
    """The correlation of the normal scores of two columns. (rows, 2)"""
    known = x[~np.isnan(x).any(axis=1)]
    a, b = (normal_scores(column) for column in known.T)
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if size > 0 else np.nan
