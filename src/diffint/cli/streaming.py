"""A file of rows through a detector, batch by batch."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow
from numpy.typing import NDArray

from ..errors import InputError
from ..estimator import DiffInt, resolve_jobs
from ..files.reading import TableFile
from ..formatting import listed


@dataclass(frozen=True)
class ScoredBatch:
    """Some rows of a file: how many come before them, what they are called, values and scores.

    numbers: (rows,) of the rows in the file, from 1; ids: pyarrow array (rows,), or None; values:
    (rows, features) in the model's order; scores: (rows,).
    """

    first: int
    numbers: NDArray[np.int64]
    ids: Any | None
    values: NDArray[np.float64]
    scores: NDArray[np.float64]

    def name(self, row: int) -> str:
        """What to call a row of the batch: its id, or its number in the file."""
        return str(self.numbers[row] if self.ids is None else self.ids[row])

    def where(self, chosen: NDArray[np.bool_]) -> ScoredBatch:
        """The chosen rows alone."""
        ids = None if self.ids is None else self.ids.filter(pyarrow.array(chosen))
        return ScoredBatch(
            self.first, self.numbers[chosen], ids, self.values[chosen], self.scores[chosen]
        )


def scored_batches(
    detector: DiffInt, table: TableFile, id_column: str | None, n_jobs: int
) -> Iterator[ScoredBatch]:
    """The rows of an open file, scored; columns are found by name, in whatever order."""
    from ..scoring import anomaly_scores

    features = list(detector.model_.feature_names)
    check_columns(table, features, "the model needs")
    if id_column is not None:
        check_columns(table, [id_column], "names the rows")
    wanted = features + ([id_column] if id_column and id_column not in features else [])
    jobs = resolve_jobs(n_jobs)
    with rows_progress(table) as advance:
        for first, batch in table.batches(wanted):
            values = table.numbers(batch, features, first)
            ids = batch.column(id_column) if id_column is not None else None
            numbers = np.arange(first + 1, first + 1 + len(values))
            scores = anomaly_scores(detector.model_, values, jobs)
            yield ScoredBatch(first, numbers, ids, values, scores)
            advance(batch.num_rows)


def check_columns(table: TableFile, names: list[str], who: str) -> None:
    """Refuse a table that lacks columns."""
    missing = [repr(name) for name in names if name not in table.columns]
    if missing:
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        has = listed([repr(name) for name in table.columns[:5]]) if table.columns else "none"
        others = ", …" if len(table.columns) > 5 else ""
        raise InputError(
            f"{table.name} lacks {'a column' if len(missing) == 1 else 'columns'} that {who}: "
            f"{listed(missing[:5])}{more}; it has {has}{others}"
        )


@contextmanager
def rows_progress(table: TableFile) -> Iterator[Any]:
    """A bar with rows per second and time left; quiet where there is no terminal."""
    if not sys.stderr.isatty():
        yield lambda rows: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[rows]:,} rows, {task.fields[rate]:,.0f} rows/s"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("scoring", total=None, rows=0, rate=0.0)

        def advance(rows: int) -> None:
            done = bar.tasks[0].fields["rows"] + rows
            share = done / table.n_rows if table.n_rows else table.progress()
            elapsed = max(bar.tasks[0].elapsed or 0.0, 1e-9)
            bar.update(
                task, rows=done, rate=done / elapsed, total=1.0 if share else None, completed=share
            )

        yield advance


class Highest:
    """The rows with the highest scores of a stream, at most `limit`; ties keep the earlier row."""

    def __init__(self, limit: int, threshold: float = -np.inf) -> None:
        self._limit, self._threshold = limit, threshold
        self._rows: list[tuple[float, int, Any, NDArray[np.float64]]] = []

    def add(self, batch: ScoredBatch) -> None:
        """Consider the rows of a batch that score above the threshold."""
        above = np.flatnonzero(batch.scores > self._threshold)
        best = above[np.argsort(-batch.scores[above], kind="stable")][: self._limit]
        self._rows += [
            (
                float(batch.scores[i]),
                int(batch.numbers[i]),
                None if batch.ids is None else batch.ids[int(i)],
                batch.values[i].copy(),  # not the whole batch with it
            )
            for i in best
        ]
        self._rows.sort(key=lambda row: (-row[0], row[1]))
        del self._rows[self._limit :]

    @property
    def ids(self) -> tuple[str, ...]:
        """What they are called, highest score first."""
        return tuple(str(row[1] if row[2] is None else row[2]) for row in self._rows)

    def as_batch(self, n_features: int, numbered: bool) -> ScoredBatch:
        """The rows as one batch, highest score first."""
        ids = None if numbered else pyarrow.array([row[2].as_py() for row in self._rows])
        numbers = np.array([row[1] for row in self._rows], dtype=np.int64)
        scores = np.array([row[0] for row in self._rows])
        return ScoredBatch(0, numbers, ids, self.values(n_features), scores)

    def values(self, n_features: int) -> NDArray[np.float64]:
        """(rows, features), highest score first"""
        return np.array([row[3] for row in self._rows]).reshape(-1, n_features)
