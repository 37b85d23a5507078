"""Matches units across members and measures their agreement (stability)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

Array = NDArray[np.float64]


def match_units(reference: tuple[Array, Array], other: tuple[Array, Array]) -> NDArray[np.intp]:
    """For every unit of `reference` the index of the matched unit of `other`. → (units,)

    Each argument is a pair (center, half_width) of arrays (units, features) in common units. The
    matching minimises the total distance of centers and half-widths (Hungarian assignment).
    """
    cost = cdist(np.hstack(reference), np.hstack(other), "cityblock")
    return np.asarray(linear_sum_assignment(cost)[1])


def stabilities(lowers: list[Array], uppers: list[Array], span: Array) -> list[Array]:
    """Stability of each member's units: 1 / (1 + spread²), in [0, 1]. → (units, features) each

    lowers, uppers: per member (units, features), in common units; span: (features,) training range
    in the same units. The spread is the standard deviation over the matched units of all members,
    averaged over the two bounds, as a share of the range. With a single member the stability is 1.

    There are more units than distinct groups of rows, so small differences of the spread are
    chance. The formula is flat at 0 so that they do not affect the ranking of features.
    """
    if len(lowers) == 1:
        return [np.ones_like(lowers[0])]
    boxes = [((lo + up) / 2, (up - lo) / 2) for lo, up in zip(lowers, uppers, strict=True)]
    matches = [match_units(boxes[0], box) for box in boxes]
    spread = np.zeros_like(lowers[0])
    for bounds in (lowers, uppers):
        matched = np.stack([b[m] for b, m in zip(bounds, matches, strict=True)])
        spread += matched.std(axis=0) / 2
    with np.errstate(over="ignore"):  # an infinite spread gives a stability of 0
        stability = 1.0 / (1.0 + (spread / np.where(span > 0, span, 1.0)) ** 2)
    results = []
    for match in matches:
        own = np.empty_like(stability)
        own[match] = stability
        results.append(own)
    return results
