"""Texts about what is different between two models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...core.formatting import counted, distinct_numbers, listed, number, percent, shown_name

if TYPE_CHECKING:
    from ...explain.comparison import ModelComparison, RangeShift
    from ...explain.feature_changes import FeatureChange

_MOST_SHOWN = 5  # ranges, features, names and values
_CHANCE_SHARE = 0.05  # of ranges that moved, seen in refreshes with rows like the former ones
_MOST_VALUES = 3  # of a category, with their shares
_LEAST_SHIFT, _LEAST_SPREAD, _LEAST_SHARE = 0.25, 1.2, 0.05  # that are worth a line


def comparison_text(found: ModelComparison) -> str:
    """A line each about rows, threshold, features and settings; then what has moved."""
    if found.identical:
        return "The two models are the same."
    was, now = distinct_numbers(found.was_threshold, found.threshold)
    lines = [
        f"Rows: {found.was_rows:,} → {found.rows:,}. Patterns: {found.was_patterns:,} → "
        f"{found.patterns:,}. Threshold: {was if was == now else f'{was} → {now}'}."
    ]
    if found.was_flagged is not None and found.flagged is not None:
        before, after = percent(found.was_flagged), percent(found.flagged)
        lines.append(f"Flagged of these rows: {before} by the former model, {after} by this one.")
    for what, names in (("added", found.added), ("removed", found.removed)):
        if names:
            lines.append(f"Features {what}: {_some(names)}.")
    if found.settings:
        changes = [f"{name} {was} → {now}" for name, (was, now) in found.settings.items()]
        lines.append(f"Settings: {', '.join(changes)}.")
    features = [text for text in map(feature_text, found.features) if text]
    if features:
        lines += ["Features:", *_indented(features)]
    elif found.features:
        lines.append("No feature has moved much.")
    if not found.same_units:
        lines.append(
            "The models are not related by a refresh, so that their patterns are not compared."
        )
    elif not found.n_ranges:
        lines.append("No pattern has enough rows to compare its ranges.")
    elif not found.ranges:
        lines.append(f"None of {counted(found.n_ranges, 'range')} of patterns has moved.")
    else:
        share = len(found.ranges) / found.n_ranges
        moved = f"{len(found.ranges):,} of {counted(found.n_ranges, 'range')} of patterns"
        moved = f"Moved: {moved} ({percent(share)})"
        if share <= _CHANCE_SHARE and not any(change.moved for change in found.features):
            lines.append(f"{moved}, as happens also if the rows are like the former ones.")
        else:
            lines += [f"{moved}.", *_indented(list(map(shift_text, found.ranges)))]
    return "\n".join(lines)


def feature_text(change: FeatureChange) -> str:
    """What has changed in the values of a feature; empty if that is little."""
    parts = []
    if change.moved and abs(change.shift_sd) >= _LEAST_SHIFT:
        was, now = distinct_numbers(change.was_median, change.median)
        sign = "+" if change.shift_sd > 0 else "−"
        size = f"{sign}{number(abs(change.shift_sd), 2)} sd"
        parts.append(f"median {was} → {now} ({size})")
    if change.moved and _is_wider_or_narrower(change):
        was, now = _range(change.was_low, change.was_high), _range(change.low, change.high)
        parts.append(f"5–95 % range {was} → {now}")
    if change.moved and abs(change.missing - change.was_missing) >= _LEAST_SHARE:
        parts.append(f"missing {percent(change.was_missing)} → {percent(change.missing)}")
    for what, values, share in (
        ("new", change.new_values, change.new_share),
        ("gone", change.lost_values, change.lost_share),
    ):
        if values:
            rows = f" ({percent(share)} of rows)" if share else ""
            parts.append(f"{what}: {_some(values)}{rows}")
    shares = [s for s in change.shares if abs(s.share - s.was_share) >= _LEAST_SHARE]
    for value, before, after in shares[:_MOST_VALUES]:
        parts.append(f"{shown_name(value)} {percent(before)} → {percent(after)}")
    return f"{shown_name(change.feature)}: {', '.join(parts)}" if parts else ""


def _is_wider_or_narrower(change: FeatureChange) -> bool:
    if not math.isnan(change.spread):
        return not 1 / _LEAST_SPREAD < change.spread < _LEAST_SPREAD
    before, now = (change.was_low, change.was_high), (change.low, change.high)  # a constant, before
    return before != now and not any(map(math.isnan, before + now))


def shift_text(shift: RangeShift) -> str:
    """``pattern 12: temperature 20–25 → 31–37``"""
    name = f"pattern {shift.pattern}: {shown_name(shift.feature)}"
    return f"{name} {before_text(shift)} → {after_text(shift)}"


def before_text(shift: RangeShift) -> str:
    """The range of a pattern in the former model."""
    return _ends(shift.was_lower, shift.was_upper, shift.was_values)


def after_text(shift: RangeShift) -> str:
    """The range of a pattern now."""
    return _ends(shift.lower, shift.upper, shift.values)


def _ends(lower: float, upper: float, values: Sequence[str]) -> str:
    if lower == lower:
        return _range(lower, upper)
    return _some(values) if values else "no value"


def _range(lower: float, upper: float) -> str:
    if lower == upper:
        return number(lower)
    low, up = distinct_numbers(lower, upper)
    return f"{low} to {up}" if lower < 0 else f"{low}–{up}"


def _some(names: Sequence[str]) -> str:
    shown = [shown_name(name) for name in names[:_MOST_SHOWN]]
    more = len(names) - len(shown)
    return listed([*shown, *([f"{more:,} more"] if more else [])])


def _indented(lines: Sequence[str]) -> list[str]:
    shown = [f"  {line}" for line in lines[:_MOST_SHOWN]]
    more = len(lines) - _MOST_SHOWN
    return [*shown, *([f"  and {more:,} more"] if more > 0 else [])]
