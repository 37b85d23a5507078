"""Compile functions that are only inlined into other compiled functions, without machine code.

For every function that a kernel calls, numba emits machine code and the wrappers through which
Python could call it. Our functions are inlined wherever they are called, so this code never runs,
and emitting it takes a third of the compile time. Here compilation of such a function stops at
optimised LLVM code, which is linked into its callers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler


def inline_into_callers(dispatcher: Any, function: Callable[..., Any], **options: Any) -> None:
    """Make compiled code that calls `dispatcher` inline it; calls from Python do not change.

    options: the `njit` options of the dispatcher.
    """
    inlined = njit(
        pipeline_class=_InlinedCompiler,
        no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
        **options,
    )(function)
    # Numba uses these two methods of a called function: one compiles it, one gives its code.
    dispatcher.get_call_template = inlined.get_call_template
    dispatcher.get_overload = inlined.get_overload


class _InlinedCompiler(Compiler):  # type: ignore[misc]
    """Numba's compiler without the last step, machine code."""

    def define_pipelines(self) -> Any:
        state = self.state
        state.library = _LinkableLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.targetctx.get_executable = _placeholder  # the context is this compiler's copy
        return super().define_pipelines()


class _LinkableLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Optimised code to be linked into other libraries."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


def _placeholder(_library: Any, description: Any, _environment: Any) -> Any:
    """In place of the executable: numba requires a distinct built-in function for each."""
    return [description].append
