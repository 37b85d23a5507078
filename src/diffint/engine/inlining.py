"""Functions that are only ever inlined into compiled ones, without machine code of their own.

Numba makes of every function that a kernel calls a library that could be run: it emits machine
code and builds the wrappers through which Python would call it. Ours are inlined wherever they are
called, so nobody runs that code, and making it takes a third of the time. Here such a function
ends as optimised LLVM code to be linked into its callers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler


def inline_into_callers(dispatcher: Any, function: Callable[..., Any], **options: Any) -> None:
    """Have `dispatcher`, where compiled code calls it, stand for code to be inlined.

    From Python it is called as before. options: those of `njit` that the dispatcher was made with.
    """
    inlined = njit(
        pipeline_class=_InlinedCompiler,
        no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
        **options,
    )(function)
    # What numba asks of a function that is called: its type, which has it compiled, and its code.
    dispatcher.get_call_template = inlined.get_call_template
    dispatcher.get_overload = inlined.get_overload


class _InlinedCompiler(Compiler):  # type: ignore[misc]
    """Numba's compiler but for the last step, machine code."""

    def define_pipelines(self) -> Any:
        state = self.state
        state.library = _LinkableLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.targetctx.get_executable = _nothing_to_run  # this compiler's own copy of the context
        return super().define_pipelines()


class _LinkableLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Optimised code to be linked into other libraries."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


def _nothing_to_run(_library: Any, description: Any, _environment: Any) -> Any:
    """What numba knows the function by; it wants a built-in function, one of its own for each."""
    return [description].append
