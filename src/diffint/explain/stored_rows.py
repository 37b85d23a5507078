"""Rows that a fitted model can be asked about: the training rows that it keeps, and rows made
from them that it takes for anomalies."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.model import FittedModel, Member

Array = NDArray[np.float64]

_SAME = 1e-3  # rows of two members whose scaled values differ by less are one row
_DRAWN_ROWS = 2_000  # drawn from the boxes where no rows are kept
_SHARES = (0.1, 0.25, 0.5, 1.0)  # of the cells of an artificial row that are replaced
_BEYOND = 0.05  # how far artificial values go beyond the range, as a share of it


class StoredRows(NamedTuple):
    """Rows in original units. rows: (rows, features); kept: whether they are training rows."""

    rows: Array
    kept: bool


def stored_rows(model: FittedModel) -> StoredRows:
    """The training rows that the members keep, in a random order that is always the same.

    A row that several members keep is taken once. Equal rows of one member are different training
    rows. If none are kept, rows are drawn from the boxes of the patterns instead, from each as
    often as there were training rows in it.
    """
    rng = np.random.default_rng(0)
    if model.n_kept_rows:
        kept = [m.scaler.to_original(m.kept_rows / m.kept_weight) for m in model.members]
        rows = np.concatenate(kept)
        member = np.repeat(np.arange(len(kept)), [len(one) for one in kept])
        rounded = np.round(np.nan_to_num(model.members[0].scaler.scaled(rows)) / _SAME)
        _, first, which = np.unique(rounded, axis=0, return_index=True, return_inverse=True)
        counts = np.zeros((len(first), len(kept)), dtype=np.intp)
        np.add.at(counts, (which.ravel(), member), 1)
        rows = np.repeat(rows[first], counts.max(axis=1), axis=0)
    else:
        rows = np.concatenate([_drawn_rows(m, rng, len(model.members)) for m in model.members])
    rows = _as_in_training(model, rows)
    return StoredRows(rows[rng.permutation(len(rows))], model.n_kept_rows > 0)


def _drawn_rows(member: Member, rng: np.random.Generator, n_members: int) -> Array:
    weight = np.where(member.is_pattern, member.box_rows + 1.0, 0.0)
    unit = rng.choice(len(weight), size=_DRAWN_ROWS // n_members, p=weight / weight.sum())
    place = rng.uniform(-1.0, 1.0, size=(len(unit), member.center.shape[1]))
    scaled = member.center[unit] + place * member.box_half_width[unit]
    return member.scaler.to_original(np.clip(scaled, member.scaler.lower, member.scaler.upper))


def _as_in_training(model: FittedModel, rows: Array) -> Array:
    """Whole numbers where the feature has them: a scaled value is not exact."""
    whole = model.features.whole.copy()
    whole[list(model.categories)] = True
    rows[:, whole] = np.round(rows[:, whole])
    for j, count in model.kinds.n_values.items():
        rows[:, j] = np.clip(rows[:, j], 0, count - 1)
    return rows


def artificial_rows(
    model: FittedModel, rows: Array, count: int, seed: int, kinds: int = 3
) -> Array:
    """Rows made from training rows, some of which are anomalies; the score tells which. (count, d)

    There are up to three kinds, equally many of each: some cells are those of other rows; the row
    lies half-way between two rows; some cells have any value of the range, or a little beyond it.
    """
    rng = np.random.default_rng(seed)
    n_rows, n_features = rows.shape
    base = rows[rng.integers(n_rows, size=count)]
    kind = rng.integers(kinds, size=(count, 1))
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
    return _as_in_training(model, made)


def unit_centers(model: FittedModel) -> tuple[Array, NDArray[np.int64]]:
    """Centers of all patterns in the units of the first member, and their numbers of rows."""
    scaler = model.members[0].scaler
    centers, rows = [], []
    for member in model.members:
        chosen = member.is_pattern
        lower, upper = member.scaler.in_units_of(
            scaler, member.center[chosen], member.half_width[chosen]
        )
        centers.append((lower + upper) / 2)
        rows.append(member.box_rows[chosen])
    return np.concatenate(centers), np.concatenate(rows)
