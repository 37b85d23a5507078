"""``diffint find``: rank the rows of one table by how odd they are."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pyarrow
import typer

from ..core.config import SETTINGS
from ..core.errors import InputError
from ..core.formatting import counted, printable
from ..show.wording.learned import stored_rows
from ..tables.atomic_write import atomic_write, check_not_an_input, check_writable
from ..tables.files.reading import ReadingOptions, open_table
from ..tables.files.writing import table_writer
from ..tables.inputs import ignored_columns
from . import arguments
from .columns import choose_features, unused_columns
from .fit import TrainingRows, other_columns, read_training_rows, suspected_share_of, words_of
from .loading import columns_to_show
from .output import say
from .report import MOST_SHOWN, filled_columns
from .streaming import cell_text

if TYPE_CHECKING:
    from ..finding import AnomaliesFound

_REASONS = 3
_COLUMNS = ("score", "p_value", "suspect", "beyond_chance", "reasons")
_MOST_EXPLAINED = 10_000  # rows with reasons in the file


def find(
    table: arguments.Table,
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="OUT",
            help="File for the scores of all rows, highest first.",
        ),
    ] = None,
    report: Annotated[
        str | None, typer.Option(metavar="HTML", help="File for a report of the flagged rows.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="File for the model, to score new rows with it."),
    ] = None,
    top: Annotated[
        int, typer.Option(metavar="N", min=1, help="How many rows to show with their reasons.")
    ] = 10,
    id_column: arguments.Id = None,
    group: arguments.Group = None,
    columns: arguments.Columns = None,
    ignore: arguments.Ignore = None,
    categories: arguments.Categories = None,
    numeric_only: arguments.NumericOnly = False,
    suspected_share: Annotated[
        str,
        typer.Option(
            metavar="SHARE",
            help="Share of the rows to leave out of training because they may be anomalies; auto "
            "leaves out those that stand out clearly.",
        ),
    ] = "auto",
    epochs: arguments.Epochs = None,
    seed: arguments.Seed = 0,
    device: arguments.Device = SETTINGS["device"].default,
    jobs: arguments.Jobs = -1,
    kind: arguments.Kind = None,
    sheet: arguments.Sheet = None,
    separator: arguments.Separator = None,
    decimal: arguments.Decimal = ".",
    encoding: arguments.Encoding = "utf-8",
    missing_words: arguments.MissingWords = None,
) -> None:
    """Find the odd rows of a table: it is all there is, with no clean table to learn from.

    Every row is scored by members that were not trained on it. The rows with the
    highest scores are shown with their reasons.

    Example: diffint find payments.csv --id payment_id -o scores.csv
    """
    from ..finding import find_anomalies

    started = time.perf_counter()
    for path in (output, report, model):
        if path is not None:
            if path == "-":
                raise InputError("find prints its findings; give files with -o, --report, --model")
            check_not_an_input(path, table)
            check_writable(path)  # before the work, to fail early
    named = [Path(path).resolve() for path in (output, report, model) if path is not None]
    if len(set(named)) < len(named):
        raise InputError("-o, --report and --model name the same file; give each its own")
    with open_table(table, ReadingOptions(kind, separator, decimal, encoding, sheet)) as file:
        others = other_columns(file, None, id_column, group)
        chosen = choose_features(file, columns, ignore, categories, others)
        if id_column in _COLUMNS and output is not None:
            raise InputError(
                f"the id column {id_column!r} has the same name as a column that `find` writes; "
                "rename it"
            )
        shown = [] if report is None else columns_to_show(file, chosen.features, id_column)
        words = words_of(file, missing_words)
        rows = read_training_rows(file, chosen, None, group, id_column, numeric_only, words, shown)
        unused = chosen.unused | dict.fromkeys(rows.not_numeric, "not numeric")
    frame = rows.frame
    settings: dict[str, Any] = {} if epochs is None else {"epochs": arguments.whole_or_word(epochs)}
    found = find_anomalies(
        frame,
        groups=rows.groups,
        suspected_share=suspected_share_of(suspected_share),
        random_state=seed,
        device=device,
        n_jobs=jobs,
        verbose=1,
        missing_words=words,
        **settings,
    )
    found.detector.id_column_ = id_column
    lines = [found.text()]
    if unused:
        lines.append(f"Not used: {unused_columns(unused)}.")
    why = found.explain(frame, top)
    for place, row in enumerate(found.order[:top]):
        text = why.text(place, _REASONS)
        _, _, rest = text.partition(": score")
        suspect = " It was left out as a suspect." if found.suspects[row] else ""
        first, *reasons = rest.split("\n")
        name = printable(_name(rows.ids, row))
        lines += ["", f"Row {name}: score{first}{suspect}", *reasons]
    say("\n".join(lines))
    written = []
    if output is not None:
        _write_scores(found, frame, rows.ids, id_column, output, top)
        written.append(f"Scores: {output}")
    if report is not None:
        atomic_write(report, _report(found, rows, table).encode())
        written.append(f"Report: {report}")
    if model is not None:
        found.detector.save(model)
        stored = stored_rows(found.detector.model_)
        written.append(f"Model file: {model}{f' (stores {stored})' if stored else ''}")
    seconds = f"{counted(len(frame), 'row')} searched in {time.perf_counter() - started:.1f} s."
    say("\n".join(["", *written, seconds]))


def _name(ids: Any, row: int) -> str:
    """The id of a row, or its number from 1."""
    name = None if ids is None else ids[int(row)].as_py()
    return str(row + 1 if name is None or name == "" else name)


def _write_scores(
    found: AnomaliesFound, frame: Any, ids: Any, id_column: str | None, output: str, top: int
) -> None:
    """All rows, highest score first, with reasons for those that stand out and the top ones."""
    order = found.order
    explained = min(max(top, int((found.beyond_chance | found.suspects).sum())), _MOST_EXPLAINED)
    why = found.explain(frame, explained)
    reasons: list[str | None] = [why.brief(i, _REASONS) for i in range(len(why))]
    reasons += [None] * (len(order) - len(reasons))
    names = pyarrow.array(order + 1) if ids is None else ids.take(pyarrow.array(order))
    columns = {
        id_column or "row": names,
        "score": pyarrow.array(found.scores[order]),
        "p_value": pyarrow.array(found.p_values[order]),
        "suspect": pyarrow.array(found.suspects[order]),
        "beyond_chance": pyarrow.array(found.beyond_chance[order]),
        "reasons": pyarrow.array(reasons, pyarrow.string()),
    }
    batch = pyarrow.record_batch(list(columns.values()), names=list(columns))
    with table_writer(output, batch.schema, None, ("reasons", id_column or "row")) as write:
        write(batch)


def _report(found: AnomaliesFound, table_rows: TrainingRows, table: str) -> str:
    """The report of the flagged rows, with the scores that were found."""
    from ..show.report import ScoredTable, build_report
    from ..tables.frames import new_texts_of, unused_cells

    frame, ids, model = table_rows.frame, table_rows.ids, found.detector.model_
    flagged, values = found.detector.rule.flagged(found.scores), found.detector._read(frame)
    shown = found.order[: int(flagged.sum())][:MOST_SHOWN]
    cells = {name: column.take(pyarrow.array(shown)) for name, column in table_rows.shown.items()}
    others = [
        {name: cell_text(column[i]) for name, column in cells.items()} for i in range(len(shown))
    ]
    scored = ScoredTable(
        source="standard input" if table == "-" else Path(table).name,
        scores=found.scores,
        rows=np.asarray(values[shown], dtype=np.float64),
        ids=tuple(_name(ids, row) for row in shown),
        row_scores=found.scores[shown],
        new_texts=new_texts_of(frame, values, model.kinds, shown),
        kept=filled_columns(others, ()) | unused_cells(frame, ignored_columns(model), shown),
        found=found.text(),
    )
    return build_report(found.detector, scored)
