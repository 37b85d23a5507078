"""Tuples of arrays handed on by reference: one address instead of hundreds of numbers.

A workspace is thirty arrays of nine numbers each. Passed by value it makes every function that
takes it large before it does anything, and slow to compile. A field of a reference is read as that
of the tuple is, so the same function takes either.
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
    """Stands for a reference to `value` where numba is asked for the types of arguments."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Reference(types.Type):  # type: ignore[misc]
    """Numba's type of a reference to a named tuple."""

    def __init__(self, target: Any) -> None:
        self.target = target
        super().__init__(name=f"Reference({target})")


@intrinsic  # type: ignore[untyped-decorator]
def reference(_typing: Any, value: Any) -> Any:
    """A reference to a named tuple; valid until the function that makes it returns."""

    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        return cgutils.alloca_once_value(builder, values[0])

    return Reference(value)(value), generate


@typeof_impl.register(ByReference)  # type: ignore[untyped-decorator]
def _type_of(value: ByReference, _context: Any) -> Reference:
    return Reference(numba.typeof(value.value))


@register_model(Reference)  # type: ignore[untyped-decorator]
class _ReferenceModel(PrimitiveModel):  # type: ignore[misc]
    """An address."""

    def __init__(self, manager: Any, kind: Reference) -> None:
        super().__init__(manager, kind, manager.lookup(kind.target).get_value_type().as_pointer())


@infer_getattr  # type: ignore[untyped-decorator]
class _ReferenceFields(AttributeTemplate):  # type: ignore[misc]
    """The fields of a reference are those of the tuple."""

    key = Reference

    def generic_resolve(self, kind: Reference, name: str) -> Any:
        fields = kind.target.fields
        return kind.target[fields.index(name)] if name in fields else None


@lower_getattr_generic(Reference)  # type: ignore[untyped-decorator]
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
        # Nobody writes to the tuple. Without being told so the compiler would read addresses and
        # sizes again after everything that is written to an array.
        number.set_metadata("invariant.load", nothing)
        return number

    kind_of_field = kind.target[index]
    value = load((index,), context.get_value_type(kind_of_field))
    return impl_ret_borrowed(context, builder, kind_of_field, value)
