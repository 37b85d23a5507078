"""The columns that a model needs, read from a file batch by batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InputError
from ..core.formatting import shown_name
from ..tables.files.number_parsing import (
    MISSING,
    NotNumbers,
    NotNumeric,
    are_numbers,
    as_numbers,
    as_times,
    is_text,
)
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
        self._words = file.missing_words(model.config.missing_words)
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
        matrix = self._file.numbers(batch, numbers, first, self._words)
        if len(numbers) == len(self._kinds):
            return matrix, {}
        import pandas

        columns: dict[str, Any] = {name: matrix[:, j] for j, name in enumerate(numbers)}
        cells = {}
        for name, kind in self._kinds.items():
            if kind == "cells":
                self._check_kind(batch, name)
                cells[name] = self._cells(batch, name)
                columns[name] = cells[name].to_pandas()
            elif kind == "unused":
                columns[name] = pandas.Series([None] * batch.num_rows, dtype=object)
        frame = pandas.DataFrame({name: columns[name] for name in self._kinds}, copy=False)
        return self._detector._read(frame), cells

    def _cells(self, batch: Any, name: str) -> Any:
        if name in self._detector.model_.kinds.times:
            return as_times(self._file.cells(batch, name, (*MISSING, *self._words)))
        return self._file.cells(batch, name, self._words)

    def _check_kind(self, batch: Any, name: str) -> None:
        """Raise an error if a category whose values are all texts has numbers now."""
        as_text = self._file.format.has_types and is_text(batch.column(name).type)
        if as_text or name not in self._never_numbers:
            return
        try:
            numbers = as_numbers(batch.column(name), self._file.options.decimal, self._words)
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


class SegmentColumn:
    """Reads the segments of a file's rows, if the model has segments."""

    def __init__(self, detector: DiffInt, file: TableFile) -> None:
        self._file, self._names = file, detector.model_.calibration.segment_names
        self._column = detector.segment_column_ if self._names else None
        if self._names and self._column is None:
            raise InputError(
                "the model has segments that are not from a column, so that they cannot be found "
                "in a file; fit with a column, or score with the library"
            )
        if self._column is not None:
            check_columns(file, [self._column], "the model has segments from")
        self._new: dict[str, None] = {}
        self._n_new = 0

    @property
    def needed(self) -> list[str]:
        """The column to read, if any."""
        return [] if self._column is None else [self._column]

    def read(self, batch: Any) -> NDArray[np.int64] | None:
        """The segments of a batch's rows, as places among those of the model. → (rows,)"""
        if self._column is None:
            return None
        from ..tables.row_marks import NEW_SEGMENT, known_segments

        labels = self._file.ids(batch, self._column).to_pandas()
        codes, new = known_segments(labels, batch.num_rows, self._names)
        self._new |= dict.fromkeys(new)
        self._n_new += int((codes == NEW_SEGMENT).sum())
        return codes

    def warn(self) -> None:
        """Warn of segments that the training rows do not have."""
        from ..tables.row_marks import warn_of_new_segments

        warn_of_new_segments(self._n_new, list(self._new))
