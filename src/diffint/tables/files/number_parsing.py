"""Parse the cells of a file's columns as numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute as compute
from numpy.typing import NDArray

MISSING = ("", "na", "n/a", "nan", "null", "none", "nil", "missing", "-", "?", "#n/a", "<na>")
_BOOLEANS = ("true", "false")


class NotNumbers(Exception):
    """Raised if cells of a column are not numbers; has the row and value of the first of them.

    share: of the cells that are neither missing nor numbers, among those that are not missing.
    """

    def __init__(self, row: int, value: str, share: float) -> None:
        super().__init__(value)
        self.row, self.value, self.share = row, value, share


class NotNumeric(Exception):
    """Raised for a column of a type that is neither numbers nor text; its text is the type."""


def as_numbers(column: Any, decimal: str = ".") -> NDArray[np.float64]:
    """A pyarrow array (rows,) as float64, NaN for missing cells.

    Raises `NotNumbers` or `NotNumeric`.
    """
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
    if is_text(kind):
        return _from_text(column.cast(pyarrow.large_string()), decimal)
    raise NotNumeric(str(kind))


def is_text(kind: Any) -> bool:
    """Whether a pyarrow type is text, also as a dictionary of distinct texts."""
    if pyarrow.types.is_dictionary(kind):
        kind = kind.value_type
    kinds = ("is_string", "is_large_string", "is_string_view")
    return any(getattr(pyarrow.types, name, lambda _: False)(kind) for name in kinds)


def _from_text(column: Any, decimal: str) -> NDArray[np.float64]:
    text = compute.utf8_trim_whitespace(column)
    if decimal != ".":
        points = compute.match_substring(text, ".")
        if compute.any(points).as_py():  # a thousands separator or a decimal point: ambiguous
            row = compute.index(points, True).as_py()
            raise NotNumbers(row, str(column[row]), compute.mean(points).as_py())
        text = compute.replace_substring(text, decimal, ".")
    try:
        return _float64(text.cast(pyarrow.float64()))  # the usual case: no missing cells
    except pyarrow.ArrowInvalid:
        pass
    lower = compute.utf8_lower(text)
    missing = compute.is_in(lower, pyarrow.array(MISSING, lower.type))
    text = compute.if_else(missing, pyarrow.scalar(None, text.type), text)
    truth = compute.is_in(lower, pyarrow.array(_BOOLEANS, lower.type))
    if compute.any(truth).as_py():
        words = compute.if_else(compute.equal(lower, "true"), "1", "0")
        text = compute.if_else(truth, words.cast(text.type), text)
    try:
        return _float64(text.cast(pyarrow.float64()))
    except pyarrow.ArrowInvalid:
        pass
    cells = text.to_pylist()
    values = [np.nan if cell is None else _number(cell) for cell in cells]
    wrong = [row for row, value in enumerate(values) if value is None]
    if wrong:
        share = len(wrong) / sum(cell is not None for cell in cells)
        raise NotNumbers(wrong[0], str(column[wrong[0]]), share)
    return np.array(values, dtype=np.float64)


def _number(text: str) -> float | None:
    """A number as Python reads it, but without underscores between digits; None if it is none."""
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def _float64(column: Any) -> NDArray[np.float64]:
    values = column.cast(pyarrow.float64(), safe=False)
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.float64)
