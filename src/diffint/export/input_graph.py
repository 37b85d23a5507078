"""What a graph is given, and how that becomes the matrix of features that a score is made of.

A model of numbers takes one matrix. One with text or times takes each column by its name: numbers
as float64, text as text, times as milliseconds since 1970, as clocks of the training zone show it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
from onnx import ValueInfoProto, helper

from ..core.kinds import TimeColumn
from ..core.model import FittedModel
from ..tables.categories import code_of_others
from ..tables.times import MONTHS, WEEKDAYS
from .graph import DOUBLE, ML_DOMAIN, TEXT, WHOLE, Graph, Value

OUTPUTS = ("score", "p_value", "flagged")
ROWS, SEGMENT = "rows", "segment"
_HOUR, _DAY = 3_600_000, 86_400_000  # milliseconds
_NO_TIME = np.iinfo(np.int64).min  # NumPy's NaT
_NO_TEXT = -1
# What ONNX Runtime makes of missing cells in Python; missing, unless training rows have the text.
_MISSING_TEXTS = ("", "None", "nan", "NaN", "NaT", "<NA>")


class Input(NamedTuple):
    """An input of the graph.

    column: the column that it is; None for the matrix of all features, and for segments that were
    not a column of the training table. kind: "matrix", "numbers", "text" or "times".
    """

    name: str
    column: str | None
    kind: str

    def described(self, n_features: int) -> ValueInfoProto:
        """Its name, type and shape."""
        kind = {"text": TEXT, "times": WHOLE}.get(self.kind, DOUBLE)
        shape: list[str | int | None] = ["rows"]
        if self.kind == "matrix":
            shape.append(n_features)
        return helper.make_tensor_value_info(self.name, kind, shape)


def inputs_of(model: FittedModel, segment_column: str | None) -> list[Input]:
    """The inputs of a model's graph; with segments, the last one is the segment of each row."""
    found: list[Input] = []
    if model.kinds.only_numbers:
        found.append(Input(ROWS, None, "matrix"))
    else:
        place = {name: j for j, name in enumerate(model.feature_names)}
        for column in model.columns:
            values = model.categories.get(place.get(column, -1))
            if values == ():
                continue  # like an identifier: ignored
            kind = "times" if column in model.kinds.times else "numbers"
            name = _free_name(column, found)
            found.append(Input(name, column, kind if values is None else "text"))
    if model.calibration.segment_names:
        found.append(Input(_free_name(SEGMENT, found), segment_column, "text"))
    return found


def _free_name(wanted: str, others: Collection[Input]) -> str:
    """The name of a column, with underscores where something else has it."""
    taken = {"", *OUTPUTS, *(other.name for other in others)}
    while wanted in taken:
        wanted += "_"
    return wanted


def features(graph: Graph, model: FittedModel, inputs: Sequence[Input]) -> Value:
    """The features of the rows that the inputs give. → (rows, features) float64, NaN: missing"""
    if model.kinds.only_numbers:
        return graph.value(ROWS)
    at = {given.column: graph.value(given.name) for given in inputs}
    names = model.feature_names
    n_rows = graph.op("Shape", graph.value(inputs[0].name))
    codes_of = {names[j]: values for j, values in model.categories.items()}
    columns: list[Value] = []
    for name in model.columns:
        if name in model.kinds.times:
            columns += _time_features(graph, at[name], name, model.kinds.times[name], codes_of)
        elif name not in codes_of:
            columns.append(at[name])
        elif codes_of[name]:
            columns.append(_codes(graph, at[name], codes_of[name]))
        else:
            columns.append(graph.op("Expand", np.array(np.nan), n_rows))
    return graph.joined([column.unsqueezed(1) for column in columns], axis=1)


def _codes(graph: Graph, texts: Value, values: Sequence[str]) -> Value:
    """The codes of texts, NaN where missing; `tables.categories.codes`. (rows,) → (rows,)"""
    missing = [text for text in _MISSING_TEXTS if text not in values]
    code = graph.op(
        "LabelEncoder",
        texts,
        domain=ML_DOMAIN,
        keys_strings=[*values, *missing],
        values_int64s=[*range(len(values)), *[_NO_TEXT] * len(missing)],
        default_int64=code_of_others(tuple(values)),
    )
    return (code >= 0).where(code.cast(DOUBLE), np.nan)


def _time_features(
    graph: Graph,
    times: Value,
    name: str,
    column: TimeColumn,
    codes_of: dict[str, tuple[str, ...]],
) -> list[Value]:
    """The features of a column of times, as `tables.times` makes them. (rows,) → (rows,) each"""
    known = ~times.equals(_NO_TIME)
    times = known.where(times, 0)
    of_day = times % _DAY
    day = (times - of_day) // _DAY
    parts = {
        "hour": (of_day // _HOUR, [str(hour) for hour in range(24)]),
        "weekday": ((day + 3) % 7, WEEKDAYS),  # the first day of 1970 was a Thursday
        "month": (_month(day), MONTHS),
    }
    *cycles, _ = column.features(name)
    found = []
    for part, feature in zip(column.parts, cycles, strict=True):
        place, texts = parts[part]
        values = codes_of[feature]
        position_of = {value: float(code) for code, value in enumerate(values)}
        other = float(code_of_others(values))
        table = np.array([position_of.get(text, other) for text in texts])
        found.append(known.where(graph.op("Gather", table, place), np.nan))
    start = np.datetime64(column.start, "ms").astype(np.int64).item()
    days = (times - start).cast(DOUBLE) / float(_DAY)
    inside = known & (days >= 0.0) & (days <= column.days)
    return [*found, inside.where(days, np.nan)]


def _month(day: Value) -> Value:
    """The month, from 0, of days since 1970 (the calendar repeats after 146,097 days)."""
    of_era = (day + 719_468) % 146_097  # days since a first of March
    year = (of_era - of_era // 1_460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (year * 365 + year // 4 - year // 100)
    return ((of_year * 5 + 2) // 153 + 2) % 12
