"""Call compiled functions from compiled code by address, instead of including a copy of them.

A function that is called by address is compiled separately: in parallel with others, and only if it
is needed. A call costs less than a microsecond.
"""

from __future__ import annotations

from typing import Any

import numba
from numba import types
from numba.core import typing
from numba.extending import intrinsic

NOT_NEEDED = 0  # address of a function that will not be called


def address_of(dispatcher: Any, *arguments: Any) -> int:
    """The address of a compiled function for these argument types; its result is ignored.

    The address is valid as long as the dispatcher exists.
    """
    kinds = tuple(numba.typeof(argument) for argument in arguments)
    dispatcher.compile(kinds)
    result = dispatcher.overloads[kinds]
    return int(result.library.get_pointer_to_function(result.fndesc.llvm_func_name))


@intrinsic
def call(_typing: Any, address: Any, arguments: Any) -> Any:
    """Call the function at an address with a tuple of arguments.

    The types are not checked: they must be those given to `address_of`.
    """
    kinds = [types.unliteral(kind) for kind in arguments]

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        given = [
            context.cast(builder, builder.extract_value(values[1], i), was, kind)
            for i, (was, kind) in enumerate(zip(signature.args[1], kinds, strict=True))
        ]
        convention = context.call_conv
        function = builder.inttoptr(
            values[0], convention.get_function_type(types.none, kinds).as_pointer()
        )
        convention.call_function(builder, function, types.none, kinds, given)
        return context.get_dummy_value()

    return typing.signature(types.void, types.int64, arguments), generate
