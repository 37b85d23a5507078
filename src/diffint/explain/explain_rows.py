"""Explain rows: everything that a `LocalExplanation` holds, computed from a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.associations import Clashes
from ..core.constants import COMMONLY_MISSING
from ..core.flag_rule import FlagRule
from ..core.model import FeatureSummary, FittedModel
from ..engine.threads import run_blocks
from ..score.nearest_pattern import Matches
from ..score.prepared import PreparedModel
from .comparable_rows import ComparableRows
from .constraints import BoxEnds, Ends, box_ends, readable, readable_for, training_range
from .doubt import doubts
from .local_explanation import LocalExplanation

if TYPE_CHECKING:
    import pandas

Array = NDArray[np.float64]

_BLOCK_ROWS = 512


@dataclass(frozen=True)
class _Boxes:
    """What explanations need of all units' boxes, numbered through all members.

    ends: (units, features) in original units; readable: the same for people; rows, peers,
    peers_inside: as in `Member`.
    """

    ends: BoxEnds
    readable: Ends
    rows: NDArray[np.int64]
    peers: NDArray[np.int64]
    peers_inside: NDArray[np.int64]

    @classmethod
    def of(cls, model: FittedModel) -> _Boxes:
        """The boxes of a model."""
        each = [box_ends(model.config, member) for member in model.members]
        ends = BoxEnds(*map(np.concatenate, zip(*each, strict=True)))
        return cls(
            ends,
            readable(ends, model.features),
            np.concatenate([member.box_rows for member in model.members]),
            np.concatenate([member.peers for member in model.members]),
            np.concatenate([member.peers_inside for member in model.members]),
        )

    def ends_for(self, unit: NDArray[np.intp], value: Array, features: FeatureSummary) -> Ends:
        """The ends of each row's own unit. unit: (rows,); value: (rows, features)"""
        ends = self.readable
        own = Ends(
            ends.lower[unit], ends.upper[unit], ends.binds_below[unit], ends.binds_above[unit]
        )
        return readable_for(value, own, self.ends, unit, features)


def _move_beside(
    ends: Array,
    value: Array,
    where: NDArray[np.bool_],
    exact: Array,
    unit: NDArray[np.intp],
    towards: float,
) -> None:
    """Move rounded ends that a value does not lie beyond, though it lies beyond the exact ones.

    ends, value, where: (rows, features); exact: (units, features); unit: (rows,); towards: the
    infinity on the other side of the end.
    """
    row, j = np.nonzero(where)
    nearest = np.nextafter(value[row, j], towards)
    closer = np.fmax if towards > 0 else np.fmin
    ends[row, j] = closer(exact[unit[row], j], nearest)


def _clashes(model: FittedModel, x: Array, member: NDArray[np.intp]) -> dict[int, Clashes]:
    """`LocalExplanation.clashes`, counted by the member whose pattern is reported."""
    each = [m.associations for m in model.members]
    found = {int(j): Clashes.none(len(x)) for j in each[0].columns}
    for m, associations in enumerate(each):
        rows = np.flatnonzero(member == m)
        for i, j in enumerate(associations.columns):
            found[j].put(rows, associations.clashes(x[rows], i))
    return found


def explain_rows(
    prepared: PreparedModel,
    x: NDArray[Any],
    rule: FlagRule,
    n_jobs: int = 1,
    index: pandas.Index | None = None,
    new_texts: Mapping[tuple[int, int], str] | None = None,
) -> LocalExplanation:
    """Explain rows in original units.

    x: (rows, features); rule: which of them are flagged; index: their labels; new_texts: as in
    `LocalExplanation`
    """
    x = np.array(x, dtype=np.float64)  # a copy, so that the caller may change the rows later
    model, packed = prepared.model, prepared.packed
    score, parts = packed.parts(x, n_jobs)
    found = packed.explained(x, n_jobs)
    matches = Matches.of(found)
    boxes = prepared.once(_Boxes.of)
    n_units = model.config.n_units
    smallest, largest = training_range(model.features)
    varies = smallest < largest
    side = np.empty(x.shape, dtype=np.int8)
    low, up, distance, share = np.empty((4, *x.shape))
    binds_below, binds_above = np.empty((2, *x.shape), dtype=bool)

    def explain_block(start: int) -> None:
        """Cell by cell, a few rows at a time, so that all arrays stay in cache."""
        rows = slice(start, start + _BLOCK_ROWS)
        unit = matches.member[rows] * n_units + matches.unit[rows]
        value, sides = x[rows], np.sign(matches.excess[rows]).astype(np.int8)
        ends = boxes.ends_for(unit, value, model.features)
        lower, upper = ends.lower, ends.upper
        # The side comes from scaled float32 values; adjust the ends so that they agree with it.
        inside = (sides == 0) & ~np.isnan(value) & ~np.isnan(lower)
        np.copyto(lower, np.fmin(lower, value), where=inside)
        np.copyto(upper, np.fmax(upper, value), where=inside)
        below, above = (sides < 0) & (value >= lower), (sides > 0) & (value <= upper)
        _move_beside(lower, value, below & varies, boxes.ends.lower, unit, np.inf)
        _move_beside(upper, value, above & varies, boxes.ends.upper, unit, -np.inf)
        with np.errstate(over="ignore"):  # a value may be the largest float
            outside = np.where(sides > 0, value - upper, np.where(sides < 0, lower - value, 0.0))
        outside = np.minimum(outside, np.finfo(float).max)
        total = parts[rows].sum(axis=1, keepdims=True)
        side[rows], low[rows], up[rows], distance[rows] = sides, lower, upper, outside
        binds_below[rows], binds_above[rows] = ends.binds_below, ends.binds_above
        share[rows] = parts[rows] / np.where(total > 0, total, 1.0)

    run_blocks(explain_block, range(0, len(x), _BLOCK_ROWS), n_jobs)
    missing_share = model.features.missing_share
    # A missing cell is responsible for what it adds, unless training rows often miss the value.
    surprising = np.isnan(x) & (missing_share < COMMONLY_MISSING)
    surprising[:, model.kinds.positions(model.feature_names)] = False  # those of later rows
    n_seen = max(int((missing_share < 1.0).sum()), 1)
    surprising[:, list(model.categories)] = True  # so is a category for its surprise
    responsibility = np.where(surprising, n_seen * parts, found.responsibility)
    if model.categories:  # beside them numbers can be surprising too
        surprise = np.mean([member.associations.parts(x) for member in model.members], axis=0)
        responsibility += np.where(surprising, 0.0, surprise)
    unit = matches.member * n_units + matches.unit
    return LocalExplanation(
        feature_names=model.feature_names,
        score=score,
        p_value=rule.p_values(score),
        threshold=rule.threshold,
        unit=unit,
        box_rows=boxes.rows[unit],
        nearest=matches.units + np.arange(len(model.members)) * n_units,
        value=x,
        lower=low,
        upper=up,
        binds_below=binds_below,
        binds_above=binds_above,
        peers=boxes.peers[unit],
        peers_inside=boxes.peers_inside[unit],
        side=side,
        distance=distance,
        expected=found.expected,
        share=share,
        responsibility=responsibility,
        doubt=doubts(prepared, x, responsibility, share, n_jobs),
        smallest=smallest,
        largest=largest,
        constant=smallest == largest,
        missing_share=missing_share,
        whole=model.features.whole,
        counted_rows=min(member.counted_rows for member in model.members),
        n_rows=model.training.n_rows,
        held_out=model.calibration.held_out,
        categories=model.categories,
        clashes=_clashes(model, x, matches.member),
        comparable=prepared.once(ComparableRows.of),
        new_texts=dict(new_texts or {}),
        starts=model.starts,
        index=index,
    )


def brief_reasons(
    prepared: PreparedModel,
    x: NDArray[Any],
    rule: FlagRule,
    explained: NDArray[np.bool_],
    new_texts: Mapping[tuple[int, int], str],
    n_reasons: int = 3,
    n_jobs: int = 1,
) -> list[str | None]:
    """One line of reasons for each of the `explained` rows (rows,), None for the others.

    x: (rows, features); rule: for these rows; new_texts: as in `explain_rows`, by the place among
    the explained rows
    """
    texts: list[str | None] = [None] * len(x)
    rows = np.flatnonzero(explained)
    if len(rows):
        why = explain_rows(prepared, x[rows], rule.take(rows), n_jobs, new_texts=new_texts)
        for i, row in enumerate(rows):
            texts[row] = why.brief(i, n_reasons)
    return texts
