"""``diffint report``: write an HTML report of a table's flagged rows."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from ..core.formatting import counted
from ..decide import thresholds
from ..tables.atomic_write import atomic_write, check_not_an_input, check_writable
from ..tables.files.reading import ReadingOptions, open_table
from ..tables.inputs import input_columns
from ..tables.training_table import TrainingTableSearch
from . import arguments
from .drift import drift_of
from .loading import columns_to_show, id_column_of, kept_columns, load_detector
from .output import say
from .streaming import Highest, RandomRows, scored_batches

if TYPE_CHECKING:
    from ..estimator import DiffInt

MOST_SHOWN = 1_000


def report(
    model: arguments.Model,
    table: arguments.Table,
    output: Annotated[
        str,
        typer.Option(
            "-o", "--output", metavar="HTML", help="File to write; - for standard output."
        ),
    ] = "report.html",
    id_column: arguments.Id = None,
    keep: arguments.Keep = None,
    top: Annotated[
        int, typer.Option(metavar="N", min=1, help="Largest number of flagged rows to show.")
    ] = MOST_SHOWN,
    fpr: arguments.Rate = None,
    accepted: arguments.Accepted = None,
    jobs: arguments.Jobs = -1,
    kind: arguments.Kind = None,
    sheet: arguments.Sheet = None,
    separator: arguments.Separator = None,
    decimal: arguments.Decimal = ".",
    encoding: arguments.Encoding = "utf-8",
) -> None:
    """Write an HTML report: flagged rows with reasons, and what the model learned.

    Columns that the model does not use are shown with each row, up to 10; with
    --keep, only those that it names. The report is one file. It loads nothing
    from the network and sends nothing.

    Example: diffint report payments.diffint new.csv -o report.html
    """
    check_not_an_input(output, model, table)
    if output != "-":
        check_writable(output)  # before the work, to fail early
    detector = load_detector(model, jobs, fpr, table, accepted)
    how = ReadingOptions(kind, separator, decimal, encoding, sheet)
    n_flagged = write_report(detector, table, output, how, id_column, top, jobs, keep)
    where = "" if output == "-" else f" Report: {output}"
    say(f"{counted(n_flagged, 'row')} flagged.{where}", err=True)


def write_report(
    detector: DiffInt,
    table: str,
    output: str,
    how: ReadingOptions,
    id_column: str | None = None,
    top: int = MOST_SHOWN,
    jobs: int = -1,
    keep: list[str] | None = None,
) -> int:
    """Score a file and write its report. → the number of flagged rows

    keep: other columns to show; by default the first ones that the model does not use.
    """
    from ..decide.drift import LEVEL, is_comparable, rows_to_compare
    from ..show.report import build_report
    from ..show.report.data import ScoredTable

    thresholds.warn_if_out_of_reach(detector.rule)
    n_features = detector.model_.n_features
    highest, scores, segments = Highest(top, flagged_only=True), [], []
    accepted, rng = [], np.random.default_rng(0)
    sample = RandomRows(rows_to_compare(detector.model_))
    search = TrainingTableSearch(detector.model_)
    with open_table(table, how) as file:
        id_column = id_column_of(detector, file, id_column)
        named = kept_columns(file, keep, id_column, ())
        used = [name for name, kind in input_columns(detector.model_).items() if kind != "unused"]
        others = [] if keep else columns_to_show(file, used, id_column)
        for batch in scored_batches(detector, file, id_column, jobs, True, named, others):
            highest.add(batch)
            scores.append(batch.scores)
            search.add(batch.values)
            sample.add(replace(batch, ids=None, kept={}, cells={}), rng.random(len(batch.scores)))
            segments += [] if batch.rule.codes is None else [batch.rule.codes]
            none = np.zeros(len(batch.scores), dtype=bool)
            accepted.append(none if batch.rule.accepted is None else batch.rule.accepted)
    drift = None
    if is_comparable(detector.model_, sample.n_rows):
        drift = drift_of(detector, sample, search.found, LEVEL, jobs)
    scored = ScoredTable(
        source="standard input" if table == "-" else Path(table).name,
        scores=np.concatenate(scores),
        rows=np.empty((0, n_features)) if highest.rows is None else highest.rows.values,
        ids=highest.ids,
        new_texts={} if highest.rows is None else highest.rows.new_texts(detector.model_),
        kept=filled_columns(highest.kept, named),
        segments=np.concatenate(segments) if segments else None,
        accepted=np.concatenate(accepted),
        row_segments=None if highest.rows is None else highest.rows.rule.codes,
        drift=drift,
    )
    page = build_report(detector, scored)
    if output == "-":
        typer.echo(page)
    else:
        atomic_write(output, page.encode())
    return sample.n_flagged


def filled_columns(rows: list[dict[str, str]], named: Collection[str]) -> dict[str, list[str]]:
    """The cells of each column, by row, without empty columns that were not asked for.

    rows: cells by column; named: the columns that were asked for
    """
    columns = {name: [cells[name] for cells in rows] for name in (rows[0] if rows else ())}
    return {name: cells for name, cells in columns.items() if name in named or any(cells)}
