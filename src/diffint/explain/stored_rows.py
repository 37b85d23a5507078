"""Rows that a fitted model can be asked about: the training rows that it keeps, and rows made
from them that it takes for anomalies."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.model import FittedModel, Member
from .constraints import training_range

Array = NDArray[np.float64]

_SAME = 1e-3  # rows of two members whose scaled values differ by less are one row
_DIGITS = 6  # kept rows are stored with about seven digits
_DRAWN_ROWS = 2_000  # drawn from the boxes where no rows are kept
_SHARES = (0.1, 0.25, 0.5, 1.0)  # of the cells of an artificial row that are replaced
_BEYOND = 0.05  # how far artificial values go beyond the range, as a share of it


class StoredRows(NamedTuple):
    """Rows in original units. rows: (rows, features); kept: whether they are training rows."""

    rows: Array
    kept: bool


def stored_rows(model: FittedModel) -> StoredRows:
    """The training rows that the members keep, in a random order that is always the same.

    If none are kept, rows are drawn from the boxes of the patterns instead, from each as often as
    there were training rows in it.
    """
    rng = np.random.default_rng(0)
    if model.n_kept_rows:
        rows = kept_rows(model)
        for j in np.flatnonzero(np.isnan(rows).any(axis=0) & ~np.isnan(rows).all(axis=0)):
            rows[np.isnan(rows[:, j]), j] = np.nanmedian(rows[:, j])
    else:
        rows = np.concatenate([_drawn_rows(m, rng, len(model.members)) for m in model.members])
    rows = as_in_training(model, rows)
    return StoredRows(rows[rng.permutation(len(rows))], model.n_kept_rows > 0)


def kept_rows(model: FittedModel) -> Array:
    """The training rows that the members keep, in original units. → (rows, features)

    A row that several members keep is taken once. Equal rows of one member are different training
    rows: they are taken from the member that has most of them. NaN where a value is missing.
    """
    each = [_kept_by(member) for member in model.members]
    rows = np.concatenate(each)
    member_of = np.repeat(np.arange(len(each)), [len(one) for one in each])
    for offset in (0.0, 0.5):  # twice, as equal values may be rounded to both sides
        scaled = np.nan_to_num(model.members[0].scaler.scaled(rows))
        chosen = _once(np.round(scaled / _SAME + offset), member_of)
        rows, member_of = rows[chosen], member_of[chosen]
    smallest, largest = training_range(model.features)
    return as_in_training(model, _rounded(rows, last_digit(rows, largest - smallest)))


def _once(rounded: Array, member_of: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Which rows to take, so that equal rows come from one member. rounded: (rows, features)"""
    which = np.unique(rounded, axis=0, return_inverse=True)[1].ravel()
    counts = np.zeros((int(which.max(initial=-1)) + 1, int(member_of.max(initial=0)) + 1))
    np.add.at(counts, (which, member_of), 1)
    return np.asarray(counts.argmax(axis=1)[which] == member_of)


def _kept_by(member: Member) -> Array:
    """The kept rows of a member in original units, NaN where a value is missing."""
    weight = np.where(member.kept_weight > 0, member.kept_weight, 1.0)
    rows = member.scaler.to_original(member.kept_rows / weight)
    return np.where(member.kept_missing, np.nan, rows)


def last_digit(values: Any, span: Any) -> Any:
    """The exponent of ten of the last digit that a kept value is stored with, about.

    Six digits of the value, or of the training range if that is finer.
    """
    size = np.minimum(np.maximum(np.abs(values), 1e-290), np.maximum(span, 1e-290))
    return np.floor(np.log10(np.where(np.isnan(size), 1.0, size))) - _DIGITS + 1


def _rounded(values: Array, exponent: Array) -> Array:
    """Values rounded to a power of ten each, to the nearest number that is written so."""
    down, up = 10.0 ** np.maximum(exponent, 0), 10.0 ** np.maximum(-exponent, 0)
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = np.round(values * up / down) * down / up
    return np.where(np.isfinite(rounded), rounded, values)


def _drawn_rows(member: Member, rng: np.random.Generator, n_members: int) -> Array:
    weight = np.where(member.is_pattern, member.box_rows + 1.0, 0.0)
    unit = rng.choice(len(weight), size=_DRAWN_ROWS // n_members, p=weight / weight.sum())
    place = rng.uniform(-1.0, 1.0, size=(len(unit), member.center.shape[1]))
    scaled = member.box_center[unit] + place * member.box_half_width[unit]
    return member.scaler.to_original(np.clip(scaled, member.scaler.lower, member.scaler.upper))


def as_in_training(model: FittedModel, rows: Array) -> Array:
    """Whole numbers where the feature has them: a scaled value is not exact."""
    whole = model.features.whole.copy()
    whole[list(model.categories)] = True
    rows[:, whole] = np.round(rows[:, whole])
    for j, count in model.kinds.n_values.items():
        rows[:, j] = np.clip(rows[:, j], 0, count - 1)
    return rows


def artificial_rows(model: FittedModel, rows: Array, count: int, seed: int) -> Array:
    """Rows made from training rows, some of which are anomalies; the score tells which. (count, d)

    There are three kinds, equally many of each: some cells are those of other rows; the row
    lies half-way between two rows; some cells have any value of the range, or a little beyond it.
    """
    rng = np.random.default_rng(seed)
    n_rows, n_features = rows.shape
    base = rows[rng.integers(n_rows, size=count)]
    kind = rng.integers(3, size=(count, 1))
    replaced = rng.random((count, n_features)) < rng.choice(_SHARES, size=(count, 1))
    replaced[np.arange(count), rng.integers(n_features, size=count)] = True
    others = rows[rng.integers(n_rows, size=(count, n_features)), np.arange(n_features)]
    middle = (base + rows[rng.integers(n_rows, size=count)]) / 2
    low, high = rows.min(axis=0), rows.max(axis=0)
    place = rng.uniform(-_BEYOND, 1.0 + _BEYOND, size=(count, n_features))
    anywhere = low * (1.0 - place) + high * place
    made = np.where(
        kind == 0,
        np.where(replaced, others, base),
        np.where(kind == 1, middle, np.where(replaced, anywhere, base)),
    )
    return as_in_training(model, made)


def unit_centers(model: FittedModel) -> Array:
    """Centers of all patterns, in the units of the first member. → (patterns, features)"""
    scaler = model.members[0].scaler
    centers = []
    for member in model.members:
        chosen = member.is_pattern
        lower, upper = member.scaler.in_units_of(
            scaler, member.center[chosen], member.half_width[chosen]
        )
        centers.append((lower + upper) / 2)
    return np.concatenate(centers)
