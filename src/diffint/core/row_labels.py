"""How results name their rows: by the index of the pandas table that was passed in, or by position.

An index is None where rows have positions only: for arrays, for other tables, and for the index
0, 1, 2, … that pandas makes by itself.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .arrow_checks import check_arrow
from .formatting import shortened, shown_name

if TYPE_CHECKING:
    import pandas


def index_of(table: Any) -> pandas.Index | None:
    """The index of a pandas table if it has more than positions."""
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(table, pandas.DataFrame):
        return None
    index = table.index
    check_arrow(index)
    is_default = isinstance(index, pandas.RangeIndex) and index.start == 0 and index.step == 1
    return None if is_default and index.name is None else index


def index_for(rows: NDArray[np.intp], index: pandas.Index | None, n_rows: int) -> pandas.Index:
    """The index of a frame whose lines are about the rows at these positions, (lines,)."""
    import pandas

    return (pandas.RangeIndex(n_rows) if index is None else index).take(rows)


def row_name(row: int, index: pandas.Index | None) -> str:
    """The name of the row at a position in a text: ``229``, ``'P-17'``, ``2024-03-01 00:00:00``"""
    return str(row) if index is None else _label_text(index[row])


def _label_text(label: Any) -> str:
    """A label on one line; texts are quoted, so that they differ from positions."""
    if isinstance(label, str):
        return shortened(repr(label))
    if isinstance(label, tuple):
        return f"({', '.join(map(_label_text, label))})"
    return shown_name(str(label))
