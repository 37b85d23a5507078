"""``diffint score``: a table to scores, p-values and reasons."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
import pyarrow
import typer
from numpy.typing import NDArray

from ..estimator import DiffInt, resolve_jobs
from ..files.reading import open_table
from ..files.writing import table_writer
from ..local_explanation import explain_rows
from . import arguments
from .loading import id_column_of, load_detector
from .streaming import Highest, ScoredBatch, scored_batches

_REASONS = 3


def score(
    model: arguments.Model,
    table: arguments.Table,
    output: Annotated[
        str,
        typer.Option("-o", "--output", metavar="OUT", help="To be written; - shows it."),
    ] = "-",
    id_column: arguments.Id = None,
    top: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Only the N highest scores, ranked.")
    ] = None,
    flagged_only: Annotated[
        bool, typer.Option("--flagged-only", help="Only rows above the threshold.")
    ] = False,
    reasons: Annotated[
        bool, typer.Option("--reasons/--no-reasons", help="Say why flagged rows are.")
    ] = True,
    fpr: Annotated[
        float | None, typer.Option(help="Another share of normal rows that may be flagged.")
    ] = None,
    jobs: arguments.Jobs = -1,
    kind: arguments.Kind = None,
    separator: arguments.Separator = None,
    decimal: arguments.Decimal = ".",
    encoding: arguments.Encoding = "utf-8",
) -> None:
    """Score every row of a table: id, score, p-value, flagged, and the top reasons.

    Rows keep their order, unless --top ranks them. Reasons are given for flagged rows, and for all
    rows with --top. OUT is CSV, TSV, Parquet or Arrow by its name; a file appears when all rows are
    written.

    Example: diffint score payments.diffint new.parquet -o scores.parquet --flagged-only
    """
    detector = load_detector(model, jobs)
    if fpr is not None:
        detector.false_positive_rate = fpr
    threshold = -detector.offset_
    with open_table(table, arguments.reading(kind, separator, decimal, encoding)) as file:
        id_column = id_column_of(detector, file, id_column)
        batches = scored_batches(detector, file, id_column, jobs)
        first = next(batches)  # before anything is written: most errors show here
        id_type = pyarrow.int64() if first.ids is None else _id_type(first.ids)
        schema = pyarrow.schema(
            [
                ("row" if id_column is None else id_column, id_type),
                ("score", pyarrow.float64()),
                ("p_value", pyarrow.float64()),
                ("flagged", pyarrow.bool_()),
                *([("reasons", pyarrow.string())] if reasons else []),
            ]
        )
        with table_writer(output, schema) as write:
            for batch in _chosen(_chain(first, batches), top, flagged_only, threshold, id_column):
                columns = _columns(detector, batch, threshold, reasons, top is not None)
                arrays = [
                    column.cast(field.type) if isinstance(column, pyarrow.Array) else column
                    for column, field in zip(columns, schema, strict=True)
                ]
                write(pyarrow.record_batch(arrays, schema=schema))


def _id_type(ids: Any) -> Any:
    return ids.type.value_type if pyarrow.types.is_dictionary(ids.type) else ids.type


def _chain(first: ScoredBatch, rest: Iterator[ScoredBatch]) -> Iterator[ScoredBatch]:
    yield first
    yield from rest


def _chosen(
    batches: Iterator[ScoredBatch],
    top: int | None,
    flagged_only: bool,
    threshold: float,
    id_column: str | None,
) -> Iterator[ScoredBatch]:
    """The rows to write, in order."""
    if top is not None:
        highest = Highest(top, threshold if flagged_only else -np.inf)
        n_features = 0
        for batch in batches:
            n_features = batch.values.shape[1]
            highest.add(batch)
        yield highest.as_batch(n_features, numbered=id_column is None)
        return
    for batch in batches:
        yield batch.where(batch.scores > threshold) if flagged_only else batch


def _columns(
    detector: DiffInt, batch: ScoredBatch, threshold: float, reasons: bool, all_rows: bool
) -> list[Any]:
    scores = batch.scores
    flagged = scores > threshold
    names = batch.ids if batch.ids is not None else pyarrow.array(batch.numbers)
    columns = [names, scores, detector.model_.calibration.p_values(scores), flagged]
    columns = [names, *(pyarrow.array(column) for column in columns[1:])]
    if reasons:
        columns.append(_reasons(detector, batch, np.ones_like(flagged) if all_rows else flagged))
    return columns


def _reasons(detector: DiffInt, batch: ScoredBatch, explained: NDArray[np.bool_]) -> Any:
    """One line of reasons for the rows to be explained, nothing for the others."""
    texts: list[str | None] = [None] * len(batch.scores)
    rows = np.flatnonzero(explained)
    if len(rows):
        jobs = resolve_jobs(detector.n_jobs)
        why = explain_rows(detector.model_, batch.values[rows], -detector.offset_, jobs)
        for i, row in enumerate(rows):
            texts[row] = why.brief(i, _REASONS)
    return pyarrow.array(texts, pyarrow.string())
