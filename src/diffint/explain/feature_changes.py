"""How the training values of features differ between two models, beyond chance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.model import N_BINS, FeatureSummary, FittedModel
from .constraints import quantiles_of

Array = NDArray[np.float64]

# A feature has moved if one of three quantiles has: by so many standard deviations divided by the
# root of the number of values (measured in benchmarks/refresh.py), and to another rank among the
# stored rows, by so many standard errors. The latter counts for columns with few different values.
_QUANTILE_ERRORS = 8.0
_STANDARD_ERRORS = 4.0
_CENTRAL = (0.05, 0.95)  # levels of the central range of a feature


class ValueShare(NamedTuple):
    """A value of a category, and its share of the values before and now."""

    value: str
    was_share: float
    share: float


@dataclass(frozen=True)
class FeatureChange:
    """The training values of a feature before and now, in original units.

    median, low, high: the central range is from the 5 % to the 95 % quantile; NaN for a category.
    missing: share of missing cells. new_values, lost_values: of a category. shift_sd: how far the
    median moved, in standard deviations before; spread: standard deviation now, as a multiple of
    that before; both from quantiles. n_ranges: ranges of patterns that moved. moved: whether the
    quantiles, the missing cells, or the values of a category or their shares are others, beyond
    chance. new_share, lost_share: of the values now that are new, and of those before that are
    lost. shares: values of a category with another share, the largest difference first.
    """

    feature: str
    was_median: float
    median: float
    was_low: float
    was_high: float
    low: float
    high: float
    was_missing: float
    missing: float
    shift_sd: float
    spread: float
    n_ranges: int
    moved: bool
    new_values: tuple[str, ...] = ()
    lost_values: tuple[str, ...] = ()
    new_share: float = 0.0
    lost_share: float = 0.0
    shares: tuple[ValueShare, ...] = ()


def deviations(features: FeatureSummary) -> Array:
    """Standard deviations of normal distributions with these central ranges. (features,)"""
    low, high = quantiles_of(features, *_CENTRAL)
    return np.asarray((high - low) / 3.29)


def values_moved(former: FittedModel, model: FittedModel) -> NDArray[np.bool_]:
    """(features,) whether the central values of a feature are others, beyond chance.

    The models have the same features. A category has moved if it has other values.
    """
    pairs = [(j, j) for j in range(len(model.feature_names))]
    return np.array([_has_moved(former, model, i, j) for i, j in pairs], dtype=bool)


def _has_moved(former: FittedModel, model: FittedModel, i: int, j: int) -> bool:
    """Whether the central values of a feature, i in the former model and j in the other, moved."""
    values = former.categories.get(i), model.categories.get(j)
    if values != (None, None):
        return values[0] != values[1]
    levels = np.array([_CENTRAL[0], 0.5, _CENTRAL[1]])
    was, now = (
        np.array(quantiles_of(m.features, *levels))[:, place]
        for m, place in ((former, i), (model, j))
    )
    if np.isnan(was + now).any():
        return not np.array_equal(was, now, equal_nan=True)
    n_before, n_now = (
        max(m.training.n_rows * (1 - float(m.features.missing_share[place])), 1.0)
        for m, place in ((former, i), (model, j))
    )
    error = _QUANTILE_ERRORS * deviations(former.features)[i] / math.sqrt(min(n_before, n_now))
    far = np.abs(now - was) > error
    other = _other_ranks(stored_values(former, i), now, levels, n_now)
    other |= _other_ranks(stored_values(model, j), was, levels, n_before)
    return bool((far & other).any())


def _other_ranks(stored: Array, values: Array, levels: Array, n_values: float) -> NDArray[np.bool_]:
    """Whether values that are the quantiles of n_values cells cannot be those of stored ones.

    True where nothing is stored, so that other signs decide.
    """
    if not len(stored):
        return np.ones(len(values), dtype=bool)
    error = np.sqrt(levels * (1 - levels) * (1 / len(stored) + 1 / n_values))
    below = (stored[:, None] < values).mean(axis=0)
    up_to = (stored[:, None] <= values).mean(axis=0)
    margin = _STANDARD_ERRORS * error
    return np.asarray((below > levels + margin) | (up_to < levels - margin))


def stored_values(model: FittedModel, j: int) -> Array:
    """The values of a feature in the rows that a model stores, without missing ones. (stored,)"""
    sample = model.calibration.sample
    if not len(sample):
        return np.empty(0)
    column = sample[:, j].astype(np.float64)
    return np.asarray(column[~np.isnan(column)])


def feature_changes(
    former: FittedModel, model: FittedModel, moved_ranges: Sequence[str]
) -> tuple[FeatureChange, ...]:
    """The features of both models: those that moved first, the one that moved most before others.

    moved_ranges: the feature of every range that moved
    """
    levels = (0.5, *_CENTRAL)
    was, now = (np.stack(quantiles_of(m.features, *levels), axis=1) for m in (former, model))
    was_sd, sd = deviations(former.features), deviations(model.features)
    changes = []
    for j, name in enumerate(model.feature_names):
        if name not in former.feature_names:
            continue
        i = former.feature_names.index(name)
        values = former.categories.get(i), model.categories.get(j)
        before, after = was[i], now[j]
        shift = (after[0] - before[0]) / was_sd[i] if was_sd[i] > 0 else math.nan
        spread = sd[j] / was_sd[i] if was_sd[i] > 0 else math.nan
        if values != (None, None):
            before, after = np.full((2, 3), math.nan)
            shift = spread = math.nan
        old, new = values[0] or (), values[1] or ()
        shares = _other_shares(former, model, i, j)
        new_values = tuple(value for value in new if value not in old)
        lost_values = tuple(value for value in old if value not in new)
        changes.append(
            FeatureChange(
                name,
                was_median=float(before[0]),
                median=float(after[0]),
                was_low=float(before[1]),
                was_high=float(before[2]),
                low=float(after[1]),
                high=float(after[2]),
                was_missing=float(former.features.missing_share[i]),
                missing=float(model.features.missing_share[j]),
                shift_sd=float(shift),
                spread=float(spread),
                n_ranges=moved_ranges.count(name),
                moved=bool(shares)
                or _has_moved(former, model, i, j)
                or _other_missing(former, model, i, j),
                new_values=new_values,
                lost_values=lost_values,
                new_share=_share(model, j, [new.index(value) for value in new_values]),
                lost_share=_share(former, i, [old.index(value) for value in lost_values]),
                shares=shares,
            )
        )
    return tuple(sorted(changes, key=_size, reverse=True))


def _other_missing(former: FittedModel, model: FittedModel, i: int, j: int) -> bool:
    """Whether the share of missing cells differs by more than chance."""
    was, now = float(former.features.missing_share[i]), float(model.features.missing_share[j])
    n_before, n_now = former.training.n_rows, model.training.n_rows
    both = (n_before * was + n_now * now) / (n_before + n_now)
    error = math.sqrt(max(both * (1 - both), 0.0) * (1 / n_before + 1 / n_now))
    return abs(now - was) > _STANDARD_ERRORS * error


def _share(model: FittedModel, j: int, codes: list[int]) -> float:
    """The share of the values of a category that are some of them."""
    counts = _value_counts(model, j)
    return float(counts[codes].sum() / max(int(counts.sum()), 1))


def _value_counts(model: FittedModel, j: int) -> NDArray[np.int64]:
    """How often each value of a category occurs. → (values,)

    From the histogram where each value has a bin of its own, otherwise in the stored rows.
    """
    codes = np.arange(len(model.categories.get(j, ())))
    if len(codes) > N_BINS:
        return np.array([(stored_values(model, j) == code).sum() for code in codes])
    bins = np.searchsorted(model.features.bin_edges[j], codes, side="right") - 1
    return np.asarray(model.features.bin_counts[j][np.clip(bins, 0, N_BINS - 1)])


def _other_shares(
    former: FittedModel, model: FittedModel, i: int, j: int
) -> tuple[ValueShare, ...]:
    """The values of a category, in both models, whose shares differ by more than chance."""
    was, now = _value_counts(former, i), _value_counts(model, j)
    n_before, n_now = max(int(was.sum()), 1), max(int(now.sum()), 1)
    place = {value: code for code, value in enumerate(model.categories.get(j, ()))}
    found = []
    for code, value in enumerate(former.categories.get(i, ())):
        if value not in place:
            continue
        before, after = int(was[code]), int(now[place[value]])
        both = (before + after) / (n_before + n_now)
        error = math.sqrt(both * (1 - both) * (1 / n_before + 1 / n_now))
        share = ValueShare(value, before / n_before, after / n_now)
        if abs(share.share - share.was_share) > _STANDARD_ERRORS * error:
            found.append(share)
    return tuple(sorted(found, key=lambda s: -abs(s.share - s.was_share)))


def _size(change: FeatureChange) -> tuple[bool, float]:
    """How much a feature has changed, to order features."""
    spread = abs(math.log(change.spread)) if change.spread > 0 else 0.0
    shift = 0.0 if math.isnan(change.shift_sd) else abs(change.shift_sd)
    missing = abs(change.missing - change.was_missing)
    # A value that was never seen counts as a shift of many standard deviations in its rows.
    values = 0.1 * bool(change.new_values or change.lost_values)
    values += 5 * change.new_share + 2 * change.lost_share
    values += 2 * max((abs(s.share - s.was_share) for s in change.shares), default=0.0)
    return change.moved, shift + spread + 3 * missing + values
