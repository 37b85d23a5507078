"""``diffint score``: write scores, p-values and reasons of a table's rows."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pyarrow
import typer
from numpy.typing import NDArray

from ..core.checks import check_real, resolve_jobs
from ..core.errors import InputError
from ..core.formatting import counted, number
from ..decide import thresholds
from ..tables.atomic_write import check_not_an_input
from ..tables.files.formats import format_to_write
from ..tables.files.reading import ReadingOptions, open_table
from ..tables.files.writing import table_writer
from . import arguments
from .loading import id_column_of, kept_columns, load_detector
from .output import say, significant
from .streaming import Highest, ScoredBatch, scored_batches

if TYPE_CHECKING:
    from ..decide.selection import Selection
    from ..estimator import DiffInt

_DIGITS = 6  # of scores and p-values in files that people read
_COLUMNS = ("score", "p_value", "flagged", "reasons")


def score(
    model: arguments.Model,
    table: arguments.Table,
    output: Annotated[
        str,
        typer.Option("-o", "--output", metavar="OUT", help="File to write; - for standard output."),
    ] = "-",
    id_column: arguments.Id = None,
    keep: arguments.Keep = None,
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
    accepted: arguments.Accepted = None,
    false_discovery_rate: Annotated[
        float | None,
        typer.Option(
            metavar="RATE",
            help="Flag rows so that at most this share of them is false, on average, instead of "
            "by the false-positive rate. Reads the file twice.",
        ),
    ] = None,
    output_kind: Annotated[
        str | None,
        typer.Option(
            "--output-format",
            metavar="KIND",
            help=f"Format of OUT: {arguments.KINDS}. Default: from its name.",
        ),
    ] = None,
    escape_formulas: Annotated[
        bool,
        typer.Option(
            "--escape-formulas/--no-escape-formulas",
            help="In CSV and TSV, put an apostrophe before cells that a spreadsheet takes for "
            "formulas.",
        ),
    ] = True,
    jobs: arguments.Jobs = -1,
    kind: arguments.Kind = None,
    sheet: arguments.Sheet = None,
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
    form = format_to_write(output, output_kind)
    detector = load_detector(model, jobs, fpr, table, accepted)
    how = ReadingOptions(kind, separator, decimal, encoding, sheet)
    summary, rule = _Summary(detector), detector.rule
    if false_discovery_rate is None:
        thresholds.warn_if_out_of_reach(rule)
    else:
        found = _selection(detector, table, how, jobs, false_discovery_rate)
        summary.selection = found
        limit = float(found.p_values[found.selected].max(initial=0.0))
        rule = replace(rule, confidence=None, limit=limit)
    with open_table(table, how) as file:
        id_column = id_column_of(detector, file, id_column)
        name = id_column or "row"
        written = _COLUMNS if id_column else ("row", *_COLUMNS)
        keep = kept_columns(file, keep, id_column, written)
        # A bar would be mixed with rows that are printed on the same terminal.
        printed = output == "-" and sys.stdout is not None and sys.stdout.isatty()
        batches = scored_batches(detector, file, id_column, jobs, not printed, keep, rule=rule)
        first = next(batches)  # before anything is written: most errors occur here
        schema = pyarrow.schema(
            [
                (name, pyarrow.int64() if first.ids is None else first.ids.type),
                *((name, cells.type) for name, cells in first.kept.items()),
                ("score", pyarrow.float64()),
                ("p_value", pyarrow.float64()),
                ("flagged", pyarrow.bool_()),
                *([("reasons", pyarrow.string())] if reasons else []),
            ]
        )
        all_batches = summary.counted(chain([first], batches))
        guarded = ("reasons", name, *keep) if escape_formulas else ("reasons",)
        with table_writer(output, schema, output_kind, guarded) as write:
            for batch in _chosen(all_batches, top, flagged_only):
                columns = _columns(detector, batch, reasons, top is not None, not form.has_types)
                write(pyarrow.record_batch(columns, schema=schema))
    say(summary.text(output), err=True)


def _selection(
    detector: DiffInt, table: str, how: ReadingOptions, jobs: int, rate: float
) -> Selection:
    """Which rows of a file to look at, by their scores."""
    from ..decide.selection import select_rows

    check_real("--false-discovery-rate", rate, above=0.0, below=1.0)
    if table == "-":
        raise InputError(
            "--false-discovery-rate reads the table twice, and standard input can be read only "
            "once; give a file"
        )
    scores, segments = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are given when the rows are written
        with open_table(table, how) as file:
            for batch in scored_batches(detector, file, None, jobs):
                scores.append(batch.scores)
                segments += [] if batch.rule.codes is None else [batch.rule.codes]
    rule = replace(detector.rule, confidence=None)
    rule = rule.for_rows(np.concatenate(segments) if segments else None)
    return select_rows(rule, np.concatenate(scores), rate)


class _Summary:
    """Counts all rows and those that are flagged."""

    def __init__(self, detector: DiffInt) -> None:
        self._rate, self._confidence = detector.false_positive_rate, detector.confidence
        self._calibration = detector.model_.calibration
        self.selection: Selection | None = None
        self._rows = self._flagged = 0

    def counted(self, batches: Iterable[ScoredBatch]) -> Iterator[ScoredBatch]:
        """The same batches."""
        for batch in batches:
            self._rows += len(batch.scores)
            self._flagged += int(batch.flagged.sum())
            yield batch

    def text(self, output: str) -> str:
        """A line that says how many rows are flagged, and how many would be by chance."""
        rate = f"{number(100 * self._rate)} %"
        if self.selection is not None:
            from ..show.wording.selections import promise_text

            chance = promise_text(self.selection)
        elif not self._calibration.held_out:
            chance = "the threshold is based on training rows, so more than the false-positive rate"
        elif self._calibration.reaches(self._rate, self._confidence):
            expected = number(self._rate * self._rows)
            about = "about" if self._confidence is None else "at most about"
            chance = f"{about} {expected} expected by chance, at a false-positive rate of {rate}"
        else:
            chance = f"too few calibration rows for a false-positive rate of {rate}"
        where = "" if output == "-" else f"; written to {output}"
        rows = counted(self._rows, "row")
        return f"diffint: scored {rows}: {self._flagged:,} flagged ({chance}){where}"


def _chosen(
    batches: Iterable[ScoredBatch], top: int | None, flagged_only: bool
) -> Iterator[ScoredBatch]:
    """The rows to write, in order."""
    if top is None:
        for batch in batches:
            yield batch.where(batch.flagged) if flagged_only else batch
        return
    highest = Highest(top, flagged_only)
    for batch in batches:
        highest.add(batch)
    if highest.rows is not None:
        yield highest.rows


def _columns(
    detector: DiffInt, batch: ScoredBatch, reasons: bool, all_rows: bool, for_people: bool
) -> list[Any]:
    """The columns to write, as pyarrow arrays (rows,).

    all_rows: whether all rows get reasons; for_people: whether numbers are rounded.
    """
    flagged = batch.flagged
    p_values = thresholds.p_values(batch.rule, batch.scores)
    numbers = [batch.scores, p_values]
    if for_people:
        numbers = [significant(values, _DIGITS) for values in numbers]
    columns = [pyarrow.array(column) for column in (*numbers, flagged)]
    if reasons:
        columns.append(_reasons(detector, batch, np.ones_like(flagged) if all_rows else flagged))
    ids = batch.ids if batch.ids is not None else pyarrow.array(batch.numbers)
    return [ids, *batch.kept.values(), *columns]


def _reasons(detector: DiffInt, batch: ScoredBatch, explained: NDArray[np.bool_]) -> Any:
    """One line of reasons for each of the `explained` rows, null for the others. (rows,)"""
    from ..explain.explain_rows import brief_reasons

    new, jobs = batch.where(explained).new_texts(detector.model_), resolve_jobs(detector.n_jobs)
    texts = brief_reasons(detector.prepared, batch.values, batch.rule, explained, new, n_jobs=jobs)
    return pyarrow.array(texts, pyarrow.string())
