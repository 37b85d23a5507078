"""Make a report of a table that is in memory, and write it to a file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.arrow_checks import check_arrow
from ...core.errors import InputError, InputTypeError
from ...core.flag_rule import FlagRule
from ...core.model import FittedModel
from ...core.row_labels import index_of
from ...score.prepared import PreparedModel
from ...tables.atomic_write import atomic_write
from ...tables.frames import new_texts_of, unused_cells
from ...tables.inputs import ignored_columns
from .data import ScoredTable

if TYPE_CHECKING:
    from ...decide.drift import Drift


def scored_rows(
    model: FittedModel,
    X: Any,
    table: NDArray[Any],
    scores: NDArray[np.float64],
    rule: FlagRule,
    max_rows: int,
    kept: Mapping[str, Any] | None,
    source: str,
    drift: Drift | None = None,
) -> ScoredTable:
    """A table with its flagged rows, named by its index.

    table: (rows, features) what `read_table` made of `X`; scores: (rows,); kept: more columns;
    drift: of all rows
    """
    flagged = np.flatnonzero(rule.flagged(scores))
    shown = flagged[np.argsort(-scores[flagged], kind="stable")][:max_rows]
    index, kept = index_of(X), {} if kept is None else kept
    if not (isinstance(kept, Mapping) or hasattr(kept, "columns")):
        raise InputTypeError(
            f"kept has the type {type(kept).__name__}; pass a DataFrame, such as X[['name']], "
            "or a mapping from names to columns"
        )
    cells = {str(name): _texts(name, kept[name], len(table), shown) for name in kept}
    return ScoredTable(
        source=source,
        scores=scores,
        segments=rule.codes,
        accepted=rule.accepted,
        drift=drift,
        row_segments=None if rule.codes is None else rule.codes[shown],
        rows=np.asarray(table[shown], dtype=np.float64),
        ids=tuple(str(i if index is None else index[i]) for i in shown),
        new_texts=new_texts_of(X, table, model.kinds, shown),
        kept=cells | unused_cells(X, ignored_columns(model), shown),
    )


def _texts(name: Any, column: Any, n_rows: int, shown: NDArray[np.intp]) -> list[str]:
    """The cells of a column in the shown rows, by position."""
    import pandas

    check_arrow(column)
    try:
        cells = pandas.Series(column)
    except (TypeError, ValueError) as error:  # such as a set, or an array with two axes
        raise InputError(f"the kept column {name!r} is no column: {error}") from error
    if len(cells) != n_rows:
        raise InputError(
            f"the kept column {name!r} has length {len(cells)} and X {n_rows}; pass one cell for "
            "each row"
        )
    cells = cells.iloc[shown]
    return ["" if missing else str(cell) for cell, missing in zip(cells, cells.isna(), strict=True)]


def write_page(
    prepared: PreparedModel,
    scored: ScoredTable,
    path: str | os.PathLike[str],
    rule: FlagRule,
    n_jobs: int,
) -> Path:
    """Write the report completely or not at all. → the path"""
    from .page import render

    page = render(prepared, scored, rule, datetime.now().astimezone(), n_jobs)
    atomic_write(path, page.encode())
    return Path(path)
