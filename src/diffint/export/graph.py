"""An ONNX graph that is written like the arithmetic that it stands for: ``(x - 1.0) * weight``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

OPSET, ML_OPSET = 17, 3  # of the operators, and of those of the domain ai.onnx.ml
IR_VERSION = 8  # of the file format; ONNX Runtime reads it from version 1.12 on
ML_DOMAIN = "ai.onnx.ml"
DOUBLE, SINGLE, WHOLE, TEXT, TRUTH = (
    *(TensorProto.DOUBLE, TensorProto.FLOAT, TensorProto.INT64),
    *(TensorProto.STRING, TensorProto.BOOL),
)


class Value:
    """A tensor of a graph. Operators add a node; the other operand may be a number or an array.

    Numbers become float64, whole numbers int64; arrays keep their type, as ONNX converts nothing.
    """

    __array_ufunc__ = None  # an array on the left leaves the operator to this class

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph, self.name = graph, name

    def __add__(self, other: Any) -> Value:
        return self.graph.op("Add", self, other)

    def __radd__(self, other: Any) -> Value:
        return self.graph.op("Add", other, self)

    def __sub__(self, other: Any) -> Value:
        return self.graph.op("Sub", self, other)

    def __rsub__(self, other: Any) -> Value:
        return self.graph.op("Sub", other, self)

    def __mul__(self, other: Any) -> Value:
        return self.graph.op("Mul", self, other)

    def __rmul__(self, other: Any) -> Value:
        return self.graph.op("Mul", other, self)

    def __truediv__(self, other: Any) -> Value:
        return self.graph.op("Div", self, other)

    def __floordiv__(self, other: Any) -> Value:
        """Of whole numbers that are not negative."""
        return self.graph.op("Div", self, other)

    def __mod__(self, other: Any) -> Value:
        return self.graph.op("Mod", self, other)

    def __matmul__(self, other: Any) -> Value:
        return self.graph.op("MatMul", self, other)

    def __neg__(self) -> Value:
        return self.graph.op("Neg", self)

    def __lt__(self, other: Any) -> Value:
        return self.graph.op("Less", self, other)

    def __le__(self, other: Any) -> Value:
        return self.graph.op("LessOrEqual", self, other)

    def __gt__(self, other: Any) -> Value:
        return self.graph.op("Greater", self, other)

    def __ge__(self, other: Any) -> Value:
        return self.graph.op("GreaterOrEqual", self, other)

    def __and__(self, other: Any) -> Value:
        return self.graph.op("And", self, other)

    def __invert__(self) -> Value:
        return self.graph.op("Not", self)

    def equals(self, other: Any) -> Value:
        """Cell by cell."""
        return self.graph.op("Equal", self, other)

    def where(self, chosen: Any, other: Any) -> Value:
        """Cells of `chosen` where this is true, of `other` elsewhere."""
        return self.graph.op("Where", self, chosen, other)

    def clip(self, lowest: Any, highest: Any) -> Value:
        """Cut to a range; the ends are numbers or arrays."""
        return self.graph.op("Min", self.graph.op("Max", self, lowest), highest)

    def cast(self, kind: int) -> Value:
        """As another type, such as `DOUBLE`."""
        return self.graph.op("Cast", self, to=kind)

    def sum(self, axis: int, keepdims: bool = False) -> Value:
        """The sum along an axis."""
        return self.graph.op("ReduceSum", self, np.array([axis]), keepdims=int(keepdims))

    def reduced(self, how: str, axis: int, keepdims: bool = False) -> Value:
        """``"Max"``, ``"Min"``, ``"Mean"`` or ``"Prod"`` along an axis."""
        return self.graph.op(f"Reduce{how}", self, axes=[axis], keepdims=int(keepdims))

    def columns(self, places: Sequence[int] | NDArray[Any], axis: int = 1) -> Value:
        """The cells at some places of an axis."""
        return self.graph.op("Gather", self, np.asarray(places, dtype=np.int64), axis=axis)

    def split(self, sizes: list[int], axis: int) -> list[Value]:
        """In parts of these sizes along an axis."""
        if len(sizes) == 1:
            return [self]
        return self.graph.ops("Split", self, np.array(sizes), n_outputs=len(sizes), axis=axis)

    def unsqueezed(self, axis: int) -> Value:
        """With one more axis, of length 1."""
        return self.graph.op("Unsqueeze", self, np.array([axis]))

    def reshaped(self, shape: Any) -> Value:
        """In another shape, given as numbers or as a value; −1 is for what remains."""
        return self.graph.op("Reshape", self, shape if isinstance(shape, Value) else list(shape))


class Graph:
    """Nodes and constants of an ONNX graph.

    taken: names that its values must not have: those of its inputs and outputs.
    """

    def __init__(self, taken: Collection[str] = ()) -> None:
        self._taken, self._count = set(taken), 0
        self._nodes: list[NodeProto] = []
        self._constants: dict[tuple[Any, ...], tuple[str, TensorProto]] = {}

    def op(self, kind: str, *inputs: Any, domain: str = "", **attributes: Any) -> Value:
        """Add a node with one output."""
        return self.ops(kind, *inputs, domain=domain, **attributes)[0]

    def ops(
        self, kind: str, *inputs: Any, n_outputs: int = 1, domain: str = "", **attributes: Any
    ) -> list[Value]:
        """Add a node. inputs: values, numbers and arrays"""
        names = [self.constant(i).name if not isinstance(i, Value) else i.name for i in inputs]
        outputs = [self._new_name() for _ in range(n_outputs)]
        self._nodes.append(helper.make_node(kind, names, outputs, domain=domain, **attributes))
        return [Value(self, name) for name in outputs]

    def constant(self, content: Any) -> Value:
        """A number or an array; the same one is stored once."""
        array = np.asarray(content)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._constants:
            name = self._new_name()
            self._constants[key] = name, numpy_helper.from_array(np.ascontiguousarray(array), name)
        return Value(self, self._constants[key][0])

    def value(self, name: str) -> Value:
        """An input of the graph."""
        return Value(self, name)

    def joined(self, values: Sequence[Value], axis: int) -> Value:
        """Values behind each other along an axis."""
        return values[0] if len(values) == 1 else self.op("Concat", *values, axis=axis)

    def for_each(self, values: Value, make: Callable[[Value], Value], shape: list[Any]) -> Value:
        """The results of `make` for each element along the first axis of `values`, float64.

        shape: of one element. The elements are computed one after the other, so that memory is
        needed for one only.
        """
        outer, self._nodes = self._nodes, []
        element = self._new_name()
        result = make(Value(self, element))
        body = helper.make_graph(
            self._nodes,
            "for_each",
            [helper.make_tensor_value_info(element, DOUBLE, shape)],
            [helper.make_tensor_value_info(result.name, DOUBLE, shape[:1])],
        )
        self._nodes = outer
        return self.op("Scan", values, body=body, num_scan_inputs=1)

    def finish(
        self, name: str, inputs: list[ValueInfoProto], outputs: Mapping[str, tuple[Value, int]]
    ) -> GraphProto:
        """The graph. outputs: by name, (rows,) each, with their types"""
        for output, (value, _) in outputs.items():
            self._nodes.append(helper.make_node("Identity", [value.name], [output]))
        return helper.make_graph(
            self._nodes,
            name,
            inputs,
            [helper.make_tensor_value_info(o, kind, ["rows"]) for o, (_, kind) in outputs.items()],
            [tensor for _, tensor in self._constants.values()],
        )

    def _new_name(self) -> str:
        while True:
            self._count += 1
            name = f"v{self._count}"
            if name not in self._taken:
                return name
