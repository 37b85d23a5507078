"""The distance part of a score: how far a row is from the nearest training row that was kept."""

from __future__ import annotations

import numpy as np

from ..kernel_cache import compiled
from .product_tile import LANES
from .score_layout import (
    CELLS,
    DEVIATE,
    FEATURES,
    ITEM,
    KEPT,
    KEPT_GROUPS,
    KEPT_WEIGHT,
    MASK,
    NEAREST,
    SMALLEST,
    TARGET,
)
from .score_tiles import DISTANCE_ROWS, find_nearer

_FAR = np.float32(np.inf)
_ALL_BUT_SIGN = np.int32(0x7FFFFFFF)


@compiled
def find_nearest(floats, member, places, rows, scratch, exponents):
    """Find the nearest kept row of each row of a tile.

    Reads TARGET. DEVIATE gets the rows in standard deviations; the first lane of NEAREST the index
    of the kept row.
    """
    features, cells, groups = places[FEATURES], places[CELLS], places[KEPT_GROUPS]
    first = member + places[KEPT_WEIGHT]
    weight = floats[first : first + features]
    for b in range(rows):
        target = scratch[places[TARGET] + b * cells : places[TARGET] + (b + 1) * cells]
        deviate = scratch[places[DEVIATE] + b * cells : places[DEVIATE] + (b + 1) * cells]
        mask = exponents[places[MASK] + b * cells : places[MASK] + (b + 1) * cells]
        for j in range(features):
            value = target[j] * weight[j]
            deviate[j] = value
            mask[j] = _ALL_BUT_SIGN if value == value else np.int32(0)
        smallest = scratch[places[SMALLEST] + b * LANES : places[SMALLEST] + (b + 1) * LANES]
        nearest = exponents[places[NEAREST] + b * LANES : places[NEAREST] + (b + 1) * LANES]
        for i in range(LANES):
            smallest[i] = _FAR
            nearest[i] = np.int32(0)
    for group in range(groups):
        kept = member + places[KEPT] + group * features * LANES
        for b in range(0, rows, DISTANCE_ROWS):
            find_nearer(
                scratch.ctypes.data + (places[DEVIATE] + b * cells) * ITEM,
                exponents.ctypes.data + (places[MASK] + b * cells) * ITEM,
                cells * ITEM,
                floats.ctypes.data + kept * ITEM,
                features,
                scratch.ctypes.data + (places[SMALLEST] + b * LANES) * ITEM,
                exponents.ctypes.data + (places[NEAREST] + b * LANES) * ITEM,
                LANES * ITEM,
                group,
            )
    for b in range(rows):
        smallest = scratch[places[SMALLEST] + b * LANES : places[SMALLEST] + (b + 1) * LANES]
        nearest = exponents[places[NEAREST] + b * LANES : places[NEAREST] + (b + 1) * LANES]
        distance, index = smallest[0], nearest[0] * LANES
        for i in range(1, LANES):
            other = nearest[i] * LANES + i
            if smallest[i] < distance or (smallest[i] == distance and other < index):
                distance, index = smallest[i], other
        nearest[0] = np.int32(index)


@compiled
def kept_value(floats, member, places, nearest, j):
    """The kept row's value of feature j, in standard deviations."""
    group, lane = nearest // LANES, nearest % LANES
    return floats[member + places[KEPT] + (group * places[FEATURES] + j) * LANES + lane]
