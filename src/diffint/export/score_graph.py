"""The score of rows as nodes of a graph; `engine/reference/score.py` is the definition.

Missing cells are carried as a mask beside values that are finite, because NaN would spread. Sums of
memberships and of errors are float64. Kept rows are compared in float32, which is most of the work.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.config import Config
from ..core.constants import CONSTANT_DISTANCE, MIN_MEMBERSHIP, NORM_EPSILON, UNCLIPPED_LIMIT
from ..core.decoder import Decoder
from ..core.model import Member
from ..core.scaling import Scaler
from ..core.scaling.base import RangeScaler
from .graph import DOUBLE, SINGLE, WHOLE, Graph, Value
from .surprise_graph import surprise_parts

Array = NDArray[np.float64]

_BLOCK_CELLS = 2**19  # rows × features × units or kept rows that are computed at once
_SAFE_EXPONENT = 300.0  # up to this |value|/τ no product of two exponentials overflows float64
# Features that are computed at once; a product of so many factors of at most 1e8 does not overflow.
_PIECE = 32
_TINY = float(np.finfo(float).tiny)


class Cells(NamedTuple):
    """Scaled rows of one member, (rows, features) each.

    encoded: float64, the encoder's input; target: float32, what errors are measured against;
    present: float64, 1 where a cell has a value that the member knows, else 0.
    """

    encoded: Value
    target: Value
    present: Value


def scores(graph: Graph, config: Config, members: tuple[Member, ...], x: Value) -> Value:
    """The anomaly scores of rows. x: (rows, features) float64, NaN where missing → (rows,)

    Rows are scored in blocks, so that the memory does not grow with the rows times the kept rows.
    """
    n_features = members[0].center.shape[1]
    widest = max(max(member.center.shape[0], len(member.kept_rows)) for member in members)
    most = max(1, _BLOCK_CELLS // (widest * min(n_features, _PIECE)))
    n_rows = graph.op("Shape", x, start=0, end=1)  # (1,)
    size = n_rows.clip(np.array([1]), np.array([most]))
    n_blocks = graph.op("Max", (n_rows + (size - 1)) // size, np.array([1]))
    added = n_blocks * size - n_rows
    padding = graph.op("Concat", np.zeros(2, np.int64), added, np.zeros(1, np.int64), axis=0)
    padded = graph.op("Pad", x, padding, 0.0)
    shape = graph.op("Concat", n_blocks, size, np.array([n_features]), axis=0)
    blocks = padded.reshaped(shape)

    def of_block(rows: Value) -> Value:
        known = ~graph.op("IsNaN", rows)
        filled = known.where(rows, 0.0)
        each = [_member_score(graph, config, member, filled, known) for member in members]
        return graph.op("Sum", *each) / float(len(members))

    found = graph.for_each(blocks, of_block, ["block", n_features]).reshaped([-1])
    return graph.op("Slice", found, np.array([0]), n_rows)


def _member_score(graph: Graph, config: Config, member: Member, x: Value, known: Value) -> Value:
    """One member's scores. x: (rows, features), finite or infinite; known: (rows, features)"""
    cells = _scaled(graph, member.scaler, x, known, config.error == "unclipped")
    code = _code(graph, member, cells, config.temperature)
    reconstruction = _decoded(graph, member.decoder, code)
    error = graph.op("Abs", cells.target.cast(DOUBLE) - reconstruction) * cells.present
    total = error.sum(1)
    if len(member.kept_rows):
        total = total + member.distance_weight * _distance(graph, member, cells)
    n_seen = float(member.scaler.n_seen)
    if config.missing == "signal":
        result = (total + _missing_part(graph, member, cells.present)) / n_seen
    else:
        result = total / graph.op("Max", cells.present.sum(1), 1.0)
    if len(member.associations.columns):
        result = result + surprise_parts(graph, member.associations, x, known) / n_seen
    return result


# --- Scaling -------------------------------------------------------------------------------


def _scaled(graph: Graph, scaler: Scaler, x: Value, known: Value, unclipped: bool) -> Cells:
    """Rows as `Scaler.transform` scales them, rounded to float32 as there."""
    scaled = (x - scaler.offset) / np.where(scaler.varies, scaler.divisor, 1.0)
    if scaler.curves:
        scaled = _with_curves(graph, scaler, x, scaled)
    constant, is_constant = np.nan_to_num(scaler.constant), scaler.is_constant
    if isinstance(scaler, RangeScaler):
        lowest, highest = scaler.unclipped_ends
        clipped, wide = scaled.clip(scaler.bottom, scaler.top), scaled.clip(lowest, highest)
        if is_constant.any():
            same, mask = x.equals(constant), graph.constant(is_constant)
            side = (x > constant).where(highest, lowest)
            clipped = mask.where(same.where(scaler.bottom, scaler.top), clipped)
            wide = mask.where(same.where(scaler.bottom, side), wide)
    else:
        if is_constant.any():
            side = (x > constant).where(1.0, (x < constant).where(-1.0, 0.0))
            apart = scaler.lower + CONSTANT_DISTANCE * side
            scaled = graph.constant(is_constant).where(apart, scaled)
        clipped = wide = scaled.clip(-UNCLIPPED_LIMIT, UNCLIPPED_LIMIT)
    encoded = clipped.cast(SINGLE)
    target = wide.cast(SINGLE) if unclipped else encoded
    seen = known if scaler.seen.all() else known & scaler.seen
    return Cells(encoded.cast(DOUBLE), target, seen.cast(DOUBLE))


def _with_curves(graph: Graph, scaler: Scaler, x: Value, linear: Value) -> Value:
    """Linearly scaled rows with the features that have a curve replaced, as by `Curve.scale`."""
    curved, curves = list(scaler.curves), list(scaler.curves.values())
    most = max(len(curve.values) for curve in curves)

    def table(rows: list[Array], rest: float) -> Array:
        return np.stack([np.append(row, np.full(most - len(row), rest)) for row in rows])

    values = table([curve.values for curve in curves], np.inf)
    last = np.array([len(curve.values) - 2 for curve in curves])
    own = x.columns(curved)
    below = (own.unsqueezed(2) >= values).cast(WHOLE).sum(2)
    segment = (below - 1).clip(0, last) + most * np.arange(len(curves))

    def at_segment(rows: list[Array]) -> Value:
        return graph.op("Gather", table(rows, 0.0).ravel(), segment)

    low = at_segment([curve.scaled[:-1] for curve in curves])
    high = at_segment([curve.scaled[1:] for curve in curves])
    start = at_segment([curve.values[:-1] for curve in curves])
    run = at_segment([curve.runs for curve in curves])
    along = (low + (own - start) / run).clip(low, high)
    places = np.arange(len(scaler.offset))
    places[curved] = len(places) + np.arange(len(curved))
    return graph.joined([linear, along], axis=1).columns(places)


# --- Encoder and decoder -------------------------------------------------------------------


def _code(graph: Graph, member: Member, cells: Cells, temperature: float) -> Value:
    """The softmax over the units of the log box memberships. → (rows, units)"""
    lower, upper = (end.astype(np.float64).T / temperature for end in (member.lower, member.upper))
    largest = max(float(np.abs(lower).max()), float(np.abs(upper).max()))
    safe = max(largest, member.scaler.largest_input / temperature) <= _SAFE_EXPONENT
    reciprocal = _by_product if safe else _by_difference
    scaled = graph.op("Transpose", cells.encoded / temperature, perm=[1, 0]).unsqueezed(2)
    present = graph.op("Transpose", cells.present, perm=[1, 0]).unsqueezed(2)
    pieces = [_pieces(part, 0, len(lower)) for part in (scaled, present, lower, upper)]
    logs = []
    for piece in zip(*pieces, strict=True):
        product = graph.op("Min", reciprocal(graph, *piece), 1.0 / MIN_MEMBERSHIP)
        logs.append(graph.op("Log", product.reduced("Prod", 0)))
    return graph.op("Softmax", -graph.op("Sum", *logs), axis=1)


def _by_product(graph: Graph, x: Value, present: Value, lower: Array, upper: Array) -> Value:
    """1 / membership of every (feature, row, unit), 1 where a cell is missing.

    1 / I = (1 + e^−(upper − lower)) + e^−x · e^lower + e^x · e^−upper is one product of matrices
    for each feature. x, present: (features, rows, 1); lower, upper: (features, units); all / τ
    """
    terms = [graph.op("Exp", -x) * present, graph.op("Exp", x) * present, present, 1.0 - present]
    factors = [np.exp(lower), np.exp(-upper), 1.0 + np.exp(lower - upper), np.ones_like(lower)]
    return graph.joined(terms, axis=2) @ np.stack(factors, axis=1)


def _by_difference(graph: Graph, x: Value, present: Value, lower: Array, upper: Array) -> Value:
    """The same as (1 + e^(lower − x)) · (1 + e^(x − upper)), for values of any size."""
    below = graph.op("Exp", lower[:, None] - x) + 1.0
    above = graph.op("Exp", x - upper[:, None]) + 1.0
    return (present > 0.0).where(below * above, 1.0)


def _decoded(graph: Graph, decoder: Decoder, code: Value) -> Value:
    """The reconstruction, as `Decoder.reconstruct`. code: (rows, units) → (rows, features)"""
    hidden = code @ decoder.hidden_weight.astype(np.float64)
    hidden = hidden + decoder.hidden_bias.astype(np.float64)
    if decoder.layer_norm:
        hidden = hidden - hidden.reduced("Mean", 1, keepdims=True)
        variance = (hidden * hidden).reduced("Mean", 1, keepdims=True)
        hidden = hidden / graph.op("Sqrt", variance + NORM_EPSILON)
        hidden = hidden * decoder.norm_gain.astype(np.float64)
        hidden = hidden + decoder.norm_shift.astype(np.float64)
    active = graph.op("Max", hidden, 0.0)
    return active @ decoder.output_weight.astype(np.float64) + decoder.output_bias.astype(
        np.float64
    )


# --- Beside the error ----------------------------------------------------------------------


def _distance(graph: Graph, member: Member, cells: Cells) -> Value:
    """The distance from the nearest kept row, summed over the present features. → (rows,)"""
    weighted = (cells.target * member.kept_weight).unsqueezed(2)  # (rows, features, 1)
    present = cells.present.cast(SINGLE).unsqueezed(1)  # (rows, 1, features)
    n_features = len(member.kept_weight)
    pieces = [
        _pieces(part, axis, n_features)
        for part, axis in ((weighted, 1), (present, 2), (member.kept_rows.T, 0))
    ]
    sums = [
        there @ graph.op("Abs", value - kept) for value, there, kept in zip(*pieces, strict=True)
    ]
    return graph.op("Sum", *sums).reduced("Min", 2).cast(DOUBLE).reshaped([-1])


def _pieces(part: Value | NDArray[Any], axis: int, n_features: int) -> list[Any]:
    """A value or an array in pieces of at most `_PIECE` features, which are along this axis."""
    sizes = [min(_PIECE, n_features - start) for start in range(0, n_features, _PIECE)]
    if isinstance(part, Value):
        return part.split(sizes, axis)
    return np.split(part, np.cumsum(sizes)[:-1], axis=axis)


def _missing_part(graph: Graph, member: Member, present: Value) -> Value:
    """What missing cells count, as `missing_parts` in the definition, summed. → (rows,)"""
    missing = 1.0 - present
    error = (missing * member.missing_error).sum(1)
    surprise = (missing * member.missing_surprise).sum(1)
    share = surprise / max(float(member.missing_surprise.sum()), _TINY)
    return error + surprise * share * share * share
