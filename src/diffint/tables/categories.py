"""Columns of text as categories: which columns are categories, and the codes of their cells.

A category has a fixed list of values, those of the training rows. A cell becomes the position of
its value in the list, a missing one NaN, and a value that is not in the list the list's length.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.associations import MOST_VALUES
from ..core.errors import InputTypeError, InputWarning, warn
from ..core.formatting import counted, listed, shown_name

_IDENTIFYING_SHARE = 0.5  # a text column with more different values than this share of its rows

Values = tuple[str, ...]


def is_text(column: Any) -> bool:
    """Whether a pandas column has cells that are not numbers but could be values of a category."""
    import pandas

    kind = column.dtype
    if isinstance(kind, pandas.CategoricalDtype) or pandas.api.types.is_bool_dtype(kind):
        return True
    if not (pandas.api.types.is_object_dtype(kind) or pandas.api.types.is_string_dtype(kind)):
        return False
    return any(isinstance(cell, (str, bytes)) for cell in column.to_numpy(dtype=object))


def texts(column: Any) -> NDArray[np.object_]:
    """The cells of a pandas column as texts, None where missing or empty. → (rows,)"""
    import pandas

    cells = column.to_numpy(dtype=object)
    missing = np.asarray(pandas.isna(cells))
    found = np.empty(len(cells), dtype=object)
    for i in np.flatnonzero(~missing):
        cell = cells[i]
        if isinstance(cell, float) and cell.is_integer():
            cell = int(cell)  # numbers become floats where some cells are missing
        text = cell.decode(errors="replace") if isinstance(cell, bytes) else str(cell)
        found[i] = text if text.strip() else None
    return found


def find_categories(frame: Any, named: Sequence[str] = ()) -> dict[int, Values]:
    """The categories of a training table and their values, sorted, by position of the column.

    named: columns that are categories also if they have numbers; those with text always are.
    A column of texts that are nearly all different gets no values and a warning: it cannot be
    learned, and is ignored.
    """
    names = [str(name) for name in frame.columns]
    found: dict[int, Values] = {}
    ignored: list[str] = []
    crowded: list[str] = []
    for j, name in enumerate(names):
        column = frame.iloc[:, j]
        if name not in named:
            if not is_text(column):
                continue
            _check_not_numbers(column, name)
        cells = texts(column)
        values = tuple(sorted({cell for cell in cells if cell is not None}))
        n_cells = sum(cell is not None for cell in cells)
        if len(values) > MOST_VALUES:
            like_ids = len(values) > _IDENTIFYING_SHARE * n_cells
            (ignored if like_ids else crowded).append(f"{shown_name(name)} ({len(values):,})")
            values = () if like_ids else _most_common(cells)
        found[j] = values
    if ignored:
        warn(
            f"{counted(len(ignored), 'column')} of text with nearly as many different values as "
            f"rows {'is' if len(ignored) == 1 else 'are'} ignored, like identifiers: "
            f"{listed(ignored)}; leave such columns out, or turn them into numbers or a few values",
            InputWarning,
        )
    if crowded:
        warn(
            f"only the {MOST_VALUES} most common values are learned of {listed(crowded)}; all "
            "others count as new: join rare values if they should not",
            InputWarning,
        )
    return found


def _check_not_numbers(column: Any, name: str) -> None:
    """Raise an error for a column of numbers with some cells of text."""
    cells = column.dropna().to_numpy(dtype=object)
    is_number = np.array([isinstance(cell, Real) and not isinstance(cell, bool) for cell in cells])
    if is_number.sum() > 0.5 * len(cells):
        row = int(np.flatnonzero(column.isin(cells[~is_number]))[0])
        raise InputTypeError(
            f"column {name!r} has numbers, but also text (first {column.iloc[row]!r} at row "
            f"{row}); correct these cells, or name the column in `categories`"
        )


def _most_common(cells: NDArray[np.object_]) -> Values:
    values, counts = np.unique([c for c in cells if c is not None], return_counts=True)
    common = np.argsort(-counts, kind="stable")[:MOST_VALUES]
    return tuple(str(value) for value in values[np.sort(common)])


def codes(column: Any, values: Values) -> NDArray[np.float64]:
    """The code of each cell of a pandas column. → (rows,) float64, NaN where missing

    Raises an error for a column of numbers if no value is a number.

    Of a category without values, which is ignored, every cell is missing.
    """
    result = np.full(len(column), np.nan)
    if not values:
        return result
    _check_not_numbers_now(column, values)
    position = {value: i for i, value in enumerate(values)}
    for i, cell in enumerate(texts(column)):
        if cell is not None:
            result[i] = position.get(cell, len(values))
    return result


def _check_not_numbers_now(column: Any, values: Values) -> None:
    import pandas

    kind = column.dtype
    numeric = pandas.api.types.is_numeric_dtype(kind) and not pandas.api.types.is_bool_dtype(kind)
    if numeric and column.notna().any() and not any(_is_number(value) for value in values):
        raise InputTypeError(
            f"column {str(column.name)!r} had text in training (such as {values[0]!r}) and now has "
            "numbers; pass the same kind of values"
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
