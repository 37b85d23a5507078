"""Barrier and shares of work for threads that train one member together.

The threads run the same compiled loop and wait for each other a few times per step. A step takes
some tenths of a millisecond, too short to go through Python or to sleep. A waiting thread spins
briefly, then yields its core, so that other programs can use it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from ..kernel_cache import compiled

_SPINS = 2_000  # a few microseconds, then the core is yielded
_ARRIVED, _ROUND, _ABORTED = 0, 8, 16  # indices into the state, a cache line apart
_INT = ir.IntType(64)


def team_state() -> NDArray[np.int64]:
    """The shared state of one team's barrier."""
    return np.zeros(24, dtype=np.int64)


def abort(state: NDArray[np.int64]) -> None:
    """Release all waiting threads, now and later, because one of them has failed."""
    state[_ABORTED] = 1


@intrinsic
def _read(_typing: Any, address: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        place = builder.inttoptr(args[0], _INT.as_pointer())
        return builder.load_atomic(place, "acquire", 8)

    return types.int64(types.int64), generate


@intrinsic
def _write(_typing: Any, address: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        place = builder.inttoptr(args[0], _INT.as_pointer())
        builder.store_atomic(args[1], place, "release", 8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@intrinsic
def _add(_typing: Any, address: Any, value: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        place = builder.inttoptr(args[0], _INT.as_pointer())
        return builder.atomic_rmw("add", place, args[1], "acq_rel")

    return types.int64(types.int64, types.int64), generate


@intrinsic
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
    """Wait until all threads of the team arrive. → False if the team was aborted"""
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
    """This thread's share (first, last) of 0..size, in multiples of `multiple`."""
    pieces = (size + multiple - 1) // multiple
    first = pieces * thread // threads * multiple
    last = pieces * (thread + 1) // threads * multiple
    return min(first, size), min(last, size)
