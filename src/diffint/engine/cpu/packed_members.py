"""A fitted model in the layout of the scoring kernel: what makes scores of rows.

All members lie in a few flat vectors, packed once and shared by threads; a compiled call takes
those, a thread's scratch space and the arrays to fill. `score_kernel` has the loops
and the meaning of the places.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.config import Config
from ...core.constants import MEMBERSHIP_FLOOR
from ...core.model import Member
from . import intervals as cpu
from . import score_kernel as kernel
from .score_kernel import DECODED_ROWS
from .score_tiles import BOUNDED_ROWS, SUM_ROWS

# A thread takes at a time; no more, so that an interrupt is heard within milliseconds.
_MOST_ROWS, _FEWEST_ROWS = 2_048, 64
_PARTS = 4  # at least so many for every thread, so that none waits long for the last one
_FIRST_FLOAT = 16  # before it: the bound on 1/membership
_NOTHING = np.empty((0, 0), dtype=np.float32)
_NO_PARTS = np.empty((0, 0))

assert kernel.TILE_ROWS % DECODED_ROWS == kernel.TILE_ROWS % BOUNDED_ROWS == 0
assert DECODED_ROWS % SUM_ROWS == 0


class Explained(NamedTuple):
    """What the members say of rows beyond their scores.

    expected: (rows, features) what the rest of the row calls for, in original units, NaN for a
        feature that training never saw; responsibility: (rows, features) how far the value is from
        that, in scaled units, 0 where a cell is missing.
    units: (rows, members) every member's own unit; member: (rows,) the one that is reported;
    excess: (rows, features) float32, see `score.nearest_pattern.Matches`.
    """

    expected: NDArray[np.float64]
    responsibility: NDArray[np.float64]
    units: NDArray[np.intp]
    member: NDArray[np.intp]
    excess: NDArray[np.float32]


class _Scratch(NamedTuple):
    """A thread's own space: one tile of everything."""

    floats: NDArray[np.float32]
    exponents: NDArray[np.int32]
    doubles: NDArray[np.float64]


class PackedMembers:
    """All members of a fitted model, ready to score rows in original units.

    Rows are x: (rows, features), NaN where missing; any kind of number, in any layout. Safe to use
    from several threads at once. What comes out of a row depends neither on the rows beside it nor
    on the number of threads.
    """

    def __init__(self, config: Config, members: tuple[Member, ...]) -> None:
        n_units, n_features = members[0].center.shape
        self.n_members, self.n_units, self.n_features = len(members), n_units, n_features
        scaler, decoder = members[0].scaler, members[0].decoder
        by_difference = bool(scaler.largest_input / config.temperature > cpu.SAFE_EXPONENT)
        units, hidden, outputs = (cpu.padded(n) for n in (n_units, config.hidden_width, n_features))
        groups = cpu.padded(n_features, 4) // 4

        places = np.zeros(kernel.N_PLACES, dtype=np.int64)
        self._places = places
        places[kernel.FEATURES], places[kernel.MEMBERS] = n_features, len(members)
        places[kernel.UNITS], places[kernel.HIDDEN] = units, hidden
        places[kernel.OUTPUTS] = places[kernel.CELLS] = outputs
        places[kernel.TRUE_UNITS], places[kernel.TRUE_HIDDEN] = n_units, config.hidden_width
        places[kernel.GROUPS], places[kernel.CLIPS] = groups, scaler.clips
        places[kernel.CERTIFIED] = not decoder.layer_norm
        places[kernel.BY_DIFFERENCE] = by_difference
        places[kernel.UNCLIPPED] = config.error == "unclipped"

        self._shapes = {
            kernel.P: (4 * groups, units),
            kernel.Q: (4 * groups, units),
            kernel.C: (4 * groups, units),
            kernel.HIDDEN_WEIGHT: (units, hidden),
            kernel.HIDDEN_BIAS: (1, hidden),
            kernel.GAIN: (1, hidden),
            kernel.SHIFT: (1, hidden),
            kernel.OUTPUT_WEIGHT: (hidden, outputs),
            kernel.OUTPUT_BIAS: (1, outputs),
            kernel.BOX_LOWER: (n_units, n_features),
            kernel.BOX_UPPER: (n_units, n_features),
            kernel.CENTER: (n_units, n_features),
            kernel.BOX_HALF_WIDTH: (n_units, n_features),
        }
        places[kernel.FIRST_FLOAT] = _FIRST_FLOAT
        places[kernel.FLOATS] = self._lay_out(self._shapes)
        places[kernel.FIRST_DOUBLE] = 1 + n_features
        places[kernel.DOUBLES] = kernel.N_DOUBLES * outputs + 1
        rows = kernel.TILE_ROWS
        self._scratch_sizes = (
            self._lay_out(
                {
                    kernel.CLIPPED: (rows, outputs),
                    kernel.TARGET: (rows, outputs),
                    kernel.U: (rows, outputs),
                    kernel.V: (rows, outputs),
                    kernel.PRE: (rows, hidden),
                    kernel.ACTIVATION: (rows, hidden),
                    kernel.OUTPUT: (rows, outputs),
                    kernel.SEEN: (rows // DECODED_ROWS, units),
                    kernel.CODE: (rows, units),
                }
            ),
            self._lay_out(
                {
                    kernel.LISTED: (1, units),
                    kernel.EVERY: (1, hidden),
                    kernel.EXPONENT: (rows, units),
                }
            ),
        )

        self._floats = np.zeros(_FIRST_FLOAT + len(members) * places[kernel.FLOATS], np.float32)
        self._floats[0] = 1.0 / MEMBERSHIP_FLOOR
        self._doubles = np.zeros(1 + n_features + len(members) * places[kernel.DOUBLES])
        self._doubles[0] = cpu.inverse_temperature.py_func(config.temperature)
        excluded = np.full((len(members), units), kernel.NEVER, dtype=np.int32)
        for m, member in enumerate(members):
            self._pack_floats(m, member, config.temperature)
            self._pack_doubles(m, member)
            excluded[m, :n_units][member.is_pattern] = 0
        self._excluded = excluded.ravel()
        self._spare: list[_Scratch] = []

    def _lay_out(self, shapes: dict[int, tuple[int, int]]) -> int:
        """Set where arrays of these shapes lie, one after the other. → the size of all of them"""
        start = 0
        for place, (n, width) in shapes.items():
            self._places[place] = start
            start += cpu.padded(n * width)  # each starts at a whole vector
        return start

    def _pack_floats(self, m: int, member: Member, temperature: float) -> None:
        places, decoder = self._places, member.decoder
        first = int(places[kernel.FIRST_FLOAT] + m * places[kernel.FLOATS])

        def part(place: int) -> NDArray[np.float32]:
            n, width = self._shapes[place]
            start = first + int(places[place])
            return self._floats[start : start + n * width].reshape(n, width)

        p, q, c = (part(place) for place in (kernel.P, kernel.Q, kernel.C))
        bounds = np.zeros((2, self.n_features, p.shape[1]), dtype=np.float32)
        bounds[0, :, : self.n_units], bounds[1, :, : self.n_units] = member.lower.T, member.upper.T
        count = self.n_features
        if places[kernel.BY_DIFFERENCE]:
            p[:count], q[:count] = bounds
        else:
            c[:] = 1.0  # of the features that pad
            cpu.unit_exponentials(*bounds, float(temperature), p[:count], q[:count], c[:count])
        for place, array in (
            (kernel.HIDDEN_WEIGHT, decoder.hidden_weight),
            (kernel.HIDDEN_BIAS, decoder.hidden_bias[None]),
            (kernel.GAIN, decoder.norm_gain[None]),
            (kernel.SHIFT, decoder.norm_shift[None]),
            (kernel.OUTPUT_WEIGHT, decoder.output_weight),
            (kernel.OUTPUT_BIAS, decoder.output_bias[None]),
            (kernel.BOX_LOWER, member.box_lower),
            (kernel.BOX_UPPER, member.box_upper),
            (kernel.CENTER, member.center),
            (kernel.BOX_HALF_WIDTH, member.box_half_width),
        ):
            part(place)[: array.shape[0], : array.shape[1]] = array

    def _pack_doubles(self, m: int, member: Member) -> None:
        scaler, n = member.scaler, self.n_features
        known = scaler.divisor > 0
        self._doubles[1 : 1 + n] += scaler.seen
        start = int(self._places[kernel.FIRST_DOUBLE] + m * self._places[kernel.DOUBLES])
        cells = int(self._places[kernel.CELLS])
        parts = self._doubles[start : start + kernel.N_DOUBLES * cells].reshape(-1, cells)
        parts[kernel.DIVISOR] = 1.0  # of the features that pad
        for place, values in (
            (kernel.OFFSET, scaler.offset),
            (kernel.DIVISOR, scaler.divisor),
            (kernel.CONSTANT, scaler.constant),
            (kernel.LOWER, scaler.lower),
            (kernel.UPPER, scaler.upper),
            (kernel.TO_FACTOR, scaler.divisor),
            (kernel.TO_OFFSET, np.where(known, scaler.offset, np.nan_to_num(scaler.constant))),
        ):
            parts[place, :n] = values
        is_odd = not known.all() or not np.isnan(scaler.constant).all()
        self._doubles[start + kernel.N_DOUBLES * cells] = is_odd

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
        parts = np.empty(x.shape)
        return self._score(x, n_jobs, 0, self.n_members, parts=parts), parts

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
        parts: NDArray[np.float64] = _NO_PARTS,
        reconstructions: NDArray[np.float32] = _NOTHING,
        logs: NDArray[np.float32] = _NOTHING,
    ) -> NDArray[np.float64]:
        """`score_kernel.score_rows` on all rows, by the members first..last."""
        scores = np.empty(len(x))

        def score(address: int, count: int, start: int) -> None:
            scratch = self._borrow()
            kernel.score_rows(
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
            self._spare.append(scratch)

        _in_blocks(score, x, n_jobs)
        return scores

    def explained(self, x: NDArray[Any], n_jobs: int = 1, *, attribute: bool = True) -> Explained:
        """What the rest of each row calls for, and which patterns it comes nearest to.

        Without `attribute` the patterns alone, in a fraction of the time: expected and
        responsibility are empty.
        """
        n_rows = len(x)
        result = Explained(
            np.empty(x.shape if attribute else (0, 0)),
            np.empty(x.shape if attribute else (0, 0)),
            np.empty((n_rows, self.n_members), dtype=np.intp),
            np.empty(n_rows, dtype=np.intp),
            np.empty(x.shape, dtype=np.float32),
        )

        def explain(address: int, count: int, start: int) -> None:
            scratch = self._borrow()
            kernel.explain_rows(
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
            self._spare.append(scratch)

        _in_blocks(explain, x, n_jobs)
        return result

    def _borrow(self) -> _Scratch:
        """Scratch space that no other thread has; to be appended to `_spare` afterwards."""
        try:
            return self._spare.pop()
        except IndexError:
            return self._new_scratch()

    def _new_scratch(self) -> _Scratch:
        rows, places = kernel.TILE_ROWS, self._places
        floats, exponents = self._scratch_sizes
        cells = int(places[kernel.CELLS])
        scratch = _Scratch(
            np.zeros(floats, dtype=np.float32),
            np.zeros(exponents, dtype=np.int32),
            np.full(rows * (cells + self.n_members), np.nan),
        )
        # What pads is missing, and stays so.
        start = int(places[kernel.CLIPPED])
        scratch.floats[start : start + rows * cells] = np.nan
        start, hidden = int(places[kernel.EVERY]), int(places[kernel.HIDDEN])
        scratch.exponents[start : start + hidden] = np.arange(hidden)
        return scratch


def _in_blocks(work: Callable[[int, int, int], None], x: NDArray[Any], n_jobs: int) -> None:
    """Call work(address of float64 rows in C order, how many, the first of them) for all rows.

    On up to `n_jobs` threads, of which the calling one is the first. Threads are started anew:
    that takes less than a tenth of a millisecond, and none is left to be in the way of a fork.
    """
    n_rows = len(x)
    if n_jobs == 1 or n_rows < 2 * _FEWEST_ROWS:
        for start in range(0, n_rows, _MOST_ROWS):
            _call(work, x, start, min(_MOST_ROWS, n_rows - start))
        return
    size = -(-n_rows // (n_jobs * _PARTS * _FEWEST_ROWS)) * _FEWEST_ROWS
    size = min(size, _MOST_ROWS)
    n_blocks = -(-n_rows // size)
    turns = itertools.count()
    failures: list[BaseException] = []

    def take_turns() -> None:
        try:
            while (turn := next(turns)) < n_blocks and not failures:
                start = turn * size
                _call(work, x, start, min(size, n_rows - start))
        except BaseException as failure:
            failures.append(failure)

    threads = [
        threading.Thread(target=take_turns, name=f"diffint_{i}")
        for i in range(1, min(n_jobs, n_blocks))
    ]
    for thread in threads:
        thread.start()
    take_turns()
    try:
        for thread in threads:
            thread.join()
    except BaseException as interrupt:  # the others stop after their block
        failures.append(interrupt)
    if failures:
        raise failures[0]


def _call(work: Callable[[int, int, int], None], x: NDArray[Any], start: int, count: int) -> None:
    rows = np.ascontiguousarray(x[start : start + count], dtype=np.float64)
    work(rows.ctypes.data, count, start)  # `rows` lives until it returns
