"""Pass named tuples of arrays to compiled functions by reference instead of by value.

A workspace is thirty arrays of nine numbers each. Passed by value, hundreds of numbers are copied
in every call, and functions compile slowly. Fields of a reference are read like those of the tuple,
so the same function accepts either.
"""

from __future__ import annotations

from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel.models import PrimitiveModel
from numba.core.imputils import impl_ret_borrowed, lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import intrinsic, register_model, typeof_impl

_INDEX = ir.IntType(32)


class ByReference:
    """Placeholder for a reference to `value` among example arguments; `numba.typeof` accepts it."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Reference(types.Type):  # type: ignore[misc]
    """Numba's type of a reference to a named tuple."""

    def __init__(self, target: Any) -> None:
        self.target = target
        super().__init__(name=f"Reference({target})")


@intrinsic
def reference(_typing: Any, value: Any) -> Any:
    """A reference to a named tuple; valid until the function that creates it returns."""

    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return cgutils.alloca_once_value(builder, values[0])

    return Reference(value)(value), generate


@typeof_impl.register(ByReference)
def _type_of(value: ByReference, _context: Any) -> Reference:
    return Reference(numba.typeof(value.value))


@register_model(Reference)
class _ReferenceModel(PrimitiveModel):  # type: ignore[misc]
    """A reference is stored as a pointer."""

    def __init__(self, manager: Any, kind: Reference) -> None:
        super().__init__(manager, kind, manager.lookup(kind.target).get_value_type().as_pointer())


@infer_getattr
class _ReferenceFields(AttributeTemplate):  # type: ignore[misc]
    """The fields of a reference are those of the tuple."""

    key = Reference

    def generic_resolve(self, kind: Reference, name: str) -> Any:
        fields = kind.target.fields
        return kind.target[fields.index(name)] if name in fields else None


@lower_getattr_generic(Reference)
def _load_field(context: Any, builder: Any, kind: Reference, address: Any, name: str) -> Any:
    index = kind.target.fields.index(name)
    nothing = builder.module.add_metadata([])

    def load(indices: tuple[int, ...], form: Any) -> Any:
        if isinstance(form, ir.LiteralStructType | ir.ArrayType):
            value = ir.Constant(form, ir.Undefined)
            for i in range(len(form)):
                part = form.elements[i]
                value = builder.insert_value(value, load((*indices, i), part), i)
            return value
        place = [ir.Constant(_INDEX, i) for i in (0, *indices)]
        number = builder.load(builder.gep(address, place, inbounds=True))
        # The tuple never changes. Without this mark the compiler would read addresses and sizes
        # again after every write to an array.
        number.set_metadata("invariant.load", nothing)
        return number

    kind_of_field = kind.target[index]
    value = load((index,), context.get_value_type(kind_of_field))
    return impl_ret_borrowed(context, builder, kind_of_field, value)
