"""Parse the cells of a file's columns as numbers, texts or times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute as compute
from numpy.typing import NDArray

from ...core.config import MISSING_WORDS

# In a column of numbers or times; in a column of text, some of them may be values like others.
MISSING = ("", *(word.lower() for word in MISSING_WORDS), "none", "nil", "missing")
_BOOLEANS = ("true", "false")
PLAIN_KINDS = (  # types other than text whose cells can be written as text
    pyarrow.types.is_integer,
    pyarrow.types.is_floating,
    pyarrow.types.is_boolean,
    pyarrow.types.is_decimal,
    pyarrow.types.is_timestamp,
    pyarrow.types.is_date,
    pyarrow.types.is_time,
    pyarrow.types.is_null,
)


class NotNumbers(Exception):
    """Raised if cells of a column are not numbers; has the row and value of the first of them.

    share: of the cells that are neither missing nor numbers, among those that are not missing.
    """

    def __init__(self, row: int, value: str, share: float) -> None:
        super().__init__(value)
        self.row, self.value, self.share = row, value, share


class NotNumeric(Exception):
    """Raised for a column of a type that is neither numbers nor text; its text is the type."""


def as_numbers(column: Any, decimal: str = ".", words: Sequence[str] = ()) -> NDArray[np.float64]:
    """A pyarrow array (rows,) as float64, NaN for missing cells.

    words: that stand for missing cells, beside the usual ones. Raises `NotNumbers` or `NotNumeric`.
    """
    column = _decoded(column)
    kind = column.type
    if pyarrow.types.is_boolean(kind) or pyarrow.types.is_decimal(kind):
        column = column.cast(pyarrow.float64(), safe=False)
        kind = column.type
    if pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind):
        return _float64(column)
    if pyarrow.types.is_null(kind):
        return np.full(len(column), np.nan)
    if is_text(kind):
        more = [word for word in words if word.lower() not in MISSING]
        text = compute.utf8_trim_whitespace(column.cast(pyarrow.large_string()))
        return _from_text(_without(text, more) if more else text, decimal)
    raise NotNumeric(str(kind))


def is_text(kind: Any) -> bool:
    """Whether a pyarrow type is text, also as a dictionary of distinct texts."""
    if pyarrow.types.is_dictionary(kind):
        kind = kind.value_type
    kinds = ("is_string", "is_large_string", "is_string_view")
    return any(getattr(pyarrow.types, name, lambda _: False)(kind) for name in kinds)


def as_cells(column: Any, words: Sequence[str] = ()) -> Any:
    """A pyarrow array (rows,) of texts without spaces around them, null for missing cells.

    words: that stand for missing cells. Cells of other types stay as they are, so that they become
    the texts that those of a data frame become. Raises `NotNumeric` for a type that has no texts.
    """
    column = _decoded(column)
    kinds = is_text, pyarrow.types.is_integer, pyarrow.types.is_null
    if any(is_kind(column.type) for is_kind in kinds):
        text = compute.utf8_trim_whitespace(column.cast(pyarrow.large_string()))
        return _without(text, ["", *words])
    if not any(is_kind(column.type) for is_kind in PLAIN_KINDS):
        raise NotNumeric(str(column.type))
    return column


def _without(text: Any, words: Sequence[str]) -> Any:
    """A pyarrow array (rows,) of texts, null where they are a word, in capitals or not."""
    lower = compute.utf8_lower(pyarrow.array(words, text.type))
    missing = compute.is_in(compute.utf8_lower(text), lower)
    return compute.if_else(missing, pyarrow.scalar(None, text.type), text)


def is_time(kind: Any) -> bool:
    """Whether a pyarrow type has points in time: timestamps or dates."""
    if pyarrow.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pyarrow.types.is_timestamp(kind) or pyarrow.types.is_date(kind))


def as_times(column: Any) -> Any:
    """A pyarrow array (rows,) with dates as timestamps, and any other cells as they are."""
    if pyarrow.types.is_date(column.type):
        return column.cast(pyarrow.timestamp("ms"))
    return column


def _decoded(column: Any) -> Any:
    """A pyarrow array in one piece, with its values in place of positions in a dictionary."""
    if isinstance(column, pyarrow.ChunkedArray):
        column = column.combine_chunks()
    return column.dictionary_decode() if pyarrow.types.is_dictionary(column.type) else column


def _from_text(column: Any, decimal: str) -> NDArray[np.float64]:
    text = column
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
    text = _without(text, MISSING)
    lower = compute.utf8_lower(text)
    truth = compute.is_in(lower, pyarrow.array(_BOOLEANS, lower.type))
    if compute.any(truth).as_py():
        words = compute.if_else(compute.equal(lower, "true"), "1", "0")
        text = compute.if_else(truth, words.cast(text.type), text)
    try:
        return _float64(text.cast(pyarrow.float64()))
    except pyarrow.ArrowInvalid:
        pass
    different = text.dictionary_encode()  # far fewer than cells, in a column of categories
    places = different.indices.fill_null(len(different.dictionary)).to_numpy(zero_copy_only=False)
    numbers = [_number(cell) for cell in different.dictionary.to_pylist()]
    is_wrong = np.array([number is None for number in numbers] + [False])[places]
    if is_wrong.any():
        row = int(np.argmax(is_wrong))
        raise NotNumbers(row, str(column[row]), is_wrong.sum() / (len(text) - text.null_count))
    return np.asarray(np.array([*numbers, np.nan], dtype=np.float64)[places])


def are_numbers(texts: list[str], decimal: str) -> NDArray[np.float64]:
    """Which texts are numbers, as `as_numbers` reads them: 1, 0, or NaN for a missing value."""
    found = np.zeros(len(texts))
    for i, text in enumerate(texts):
        word = text.strip().lower()
        if word in MISSING:
            found[i] = np.nan
        elif decimal == "." or "." not in word:
            number = word.replace(decimal, ".")
            found[i] = word in _BOOLEANS or _number(number) is not None
    return found


def _number(text: str) -> float | None:
    """A number as Python reads it, but without underscores between digits; None if it is none."""
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def _float64(column: Any) -> NDArray[np.float64]:
    values = column.cast(pyarrow.float64(), safe=False)
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.float64)
