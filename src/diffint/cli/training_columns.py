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
from ..tables.files.number_parsing import NotNumeric, as_texts, is_time
from ..tables.files.parsing import UnusableColumn, cells, is_column_of_text
from ..tables.files.reading import TableFile

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
        numbers: Collection[str] = (),
    ) -> None:
        """Begin without rows.

        categories: the columns that are text also if they have numbers; numbers: those that a model
        has as numbers, so that any other cell in them is an error
        """
        self._numbers = set(numbers)
        self._file, self._columns, self._categories = file, list(columns), set(categories)
        self._parts: list[tuple[list[str], NDArray[np.float64]]] = []
        self._n_rows = 0
        # Columns that are not numbers: the rows before their first part, and the parts.
        self._others: dict[str, tuple[int, list[Any]]] = {name: (0, []) for name in categories}
        self._first_wrong: dict[str, UnusableColumn] = {}
        self._unusable: dict[str, UnusableColumn] = {}

    def add(self, batch: Any, first: int) -> None:
        """Add the rows of a batch; first: number of rows before it."""
        columns = [c for c in self._columns if c not in self._unusable and c not in self._others]
        for name in columns:
            if is_time(batch.column(name).type):
                self._others[name] = first, []
        columns = [name for name in columns if name not in self._others]
        values, wrong = self._file.parsed(batch, columns, first)
        needed = [column for column in wrong if column.name in self._numbers]
        if needed:
            raise self._file.not_numbers(needed)
        for column in wrong:
            if column.kind in ("text", "cells") and not self._had_numbers(column.name):
                self._others[column.name] = first, []
                self._first_wrong[column.name] = column
            else:
                if column.kind == "text":
                    column = replace(column, kind="cells")
                self._unusable[column.name] = column
        self._parts.append((columns, values))
        for name, (_, parts) in self._others.items():
            try:
                is_named = name in self._categories
                part = (as_texts if is_named else cells)(batch.column(name))
            except NotNumeric as kind:
                self._unusable[name] = UnusableColumn(name, "type", first, str(kind)[:40])
            else:
                parts.append(part if is_time(part.type) else part.dictionary_encode())
        self._n_rows = first + batch.num_rows

    def _had_numbers(self, name: str) -> bool:
        """Whether a column that was usable until now has had any value."""
        return any(
            not np.isnan(values[:, columns.index(name)]).all() for columns, values in self._parts
        )

    def frame(self, numeric_only: bool) -> tuple[pandas.DataFrame, list[str]]:
        """The table: columns of float64, of texts (object, None where missing), or of datetime64.

        Named categories have the dtype category. numeric_only: leave out every column that is not
        numeric; a column of numbers with wrong cells is numeric. → also the names of those
        Raises an error that names all unusable columns.
        """
        import pandas

        others = {name: self._joined(name) for name in self._others if name not in self._unusable}
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

    def _joined(self, name: str) -> Any:
        """A column that is not numbers, as one pyarrow array (rows,)."""
        n_before, parts = self._others[name]
        nothing = pyarrow.nulls(n_before, parts[0].type)
        return pyarrow.chunked_array([nothing, *parts]).unify_dictionaries().combine_chunks()

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

        if is_time(column.type):
            return column.to_pandas()
        different = np.array([*column.dictionary.to_pylist(), None], dtype=object)
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


def _places(column: Any) -> NDArray[np.int64]:
    """The position of each cell in a pyarrow dictionary, its length where missing. → (rows,)"""
    places = column.indices.fill_null(len(column.dictionary))
    return np.asarray(places.to_numpy(zero_copy_only=False), dtype=np.int64)
