"""The columns of a batch as numbers, and which of them cannot be used and why."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow.compute
from numpy.typing import NDArray

from .number_parsing import NotNumbers, NotNumeric, as_numbers

_MOST_WRONG = 0.5  # share of cells that are not numbers in a column of numbers with errors


@dataclass(frozen=True)
class UnusableColumn:
    """A column that is not a column of finite numbers.

    kind: ``text``, ``cells`` (a column of numbers with some cells that are not), ``infinite`` (the
    same with infinite numbers) or ``type`` (neither numbers nor text); row: of the file, in which
    the first such cell is; value: of this cell, or the type; ids: whether all cells differ.
    """

    name: str
    kind: Literal["text", "cells", "infinite", "type"]
    row: int
    value: str
    ids: bool = False

    @property
    def of_numbers(self) -> bool:
        """Whether it is a column of numbers, apart from some cells."""
        return self.kind in ("cells", "infinite")

    @property
    def has_decimal_comma(self) -> bool:
        """Whether its first wrong cell is a number with a decimal comma, and not 1,234."""
        return re.fullmatch(r"\s*-?\d+,(\d{1,2}|\d{4,})\s*", self.value) is not None

    def brief(self, where: Callable[[int], str], alone: bool) -> str:
        """Name and problem, for a list.

        where: from a row to ``in line 3``; alone: whether it is the only one in the list.
        """
        if self.kind == "cells":
            problem = f"{self.value!r} {where(self.row)} is not a number"
        elif self.kind == "infinite":
            problem = f"infinite {where(self.row)}"
        elif self.kind == "text":
            problem = f"text, e.g. {self.value!r}" + (f" {where(self.row)}" if alone else "")
        else:
            problem = f"type {self.value}"
        return f"{self.name!r} ({problem})"

    def sentence(self, where: Callable[[int], str]) -> str:
        """The problem as a sentence."""
        if self.kind == "infinite":
            return f"column {self.name!r} has an infinite number {where(self.row)}"
        cell = f"{self.value!r} {where(self.row)}"
        what = f"the type {self.value}" if self.kind == "type" else cell
        return f"column {self.name!r} has {what}, which is not a number"


def parsed(
    batch: Any, columns: Sequence[str], first: int, decimal: str = "."
) -> tuple[NDArray[np.float64], list[UnusableColumn]]:
    """The columns of a pyarrow batch as a matrix (rows, columns), and those that are not numbers.

    first: number of rows before the batch. Values of unusable columns are undefined.
    """
    values = np.empty((batch.num_rows, len(columns)))
    unusable = []
    for j, name in enumerate(columns):
        cells = batch.column(name)
        try:
            values[:, j] = as_numbers(cells, decimal)
        except NotNumbers as found:
            is_text = found.share > _MOST_WRONG
            problem = UnusableColumn(
                name,
                "text" if is_text else "cells",
                first + found.row,
                _short(found.value),
                is_text and _all_differ(cells),
            )
            unusable.append(problem)
        except NotNumeric as kind:
            unusable.append(UnusableColumn(name, "type", first, _short(str(kind))))
        else:
            infinite = np.isinf(values[:, j])
            if infinite.any():
                row = first + int(np.argmax(infinite))
                unusable.append(UnusableColumn(name, "infinite", row, "∞"))
    return values, unusable


def _all_differ(cells: Any) -> bool:
    return len(cells) > 1 and pyarrow.compute.count_distinct(cells).as_py() == len(cells)


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "…"
