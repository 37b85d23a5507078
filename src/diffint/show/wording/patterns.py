"""Texts about a compact set of patterns."""

from __future__ import annotations

from ...core.constants import COMMONLY_MISSING
from ...core.formatting import counted, exact_number, percent
from ...explain.pattern_set import WANTED_COVERAGE, PatternSet
from .ranges import values_text
from .values import name_of, span_text, texts_beside


def condition_text(patterns: PatternSet, pattern: int, feature: int) -> str:
    """A range such as ``12–15.5``, ``exactly 3``, ``one of Ideal, Premium``, ``5–9 or missing``."""
    text = _allowed(patterns, pattern, feature)
    # A missing value meets every condition; of values that are seldom missing it need not be said.
    often = patterns.features.missing_share[feature] >= COMMONLY_MISSING
    return f"{text} or missing" if often else text


def _allowed(patterns: PatternSet, pattern: int, feature: int) -> str:
    lower, upper = patterns.lower[pattern, feature], patterns.upper[pattern, feature]
    if feature in patterns.categories:
        return values_text(patterns.categories[feature], lower, upper)
    low, up = exact_number(lower), exact_number(upper)
    if feature in patterns.starts:
        low, up = texts_beside(patterns, feature, lower, upper)
    if lower == upper:
        return f"exactly {low}"
    return span_text(patterns, feature, lower, upper, low, up)


def pattern_heading(patterns: PatternSet, pattern: int) -> str:
    """``Pattern 3: 41 % of normal rows inside, 78 % of artificial anomalies outside``"""
    outside = ""
    if patterns.n_anomalies:
        share = percent(patterns.anomalies_outside[pattern])
        outside = f", {share} of artificial anomalies outside"
    inside = percent(patterns.coverage[pattern])
    return f"Pattern {pattern + 1}: {inside} of normal rows inside{outside}"


def summary(patterns: PatternSet) -> str:
    """What all patterns do together, and on which rows that was measured."""
    if not len(patterns):
        return "No pattern was found."
    n_used = int(patterns.has_condition.any(axis=0).sum())
    rows = counted(patterns.n_measured, "training row" if patterns.kept else "row")
    source = (
        f"of {rows} that did not choose the patterns; their width is set for about "
        f"{percent(WANTED_COVERAGE)} of new normal rows"
        if patterns.kept
        else f"estimated on {rows} drawn from the model's boxes, since it keeps no training rows"
    )
    anomalies = ""
    if patterns.n_anomalies:
        anomalies = (
            f" Of {counted(patterns.n_anomalies, 'artificial anomaly')}, "
            f"{percent(patterns.set_anomalies_outside)} are outside all patterns."
        )
    return (
        f"{counted(len(patterns), 'pattern')} with "
        f"{counted(int(patterns.has_condition.sum()), 'condition')} on {n_used} of "
        f"{counted(len(patterns.feature_names), 'feature')}. "
        f"{percent(patterns.set_coverage)} of normal rows are inside at least one pattern "
        f"({source}).{anomalies}"
    )


def set_text(patterns: PatternSet) -> str:
    """The summary and all patterns, one condition per line."""
    lines = [summary(patterns)]
    for k in range(len(patterns)):
        features = patterns.conditions(k)
        names = [name_of(patterns, j) for j in features]
        width = max(map(len, names))
        lines += ["", pattern_heading(patterns, k)]
        lines += [
            f"  {name:<{width}}  {condition_text(patterns, k, j)}"
            for name, j in zip(names, features, strict=True)
        ]
    return "\n".join(lines)
