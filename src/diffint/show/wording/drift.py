"""Texts about a population that has moved, or has not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.formatting import counted, distinct_numbers, listed, number, percent, shown_name
from ...decide.drift import SCORE
from ...decide.drift_dictionary import MEAN, MISSING, NEW_VALUES, SPREAD

if TYPE_CHECKING:
    from ...decide.drift import Drift
    from ...decide.drift_summary import FeatureShift

_MOST_SHIFTS = 3
_SMALLEST_SHOWN = 0.001  # p-value
_LESS = 0.8  # of the flagged share, above which nothing is explained
_SHARES = {MISSING: "missing values"}
TRAINING_ROWS = (
    "The model was trained on these rows or on some of them: their scores are too low to be "
    "compared."
)
_ALIKE = 0.02  # difference of flagged shares that is not worth another feature


def drift_text(drift: Drift) -> str:
    """``The population has moved (p < 0.001). temp moved from 35.1 to 79 (median; +2.9 sd). …``"""
    trained_on = [TRAINING_ROWS] if drift.training_rows else []
    return " ".join([*_verdict(drift), *trained_on, flags_text(drift)])


def p_text(p_value: float) -> str:
    """``p = 0.02``, or ``p < 0.001``"""
    if p_value < _SMALLEST_SHOWN:
        return f"p < {_SMALLEST_SHOWN:g}"
    return f"p = {number(p_value, 2)}"


def _verdict(drift: Drift) -> list[str]:
    p = p_text(drift.p_value)
    if not drift.drifted:
        with_what = counted(drift.n_stored, "stored row")
        return [
            f"No sign that the population has moved ({p}; {counted(drift.n_compared, 'row')} "
            f"compared with {with_what})."
        ]
    moved = [shift for shift in drift.moved if shift.feature != SCORE]
    said = [f"The population has moved ({p})."]
    said += [f"{shift_text(shift)}." for shift in (moved or drift.moved)[:_MOST_SHIFTS]]
    if len(moved) > _MOST_SHIFTS:
        n_more = len(moved) - _MOST_SHIFTS
        said.append(f"{n_more} more {'feature' if n_more == 1 else 'features'} moved.")
    if drift.grouped:
        said.append("Training rows come in groups, so that p may be too small.")
    return said


def shift_text(shift: FeatureShift) -> str:
    """What has changed in a feature, without a full stop."""
    name = "The score" if shift.feature == SCORE else shown_name(shift.feature)
    was, now = distinct_numbers(shift.was, shift.now)
    shares = f"{percent(shift.now)} of the rows, before in {percent(shift.was)}"
    if shift.is_relation:
        other = shown_name(shift.kind.removeprefix("with "))
        return f"{name} goes with {other} in another way (rank correlation {now}, before {was})"
    if shift.kind == MEAN:
        return f"{name} moved from {was} to {now} ({shift.measure}{_deviations(shift)})"
    if shift.kind == SPREAD:
        how = "more" if shift.shift > 0 else "less"
        return f"{name} varies {how} ({shift.measure} {now}, before {was})"
    if shift.kind == MISSING:
        return f"{name} is missing in {shares}"
    if shift.kind == NEW_VALUES:
        return f"{name} has new values in {shares}"
    return f"{name} is {shown_name(shift.value)} in {shares}"


def change_text(shift: FeatureShift) -> str:
    """``median 35.1 → 79``: what has changed, without the name of the feature"""
    what = measure_text(shift).removeprefix("share of ")
    return f"{what} {' → '.join(values_text(shift))}"


def measure_text(shift: FeatureShift) -> str:
    """``median``, ``share of Oslo``, ``rank correlation with age``: what was measured"""
    if shift.measure == "share":
        what = shown_name(shift.value) if shift.value else _SHARES.get(shift.kind, shift.kind)
        return f"share of {what}"
    return f"{shift.measure} {shown_name(shift.kind)}" if shift.is_relation else shift.measure


def values_text(shift: FeatureShift) -> tuple[str, str]:
    """What was measured before, and now."""
    if shift.measure == "share":
        return percent(shift.was), percent(shift.now)
    was, now = distinct_numbers(shift.was, shift.now)
    return was, now


def _deviations(shift: FeatureShift) -> str:
    size = shift.shift_sd
    return f"; {'+' if size > 0 else '−'}{number(abs(size), 2)} sd" if size == size else ""


def flags_text(drift: Drift) -> str:
    """How many rows are flagged, and how many would be if features were as in training."""
    now = f"{percent(drift.flagged_share)} of the rows are flagged"
    now = f"{now[0].upper()}{now[1:]}, {percent(drift.expected_share)} expected"
    if not drift.explained:
        return f"{now}."
    shares = [share for _, share in drift.explained]
    lowest = min(shares)
    if lowest > _LESS * drift.flagged_share:
        return f"{now}; the shifts of single features do not explain that."
    # Further features that change next to nothing are not named.
    enough = next(i for i, share in enumerate(shares) if share <= lowest + _ALIKE)
    names = [shown_name(name) for name, _ in drift.explained]
    named = [0, enough] if enough > 0 and shares[0] < drift.flagged_share else [enough]
    steps = [f"with {listed(names[: i + 1])} as in training {percent(shares[i])}" for i in named]
    return f"{now}; {', '.join(steps)} would be."
