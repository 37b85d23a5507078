"""``diffint export``: write a model as an ONNX graph, for programs in other languages."""

from __future__ import annotations

from typing import Annotated

import typer

from ..core.errors import InputError
from ..core.formatting import listed, shown_name
from . import arguments
from .loading import load_detector
from .output import say

_MOST_NAMED = 10  # features


def export(
    model: arguments.Model,
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FILE", help="ONNX file to write.")
    ],
    fpr: arguments.Rate = None,
) -> None:
    """Write a model as an ONNX graph, which runs in ONNX Runtime without diffint.

    It takes the columns of a table and returns score, p_value and flagged. Needs the package onnx.

    Example: diffint export payments.diffint -o payments.onnx
    """
    if output == "-":
        raise InputError("an ONNX file is not written to standard output; give a file name")
    detector = load_detector(model, fpr=fpr)
    detector.to_onnx(output)
    from ..export.graph import OPSET
    from ..export.input_graph import OUTPUTS, inputs_of

    names = [shown_name(name) for name in detector.model_.feature_names]
    more = [f"{len(names) - _MOST_NAMED:,} more"] if len(names) > _MOST_NAMED else []
    say(f"ONNX graph: {output} (opset {OPSET}, false-positive rate {detector.rule.rate:g})")
    for given in inputs_of(detector.model_, detector.segment_column_):
        columns = listed([*names[:_MOST_NAMED], *more])
        what = f"a matrix of {columns}" if given.kind == "matrix" else given.kind
        say(f"Input {shown_name(given.name)}: {what}")
    say(f"Outputs: {listed(list(OUTPUTS))}")
