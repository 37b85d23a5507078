"""The columns of a batch as numbers or as they are, and which cannot be used and why."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .number_parsing import (
    NotNumbers,
    NotNumeric,
    are_numbers,
    as_numbers,
)

_MOST_WRONG = 0.5  # share of cells that are not numbers in a column of numbers with errors
_GROUPS = r"\d{1,3}(?:[.,' \u00a0\u202f]\d{3})+(?:[.,]\d+)?"
_NUMBER_LIKE = re.compile(rf"[-+−]?\s*[$€£¥]?\s*(?:{_GROUPS}|\d+(?:[.,]\d+)?)\s*[%$€£¥]?")

Kind = Literal["text", "cells", "infinite", "type"]


@dataclass(frozen=True)
class UnusableColumn:
    """A column that is not a column of finite numbers.

    kind: ``text``, ``cells`` (a column of numbers with some cells that are not), ``infinite`` (the
    same with infinite numbers) or ``type`` (neither numbers nor text); row: of the file, in which
    the first such cell is; value: of this cell, or the type.
    """

    name: str
    kind: Kind
    row: int
    value: str

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
    batch: Any,
    columns: Sequence[str],
    first: int,
    decimal: str = ".",
    words: Sequence[str] = (),
) -> tuple[NDArray[np.float64], list[UnusableColumn]]:
    """The columns of a pyarrow batch as a matrix (rows, columns), and those that are not numbers.

    first: number of rows before the batch; words: that stand for missing cells, beside the usual
    ones. Values of unusable columns are undefined.
    """
    values = np.empty((batch.num_rows, len(columns)))
    unusable = []
    for j, name in enumerate(columns):
        try:
            values[:, j] = as_numbers(batch.column(name), decimal, words)
        except NotNumbers as found:
            kind: Kind = "text" if found.share > _MOST_WRONG else "cells"
            unusable.append(UnusableColumn(name, kind, first + found.row, _short(found.value)))
        except NotNumeric as found:
            unusable.append(UnusableColumn(name, "type", first, _short(str(found))))
        else:
            infinite = np.isinf(values[:, j])
            if infinite.any():
                row = first + int(np.argmax(infinite))
                unusable.append(UnusableColumn(name, "infinite", row, "∞"))
    return values, unusable


def is_column_of_text(texts: Sequence[str], counts: NDArray[np.int64], decimal: str) -> bool:
    """Whether a column is text, rather than numbers of which some are wrong or written unusually.

    texts, counts: (different texts,) the cells that are not missing, and how many cells have each.
    Most cells of a column of text are not numbers, and do not look like 1,5 or 1,234 or $5 or 5 %.
    """
    kinds = are_numbers(list(texts), decimal)
    has_digits = np.array([any(map(str.isdigit, text)) for text in texts], dtype=bool)
    is_number = (kinds == 1) & has_digits  # true and false are words, beside other words
    other = ~is_number & ~np.isnan(kinds)
    n_numbers, n_others = counts[is_number].sum(), counts[other].sum()
    similar = np.array([_NUMBER_LIKE.fullmatch(text) is not None for text in texts], dtype=bool)
    n_similar = counts[other & similar].sum()
    return bool(n_others > _MOST_WRONG * (n_numbers + n_others) and n_similar <= n_others / 2)


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "…"
