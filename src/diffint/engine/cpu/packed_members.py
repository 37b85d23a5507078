"""A fitted model packed for the compiled functions: rows to scores and explanations.

All members are packed once into a few flat vectors, which threads share. A compiled call takes
them, the thread's scratch space, and the arrays to fill. `score_layout` describes the vectors;
`score_kernel` and `explain_kernel` are the compiled functions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.config import Config
from ...core.constants import MEMBERSHIP_FLOOR
from ...core.errors import InputError
from ...core.model import Member
from ...core.scaling.curves import MOST_KNOTS
from . import explain_kernel, intervals, score_kernel, score_layout
from .product_tile import LANES
from .row_blocks import run_row_blocks
from .score_tiles import BOUNDED_ROWS, DISTANCE_ROWS, SUM_ROWS

_FIRST_FLOAT = 16  # members start here; floats[0] is the bound on 1/membership
_FAR = 1e30
_CACHE_LINE = 64  # bytes
_NO_FLOATS = np.empty((0, 0), dtype=np.float32)
_NO_DOUBLES = np.empty((0, 0))

assert (
    score_layout.TILE_ROWS % score_layout.DECODED_ROWS == score_layout.TILE_ROWS % BOUNDED_ROWS == 0
)
assert score_layout.DECODED_ROWS % SUM_ROWS == score_layout.TILE_ROWS % DISTANCE_ROWS == 0


class Explained(NamedTuple):
    """Expected values, responsibilities and nearest patterns of rows.

    expected: (rows, features) the value predicted from the rest of the row, in original units, NaN
        for a feature without a value in training.
    responsibility: (rows, features) distance of the value from it, in scaled units, 0 where a cell
        is missing.
    units: (rows, members) each member's nearest unit.
    member: (rows,) the member whose pattern is reported.
    excess: (rows, features) float32, see `score.nearest_pattern.Matches`.
    """

    expected: NDArray[np.float64]
    responsibility: NDArray[np.float64]
    units: NDArray[np.intp]
    member: NDArray[np.intp]
    excess: NDArray[np.float32]


class _Scratch(NamedTuple):
    """Scratch space of one thread, for one tile of rows."""

    floats: NDArray[np.float32]
    exponents: NDArray[np.int32]
    doubles: NDArray[np.float64]


class PackedMembers:
    """All members of a fitted model, ready to score rows in original units.

    Rows are x: (rows, features), NaN where missing, of any numeric type and memory layout.
    Thread-safe. The result of a row depends neither on the other rows nor on the number of threads.
    """

    def __init__(self, config: Config, members: tuple[Member, ...]) -> None:
        n_units, n_features = members[0].center.shape
        hidden_width = members[0].decoder.hidden_weight.shape[1]
        self.n_members, self.n_units, self.n_features = len(members), n_units, n_features
        scaler, decoder = members[0].scaler, members[0].decoder
        by_difference = bool(scaler.largest_input / config.temperature > intervals.SAFE_EXPONENT)
        units, hidden, outputs = (intervals.padded(n) for n in (n_units, hidden_width, n_features))
        groups = intervals.padded(n_features, 4) // 4

        places = np.zeros(score_layout.N_PLACES, dtype=np.int64)
        self._places = places
        places[score_layout.FEATURES], places[score_layout.MEMBERS] = n_features, len(members)
        places[score_layout.UNITS], places[score_layout.HIDDEN] = units, hidden
        places[score_layout.OUTPUTS] = places[score_layout.CELLS] = outputs
        places[score_layout.TRUE_UNITS], places[score_layout.TRUE_HIDDEN] = (
            n_units,
            hidden_width,
        )
        places[score_layout.GROUPS], places[score_layout.CLIPS] = groups, scaler.clips
        places[score_layout.CERTIFIED] = not decoder.layer_norm
        places[score_layout.BY_DIFFERENCE] = by_difference
        places[score_layout.UNCLIPPED] = config.error == "unclipped"
        places[score_layout.MISSING_COUNTS] = config.missing == "signal"
        kept_groups = intervals.padded(len(members[0].kept_rows)) // LANES
        places[score_layout.KEPT_GROUPS] = kept_groups
        blocks = intervals.padded(kept_groups) // LANES
        n_curves = max(len(member.scaler.curves) for member in members)

        self._shapes = {
            score_layout.P: (4 * groups, units),
            score_layout.Q: (4 * groups, units),
            score_layout.C: (4 * groups, units),
            score_layout.HIDDEN_WEIGHT: (units, hidden),
            score_layout.HIDDEN_BIAS: (1, hidden),
            score_layout.GAIN: (1, hidden),
            score_layout.SHIFT: (1, hidden),
            score_layout.OUTPUT_WEIGHT: (hidden, outputs),
            score_layout.OUTPUT_BIAS: (1, outputs),
            score_layout.BOX_LOWER: (n_units, n_features),
            score_layout.BOX_UPPER: (n_units, n_features),
            score_layout.CENTER: (n_units, n_features),
            score_layout.BOX_HALF_WIDTH: (n_units, n_features),
            score_layout.KEPT: (kept_groups * n_features, LANES),
            score_layout.KEPT_WEIGHT: (1, outputs),
            score_layout.GROUP_MIDDLE: (blocks * n_features, LANES),
            score_layout.GROUP_HALF: (blocks * n_features, LANES),
        }
        places[score_layout.FIRST_FLOAT] = _FIRST_FLOAT
        places[score_layout.FLOATS] = self._lay_out(self._shapes)
        places[score_layout.FIRST_DOUBLE] = 1 + n_features
        places[score_layout.DOUBLES] = (
            score_layout.N_DOUBLES * outputs + score_layout.N_SINGLE + n_curves * score_layout.CURVE
        )
        rows = score_layout.TILE_ROWS
        self._scratch_sizes = (
            self._lay_out(
                {
                    score_layout.CLIPPED: (rows, outputs),
                    score_layout.TARGET: (rows, outputs),
                    score_layout.U: (rows, outputs),
                    score_layout.V: (rows, outputs),
                    score_layout.PRE: (rows, hidden),
                    score_layout.ACTIVATION: (rows, hidden),
                    score_layout.OUTPUT: (rows, outputs),
                    score_layout.SEEN: (rows // score_layout.DECODED_ROWS, units),
                    score_layout.CODE: (rows, units),
                    score_layout.WEIGHTED: (rows, outputs),
                    score_layout.SMALLEST: (1, LANES),
                    score_layout.NEAREST_ROW: (rows, outputs),
                    score_layout.BOUND: (rows, blocks * LANES),
                }
            ),
            self._lay_out(
                {
                    score_layout.LISTED: (1, units),
                    score_layout.EVERY: (1, hidden),
                    score_layout.EXPONENT: (rows, units),
                    score_layout.MASK: (rows, outputs),
                    score_layout.NEAREST: (1, LANES),
                    score_layout.CANDIDATES: (1, kept_groups),
                }
            ),
        )

        self._floats = _aligned_zeros(
            int(_FIRST_FLOAT + len(members) * places[score_layout.FLOATS]), np.float32
        )
        self._floats[0] = 1.0 / MEMBERSHIP_FLOOR
        self._doubles = np.zeros(1 + n_features + len(members) * places[score_layout.DOUBLES])
        self._doubles[0] = intervals.inverse_temperature.py_func(config.temperature)
        excluded = np.full((len(members), units), score_layout.NEVER, dtype=np.int32)
        for m, member in enumerate(members):
            self._pack_floats(m, member, config.temperature)
            self._pack_doubles(m, member)
            excluded[m, :n_units][member.is_pattern] = 0
        self._excluded = excluded.ravel()
        self._free_scratch: list[_Scratch] = []
        self._associations = [
            (member.associations, member.scaler.n_seen)
            for member in members
            if len(member.associations.categories)
        ]

    def _lay_out(self, shapes: dict[int, tuple[int, int]]) -> int:
        """Place arrays of these shapes one after the other. → their total size"""
        start = 0
        for place, (n, width) in shapes.items():
            self._places[place] = start
            start += intervals.padded(n * width)  # each starts at a multiple of LANES
        return start

    def _pack_floats(self, m: int, member: Member, temperature: float) -> None:
        places, decoder = self._places, member.decoder
        first = int(places[score_layout.FIRST_FLOAT] + m * places[score_layout.FLOATS])

        def part(place: int) -> NDArray[np.float32]:
            n, width = self._shapes[place]
            start = first + int(places[place])
            return self._floats[start : start + n * width].reshape(n, width)

        p, q, c = (part(place) for place in (score_layout.P, score_layout.Q, score_layout.C))
        bounds = np.zeros((2, self.n_features, p.shape[1]), dtype=np.float32)
        bounds[0, :, : self.n_units], bounds[1, :, : self.n_units] = member.lower.T, member.upper.T
        count = self.n_features
        if places[score_layout.BY_DIFFERENCE]:
            p[:count], q[:count] = bounds
        else:
            c[:] = 1.0  # neutral for padding features
            intervals.unit_exponentials(
                *bounds, float(temperature), p[:count], q[:count], c[:count]
            )
        middle, half = _boxes_of_groups(member.kept_rows)
        for place, array in (
            (score_layout.HIDDEN_WEIGHT, decoder.hidden_weight),
            (score_layout.HIDDEN_BIAS, decoder.hidden_bias[None]),
            (score_layout.GAIN, decoder.norm_gain[None]),
            (score_layout.SHIFT, decoder.norm_shift[None]),
            (score_layout.OUTPUT_WEIGHT, decoder.output_weight),
            (score_layout.OUTPUT_BIAS, decoder.output_bias[None]),
            (score_layout.BOX_LOWER, member.box_lower),
            (score_layout.BOX_UPPER, member.box_upper),
            (score_layout.CENTER, member.box_center),
            (score_layout.BOX_HALF_WIDTH, member.box_half_width),
            (score_layout.KEPT_WEIGHT, member.kept_weight[None]),
            (score_layout.KEPT, _in_groups(member.kept_rows)),
            (score_layout.GROUP_MIDDLE, _in_groups(middle)),
            (score_layout.GROUP_HALF, _in_groups(half, padding=0.0)),
        ):
            part(place)[: array.shape[0], : array.shape[1]] = array

    def _pack_doubles(self, m: int, member: Member) -> None:
        scaler, n = member.scaler, self.n_features
        varies = scaler.varies
        divisor = np.where(varies, scaler.divisor, 0.0)
        linear = np.ones(n)  # curves are added separately
        linear[list(scaler.curves)] = 0.0
        self._doubles[1 : 1 + n] += scaler.seen
        start = int(
            self._places[score_layout.FIRST_DOUBLE] + m * self._places[score_layout.DOUBLES]
        )
        cells = int(self._places[score_layout.CELLS])
        single = start + score_layout.N_DOUBLES * cells
        parts = self._doubles[start:single].reshape(-1, cells)
        parts[score_layout.DIVISOR] = 1.0  # for padding features
        for place, values in (
            (score_layout.OFFSET, scaler.offset),
            (score_layout.DIVISOR, divisor),
            (score_layout.CONSTANT, scaler.constant),
            (score_layout.LOWER, scaler.lower),
            (score_layout.UPPER, scaler.upper),
            (score_layout.TO_FACTOR, linear * divisor),
            (
                score_layout.TO_OFFSET,
                linear * np.where(varies, scaler.offset, np.nan_to_num(scaler.constant)),
            ),
            (score_layout.MISSING_ERROR, member.missing_error),
            (score_layout.MISSING_SURPRISE, member.missing_surprise),
        ):
            parts[place, :n] = values
        curves = single + score_layout.N_SINGLE
        self._doubles[single:curves] = (
            not varies.all(),
            scaler.n_seen,
            member.distance_weight,
            max(member.missing_surprise.sum(), np.finfo(float).tiny),
            len(scaler.curves),
        )
        for i, (j, curve) in enumerate(scaler.curves.items()):
            first, knots = curves + i * score_layout.CURVE, len(curve.values)
            self._doubles[first : first + score_layout.CURVE] = np.nan
            self._doubles[first : first + 2] = j, knots
            self._doubles[first + 2 : first + 2 + knots] = curve.values
            middle = first + 2 + MOST_KNOTS
            self._doubles[middle : middle + knots] = curve.scaled
            last = middle + MOST_KNOTS
            self._doubles[last : last + knots - 1] = curve.runs

    def scores(self, x: NDArray[Any], n_jobs: int = 1) -> NDArray[np.float64]:
        """The mean of the members' scores. → (rows,)"""
        return self._score(x, n_jobs, 0, self.n_members)

    def member_scores(self, x: NDArray[Any], member: int, n_jobs: int = 1) -> NDArray[np.float64]:
        """One member's scores. → (rows,)"""
        return self._score(x, n_jobs, member, member + 1)

    def parts(
        self, x: NDArray[Any], n_jobs: int = 1
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The scores (rows,) and each feature's part of them (rows, features)."""
        self._check(x)
        parts = np.empty(x.shape)
        return self._score(x, n_jobs, 0, self.n_members, parts=parts), parts

    def member_parts(self, x: NDArray[Any], member: int, n_jobs: int = 1) -> NDArray[np.float64]:
        """Each feature's part of one member's scores. → (rows, features)"""
        self._check(x)
        parts = np.empty(x.shape)
        self._score(x, n_jobs, member, member + 1, parts=parts)
        return parts

    def reconstructions(self, x: NDArray[Any], n_jobs: int = 1) -> NDArray[np.float32]:
        """Every member's reconstruction, in its scaled units. → (members, rows, features)"""
        rows = np.empty((self.n_members * len(x), self.n_features), dtype=np.float32)
        self._score(x, n_jobs, 0, self.n_members, reconstructions=rows)
        return rows.reshape(self.n_members, len(x), self.n_features)

    def log_box(self, x: NDArray[Any], member: int, n_jobs: int = 1) -> NDArray[np.float32]:
        """One member's log box memberships. → (rows, units)"""
        logs = np.empty((len(x), self.n_units), dtype=np.float32)
        self._score(x, n_jobs, member, member + 1, logs=logs)
        return logs

    def _score(
        self,
        x: NDArray[Any],
        n_jobs: int,
        first: int,
        last: int,
        parts: NDArray[np.float64] = _NO_DOUBLES,
        reconstructions: NDArray[np.float32] = _NO_FLOATS,
        logs: NDArray[np.float32] = _NO_FLOATS,
    ) -> NDArray[np.float64]:
        """Run `score_kernel.score_rows` on all rows, with the members first..last."""
        self._check(x)
        scores = np.empty(len(x))

        def score(address: int, count: int, start: int) -> None:
            scratch = self._take_scratch()
            score_kernel.score_rows(
                address,
                count,
                start,
                first,
                last,
                self._floats,
                self._doubles,
                self._places,
                scratch.floats,
                scratch.exponents,
                scratch.doubles,
                scores,
                parts,
                reconstructions,
                logs,
            )
            self._free_scratch.append(scratch)

        run_row_blocks(score, x, n_jobs)
        if self._associations:
            added = self._surprises(x, first, last)
            scores += added.sum(axis=1)
            if len(parts):
                parts += added
        return scores

    def _surprises(self, x: NDArray[Any], first: int, last: int) -> NDArray[np.float64]:
        """What the surprise of categories adds to the parts. → (rows, features)"""
        each = [found.parts(x) / n_seen for found, n_seen in self._associations[first:last]]
        return np.asarray(np.mean(each, axis=0))

    def explained(self, x: NDArray[Any], n_jobs: int = 1, *, attribute: bool = True) -> Explained:
        """Expected values, responsibilities and nearest patterns.

        attribute: False for the patterns alone, in a fraction of the time; expected and
        responsibility are then empty.
        """
        self._check(x)
        n_rows = len(x)
        result = Explained(
            np.empty(x.shape if attribute else (0, 0)),
            np.empty(x.shape if attribute else (0, 0)),
            np.empty((n_rows, self.n_members), dtype=np.intp),
            np.empty(n_rows, dtype=np.intp),
            np.empty(x.shape, dtype=np.float32),
        )

        def explain(address: int, count: int, start: int) -> None:
            scratch = self._take_scratch()
            explain_kernel.explain_rows(
                address,
                count,
                start,
                self._floats,
                self._doubles,
                self._places,
                self._excluded,
                scratch.floats,
                scratch.exponents,
                scratch.doubles,
                *result,
            )
            self._free_scratch.append(scratch)

        run_row_blocks(explain, x, n_jobs)
        return result

    def _check(self, x: NDArray[Any]) -> None:
        """The kernels trust the shape of the rows; other shapes would be read out of bounds."""
        if x.ndim != 2 or x.shape[1] != self.n_features:
            raise InputError(
                f"the rows have the shape {x.shape}, but the model has {self.n_features} features"
            )

    def _take_scratch(self) -> _Scratch:
        """Scratch space that no other thread uses; append it to `_free_scratch` afterwards."""
        try:
            return self._free_scratch.pop()
        except IndexError:
            return self._new_scratch()

    def _new_scratch(self) -> _Scratch:
        rows, places = score_layout.TILE_ROWS, self._places
        floats, exponents = self._scratch_sizes
        cells = int(places[score_layout.CELLS])
        scratch = _Scratch(
            _aligned_zeros(floats, np.float32),
            _aligned_zeros(exponents, np.int32),
            np.full(rows * (cells + self.n_members), np.nan),
        )
        # Padding cells are missing; nothing overwrites them.
        start = int(places[score_layout.CLIPPED])
        scratch.floats[start : start + rows * cells] = np.nan
        start, hidden = int(places[score_layout.EVERY]), int(places[score_layout.HIDDEN])
        scratch.exponents[start : start + hidden] = np.arange(hidden)
        return scratch


def _aligned_zeros(size: int, kind: type[Any]) -> NDArray[Any]:
    """A vector of zeros that starts at a cache line: vectors within it do not cross two of them."""
    n_bytes = size * np.dtype(kind).itemsize
    raw = np.zeros(n_bytes + _CACHE_LINE, dtype=np.uint8)
    start = -raw.ctypes.data % _CACHE_LINE
    return raw[start : start + n_bytes].view(kind)


def _in_groups(kept: NDArray[np.float32], padding: float = _FAR) -> NDArray[np.float32]:
    """Rows (rows, features) as (groups · features, LANES), padded with rows that are far."""
    n_rows, n_features = kept.shape
    padded = np.full((intervals.padded(n_rows), n_features), padding, dtype=np.float32)
    padded[:n_rows] = kept
    groups = padded.reshape(-1, LANES, n_features).transpose(0, 2, 1)
    return groups.reshape(-1, LANES)


def _boxes_of_groups(
    kept: NDArray[np.float32],
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Middles and half-widths of boxes around groups of LANES rows. → (groups, features) each

    A little too wide: also after rounding, a row is not farther from the box of a group than from
    the group's rows. The distance of a row inside is exactly 0.
    """
    starts = np.arange(0, len(kept), LANES)
    low, high = (extreme.reduceat(kept, starts, axis=0) for extreme in (np.minimum, np.maximum))
    middle = low / 2 + high / 2
    half = np.maximum(high - middle, middle - low) * np.float32(1 + 4e-7)
    return np.asarray(middle, dtype=np.float32), np.asarray(half, dtype=np.float32)
