"""p-values and flags as nodes of a graph; `core/flag_rule.py` is the definition.

The p-value of a score depends only on how many calibration scores are below it. That number is
found by a binary search in the sorted scores, and the p-value looked up, so that confidence and
groups need no formula in the graph.

The library computes networks in float32, the graph in float64, so that a calibration row has not
quite its calibration score here. Scores that differ less than that are equal: a row that the
library compares with itself mostly has the same p-value here.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..core.calibration import Calibration
from ..core.flag_rule import FlagRule
from .graph import ML_DOMAIN, Graph, Value

# The largest relative difference of scores that count as equal.
_SAME = 1e-6


def p_values_and_flags(
    graph: Graph, rule: FlagRule, scores: Value, segments: Value | None
) -> tuple[Value, Value]:
    """The p-values and flags of rows. scores: (rows,); segments: (rows,) texts → (rows,) each"""
    parts, part_of = _parts(rule)
    sizes = np.array([len(part.scores) for part in parts])
    starts = np.append(0, np.cumsum(sizes)[:-1])
    cuts = np.array([part.threshold(rule.rate, rule.confidence) for part in parts])
    tails = [part.tails(np.arange(len(part.scores) + 1), rule.confidence) for part in parts]
    every = np.concatenate([part.scores for part in parts]) * (1.0 + _SAME)
    cuts = cuts * (1.0 + _SAME)
    if segments is None:
        place: Value | np.ndarray = np.zeros(1, dtype=np.int64)
        start, size, cut = (graph.constant(array[:1]) for array in (starts, sizes, cuts))
    else:
        place = graph.op(
            "LabelEncoder",
            segments,
            domain=ML_DOMAIN,
            keys_strings=list(part_of),
            values_int64s=list(part_of.values()),
            default_int64=len(parts) - 1,
        )
        start, size, cut = (graph.op("Gather", array, place) for array in (starts, sizes, cuts))
    below = graph.op("Expand", 0, graph.op("Shape", scores))
    step = 1 << int(sizes.max()).bit_length() - 1
    while step:
        ahead = below + step
        last = graph.op("Min", ahead, size) + (start - 1)
        higher = (graph.op("Gather", every, last) < scores) & (ahead <= size)
        below, step = higher.where(ahead, below), step // 2
    # A part with n scores has n + 1 p-values, so that each start is one later for each part before.
    p_value = graph.op("Gather", np.concatenate(tails), below + start + place)
    return p_value, scores > cut


def _parts(rule: FlagRule) -> tuple[list[Calibration], Mapping[str, int]]:
    """The different sets of calibration scores, those of all rows last; the one of each segment."""
    names = rule.calibration.segment_names
    found: list[Calibration] = []
    part_of: dict[str, int] = {}
    own = {id(rule.calibration): -1}
    for code, name in enumerate(names):
        part = rule.part(code)
        if part is not rule.calibration and id(part) not in own:
            own[id(part)] = len(found)
            found.append(part)
        part_of[name] = own[id(part)]
    found.append(rule.calibration)
    last = len(found) - 1
    return found, {name: last if place < 0 else place for name, place in part_of.items()}
