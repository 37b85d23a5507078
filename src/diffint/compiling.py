"""How hot loops are compiled: once, without the GIL, kept on disk where that is possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

# Not "reassoc": with it the same row could be summed in another order beside other rows.
# Not "nnan"/"ninf": missing values and overflow to infinity are part of the contract.
_EXACT_ORDER = {"nsz", "arcp", "contract"}
_ANY_ORDER = _EXACT_ORDER | {"reassoc"}


def compiled(function: Callable[..., Any]) -> Any:
    """Compile element-wise loops: every element's arithmetic is the same wherever it stands."""
    return _compile(function, _EXACT_ORDER)


def compiled_sums(function: Callable[..., Any]) -> Any:
    """Compile loops with reductions, whose sums may be reordered so that they vectorise."""
    return _compile(function, _ANY_ORDER)


def _compile(function: Callable[..., Any], fastmath: set[str]) -> Any:
    options = {"nogil": True, "error_model": "numpy", "fastmath": fastmath}
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # numba found no folder it can write to: compile in every process
        return njit(**options)(function)


@intrinsic  # type: ignore[untyped-decorator]
def float_bits(_typing: Any, _value: Any) -> Any:
    """The bits of a float32 as int32."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(32))

    return types.int32(types.float32), generate


@intrinsic  # type: ignore[untyped-decorator]
def bits_float(_typing: Any, _value: Any) -> Any:
    """The float32 with these int32 bits."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.int32), generate
