"""The label column of a table: which rows are known anomalies."""

from __future__ import annotations

from collections import Counter
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InputError
from ..core.formatting import listed
from ..tables.files.names import option_value, split_names
from ..tables.files.parsing import parsed
from ..tables.files.reading import TableFile
from .columns import check_columns

_MOST_VALUES = 5  # that a message names
_MOST_COUNTED = 10_000


class Label:
    """The column that marks known anomalies, and the values that mean an anomaly."""

    def __init__(self, given: str, file: TableFile) -> None:
        """given: ``COL``, for 1 or true, or ``COL=VALUE``, with more values after commas"""
        self._file, self._seen = file, Counter[str]()
        self.column, self._values, self._found = given, list[str](), set[str]()
        place = given.find("=")
        while given not in file.columns and place >= 0:
            if given[:place] in file.columns:
                self.column = given[:place]
                self._values = [_plain(value) for value in split_names(given[place + 1 :], ())]
                break
            place = given.find("=", place + 1)
        check_columns(file, [self.column], "--label names")

    def marks(self, batch: Any, first: int) -> NDArray[np.bool_]:
        """Which rows of a batch are anomalies. → (rows,); first: number of rows before it"""
        texts = self._texts(batch)
        if len(self._seen) < _MOST_COUNTED:
            self._seen.update(text for text in texts if text)
        if self._values:
            self._found |= set(texts)
            return np.array([text in self._values for text in texts], dtype=bool)
        values, unusable = parsed(batch, [self.column], first, self._file.options.decimal)
        marks = values[:, 0]
        if unusable:
            self._refuse(f"has {unusable[0].value!r} {self._file.where(unusable[0].row)}")
        wrong = np.flatnonzero((marks != 0) & (marks != 1))
        if len(wrong):
            row = int(wrong[0])
            is_ = "is missing" if np.isnan(marks[row]) else f"is {texts[row]}"
            self._refuse(f"{is_} {self._file.where(first + row)}")
        return np.asarray(marks == 1)

    def check(self) -> None:
        """Raise an error if a value that means an anomaly is in no row, after all batches."""
        for value in self._values:
            if value not in self._found:
                raise InputError(
                    f"{self._file.name}: no row has {value!r} in the column {self.column!r}; its "
                    f"values are {self._most_frequent()}"
                )

    def _texts(self, batch: Any) -> NDArray[Any]:
        """The cells as text, the same for 1 and 1.0. → (rows,)"""
        cells = self._file.kept(batch, self.column).cast("string").to_pylist()
        return np.asarray([_plain(cell) for cell in cells], dtype=object)

    def _most_frequent(self) -> str:
        values = [repr(value) for value, _ in self._seen.most_common(_MOST_VALUES)]
        more = len(self._seen) - len(values)
        return listed(values + ([f"{more:,} more"] if more else []))

    def _refuse(self, problem: str) -> NoReturn:
        rarest = min(self._seen, key=self._seen.__getitem__, default="VALUE")
        choice = option_value([f"{self.column}={rarest}"])
        raise InputError(
            f"{self._file.name}: the label {self.column!r} {problem}; it must be 0 or 1 (or false, "
            f"true), or say which value means an anomaly, such as --label {choice} (its values: "
            f"{self._most_frequent()})"
        )


def _plain(cell: str | None) -> str:
    text = (cell or "").strip()
    return text[:-2] if text.endswith(".0") and text[:-2].lstrip("-").isdecimal() else text
