"""The columns of a training table: numbers, texts and times, gathered batch by batch."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow
from numpy.typing import NDArray

from ..core.errors import InputError
from ..tables.files.names import option_value
from ..tables.files.number_parsing import (
    MISSING,
    NotNumeric,
    as_cells,
    as_times,
    is_text,
    is_time,
)
from ..tables.files.parsing import UnusableColumn, is_column_of_text
from ..tables.files.reading import TableFile
from ..tables.times import find_times

if TYPE_CHECKING:
    import pandas

_MANY = 10  # columns, above which a list of them is too long


class TrainingColumns:
    """The columns of a file, and those that cannot be used.

    A column is numbers unless some cell is not a number. Then its cells are kept as text, and
    whether it is text or numbers with errors is decided from all of them. All unusable columns are
    found before any of them is an error.
    """

    def __init__(
        self,
        file: TableFile,
        columns: Sequence[str],
        categories: Collection[str],
        words: Sequence[str] = (),
        numbers: Collection[str] = (),
    ) -> None:
        """Begin without rows.

        categories: the columns that are text also if they have numbers; words: that stand for
        missing cells if the file has no types; numbers: the columns that a model has as numbers, so
        that any other cell in them is an error
        """
        self._words = file.missing_words(words)
        self._numbers = set(numbers)
        self._file, self._columns, self._categories = file, list(columns), set(categories)
        self._parts: list[tuple[list[str], NDArray[np.float64]]] = []
        # The cells of columns that are not numbers, and of those that have had no number yet.
        self._others: dict[str, list[Any]] = {name: [] for name in categories}
        self._blank: dict[str, list[Any]] = {
            name: [] for name in columns if name not in self._categories | self._numbers
        }
        self._first_wrong: dict[str, UnusableColumn] = {}
        self._unusable: dict[str, UnusableColumn] = {}

    def add(self, batch: Any, first: int) -> None:
        """Add the rows of a batch; first: number of rows before it."""
        columns = [c for c in self._columns if c not in self._unusable and c not in self._others]
        for name in columns:
            if is_time(batch.column(name).type):
                self._others[name] = self._blank.pop(name, [])
        columns = [name for name in columns if name not in self._others]
        values, wrong = self._file.parsed(batch, columns, first, self._words)
        needed = [column for column in wrong if column.name in self._numbers]
        if needed:
            raise self._file.not_numbers(needed)
        for column in wrong:
            if column.kind in ("text", "cells") and column.name in self._blank:
                self._others[column.name] = self._blank.pop(column.name)
                self._first_wrong[column.name] = column
            else:
                if column.kind == "text":
                    column = replace(column, kind="cells")
                self._unusable[column.name] = column
        self._parts.append((columns, values))
        for j, name in enumerate(columns):
            if not (is_text(batch.column(name).type) and np.isnan(values[:, j]).all()):
                self._blank.pop(name, None)
        for name, parts in (self._others | self._blank).items():
            try:
                part = as_cells(batch.column(name), self._words)
            except NotNumeric as kind:
                self._unusable[name] = UnusableColumn(name, "type", first, str(kind)[:40])
            else:
                if name not in self._categories and is_time(part.type):
                    parts.append(as_times(part))
                else:
                    parts.append(part.dictionary_encode())

    def frame(self, numeric_only: bool) -> tuple[pandas.DataFrame, list[str]]:
        """The table: columns of float64, of texts (object, None where missing), or of datetime64.

        Named categories have the dtype category. numeric_only: leave out every column that is not
        numeric; a column of numbers with wrong cells is numeric. → also the names of those
        Raises an error that names all unusable columns.
        """
        import pandas

        # Cells that are no numbers, but not missing either, are texts.
        blank = {name: parts for name, parts in self._blank.items() if _have_values(parts)}
        others = {
            name: pyarrow.chunked_array(parts).unify_dictionaries().combine_chunks()
            for name, parts in (self._others | blank).items()
            if name not in self._unusable
        }
        for name, column in self._first_wrong.items():
            if name in others and (not self._is_text(others[name]) or self._file.hint()):
                # With a hint, several columns were read as one.
                self._unusable[name] = replace(
                    column, kind="text" if self._file.hint() else "cells"
                )
                del others[name]
        left_out = [name for name in self._columns if self._is_left_out(name, others)]
        if not numeric_only:
            left_out = []
        chosen = [name for name in self._columns if name not in left_out]
        unusable = [self._unusable[name] for name in chosen if name in self._unusable]
        if not chosen:
            raise InputError(f"{self._file.name} has no numeric column{self._file.hint()}")
        if unusable:
            raise InputError(self._message(unusable, len(chosen)))
        numbers = [name for name in chosen if name not in others]
        matrix = self._matrix(numbers)
        if len(numbers) == len(chosen):
            return pandas.DataFrame(matrix, columns=chosen, copy=False), left_out
        columns = {name: matrix[:, j] for j, name in enumerate(numbers)}
        columns |= {name: self._series(name, others[name]) for name in chosen if name in others}
        return pandas.DataFrame({name: columns[name] for name in chosen}, copy=False), left_out

    def _is_left_out(self, name: str, others: dict[str, Any]) -> bool:
        if name in self._unusable:
            return not self._unusable[name].of_numbers
        return name in others and name not in self._categories

    def _is_text(self, column: Any) -> bool:
        texts = column.dictionary.to_pylist()
        return is_column_of_text(
            texts, np.bincount(_places(column), minlength=len(texts) + 1)[:-1], self._decimal
        )

    @property
    def _decimal(self) -> str:
        return self._file.options.decimal

    def _series(self, name: str, column: Any) -> Any:
        """A column that is not numbers, for pandas."""
        import pandas

        if not pyarrow.types.is_dictionary(column.type):
            return column.to_pandas()
        different = np.array([*column.dictionary.to_pylist(), None], dtype=object)
        if name not in self._categories:
            usual = np.array([str(cell).lower() in MISSING for cell in different])
            if usual[:-1].any() and find_times(pandas.DataFrame({name: different[~usual]})):
                different[usual] = None  # beside times, these words can only mean missing cells
        texts = pandas.Series(different[_places(column)], dtype=object)
        return texts.astype("category") if name in self._categories else texts

    def _matrix(self, columns: list[str]) -> NDArray[np.float64]:
        """The columns of numbers. → (rows, columns)"""
        chosen = [
            values[:, [there.index(name) for name in columns]] if there != columns else values
            for there, values in self._parts
        ]
        return np.concatenate(chosen)

    def _message(self, unusable: list[UnusableColumn], n_columns: int) -> str:
        file, names = self._file, [column.name for column in unusable]
        text = f"{file.name}: {file.listed(unusable)}"
        remedies = []
        if all(column.of_numbers for column in unusable):
            remedies.append("correct the cells")
        elif any(column.of_numbers for column in unusable):
            remedies.append("correct the cells in columns of numbers")
        it = "it" if len(names) == 1 else "them"
        mixed = [column.name for column in unusable if column.kind == "cells"]
        if mixed:
            what = "it as a category" if len(names) == 1 else "columns as categories"
            remedies.append(f"use {what} with --categories {option_value(mixed[:_MANY])}")
        if len(unusable) < n_columns:
            remedies.append(f"leave {it} out with --ignore {option_value(names[:_MANY])}")
        if not remedies:
            remedies = ["no other column is left to learn from"]
        *others, last = remedies
        text += f"; {', '.join(others)}, or {last}" if others else f"; {last}"
        return text + file.hint(unusable)


def _have_values(parts: list[Any]) -> bool:
    """Whether any cell is not missing. parts: pyarrow arrays (rows,)"""
    return any(part.null_count < len(part) for part in parts)


def _places(column: Any) -> NDArray[np.int64]:
    """The position of each cell in a pyarrow dictionary, its length where missing. → (rows,)"""
    places = column.indices.fill_null(len(column.dictionary))
    return np.asarray(places.to_numpy(zero_copy_only=False), dtype=np.int64)
