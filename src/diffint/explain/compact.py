"""Compact patterns: boxes in a few features, and how far rows are from them.

A compact pattern shortens the description of a row: by all that it is worth if the row is inside
its box, and by less the farther outside the row lies. How much all patterns save together tells how
normal a row is. Besides, a cell beyond the training range costs something.

Lengths are in nats for mined patterns. For trained ones only their proportions mean something.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_BEYOND_TAIL = 0.1  # distance beyond the training range that costs 1


class Box(NamedTuple):
    """Ranges of a few features, in scaled units; all arrays have the shape (conditions,).

    tail: distance outside the range that costs 1. worth: what a row inside saves. weight: factor on
    what is saved.
    """

    features: NDArray[np.intp]
    lower: Array
    upper: Array
    tail: Array
    worth: float
    weight: float = 1.0


def saved(scaled: Array, boxes: Sequence[Box], usual_lost: Sequence[Array] | None = None) -> Array:
    """What each pattern saves in the description of each row. → (rows, patterns)

    weight · log(1 + exp(worth − distance outside the box in tails)): close calls are shared, so
    that there are no jumps. usual_lost: (conditions,) of each box, what is lost by a missing cell;
    nothing if not given
    """
    found = np.empty((len(scaled), len(boxes)))
    for k, box in enumerate(boxes):
        lost = _lost(scaled, box)
        known = np.where(np.isnan(lost), 0.0 if usual_lost is None else usual_lost[k], lost)
        found[:, k] = box.weight * np.logaddexp(0.0, box.worth - known.sum(axis=1))
    return found


def _lost(scaled: Array, box: Box) -> Array:
    """Distance outside the ranges of a box, in tails. → (rows, conditions); NaN where missing"""
    cells = scaled[:, box.features]
    outside = np.maximum(box.lower - cells, 0.0) + np.maximum(cells - box.upper, 0.0)
    return np.asarray(outside / box.tail)


def beyond(scaled: Array) -> Array:
    """What cells beyond the training range cost. → the shape of `scaled`"""
    return np.asarray(np.nan_to_num(np.maximum(np.abs(scaled) - 1.0, 0.0)) / _BEYOND_TAIL)


def description_lengths(scaled: Array, boxes: Sequence[Box]) -> Array:
    """The length of the description of rows, up to a constant; high is anomalous. → (rows,)"""
    return np.asarray(beyond(scaled).sum(axis=1) - saved(scaled, boxes).sum(axis=1))


class Usual(NamedTuple):
    """What is usual for normal rows.

    saved: (patterns,) what each pattern saves on average; beyond: (features,) what a cell costs
    beyond the training range on average; lost: (conditions,) of each pattern, the median of what is
    lost outside its range.
    """

    saved: Array
    beyond: Array
    lost: tuple[Array, ...]

    @classmethod
    def of(cls, scaled: Array, boxes: Sequence[Box]) -> Usual:
        present = np.asarray(~np.isnan(scaled).all(axis=0))  # features with a value in any row
        lost = tuple(np.zeros(len(box.features)) for box in boxes)
        for box, median in zip(boxes, lost, strict=True):
            known = present[box.features]
            median[known] = np.nanmedian(_lost(scaled, box)[:, known], axis=0)
        return cls(saved(scaled, boxes, lost).mean(axis=0), beyond(scaled).mean(axis=0), lost)


def excess_lengths(scaled: Array, boxes: Sequence[Box], usual: Usual) -> Array:
    """By how much the description of rows is longer than usual. → (rows,)

    A pattern counts as far as a row has values for its conditions; a missing cell is a usual one.
    """
    present = ~np.isnan(scaled)
    known = np.stack([present[:, box.features].mean(axis=1) for box in boxes], axis=1)
    missed = known * (usual.saved - saved(scaled, boxes, usual.lost))
    excess = np.where(present, beyond(scaled) - usual.beyond, 0.0)
    return np.asarray(missed.sum(axis=1) + excess.sum(axis=1))
