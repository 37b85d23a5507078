"""What is different between two models: features, settings, threshold, and ranges that moved."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.config import Config
from ..core.flag_rule import FlagRule
from ..core.formatting import counted
from ..core.model import FittedModel
from .constraints import values_between
from .feature_changes import (
    FeatureChange,
    deviations,
    feature_changes,
    stored_values,
    values_moved,
)
from .global_explanation import GlobalExplanation, explain_model

if TYPE_CHECKING:
    import pandas

Array = NDArray[np.float64]

# An end of a range has moved if the difference is beyond what refreshes with rows of the same kind
# show: so many standard errors, by the rows that the pattern has; and in standard deviations of the
# feature, this many, or this many divided by the root of the number of training rows. Measured in
# benchmarks/refresh.py.
_STANDARD_ERRORS = 4.0
_SMALLEST_SHIFT = 0.25
_SCALING_ERRORS = 10.0
_SMALLEST_STEP = 0.5  # of an end of a category's range, from one value towards the next
_FEWEST_BETWEEN = 0.05  # share of rows between the ends, if the values of the feature stay
_FEWEST_ROWS = 10  # in a pattern, in each of the two models, to say that it has moved


@dataclass(frozen=True)
class RangeShift:
    """A range of a pattern that has moved, in original units.

    pattern: number of the unit, consecutive over all members, as in `match`. was_lower, was_upper,
    lower, upper: the range, cut to the training range; NaN for a category. was_values, values:
    those in the range of a category, else empty. shift_sd: how far the middle moved, in standard
    deviations of the feature before. was_rows, rows: share of the training rows in the pattern.
    """

    pattern: int
    feature: str
    was_lower: float
    was_upper: float
    lower: float
    upper: float
    shift_sd: float
    was_rows: float
    rows: float
    was_values: tuple[str, ...] = ()
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class ModelComparison:
    """What is different in a model from a former one.

    same_units: whether one is a refresh of the other, or both of the same model, so that their
    patterns can be compared. ranges: those that moved, first those of patterns with many rows that
    moved far; n_ranges: number of ranges that were compared. features: of both models, the one that
    moved most first. added, removed: features of one model only. settings: those that differ, with
    the value before and now. n_patterns: in each model; lost_patterns, new_patterns: units that are
    patterns in one of them only. was_flagged, flagged: share of the rows of a refresh that each
    model flags, None for other models; the new one was trained on most of them.
    """

    same_units: bool
    ranges: tuple[RangeShift, ...]
    n_ranges: int
    features: tuple[FeatureChange, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    settings: dict[str, tuple[Any, Any]]
    was_rows: int
    rows: int
    was_created: str
    created: str
    was_threshold: float
    threshold: float
    was_patterns: int
    patterns: int
    lost_patterns: tuple[int, ...] = ()
    new_patterns: tuple[int, ...] = ()
    was_flagged: float | None = None
    flagged: float | None = None

    @property
    def identical(self) -> bool:
        """Whether nothing is different."""
        return (
            (self.was_created, self.was_rows) == (self.created, self.rows)
            and self.was_threshold == self.threshold
            and not (self.ranges or self.added or self.removed or self.settings)
        )

    def to_frame(self) -> pandas.DataFrame:
        """One line per range that moved; the columns are those of `RangeShift`."""
        import pandas

        names = [f.name for f in fields(RangeShift)]
        return pandas.DataFrame([asdict(shift) for shift in self.ranges], columns=names)

    def features_to_frame(self) -> pandas.DataFrame:
        """One line per feature; the columns are those of `FeatureChange`."""
        import pandas

        names = [f.name for f in fields(FeatureChange)]
        return pandas.DataFrame([asdict(change) for change in self.features], columns=names)

    def text(self) -> str:
        """What has changed, in a few lines."""
        from ..show.wording.comparison import comparison_text

        return comparison_text(self)

    def to_dict(self) -> dict[str, Any]:
        """All results as values for JSON; what is not a number is None."""
        values: dict[str, Any] = _for_json(asdict(self)) | {"text": self.text()}
        return values

    def to_json(self) -> str:
        """`to_dict` as text."""
        return json.dumps(self.to_dict())

    def __repr__(self) -> str:
        moved = f"{len(self.ranges):,} of {counted(self.n_ranges, 'range')} moved"
        what = moved if self.same_units else "models that are not related"
        return f"ModelComparison({what}; {counted(len(self.features), 'feature')} compared)"

    def _repr_html_(self) -> str:
        from ..show.notebook import comparison_html

        return comparison_html(self)


def _for_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _for_json(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_for_json(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def compare_models(
    former: FittedModel, former_rule: FlagRule, model: FittedModel, rule: FlagRule
) -> ModelComparison:
    """Compare two models of any kind; the rules are those of all rows."""
    related = former.shares_units_with(model) and former.feature_names == model.feature_names
    before, now = (explain_model(m) if related else None for m in (former, model))
    ranges: list[RangeShift] = []
    n_ranges = 0
    lost: tuple[int, ...] = ()
    new: tuple[int, ...] = ()
    if before is not None and now is not None:
        ranges, n_ranges = _moved_ranges(before, now, former, model)
        lost, new = (
            tuple(np.flatnonzero(a.is_pattern & ~b.is_pattern).tolist())
            for a, b in ((before, now), (now, before))
        )
    names, former_names = set(model.feature_names), set(former.feature_names)
    own, own_former = _settings(model.config, rule), _settings(former.config, former_rule)
    return ModelComparison(
        same_units=related,
        ranges=tuple(ranges),
        n_ranges=n_ranges,
        features=feature_changes(former, model, [moved.feature for moved in ranges]),
        added=tuple(name for name in model.feature_names if name not in former_names),
        removed=tuple(name for name in former.feature_names if name not in names),
        settings={
            name: (own_former[name], own[name]) for name in own if own[name] != own_former[name]
        },
        was_rows=former.training.n_rows,
        rows=model.training.n_rows,
        was_created=former.training.created,
        created=model.training.created,
        was_threshold=float(np.max(former_rule.cut)),
        threshold=float(np.max(rule.cut)),
        was_patterns=sum(int(m.is_pattern.sum()) for m in former.members),
        patterns=sum(int(m.is_pattern.sum()) for m in model.members),
        lost_patterns=lost,
        new_patterns=new,
    )


def _settings(config: Config, rule: FlagRule) -> dict[str, Any]:
    return {
        **config.to_dict(),
        "false_positive_rate": rule.rate,
        "confidence": rule.confidence,
    }


def _without_chance(
    former: FittedModel, model: FittedModel, values_stay: NDArray[np.bool_]
) -> GlobalExplanation:
    """What the model learned, without changes that follow from a few rows and concern all ranges.

    These are the factors on the half-widths of all boxes, and the scaling of features whose values
    have not moved, which depends on the smallest and the largest one. Both are those of the former
    model here. values_stay: (features,)
    """
    members = list(zip(former.members, model.members, strict=True))
    same_boxes = tuple(replace(m, box_scale=old.box_scale) for old, m in members)
    found = explain_model(replace(model, members=same_boxes))
    same_scaling = tuple(
        replace(m, scaler=old.scaler) for (old, _), m in zip(members, same_boxes, strict=True)
    )
    as_before = explain_model(replace(model, members=same_scaling, features=former.features))
    names = ("lower", "upper", "binds_below", "binds_above")
    parts = {n: np.where(values_stay, getattr(as_before, n), getattr(found, n)) for n in names}
    return replace(found, **parts)


def _moved_ranges(
    before: GlobalExplanation, now: GlobalExplanation, former: FittedModel, model: FittedModel
) -> tuple[list[RangeShift], int]:
    """The ranges of units that are patterns in both models and moved; how many were compared."""
    values_stay = ~values_moved(former, model)
    judged = _without_chance(former, model, values_stay)
    deviation = deviations(former.features)
    was_share, share = (e.box_rows / max(e.counted_rows, 1) for e in (before, now))
    was_count, count = was_share * before.n_rows, share * now.n_rows
    enough = np.minimum(was_count, count) >= _FEWEST_ROWS
    units = before.is_pattern & now.is_pattern
    varies = ~(before.constant | now.constant)
    compared = units[:, None] & varies & ~np.isnan(before.lower + now.lower)
    widths = [np.maximum(e.upper - e.lower, 0.0) / 2 for e in (before, judged)]
    # The location of n values in a range of half-width w has an error of about w / sqrt(3 n).
    error = np.sqrt(
        sum(
            w**2 / (3 * np.maximum(n, 1.0))[:, None]
            for w, n in zip(widths, (was_count, count), strict=True)
        )
    )
    smallest = max(_SMALLEST_SHIFT, _SCALING_ERRORS / math.sqrt(min(before.n_rows, now.n_rows)))
    noise = np.maximum(_STANDARD_ERRORS * error, smallest * deviation)
    for j in now.categories:
        noise[:, j] = np.maximum(noise[:, j], _SMALLEST_STEP)
    moved = np.zeros_like(compared)
    for name, binds in (("lower", "binds_below"), ("upper", "binds_above")):
        either = getattr(before, binds) | getattr(judged, binds)
        ends, ends_now = getattr(before, name), getattr(judged, name)
        for j in range(len(values_stay)):
            was = _in_codes_of(ends[:, j], before.categories.get(j), now.categories.get(j))
            far = np.abs(ends_now[:, j] - was) > noise[:, j]
            if values_stay[j]:
                far &= _rows_between(former, model, j, was, ends_now[:, j]) > _FEWEST_BETWEEN
            moved[:, j] |= far & either[:, j]
    moved &= compared & enough[:, None]
    found = []
    for k, j in np.argwhere(moved):
        ends = before.lower[k, j], before.upper[k, j], now.lower[k, j], now.upper[k, j]
        sets: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
        size = (ends[2] + ends[3] - ends[0] - ends[1]) / 2
        size = size / deviation[j] if deviation[j] > 0 else math.nan
        was_all, all_now = before.categories.get(int(j)), now.categories.get(int(j))
        if was_all is not None and all_now is not None:
            sets = (
                tuple(values_between(was_all, *ends[:2])),
                tuple(values_between(all_now, *ends[2:])),
            )
            both = set(was_all) & set(all_now)
            if set(sets[0]) & both == set(sets[1]) & both:
                continue
            ends, size = (math.nan,) * 4, math.nan
        found.append(
            RangeShift(
                pattern=int(k),
                feature=before.feature_names[j],
                was_lower=float(ends[0]),
                was_upper=float(ends[1]),
                lower=float(ends[2]),
                upper=float(ends[3]),
                shift_sd=float(size),
                was_rows=float(was_share[k]),
                rows=float(share[k]),
                was_values=sets[0],
                values=sets[1],
            )
        )
    stays = {name for name, same in zip(before.feature_names, values_stay, strict=True) if same}
    found.sort(
        key=lambda s: (
            s.feature in stays,
            -(s.was_rows + s.rows) * min(abs(_or_one(s.shift_sd)), 3.0),
        )
    )
    return found, int((compared & enough[:, None]).sum())


def _in_codes_of(ends: Array, before: tuple[str, ...] | None, now: tuple[str, ...] | None) -> Array:
    """Ends of ranges of a category, in the codes that its values have now; others as they are."""
    if before is None or now is None or before == now:
        return ends
    place = {value: code for code, value in enumerate(now)}
    codes = [(code, place[value]) for code, value in enumerate(before) if value in place]
    return np.asarray(
        np.interp(ends, *np.array([(-1, -1), *codes, (len(before), len(now))], float).T)
    )


def _rows_between(former: FittedModel, model: FittedModel, j: int, was: Array, now: Array) -> Array:
    """The share of stored rows between former and new ends of ranges. → (units,)

    Of the model in which it is larger. The rows of a category lie evenly around its code. It is 1
    if a model stores no rows.
    """
    share = np.zeros(len(was))
    for some in (former, model):
        values = np.sort(stored_values(some, j))
        if not len(values):
            return np.ones(len(was))
        if j in some.categories:
            values = np.sort(values + (np.arange(len(values)) + 0.5) / len(values) - 0.5)
        low, up = np.minimum(was, now), np.maximum(was, now)
        inside = np.searchsorted(values, up, "left") - np.searchsorted(values, low, "right")
        share = np.maximum(share, inside / len(values))
    return share


def _or_one(value: float) -> float:
    return 1.0 if math.isnan(value) else value
