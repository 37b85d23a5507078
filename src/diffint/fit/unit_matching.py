"""Matching units across members, and how well they agree."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

Array = NDArray[np.float64]


def match_units(reference: tuple[Array, Array], other: tuple[Array, Array]) -> NDArray[np.intp]:
    """For every unit of `reference` the unit of `other` it is matched to.

    Each argument is (center, half_width), (units, features) in common units; the matching
    minimises the total distance of centers and half-widths (Hungarian assignment).
    """
    cost = cdist(np.hstack(reference), np.hstack(other), "cityblock")
    return linear_sum_assignment(cost)[1]


def stabilities(lowers: list[Array], uppers: list[Array], span: Array) -> list[Array]:
    """Agreement of each member's units with their matches: 1 / (1 + spread²), in [0, 1].

    lowers, uppers: per member (units, features), in common units; span: (features,) range in the
    same units. The spread is the mean standard deviation, over the members, of the two bounds as
    a share of the range. It is 0, and the stability 1, where members agree or there is only one.
    Units outnumber what rows can tell apart, so a small spread is the luck of the matching: a
    formula that is steep at 0 ranks features by that luck.
    """
    if len(lowers) == 1:
        return [np.ones_like(lowers[0])]
    boxes = [((lo + up) / 2, (up - lo) / 2) for lo, up in zip(lowers, uppers, strict=True)]
    matches = [match_units(boxes[0], box) for box in boxes]
    spread = np.zeros_like(lowers[0])
    for bounds in (lowers, uppers):
        matched = np.stack([b[m] for b, m in zip(bounds, matches, strict=True)])
        spread += matched.std(axis=0) / 2
    with np.errstate(over="ignore"):  # infinitely many times the range: a stability of 0
        stability = 1.0 / (1.0 + (spread / np.where(span > 0, span, 1.0)) ** 2)
    results = []
    for match in matches:
        own = np.empty_like(stability)
        own[match] = stability
        results.append(own)
    return results
