"""Score the rows of a file, batch by batch."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow
from numpy.typing import NDArray

from ..core.checks import resolve_jobs
from ..core.errors import InputWarning, warn
from ..core.flag_rule import FlagRule
from ..decide import thresholds
from ..tables.files.reading import ReadingOptions, TableFile, open_table
from ..tables.fingerprint import Fingerprint
from .columns import check_columns
from .model_columns import ModelColumns, SegmentColumn
from .output import say

if TYPE_CHECKING:
    from ..core.model import FittedModel
    from ..estimator import DiffInt


_LONG = 5.0  # seconds without any output


@dataclass(frozen=True)
class ScoredBatch:
    """Some rows of a file with their scores.

    first: number of rows before them; numbers: (rows,) their numbers in the file, from 1; ids:
    pyarrow array (rows,), or None; values: (rows, features) in the model's order; scores: (rows,);
    kept: other columns, as pyarrow arrays (rows,); cells: the features that are not numbers,
    likewise; rule: which of the rows are flagged.
    """

    first: int
    numbers: NDArray[np.int64]
    ids: Any | None
    values: NDArray[np.float64]
    scores: NDArray[np.float64]
    rule: FlagRule
    kept: dict[str, Any] = field(default_factory=dict)
    cells: dict[str, Any] = field(default_factory=dict)

    def name(self, row: int) -> str:
        """The id of a row of the batch, or its number in the file if it has none."""
        name = None if self.ids is None else self.ids[row].as_py()
        return str(self.numbers[row] if name is None or name == "" else name)

    def kept_cells(self, row: int) -> dict[str, str]:
        """The cells of the kept columns in a row of the batch, as text."""
        return {name: cell_text(column[row]) for name, column in self.kept.items()}

    def where(self, chosen: NDArray[np.bool_]) -> ScoredBatch:
        """Only the chosen rows."""
        return self.take(np.flatnonzero(chosen))

    def take(self, rows: NDArray[np.intp]) -> ScoredBatch:
        """These rows, in this order."""
        chosen = pyarrow.array(rows)
        ids = None if self.ids is None else self.ids.take(chosen)
        values, scores = self.values[rows], self.scores[rows]
        kept, cells = (
            {name: column.take(chosen) for name, column in columns.items()}
            for columns in (self.kept, self.cells)
        )
        rule, numbers = self.rule.take(rows), self.numbers[rows]
        return ScoredBatch(self.first, numbers, ids, values, scores, rule, kept, cells)

    @property
    def flagged(self) -> NDArray[np.bool_]:
        """(rows,)"""
        return self.rule.flagged(self.scores)

    def new_texts(self, model: FittedModel) -> dict[tuple[int, int], str]:
        """What cells have that the model has no value for, by row and feature."""
        import pandas

        from ..tables.frames import new_texts_of

        rows = pandas.RangeIndex(len(self.values))
        frame = pandas.DataFrame(index=rows, columns=model.columns, dtype=object)
        cells = {name: column.to_pandas() for name, column in self.cells.items()}
        return new_texts_of(frame.assign(**cells), self.values, model.kinds)


def scored_batches(
    detector: DiffInt,
    table: TableFile,
    id_column: str | None,
    n_jobs: int,
    show_progress: bool = True,
    keep: Sequence[str] = (),
    keep_if_possible: Sequence[str] = (),
    rule: FlagRule | None = None,
) -> Iterator[ScoredBatch]:
    """The rows of an open file with scores; columns are found by name, in any order.

    keep: other columns to return with them; keep_if_possible: the same, but no error is raised if
    cells cannot be shown; rule: which rows are flagged, by default the detector's.
    """
    from ..score.scoring import anomaly_scores, count_blank_rows, warn_of_blank_rows

    inputs, rule = ModelColumns(detector, table), rule or detector.rule
    thresholds.warn_of_pooled_segments(detector.rule)
    segments = SegmentColumn(detector, table)
    if id_column is not None:
        check_columns(table, [id_column], "should have the ids")
    others = [*([] if id_column is None else [id_column]), *keep, *keep_if_possible]
    others += segments.needed
    columns = list(dict.fromkeys([*inputs.needed, *others]))
    jobs, n_blank, seen = resolve_jobs(n_jobs), 0, Fingerprint()
    with rows_progress(table, show_progress) as advance:
        for first, batch in table.batches(columns):
            values, cells = inputs.read(batch, first)
            ids = table.ids(batch, id_column) if id_column is not None else None
            kept = {name: table.kept(batch, name) for name in keep}
            kept |= {name: table.kept_if_possible(batch, name) for name in keep_if_possible}
            numbers = np.arange(first + 1, first + 1 + len(values))
            scores = anomaly_scores(detector.prepared, values, jobs)
            n_blank += count_blank_rows(detector.model_, values, scores)
            seen.add(values)
            own = rule.for_rows(segments.read(batch))
            own = detector._with_accepted(own, values, scores)
            yield ScoredBatch(first, numbers, ids, values, scores, own, kept, cells)
            advance(batch.num_rows)
    warn_of_blank_rows(n_blank)
    segments.warn()
    if seen.hexdigest() == detector.model_.training.fingerprint:
        warn(
            "these are the rows that the model was trained on, so their scores are too low and "
            "fewer are flagged than among new rows; `diffint find` scores each row by members that "
            "were not trained on it",
            InputWarning,
        )


def accept_file(detector: DiffInt, path: str) -> None:
    """Call the rows of a file normal, for this run."""
    from ..explain.acceptance import accepted_rows

    found = []
    with open_table(path, ReadingOptions()) as file:
        for batch in scored_batches(detector, file, None, -1, False):
            found.append(accepted_rows(detector.prepared, batch.values, batch.rule)[0])
    model = detector.model_
    for accepted in found:
        model = replace(model, called_normal=model.accepted.and_also(accepted))
    detector._set_model(model)


@contextmanager
def rows_progress(table: TableFile, shown: bool) -> Iterator[Any]:
    """A progress bar with rows per second and time left; without a terminal, lines on long work."""
    if not shown:
        yield lambda _rows: None
        return
    if sys.stderr is None or not sys.stderr.isatty():
        with _long_work(table) as count:
            yield count
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


@contextmanager
def _long_work(table: TableFile) -> Iterator[Callable[[int], None]]:
    """A function that counts rows; prints a line once this has taken long."""
    started, done, announced = time.perf_counter(), 0, False

    def count(rows: int) -> None:
        nonlocal done, announced
        done += rows
        seconds = time.perf_counter() - started
        if not announced and seconds > _LONG:
            announced = True
            say(f"diffint: scoring {table.name}, {done:,} rows in {seconds:.0f} s …", err=True)

    yield count


def cell_text(cell: Any) -> str:
    """A pyarrow scalar as text, empty if it is missing."""
    value = cell.as_py()
    return "" if value is None else str(value)


def joined(parts: list[ScoredBatch]) -> ScoredBatch:
    """Several batches as one."""
    ids = None
    if parts[0].ids is not None:
        ids = pyarrow.concat_arrays([part.ids for part in parts])
    return ScoredBatch(
        parts[0].first,
        np.concatenate([part.numbers for part in parts]),
        ids,
        np.concatenate([part.values for part in parts]),
        np.concatenate([part.scores for part in parts]),
        _joined_rule([part.rule for part in parts], [len(part.scores) for part in parts]),
        _joined_columns([part.kept for part in parts]),
        _joined_columns([part.cells for part in parts]),
    )


def _joined_rule(parts: list[FlagRule], sizes: list[int]) -> FlagRule:
    codes = [part.codes for part in parts if part.codes is not None]
    rule = parts[0].for_rows(np.concatenate(codes) if codes else None)
    accepted = [
        np.zeros(size, dtype=bool) if part.accepted is None else part.accepted
        for part, size in zip(parts, sizes, strict=True)
    ]
    return replace(rule, accepted=None).with_accepted(np.concatenate(accepted))


def _joined_columns(parts: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: pyarrow.concat_arrays([part[name] for part in parts]) for name in parts[0]}


class RandomRows:
    """Some rows of a stream at random, at most `limit`, and how many rows there are."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._keys: NDArray[np.float64] = np.empty(0)
        self._rows: list[ScoredBatch] = []
        self.n_rows = self.n_flagged = 0

    def add(self, batch: ScoredBatch, keys: NDArray[np.float64]) -> None:
        """Consider the rows of a batch; those with the smallest keys (rows,) are kept."""
        self.n_rows += len(batch.scores)
        self.n_flagged += int(batch.flagged.sum())
        self._rows.append(batch)
        self._keys = np.concatenate([self._keys, keys])
        if len(self._keys) > 2 * self._limit:
            self._shorten()

    def _shorten(self) -> None:
        kept = np.sort(np.argsort(self._keys, kind="stable")[: self._limit])
        self._rows, self._keys = [joined(self._rows).take(kept)], self._keys[kept]

    @property
    def rows(self) -> ScoredBatch:
        """The rows that are kept."""
        self._shorten()
        return self._rows[0]


class Highest:
    """The rows with the highest scores of a stream, at most `limit`; ties keep the earlier row."""

    def __init__(self, limit: int, flagged_only: bool = False) -> None:
        self._limit, self._flagged_only = limit, flagged_only
        self.rows: ScoredBatch | None = None

    def add(self, batch: ScoredBatch) -> None:
        """Consider the rows of a batch."""
        above = batch.where(batch.flagged) if self._flagged_only else batch
        candidates = above if self.rows is None else joined([self.rows, above])
        best = np.argsort(-candidates.scores, kind="stable")[: self._limit]
        self.rows = candidates.take(best)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids or numbers of the rows, highest score first."""
        rows = self.rows
        return () if rows is None else tuple(rows.name(i) for i in range(len(rows.scores)))

    @property
    def kept(self) -> list[dict[str, str]]:
        """The cells of the kept columns of the rows, highest score first."""
        rows = self.rows
        return [] if rows is None else [rows.kept_cells(i) for i in range(len(rows.scores))]
