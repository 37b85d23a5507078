"""Which columns of a table the options choose, and those that are columns of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InputError
from ..core.formatting import listed
from ..tables.files.names import did_you_mean, option_value, split_names
from ..tables.files.parsing import UnusableColumn
from ..tables.files.reading import TableFile

_MANY = 10  # columns, above which a list of them is too long


def named_columns(file: TableFile, given: Sequence[str] | None, option: str) -> list[str]:
    """The columns that an option names, in several values or separated by commas.

    Raises an error for those that the table lacks.
    """
    names = [name for text in given or () for name in split_names(text, file.columns)]
    check_columns(file, names, f"{option} names")
    return list(dict.fromkeys(names))


def check_columns(table: TableFile, names: Sequence[str], needed_by: str) -> None:
    """Raise an error if a table lacks columns; needed_by: e.g. ``the model needs``."""
    missing = [name for name in names if name not in table.columns]
    if missing:
        unknown_first = sorted(table.columns, key=lambda name: name in names)
        shown = [f"{name!r}{did_you_mean(name, unknown_first)}" for name in missing[:5]]
        shown += [f"{len(missing) - 5} more"] if len(missing) > 5 else []
        existing = [repr(name) for name in unknown_first[:5]] or ["none"]
        others = ", …" if len(table.columns) > 5 else ""
        raise InputError(
            f"{table.name} lacks {'a column' if len(missing) == 1 else 'columns'} that "
            f"{needed_by}: {listed(shown)}; it has {listed(existing)}{others}"
            f"{table.hint()}"
        )


def choose_features(
    file: TableFile,
    columns: Sequence[str] | None,
    ignore: Sequence[str] | None,
    others: dict[str, str],
) -> tuple[list[str], dict[str, str]]:
    """The columns to learn from, and those that are not used, with the reason.

    columns, ignore: values of ``--columns`` and ``--ignore``; others: columns with another use, and
    which.
    """
    if columns and ignore:
        raise InputError("use either --columns or --ignore, not both")
    unused = dict.fromkeys(named_columns(file, ignore, "--ignore"), "--ignore") | others
    chosen = named_columns(file, columns, "--columns") if columns else file.columns
    both = [name for name in chosen if columns and name in others]
    if both:
        raise InputError(
            f"{both[0]!r} cannot be both a feature (--columns) and {others[both[0]]}; name it once"
        )
    features = [column for column in file.columns if column in chosen and column not in unused]
    if not features:
        raise InputError(f"{file.name} has no column left to learn from")
    return features, unused


def unused_columns(unused: dict[str, str]) -> str:
    """``'payment' (--id) and 'cut', 'color' (not numeric)``; unused: the reason for each column"""
    parts = []
    for reason in dict.fromkeys(unused.values()):
        names = [repr(name) for name, why in unused.items() if why == reason]
        more = [f"{len(names) - _MANY:,} more"] if len(names) > _MANY else []
        parts.append(f"{', '.join(names[:_MANY] + more)} ({reason})")
    return listed(parts)


class NumberColumns:
    """The columns of numbers of a file, gathered batch by batch, and those that are none.

    All unusable columns are found before any of them is an error.
    """

    def __init__(self, file: TableFile, columns: Sequence[str]) -> None:
        self._file, self._columns = file, list(columns)
        self._parts: list[tuple[list[str], NDArray[np.float64]]] = []
        self._unusable: dict[str, UnusableColumn] = {}

    def add(self, batch: Any, first: int) -> None:
        """Add the rows of a batch; first: number of rows before it."""
        columns = [name for name in self._columns if name not in self._unusable]
        values, unusable = self._file.parsed(batch, columns, first)
        for column in unusable:
            if column.kind == "text" and self._had_numbers(column.name):
                column = replace(column, kind="cells", ids=False)
            self._unusable[column.name] = column
        self._parts.append((columns, values))

    def _had_numbers(self, name: str) -> bool:
        """Whether a column that was usable until now has had any value."""
        return any(
            not np.isnan(values[:, columns.index(name)]).all() for columns, values in self._parts
        )

    def leave_out(self) -> list[str]:
        """Leave out columns that are not numeric. → their names

        A column of numbers with wrong cells is numeric, and so is one with decimal commas.
        """
        names = [
            name
            for name, column in self._unusable.items()
            if not (column.of_numbers or column.has_decimal_comma)
        ]
        self._columns = [name for name in self._columns if name not in names]
        for name in names:
            del self._unusable[name]
        if not self._columns:
            raise InputError(f"{self._file.name} has no numeric column{self._file.hint()}")
        return names

    def matrix(self, has_ids: bool) -> tuple[list[str], NDArray[np.float64]]:
        """(names, (rows, columns)); raises an error that names all unusable columns.

        has_ids: whether the column with the ids is known.
        """
        if self._unusable:
            raise InputError(self._message(list(self._unusable.values()), has_ids))
        chosen = [
            values[:, [columns.index(name) for name in self._columns]]
            if columns != self._columns
            else values
            for columns, values in self._parts
        ]
        return self._columns, np.concatenate(chosen)

    def _message(self, unusable: list[UnusableColumn], has_ids: bool) -> str:
        file, names = self._file, [column.name for column in unusable]
        text = f"{file.name}: {file.listed(unusable)}"
        if len(unusable) == len(self._columns):
            return f"{text}; no other column is left to learn from{file.hint(unusable)}"
        wrong_cells = [column for column in unusable if column.of_numbers]
        if len(wrong_cells) == len(unusable):
            text += "; correct the cells, or leave"
        elif wrong_cells:
            text += "; correct the cells in columns of numbers, or leave"
        else:
            text += "; leave"
        text += " it out with: " if len(names) == 1 else " them out with: "
        if len(names) > _MANY and not wrong_cells:
            return f"{text}--numeric-only{file.hint(unusable)}"
        ids = next((column.name for column in unusable if column.ids), None)
        if ids is None or has_ids:
            return text + f"--ignore {option_value(names)}{file.hint(unusable)}"
        others = [name for name in names if name != ids]
        ignore = f" --ignore {option_value(others)}" if others else ""
        return text + (
            f"--id {option_value([ids])}{ignore} (if {ids!r} has the ids of the rows; else use "
            f"--ignore for it too){file.hint(unusable)}"
        )
