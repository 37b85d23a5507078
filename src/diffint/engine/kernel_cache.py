"""Compile functions with numba: without the GIL, inlined, and cached on disk where possible."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite
import numba
from llvmlite import ir
from numba import njit, types
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps
from numba.extending import intrinsic

from ..core.errors import CompilationError
from .code_folder import code_folder
from .compile_lock import compiling_alone
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
    if numba.config.DISABLE_JIT:
        raise CompilationError(
            "the environment variable NUMBA_DISABLE_JIT is set, but diffint works only with "
            "compiled functions; unset it"
        )
    # Always inline: of a function that is called, the linker takes the first copy, and copies are
    # optimised differently. Which copy is first depends on whether code was compiled in this
    # process or read from disk, so the same seed could give different bits.
    options = {"nogil": True, "error_model": "numpy", "forceinline": True, "fastmath": fastmath}
    dispatcher = njit(no_cfunc_wrapper=True, **options)(function)
    inline_into_callers(dispatcher, function, **options)
    # OSError: the source is not in a file. Then every process compiles.
    with contextlib.suppress(OSError):
        dispatcher._cache = _KernelCache(function)
        dispatcher.compile = functools.partial(_compile_or_wait, dispatcher)
    return dispatcher


def is_compiled(dispatcher: Any, kinds: tuple[Any, ...]) -> bool:
    """Whether a function has been compiled for these types, in this process or on disk."""
    if kinds in dispatcher.overloads:
        return True
    cache = dispatcher._cache
    return isinstance(cache, _KernelCache) and cache.holds(kinds, dispatcher.targetctx)


def compile_now(dispatcher: Any, kinds: tuple[Any, ...]) -> Any:
    """Compile a function for these types or load it, also if another process is compiling."""
    return type(dispatcher).compile(dispatcher, kinds)


def _compile_or_wait(dispatcher: Any, kinds: tuple[Any, ...]) -> Any:
    """In place of numba's `Dispatcher.compile`: what another process compiles, only load."""
    with compiling_alone(code_folder(), lambda: is_compiled(dispatcher, kinds)):
        return compile_now(dispatcher, kinds)


class _KernelCache(NullCache):  # type: ignore[misc]
    """Compiled code of one function on disk, one file for each combination of argument types.

    In place of numba's cache, which fails on damaged files, executes code that other users could
    have written, and checks only the file of the function itself: its code includes the functions
    that it calls, and after a change of those, numba would still run the old code.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._sources = _digest(Path(inspect.getfile(function))) + _digest_of_kernels()

    @property
    def cache_path(self) -> str:
        return str(code_folder().path)

    def holds(self, kinds: tuple[Any, ...], target_context: Any) -> bool:
        """Whether there is code of the current sources for arguments of these types."""
        return code_folder().read(*self._file(kinds, target_context)) is not None

    def load_overload(self, kinds: tuple[Any, ...], target_context: Any) -> Any:
        target_context.refresh()
        content = code_folder().read(*self._file(kinds, target_context))
        if content is None:
            return None
        try:
            result = CompileResult._rebuild(target_context, *pickle.loads(content))
            return result if result.signature.args == tuple(kinds) else None
        except Exception:  # from another version of some library: compile again
            return None

    def save_overload(self, kinds: tuple[Any, ...], result: Any) -> None:
        if result.lifted or result.library.has_dynamic_globals:  # of use in this process only
            return
        file = self._file(kinds, result.target_context)
        code_folder().write(*file, dumps(result._reduce()))

    def _file(self, kinds: tuple[Any, ...], target_context: Any) -> tuple[str, bytes]:
        """Name of the file, and everything that its content depends on.

        The name does not depend on the sources and versions, so that new code replaces the old.
        """
        function, closure = self._function, self._function.__closure__ or ()
        python = (sys.implementation.cache_tag, getattr(sys, "abiflags", ""))
        purpose = (python, repr(kinds), target_context.codegen().magic_tuple())
        origin = (
            *(purpose, numba.__version__, llvmlite.__version__, self._sources),
            *(function.__module__, function.__qualname__, function.__code__.co_firstlineno),
            dumps(tuple(cell.cell_contents for cell in closure)),
        )
        readable = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
        place = (purpose, function.__module__, function.__qualname__)
        digest = hashlib.sha256(repr(place).encode()).hexdigest()[:16]
        return f"{readable[:80]}-{digest}.code", repr(origin).encode()


@functools.cache
def _digest_of_kernels() -> str:
    """A digest of every file whose code may be part of a kernel."""
    package = Path(__file__).parents[1]
    files = [
        Path(__file__),
        package / "engine" / "inlining.py",
        package / "core" / "constants.py",
        *(package / "engine" / "cpu").glob("*.py"),
    ]
    return hashlib.sha256("".join(map(_digest, sorted(files))).encode()).hexdigest()


@functools.cache
def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


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
