"""Columns of text as categories: which columns are categories, and the codes of their cells.

A category has a fixed list of values, those of the training rows. A cell becomes the position of
its value in the list, a missing one NaN, and a value that is not in the list the list's length. Of
a column with very many values the rarer ones count as one, and so does a value that is not in the
list: among so many, another one is not remarkable. Which values are rare is for the fit to say,
which knows the rows that may decide it (`fit.category_positions`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import IdentifierWarning, InputTypeError, InputWarning, warn
from ..core.formatting import counted, listed, shown_name

# A text column with more different values than this share of its cells is like an identifier.
_IDENTIFYING_SHARE = 0.5
_FEWEST_IDENTIFIERS = 20  # fewer different values may all be categories, in a small table

OTHER = "(any other value)"  # of a column with very many values

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


def distinct_texts(column: Any) -> tuple[NDArray[np.intp], NDArray[np.object_]]:
    """The place of each cell's text among the different texts of a pandas column, and these texts.

    → (rows,), −1 where a cell is missing or empty, and (different texts,). Spaces around a text do
    not count. Equal cells are found first: a column has far fewer different texts than cells.
    """
    import pandas

    kind = column.dtype
    if isinstance(kind, pandas.CategoricalDtype):
        places, different = column.cat.codes.to_numpy(), column.cat.categories.to_numpy(object)
    elif pandas.api.types.is_object_dtype(kind) and _is_mixed(column):
        # 1 and True are equal as objects, but not as texts.
        places, different = np.arange(len(column)), column.to_numpy(dtype=object)
        places = np.where(np.asarray(pandas.isna(different)), -1, places)
    else:
        places, different = pandas.factorize(column)
    texts = np.array([*map(_text, different), None], dtype=object)
    again, different = pandas.factorize(texts)
    return np.asarray(again[places]), np.asarray(different, dtype=object)


def _is_mixed(column: Any) -> bool:
    """Whether a column of objects has other cells than texts and missing ones."""
    import pandas

    return bool(pandas.api.types.infer_dtype(column, skipna=True) not in ("string", "empty"))


def _text(cell: Any) -> str | None:
    """A cell as text without spaces around it; None if nothing is left."""
    if isinstance(cell, bytes):
        cell = cell.decode(errors="replace")
    elif isinstance(cell, float | np.floating) and float(cell).is_integer():
        cell = int(cell)  # pandas writes whole numbers as 5.0 if some cells are missing
    return str(cell).strip() or None


def find_categories(frame: Any, named: Sequence[str] = ()) -> dict[int, Values]:
    """The categories of a training table and their values, sorted, by position of the column.

    named: columns that are categories also if they have numbers; those with text always are.
    A column of texts that are nearly all different gets no values and a warning: it cannot be
    learned, and is ignored. One of very many values gets all of them.
    """
    names = [str(name) for name in frame.columns]
    found: dict[int, Values] = {}
    ignored: dict[str, int] = {}
    for j, name in enumerate(names):
        column = frame.iloc[:, j]
        if name not in named:
            if not is_text(column):
                continue
            if not hasattr(column, "cat"):  # a categorical column may have numbers
                _check_not_numbers(column, name)
        places, texts = distinct_texts(column)
        counts = np.bincount(places[places >= 0], minlength=len(texts))
        texts, counts = texts[counts > 0], counts[counts > 0]
        fewest = max(_IDENTIFYING_SHARE * float(counts.sum()), float(_FEWEST_IDENTIFIERS))
        if len(texts) > fewest:
            ignored[name], texts = len(texts), texts[:0]
        found[j] = tuple(sorted(texts))
    if ignored:
        warn(_identifier_warning(ignored))
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


def _identifier_warning(columns: Mapping[str, int]) -> IdentifierWarning:
    """columns: the names of the ignored ones, with their numbers of different values"""
    shown = [f"{shown_name(name)} ({count:,})" for name, count in columns.items()]
    return IdentifierWarning(
        f"{counted(len(shown), 'column')} of text with nearly as many different values as rows "
        f"{'is' if len(shown) == 1 else 'are'} ignored, like identifiers: {listed(shown)}",
        "leave such columns out, or turn them into numbers or a few values",
        tuple(columns),
    )


def warn_of_words(
    words: Sequence[str], x: NDArray[Any], names: Sequence[str], categories: Mapping[int, Values]
) -> None:
    """Warn of cells of a training table that would be missing cells in a text file.

    words: that stand for missing cells there; x: (rows, features) the table, with all values of
    its categories; names: of the features
    """
    lower, shown, example = {word.lower() for word in words}, [], ""
    for j, values in categories.items():
        found = [code for code, value in enumerate(values) if value.lower() in lower]
        if found:
            cells = counted(int(np.isin(x[:, j], found).sum()), "cell")
            which, example = listed([repr(values[code]) for code in found]), values[found[0]]
            shown.append(f"{shown_name(names[j])} ({cells} with {which})")
    if shown:
        warn(
            f"{counted(len(shown), 'column')} of text {'has' if len(shown) == 1 else 'have'} words "
            f"that missing_words names: {listed(shown)}; in text files they will be missing cells, "
            "but in a table with types they are values. If they mean missing cells here too, "
            f"replace them before the fit, such as with frame.replace({{{example!r}: None}}); if "
            "not, leave them out of missing_words",
            InputWarning,
        )


def codes(column: Any, values: Values) -> NDArray[np.float64]:
    """The code of each cell of a pandas column. → (rows,) float64, NaN where missing

    Raises an error for a column of numbers if no value is a number.

    Of a category without values, which is ignored, every cell is missing.
    """
    if not values:
        return np.full(len(column), np.nan)
    check_like_training(column, values)
    places, texts = distinct_texts(column)
    position = {value: i for i, value in enumerate(values)}
    other = code_of_others(values)
    known = [float(position.get(text, other)) for text in texts]
    return np.array([*known, np.nan])[places]


def check_like_training(column: Any, values: Values) -> None:
    """Raise an error if a column has numbers, but none of its values in training was one."""
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
        return not math.isnan(float(text))
    except ValueError:
        return False


def new_texts(
    frame: Any, x: NDArray[Any], categories: Mapping[int, Values]
) -> dict[tuple[int, int], str]:
    """The texts of cells whose values are not in the lists, by row and column.

    x: (rows, features) what `codes` made of the frame
    """
    found: dict[tuple[int, int], str] = {}
    for j, values in categories.items():
        rows = np.flatnonzero(is_other(x[:, j], values))
        places, texts = distinct_texts(frame.iloc[rows, j])
        found |= {(i, j): str(texts[place]) for i, place in zip(rows.tolist(), places, strict=True)}
    return found


def is_other(codes: NDArray[Any], values: Values) -> NDArray[np.bool_]:
    """Which codes are those of texts that are not in the list. (rows,)"""
    return np.asarray(codes == code_of_others(values)) & bool(values)


def code_of_others(values: Values) -> int:
    """The code of texts that are not in the list."""
    return values.index(OTHER) if OTHER in values else len(values)
