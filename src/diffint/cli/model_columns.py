"""The columns that a model needs, read from a file batch by batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InputError
from ..core.formatting import shown_name
from ..tables.files.number_parsing import NotNumbers, NotNumeric, are_numbers, as_numbers
from ..tables.files.reading import TableFile
from ..tables.inputs import input_columns
from .columns import check_columns

if TYPE_CHECKING:
    from ..estimator import DiffInt


class ModelColumns:
    """Reads batches of a file as rows of a model; columns are found by name, in any order."""

    def __init__(self, detector: DiffInt, file: TableFile) -> None:
        self._detector, self._file = detector, file
        self._kinds = input_columns(detector.model_)
        self.needed = [name for name, kind in self._kinds.items() if kind != "unused"]
        check_columns(file, self.needed, "the model needs")
        model, decimal = detector.model_, file.options.decimal
        # Categories of which no value is a number, until a batch has text in them too.
        self._never_numbers = {
            model.feature_names[j]
            for j, values in model.categories.items()
            if values and not np.nansum(are_numbers(list(values), decimal))
        }

    def read(self, batch: Any, first: int) -> tuple[NDArray[Any], dict[str, Any]]:
        """The rows of a batch (rows, features), and the cells of columns that are not numbers.

        first: number of rows before the batch. The cells are pyarrow arrays (rows,).
        """
        numbers = [name for name, kind in self._kinds.items() if kind == "number"]
        matrix = self._file.numbers(batch, numbers, first)
        if len(numbers) == len(self._kinds):
            return matrix, {}
        import pandas

        columns: dict[str, Any] = {name: matrix[:, j] for j, name in enumerate(numbers)}
        cells = {}
        for name, kind in self._kinds.items():
            if kind == "cells":
                self._check_kind(batch, name)
                cells[name] = self._file.cells(batch, name)
                columns[name] = cells[name].to_pandas()
            elif kind == "unused":
                columns[name] = pandas.Series([None] * batch.num_rows, dtype=object)
        frame = pandas.DataFrame({name: columns[name] for name in self._kinds}, copy=False)
        return self._detector._read(frame), cells

    def _check_kind(self, batch: Any, name: str) -> None:
        """Raise an error if a category whose values are all texts has numbers now."""
        if name not in self._never_numbers:
            return
        try:
            numbers = as_numbers(batch.column(name), self._file.options.decimal)
        except (NotNumbers, NotNumeric):
            self._never_numbers.remove(name)
            return
        if not np.isnan(numbers).all():
            model = self._detector.model_
            values = model.categories[model.feature_names.index(name)]
            raise InputError(
                f"{self._file.name}: column {name!r} has numbers, but had text in training, such "
                f"as '{shown_name(values[0])}'; is it the right column? If its meaning has "
                "changed, fit a new model"
            )
