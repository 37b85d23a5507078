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


def saved(scaled: Array, boxes: Sequence[Box]) -> Array:
    """What each pattern saves in the description of each row. → (rows, patterns)

    weight · log(1 + exp(worth − distance outside the box in tails)): close calls are shared, so
    that there are no jumps. A missing cell is inside every range.
    """
    found = np.empty((len(scaled), len(boxes)))
    for k, box in enumerate(boxes):
        cells = scaled[:, box.features]
        outside = np.maximum(box.lower - cells, 0.0) + np.maximum(cells - box.upper, 0.0)
        gain = box.worth - np.nan_to_num(outside / box.tail).sum(axis=1)
        found[:, k] = box.weight * np.logaddexp(0.0, gain)
    return found


def beyond(scaled: Array) -> Array:
    """What cells beyond the training range cost. → the shape of `scaled`"""
    return np.asarray(np.nan_to_num(np.maximum(np.abs(scaled) - 1.0, 0.0)) / _BEYOND_TAIL)


def description_lengths(scaled: Array, boxes: Sequence[Box]) -> Array:
    """The length of the description of rows, up to a constant; high is anomalous. → (rows,)"""
    return np.asarray(beyond(scaled).sum(axis=1) - saved(scaled, boxes).sum(axis=1))


class Usual(NamedTuple):
    """What is usual for normal rows.

    saved: (patterns,) what each pattern saves on average; beyond: (features,) what a cell costs
    beyond the training range on average.
    """

    saved: Array
    beyond: Array

    @classmethod
    def of(cls, scaled: Array, boxes: Sequence[Box]) -> Usual:
        return cls(saved(scaled, boxes).mean(axis=0), beyond(scaled).mean(axis=0))


def excess_lengths(scaled: Array, boxes: Sequence[Box], usual: Usual) -> Array:
    """By how much the description of rows is longer than usual. → (rows,)

    A pattern counts as far as a row has values for its conditions; a missing cell is a usual one.
    """
    present = ~np.isnan(scaled)
    known = np.stack([present[:, box.features].mean(axis=1) for box in boxes], axis=1)
    missed = known * (usual.saved - saved(scaled, boxes))
    excess = np.where(present, beyond(scaled) - usual.beyond, 0.0)
    return np.asarray(missed.sum(axis=1) + excess.sum(axis=1))
