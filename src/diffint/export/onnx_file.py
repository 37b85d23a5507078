"""A fitted model as an ONNX file: one graph from the columns of a table to scores and flags."""

from __future__ import annotations

import json
import os
from typing import Any

from onnx import ModelProto, checker, helper

from ..core.errors import InputError
from ..core.flag_rule import FlagRule
from ..core.formatting import counted, printable
from ..core.model import FittedModel
from ..core.version import __version__
from ..tables.atomic_write import atomic_write, check_writable
from .decision_graph import p_values_and_flags
from .graph import DOUBLE, IR_VERSION, ML_DOMAIN, ML_OPSET, OPSET, TRUTH, Graph
from .input_graph import OUTPUTS, Input, features, inputs_of
from .score_graph import scores

_LARGEST = 2**31 - 1  # bytes of a file in the format of protocol buffers


def write_onnx(
    model: FittedModel, rule: FlagRule, segment_column: str | None, path: str | os.PathLike[str]
) -> None:
    """Write a graph with the scores of a model and the flags of a rule, completely or not at all.

    segment_column: the column of the training table with the segments, if it is known
    """
    check_writable(path)  # before the work, to fail early
    made = onnx_model(model, rule, segment_column)
    size = made.ByteSize()
    if size > _LARGEST:
        raise InputError(
            f"the graph would have {size / 1e9:.1f} GB, more than the 2.1 GB that an ONNX file can "
            "have; fit with fewer members or kept_rows, or categories with fewer values"
        )
    checker.check_model(made)
    atomic_write(path, made.SerializeToString())


def onnx_model(model: FittedModel, rule: FlagRule, segment_column: str | None) -> ModelProto:
    """The graph of a model with what is known about it; `write_onnx` explains the arguments."""
    if len(model.accepted):
        raise InputError(
            f"the model has {counted(len(model.accepted), 'accepted row')}; whether a row is like "
            "them takes a search for plausible values, which an ONNX graph cannot do. Take them "
            "back with withdraw(detector.accepted.index) to export a model without them"
        )
    _check_texts(model)
    inputs = inputs_of(model, segment_column)
    graph = Graph(taken={*OUTPUTS, *(given.name for given in inputs)})
    by_segment = bool(model.calibration.segment_names)
    found = scores(graph, model.config, model.members, features(graph, model, inputs))
    segments = graph.value(inputs[-1].name) if by_segment else None
    p_value, flagged = p_values_and_flags(graph, rule, found, segments)
    kinds = (DOUBLE, DOUBLE, TRUTH)
    outputs = dict(zip(OUTPUTS, zip((found, p_value, flagged), kinds, strict=True), strict=True))
    described = [given.described(model.n_features) for given in inputs]
    made = helper.make_model(
        graph.finish("diffint", described, outputs),
        producer_name="diffint",
        producer_version=__version__,
        doc_string="Anomaly scores, p-values and flags of rows; the metadata describes the inputs.",
        ir_version=IR_VERSION,
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid(ML_DOMAIN, ML_OPSET)],
    )
    helper.set_model_props(made, _properties(model, rule, inputs))
    return made


def _check_texts(model: FittedModel) -> None:
    """Raise an error if a name or a value is not valid Unicode, which ONNX files cannot hold."""
    values = [value for values in model.categories.values() for value in values]
    for text in (*model.columns, *values, *model.calibration.segment_names):
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InputError(
                f"the text {printable(text)!r} is not valid Unicode and cannot be written to an "
                "ONNX file; correct it in the training table and fit again"
            ) from None


def _properties(model: FittedModel, rule: FlagRule, inputs: list[Input]) -> dict[str, str]:
    """What the file says about the model, by name, each as JSON."""
    names, threshold = model.feature_names, rule.calibration.threshold(rule.rate, rule.confidence)
    facts: dict[str, Any] = {
        "version": __version__,
        "opset": OPSET,
        "model_identity": model.identity,
        "features": list(names),
        "inputs": [given._asdict() for given in inputs],
        "categories": {names[j]: list(values) for j, values in sorted(model.categories.items())},
        "times": {name: time.zone for name, time in model.kinds.times.items()},
        "segments": list(model.calibration.segment_names),
        "false_positive_rate": rule.rate,
        "confidence": rule.confidence,
        "threshold": threshold,
        "trained": model.training.created,
    }
    return {f"diffint.{name}": json.dumps(fact) for name, fact in facts.items()}
