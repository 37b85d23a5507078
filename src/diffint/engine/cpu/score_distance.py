"""The distance part of a score: how far a row is from the nearest training row that was kept.

Kept rows stand in groups of LANES that lie near each other. A group whose bounding box is farther
away than the nearest row so far is passed over; the result is that of comparing all rows.
"""

from __future__ import annotations

import numpy as np

from ..kernel_cache import compiled
from .product_tile import LANES
from .score_layout import (
    BOUND,
    CANDIDATES,
    CELLS,
    FEATURES,
    GROUP_HALF,
    GROUP_MIDDLE,
    ITEM,
    KEPT,
    KEPT_GROUPS,
    KEPT_WEIGHT,
    MASK,
    NEAREST,
    NEAREST_ROW,
    SMALLEST,
    TARGET,
    WEIGHTED,
)
from .score_tiles import DISTANCE_ROWS, bound_groups, find_nearer, least_of, list_within

_MARGIN, _MARGIN_PER_FEATURE = 1e-4, 1.2e-7  # more than the rounding of a bound
_FAR = np.float32(np.inf)
_ALL_BUT_SIGN = np.int32(0x7FFFFFFF)


@compiled
def find_nearest(floats, member, places, rows, scratch, exponents):
    """Find the nearest kept row of each row of a tile.

    Reads TARGET. WEIGHTED gets the weighted rows, NEAREST_ROW the nearest kept rows.
    """
    features, cells, groups = places[FEATURES], places[CELLS], places[KEPT_GROUPS]
    for b in range(rows):
        _weigh(floats, member, places, b, scratch, exponents)
    blocks = -(-groups // LANES)
    for block in range(blocks):
        ends = floats.ctypes.data + (member + block * features * LANES) * ITEM
        for b in range(0, rows, DISTANCE_ROWS):
            bound_groups(
                scratch.ctypes.data + (places[WEIGHTED] + b * cells) * ITEM,
                exponents.ctypes.data + (places[MASK] + b * cells) * ITEM,
                cells * ITEM,
                ends + places[GROUP_MIDDLE] * ITEM,
                ends + places[GROUP_HALF] * ITEM,
                features,
                scratch.ctypes.data + (places[BOUND] + (b * blocks + block) * LANES) * ITEM,
                blocks * LANES * ITEM,
            )
    for b in range(rows):
        bounds = scratch.ctypes.data + (places[BOUND] + b * blocks * LANES) * ITEM
        nearest = _nearest_of_one(floats, member, places, b, bounds, blocks, scratch, exponents)
        group, lane = nearest // LANES, nearest % LANES
        kept = floats[member + places[KEPT] + group * features * LANES + lane :]
        nearest_row = scratch[places[NEAREST_ROW] + b * cells :]
        for j in range(features):
            nearest_row[j] = kept[j * LANES]


@compiled
def _weigh(floats, member, places, b, scratch, exponents):
    """Row b of the tile times the weights, and its mask."""
    cells = places[CELLS]
    first = member + places[KEPT_WEIGHT]
    weight = floats[first : first + cells]
    target = scratch[places[TARGET] + b * cells : places[TARGET] + (b + 1) * cells]
    weighted = scratch[places[WEIGHTED] + b * cells : places[WEIGHTED] + (b + 1) * cells]
    mask = exponents[places[MASK] + b * cells : places[MASK] + (b + 1) * cells]
    for j in range(cells):  # padding cells are missing
        value = target[j] * weight[j]
        weighted[j] = value
        mask[j] = _ALL_BUT_SIGN if value == value else np.int32(0)


@compiled
def _nearest_of_one(floats, member, places, b, bounds, vectors, scratch, exponents):
    """Index of the kept row nearest to row b of the tile, the first of several.

    bounds: address of the row's distances from the boxes around the groups, in vectors. The row's
    distance from the group whose box is nearest rules out most others.
    """
    groups = places[KEPT_GROUPS]
    candidates = exponents[places[CANDIDATES] : places[CANDIDATES] + groups]
    smallest = scratch[places[SMALLEST] : places[SMALLEST] + LANES]
    nearest = exponents[places[NEAREST] : places[NEAREST] + LANES]
    for i in range(LANES):
        smallest[i] = _FAR
        nearest[i] = np.int32(0)
    first = least_of(bounds, vectors)
    candidates[0] = np.int32(first)
    distance = _compare(floats, member, places, b, 1, scratch, exponents)
    limit = distance * np.float32(1.0 + _MARGIN + _MARGIN_PER_FEATURE * places[FEATURES])
    count = list_within(bounds, groups, limit, candidates.ctypes.data)
    distance = _compare(floats, member, places, b, count, scratch, exponents)
    index = np.int64(groups) * LANES
    for i in range(LANES):
        other = np.int64(nearest[i]) * LANES + i
        index = other if smallest[i] == distance and other < index else index
    return index


@compiled
def _compare(floats, member, places, b, count, scratch, exponents):
    """Compare row b of the tile with the candidate groups. → the smallest distance so far"""
    cells = places[CELLS]
    return find_nearer(
        scratch.ctypes.data + (places[WEIGHTED] + b * cells) * ITEM,
        exponents.ctypes.data + (places[MASK] + b * cells) * ITEM,
        floats.ctypes.data + (member + places[KEPT]) * ITEM,
        places[FEATURES],
        exponents.ctypes.data + places[CANDIDATES] * ITEM,
        count,
        scratch.ctypes.data + places[SMALLEST] * ITEM,
        exponents.ctypes.data + places[NEAREST] * ITEM,
    )
