"""Columns of a file as numbers: text is read as people write numbers, the rest is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute as compute
from numpy.typing import NDArray

MISSING = ("", "na", "n/a", "nan", "null", "none", "nil", "missing", "-", "?", "#n/a", "<na>")
_TRUTH = ("true", "false")


class NotNumbers(Exception):
    """The first cell of a column that is no number: where it is, and what it holds."""

    def __init__(self, row: int, value: str) -> None:
        super().__init__(value)
        self.row, self.value = row, value


def as_numbers(column: Any, decimal: str = ".") -> NDArray[np.float64]:
    """A pyarrow array as float64, NaN where a cell is missing; `NotNumbers` where it is not one."""
    if isinstance(column, pyarrow.ChunkedArray):
        column = column.combine_chunks()
    kind = column.type
    if pyarrow.types.is_dictionary(kind):
        column = column.dictionary_decode()
        kind = column.type
    if pyarrow.types.is_boolean(kind) or pyarrow.types.is_decimal(kind):
        column = column.cast(pyarrow.float64(), safe=False)
        kind = column.type
    if pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind):
        return _float64(column)
    if pyarrow.types.is_null(kind):
        return np.full(len(column), np.nan)
    if _is_text(kind):
        return _from_text(column.cast(pyarrow.large_string()), decimal)
    first = next((i for i, cell in enumerate(column) if cell.is_valid), 0)
    raise NotNumbers(first, str(column[first]) if len(column) else str(kind))


def _is_text(kind: Any) -> bool:
    kinds = ("is_string", "is_large_string", "is_string_view")
    return any(getattr(pyarrow.types, name, lambda _: False)(kind) for name in kinds)


def _from_text(column: Any, decimal: str) -> NDArray[np.float64]:
    text = compute.utf8_trim_whitespace(column)
    if decimal != ".":
        points = compute.match_substring(text, ".")
        if compute.any(points).as_py():  # thousands, or another decimal sign: who knows
            row = compute.index(points, True).as_py()
            raise NotNumbers(row, str(column[row]))
        text = compute.replace_substring(text, decimal, ".")
    try:
        return _float64(text.cast(pyarrow.float64()))  # the usual case: nothing missing
    except pyarrow.ArrowInvalid:
        pass
    lower = compute.utf8_lower(text)
    missing = compute.is_in(lower, pyarrow.array(MISSING, lower.type))
    text = compute.if_else(missing, pyarrow.scalar(None, text.type), text)
    truth = compute.is_in(lower, pyarrow.array(_TRUTH, lower.type))
    if compute.any(truth).as_py():
        words = compute.if_else(compute.equal(lower, "true"), "1", "0")
        text = compute.if_else(truth, words.cast(text.type), text)
    try:
        return _float64(text.cast(pyarrow.float64()))
    except pyarrow.ArrowInvalid:
        pass
    for row, cell in enumerate(text.to_pylist()):
        try:
            if cell is not None:
                _number(cell)
        except ValueError:
            raise NotNumbers(row, str(column[row])) from None
    return np.array([np.nan if cell is None else _number(cell) for cell in text.to_pylist()])


def _number(text: str) -> float:
    """Python's idea of a number, without what only Python takes for one."""
    if "_" in text:
        raise ValueError(text)
    return float(text)


def _float64(column: Any) -> NDArray[np.float64]:
    values = column.cast(pyarrow.float64(), safe=False)
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.float64)
