"""Columns of text as categories: which columns are categories, and the codes of their cells.

A category has a fixed list of values, those of the training rows. A cell becomes the position of
its value in the list, a missing one NaN, and a value that is not in the list the list's length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.associations import MOST_VALUES
from ..core.errors import InputError, InputTypeError, InputWarning, warn
from ..core.formatting import counted, listed, shown_name

_IDENTIFYING_SHARE = 0.5  # a text column with more different values than this share of its rows
_FEWEST_IDENTIFIERS = 20  # different values; with fewer it cannot be told

Values = tuple[str, ...]


def is_text(column: Any) -> bool:
    """Whether a pandas column has cells that are not numbers but could be values of a category."""
    import pandas

    kind = column.dtype
    if isinstance(kind, pandas.CategoricalDtype):
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
        text = cell.decode(errors="replace") if isinstance(cell, bytes) else str(cell)
        found[i] = text if text.strip() else None
    return found


def find_categories(frame: Any, named: Sequence[str] | None) -> dict[int, Values]:
    """The categories of a training table and their values, sorted, by position of the column.

    named: the columns that are categories, also if they have numbers; None for all with text.
    A column of texts that are nearly all different gets no values and a warning: it cannot be
    learned, and is ignored.
    """
    names = [str(name) for name in frame.columns]
    if named is not None:
        unknown = [name for name in named if name not in names]
        if unknown:
            raise InputError(f"categories names {listed(unknown)}, which the table does not have")
    found: dict[int, Values] = {}
    ignored: list[str] = []
    crowded: list[str] = []
    for j, name in enumerate(names):
        column = frame.iloc[:, j]
        if not (is_text(column) if named is None else name in named):
            continue
        cells = texts(column)
        values = tuple(sorted({cell for cell in cells if cell is not None}))
        n_cells = sum(cell is not None for cell in cells)
        shown = f"{shown_name(name)} ({len(values):,})"
        if len(values) > max(_FEWEST_IDENTIFIERS, _IDENTIFYING_SHARE * n_cells):
            ignored.append(shown)
            values = ()
        elif len(values) > MOST_VALUES:
            crowded.append(shown)
            values = _most_common(cells)
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


def _most_common(cells: NDArray[np.object_]) -> Values:
    values, counts = np.unique([c for c in cells if c is not None], return_counts=True)
    common = np.argsort(-counts, kind="stable")[:MOST_VALUES]
    return tuple(str(value) for value in values[np.sort(common)])


def codes(column: Any, values: Values) -> NDArray[np.float64]:
    """The code of each cell of a pandas column. → (rows,) float64, NaN where missing

    Of a category without values, which is ignored, every cell is missing.
    """
    result = np.full(len(column), np.nan)
    if not values:
        return result
    position = {value: i for i, value in enumerate(values)}
    for i, cell in enumerate(texts(column)):
        if cell is not None:
            result[i] = position.get(cell, len(values))
    return result


def check_kinds(frame: Any, categories: Mapping[int, Values]) -> None:
    """Raise an error if a column is text where the training table had numbers."""
    changed = [
        shown_name(str(frame.columns[j]))
        for j in range(frame.shape[1])
        if j not in categories and is_text(frame.iloc[:, j])
    ]
    if changed:
        raise InputTypeError(
            f"{counted(len(changed), 'column')} had numbers in training and now "
            f"{'has' if len(changed) == 1 else 'have'} text: {listed(changed)}; convert "
            f"{'it' if len(changed) == 1 else 'them'} to numbers"
        )
