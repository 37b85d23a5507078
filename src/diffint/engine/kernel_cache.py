"""Compile functions with numba: without the GIL, inlined, and cached on disk where possible."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core.caching import FunctionCache
from numba.extending import intrinsic

from .inlining import inline_into_callers

# Not "reassoc": the order of a row's sums could then depend on the other rows.
# Not "nnan"/"ninf": missing values and overflow to infinity are valid inputs and results.
_EXACT_ORDER = {"nsz", "contract"}
_ANY_ORDER = _EXACT_ORDER | {"reassoc"}


def compiled(function: Callable[..., Any]) -> Any:
    """Compile element-wise loops: the arithmetic of an element does not depend on its position."""
    return _compile(function, _EXACT_ORDER)


def compiled_sums(function: Callable[..., Any]) -> Any:
    """Compile loops with reductions; sums may be reordered, so that they vectorise."""
    return _compile(function, _ANY_ORDER)


def _compile(function: Callable[..., Any], fastmath: set[str]) -> Any:
    # Always inline: of a function that is called, the linker takes the first copy, and copies are
    # optimised differently. Which copy is first depends on whether code was compiled in this
    # process or read from disk, so the same seed could give different bits.
    options = {"nogil": True, "error_model": "numpy", "forceinline": True, "fastmath": fastmath}
    dispatcher = njit(no_cfunc_wrapper=True, **options)(function)
    inline_into_callers(dispatcher, function, **options)
    # RuntimeError: no folder is writable. Then every process compiles.
    with contextlib.suppress(RuntimeError):
        dispatcher._cache = _KernelCache(function)
    return dispatcher


def holds_code(dispatcher: Any) -> bool:
    """Whether a function has been compiled for any types, in this process or another one."""
    if dispatcher.signatures:
        return True
    cache = dispatcher._cache
    return isinstance(cache, _KernelCache) and cache.holds_code()


def is_compiled(dispatcher: Any, kinds: tuple[Any, ...]) -> bool:
    """Whether a function has been compiled for these types, in this process or on disk."""
    if kinds in dispatcher.overloads:
        return True
    cache = dispatcher._cache
    return isinstance(cache, _KernelCache) and cache.holds(kinds, dispatcher.targetctx)


class _KernelCache(FunctionCache):  # type: ignore[misc]
    """Numba's cache on disk, stamped with a digest of the sources of all kernels.

    Numba checks only the file of the function itself, but its code includes the functions that it
    calls: after a change of those, numba would still run the old code.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file._source_stamp = _kernel_sources()

    def holds_code(self) -> bool:
        """Whether there is code of the current sources."""
        with contextlib.suppress(OSError, EOFError, pickle.UnpicklingError):
            return bool(self._cache_file._load_index())
        return False

    def holds(self, kinds: tuple[Any, ...], target_context: Any) -> bool:
        """Whether there is code of the current sources for arguments of these types."""
        key = self._index_key(kinds, target_context.codegen())
        with contextlib.suppress(OSError, EOFError, pickle.UnpicklingError):
            return key in self._cache_file._load_index()
        return False

    def save_overload(self, signature: Any, data: Any) -> None:
        # A full or read-only disk must not fail the fit.
        with contextlib.suppress(OSError):
            super().save_overload(signature, data)

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(signature, target_context)
        except (OSError, EOFError, pickle.UnpicklingError):  # unreadable or half written
            return None


@functools.cache
def _kernel_sources() -> str:
    """A digest of every file whose code may be part of a kernel."""
    package = Path(__file__).parents[1]
    files = [
        Path(__file__),
        package / "engine" / "inlining.py",
        package / "core" / "constants.py",
        *(package / "engine" / "cpu").glob("*.py"),
    ]
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(file.read_bytes())
    return digest.hexdigest()


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


_MODE = ir.IntType(32)
_FLUSH_TINY = 0x8040  # bits of the x86 control register MXCSR: denormal numbers count as zero


@compiled
def flush_tiny_numbers():  # type: ignore[no-untyped-def]
    """Treat numbers below the smallest normal float (1e-38) as zero in this thread, from now on.

    Intel processors compute with such numbers a hundred times slower than with others. Does nothing
    on processors other than x86. → the previous mode, for `set_float_mode`
    """
    mode = _float_mode()
    set_float_mode(mode | _FLUSH_TINY)
    return mode


@compiled
def set_float_mode(mode):  # type: ignore[no-untyped-def]
    """Restore the mode that `flush_tiny_numbers` returned."""
    _load_float_mode(mode)


@intrinsic  # type: ignore[untyped-decorator]
def _float_mode(_typing: Any) -> Any:
    """The control register of this thread's vector arithmetic."""

    def generate(_context: Any, builder: Any, _signature: Any, _args: Any) -> Any:
        place = builder.alloca(_MODE)
        builder.store(_MODE(0), place)
        _float_mode_instruction(builder, "stmxcsr", place)
        return builder.load(place)

    return types.int32(), generate


@intrinsic  # type: ignore[untyped-decorator]
def _load_float_mode(_typing: Any, _mode: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        place = builder.alloca(_MODE)
        builder.store(args[0], place)
        _float_mode_instruction(builder, "ldmxcsr", place)
        return context.get_dummy_value()

    return types.void(types.int32), generate


def _float_mode_instruction(builder: Any, name: str, place: Any) -> None:
    """Store or load the control register; nothing on processors other than x86."""
    if not builder.module.triple.startswith("x86"):
        return
    byte = ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [byte])
    instruction = builder.module.declare_intrinsic(f"llvm.x86.sse.{name}", (), kind)
    builder.call(instruction, [builder.bitcast(place, byte)])
