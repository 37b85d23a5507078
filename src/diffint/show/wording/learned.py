"""Texts about the model: its features, patterns and their ranges."""

from __future__ import annotations

import numpy as np

from ...core.formatting import counted, distinct_numbers, percent, shown_name
from ...core.model import FittedModel
from ...explain.global_explanation import GlobalExplanation
from .ranges import range_text, values_text


def stored_rows(model: FittedModel) -> str:
    """How many training rows a model stores; empty if none."""
    kept = len(model.members[0].kept_rows)
    times = f"{len(model.members)} × " if len(model.members) > 1 else ""
    n_left_out = len(model.calibration.sample)
    left_out = f" and {counted(n_left_out, 'calibration row')}" if n_left_out else ""
    return f"{times}{counted(kept, 'training row')}{left_out}" if kept else ""


def features_text(model: FittedModel) -> str:
    """``7 features (2 categories)``"""
    used = [values for values in model.categories.values() if values]
    n_features = model.n_features - (len(model.categories) - len(used))
    kinds = f" ({counted(len(used), 'category')})" if used else ""
    return f"{counted(n_features, 'feature')}{kinds}"


def model_text(
    learned: GlobalExplanation, n_features: int, n_units: int, n_constraints: int
) -> str:
    """The most important features, and the most important ranges of the top patterns."""
    names = learned.feature_names
    order = learned.feature_order[~learned.constant[learned.feature_order]][:n_features]
    n_patterns = int(learned.is_pattern.sum())
    members = "" if learned.n_members == 1 else f" in {learned.n_members} members"
    lines = [
        f"Learned from {counted(learned.n_rows, 'row')} with {counted(len(names), 'feature')}: "
        f"{counted(n_patterns, 'pattern')}{members}."
    ]
    if len(order):
        width = max(len(shown_name(names[j])) for j in order)
        lines += ["", "Most important features (0 to 1):"]
        lines += [
            f"  {shown_name(names[j]):<{width}}  {learned.feature_importance[j]:.2f}" for j in order
        ]
    if learned.constant.any():
        constant = [shown_name(names[j]) for j in np.flatnonzero(learned.constant)]
        more = f" and {len(constant) - n_features} more" if len(constant) > n_features else ""
        lines += ["", f"Constant in training: {', '.join(constant[:n_features])}{more}."]
    for unit in learned.top_units(n_units, n_constraints):
        lines += ["", *unit_lines(learned, unit, n_constraints)]
    return "\n".join(lines)


def unit_lines(learned: GlobalExplanation, unit: int, n_constraints: int) -> list[str]:
    """A unit's most important ranges, one line each, without constant features."""
    order = learned.constraint_order(unit)[:n_constraints]
    order = order[learned.importance[unit, order] > 0]
    names = [shown_name(learned.feature_names[j]) for j in order]
    width = max(map(len, names), default=0)
    inside = learned.rows_inside(unit)
    lines = [f"Pattern {unit}{f' ({inside})' if inside else ''}:"]
    kind = "held-out row" if learned.held_out else "training row"
    for j, name in zip(order, names, strict=True):
        rows = counted(int(learned.coverage_counts[unit, j]), kind)
        lines.append(
            f"  {name:<{width}}  {constraint_text(learned, unit, j)}; holds for "
            f"{percent(learned.coverage[unit, j])} of {rows} (importance "
            f"{learned.importance[unit, j]:.2f}, stability {learned.stability[unit, j]:.2f})"
        )
    depth = learned.joint_coverage.shape[1]
    together = learned.joint_coverage[unit, len(order) - 1] if len(order) <= depth else np.nan
    if len(order) > 1 and not np.isnan(together):
        every = "Both" if len(order) == 2 else f"All {len(order)}"
        lines.append(f"  {every} together hold for {percent(together)} of these rows.")
    return lines


def constraint_text(learned: GlobalExplanation, unit: int, j: int) -> str:
    """The range of one feature; an end outside the training range is not named."""
    lower, upper = learned.lower[unit, j], learned.upper[unit, j]
    binds_below, binds_above = (
        bool(learned.binds_below[unit, j]),
        bool(learned.binds_above[unit, j]),
    )
    if np.isnan(lower):
        return "no value in training"
    if j in learned.categories:
        values = learned.categories[j]
        if not (binds_below or binds_above):
            return "any value seen in training"
        return values_text(values, lower, upper)
    low, up = distinct_numbers(lower, upper)
    if lower == upper:
        return f"exactly {low}"
    if binds_below != binds_above:
        return f"at least {low}" if binds_below else f"at most {up}"
    both = range_text(lower, upper, low, up, binds_below, binds_above)
    return both if binds_below else f"any value seen in training ({both})"
