"""``diffint score``: write scores, p-values and reasons of a table's rows."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pyarrow
import typer
from numpy.typing import NDArray

from ..core.checks import resolve_jobs
from ..core.errors import InputError
from ..decide import thresholds
from ..tables.atomic_write import check_not_an_input
from ..tables.files.reading import ReadingOptions, open_table
from ..tables.files.writing import table_writer
from . import arguments
from .loading import id_column_of, load_detector
from .streaming import Highest, ScoredBatch, scored_batches

if TYPE_CHECKING:
    from ..estimator import DiffInt

_REASONS = 3
_COLUMNS = ("score", "p_value", "flagged", "reasons")


def score(
    model: arguments.Model,
    table: arguments.Table,
    output: Annotated[
        str,
        typer.Option("-o", "--output", metavar="OUT", help="File to write; - for standard output."),
    ] = "-",
    id_column: arguments.Id = None,
    top: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Only the N rows with the highest scores, sorted."),
    ] = None,
    flagged_only: Annotated[
        bool, typer.Option("--flagged-only", help="Only rows above the threshold.")
    ] = False,
    reasons: Annotated[
        bool, typer.Option("--reasons/--no-reasons", help="Give reasons for flagged rows.")
    ] = True,
    fpr: arguments.Rate = None,
    output_kind: Annotated[
        str | None,
        typer.Option(
            "--output-format",
            metavar="KIND",
            help="Format of OUT: csv, tsv, parquet or arrow. Default: from its name.",
        ),
    ] = None,
    escape_formulas: Annotated[
        bool,
        typer.Option(
            "--escape-formulas/--no-escape-formulas",
            help="In CSV and TSV, put an apostrophe before ids that a spreadsheet takes for "
            "formulas.",
        ),
    ] = True,
    jobs: arguments.Jobs = -1,
    kind: arguments.Kind = None,
    separator: arguments.Separator = None,
    decimal: arguments.Decimal = ".",
    encoding: arguments.Encoding = "utf-8",
) -> None:
    """Score every row of a table: id, score, p-value, flagged, and the top reasons.

    Rows keep their order, except with --top. Reasons are given for flagged rows,
    and for all rows with --top. The file OUT is replaced only when all rows are
    written.

    Example: diffint score payments.diffint new.parquet -o scores.parquet --flagged-only
    """
    check_not_an_input(output, model, table)
    detector = load_detector(model, jobs, fpr)
    threshold = -detector.offset_
    with open_table(table, ReadingOptions(kind, separator, decimal, encoding)) as file:
        id_column = id_column_of(detector, file, id_column)
        # A bar would be mixed with rows that are printed on the same terminal.
        printed = output == "-" and sys.stdout is not None and sys.stdout.isatty()
        batches = scored_batches(detector, file, id_column, jobs, show_progress=not printed)
        first = next(batches)  # before anything is written: most errors occur here
        if id_column in _COLUMNS:
            raise InputError(
                f"the id column {id_column!r} has the same name as a column that `score` writes; "
                "rename it"
            )
        schema = pyarrow.schema(
            [
                (id_column or "row", pyarrow.int64() if first.ids is None else first.ids.type),
                ("score", pyarrow.float64()),
                ("p_value", pyarrow.float64()),
                ("flagged", pyarrow.bool_()),
                *([("reasons", pyarrow.string())] if reasons else []),
            ]
        )
        all_batches = chain([first], batches)
        guarded = ("reasons", schema.names[0]) if escape_formulas else ("reasons",)
        with table_writer(output, schema, output_kind, guarded) as write:
            for batch in _chosen(all_batches, top, flagged_only, threshold):
                columns = _columns(detector, batch, threshold, reasons, top is not None)
                write(pyarrow.record_batch(columns, schema=schema))


def _chosen(
    batches: Iterable[ScoredBatch], top: int | None, flagged_only: bool, threshold: float
) -> Iterator[ScoredBatch]:
    """The rows to write, in order."""
    if top is None:
        for batch in batches:
            yield batch.where(batch.scores > threshold) if flagged_only else batch
        return
    highest = Highest(top, threshold if flagged_only else -np.inf)
    for batch in batches:
        highest.add(batch)
    if highest.rows is not None:
        yield highest.rows


def _columns(
    detector: DiffInt, batch: ScoredBatch, threshold: float, reasons: bool, all_rows: bool
) -> list[Any]:
    """The columns to write, as pyarrow arrays (rows,)."""
    flagged = batch.scores > threshold
    p_values = thresholds.p_values(detector.model_.calibration, batch.scores)
    columns = [pyarrow.array(column) for column in (batch.scores, p_values, flagged)]
    if reasons:
        columns.append(_reasons(detector, batch, np.ones_like(flagged) if all_rows else flagged))
    return [batch.ids if batch.ids is not None else pyarrow.array(batch.numbers), *columns]


def _reasons(detector: DiffInt, batch: ScoredBatch, explained: NDArray[np.bool_]) -> Any:
    """One line of reasons for each of the `explained` rows, null for the others. (rows,)"""
    from ..explain.local_explanation import explain_rows

    texts: list[str | None] = [None] * len(batch.scores)
    rows = np.flatnonzero(explained)
    if len(rows):
        jobs = resolve_jobs(detector.n_jobs)
        why = explain_rows(detector.prepared, batch.values[rows], -detector.offset_, jobs)
        for i, row in enumerate(rows):
            texts[row] = why.brief(i, _REASONS)
    return pyarrow.array(texts, pyarrow.string())
