"""Threads that train one member together.

They run the same compiled loop and meet at barriers, a few times per step of some tenths of a
millisecond: too often to go through Python, or to sleep in between. A waiting thread spins and
then yields its core, so that a busy machine is not made worse.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from ..kernel_cache import compiled

_SPINS = 2_000  # a few microseconds before the core is yielded
_ARRIVED, _ROUND, _ABORTED = 0, 8, 16  # places in the state, a cache line apart
_INT = ir.IntType(64)


def team_state() -> NDArray[np.int64]:
    """What the threads of one team share."""
    return np.zeros(24, dtype=np.int64)


def abort(state: NDArray[np.int64]) -> None:
    """Release every thread that waits, now and later: one of them will not come."""
    state[_ABORTED] = 1


@intrinsic  # type: ignore[untyped-decorator]
def _read(_typing: Any, address: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        place = builder.inttoptr(args[0], _INT.as_pointer())
        return builder.load_atomic(place, "acquire", 8)

    return types.int64(types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def _write(_typing: Any, address: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        place = builder.inttoptr(args[0], _INT.as_pointer())
        builder.store_atomic(args[1], place, "release", 8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def _add(_typing: Any, address: Any, value: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        place = builder.inttoptr(args[0], _INT.as_pointer())
        return builder.atomic_rmw("add", place, args[1], "acq_rel")

    return types.int64(types.int64, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def _yield_core(_typing: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, _args: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(32), [])
        function = builder.module.globals.get("sched_yield") or ir.Function(
            builder.module, kind, "sched_yield"
        )
        return builder.call(function, [])

    return types.int32(), generate


@compiled
def meet(state, threads):
    """Wait until all threads of the team are here; False when the team was aborted."""
    if threads == 1:
        return True
    start = state.ctypes.data
    arrived, turn, aborted = start + 8 * _ARRIVED, start + 8 * _ROUND, start + 8 * _ABORTED
    now = _read(turn)
    if _add(arrived, 1) == threads - 1:
        _write(arrived, 0)
        _write(turn, now + 1)
        return _read(aborted) == 0
    spins = 0
    while _read(turn) == now:
        if _read(aborted) != 0:
            return False
        spins += 1
        if spins > _SPINS:
            _yield_core()
    return _read(aborted) == 0


@compiled
def share(size, multiple, thread, threads):
    """This thread's part of 0..size, in whole multiples: (first, last)."""
    pieces = (size + multiple - 1) // multiple
    first = pieces * thread // threads * multiple
    last = pieces * (thread + 1) // threads * multiple
    return min(first, size), min(last, size)
