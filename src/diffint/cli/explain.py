"""``diffint explain``: explain the scores of single rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from ..core.errors import InputError
from ..core.formatting import counted, printable
from ..tables.files.reading import ReadingOptions, TableFile, open_table
from . import arguments
from .loading import id_column_of, kept_columns, load_detector
from .output import kept_text, records, say, say_json
from .streaming import Highest, ScoredBatch, joined, scored_batches

if TYPE_CHECKING:
    from ..estimator import DiffInt
    from ..explain.local_explanation import LocalExplanation
    from ..explain.nearest_normal import NearestNormal


def explain(
    model: arguments.Model,
    table: arguments.Table,
    row: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Explain the row with this number, from 1."),
    ] = None,
    row_id: Annotated[
        str | None, typer.Option("--row-id", metavar="ID", help="Explain the rows with this id.")
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Explain the N rows with the highest scores."),
    ] = None,
    id_column: arguments.Id = None,
    keep: arguments.Keep = None,
    n_reasons: Annotated[
        int,
        typer.Option("--reasons", metavar="N", min=1, help="Reasons per row, at most."),
    ] = 3,
    fpr: arguments.Rate = None,
    accepted: arguments.Accepted = None,
    as_json: arguments.Json = False,
    jobs: arguments.Jobs = -1,
    kind: arguments.Kind = None,
    sheet: arguments.Sheet = None,
    separator: arguments.Separator = None,
    decimal: arguments.Decimal = ".",
    encoding: arguments.Encoding = "utf-8",
) -> None:
    """Explain the scores of rows, chosen by number, by id or by highest score.

    Example: diffint explain payments.diffint new.csv --top 3
    """
    from ..explain.explain_rows import explain_rows
    from ..explain.nearest_normal import nearest_normal

    if sum(choice is not None for choice in (row, row_id, top)) != 1:
        hint = ""
        if id_column is not None and (row, row_id, top) == (None, None, None):
            hint = f"; --id names the column with the ids: did you mean --row-id {id_column!r}?"
        raise InputError(
            f"choose the rows to explain with one of --row N, --row-id ID and --top N{hint}"
        )
    detector = load_detector(model, jobs, fpr, table, accepted)
    with open_table(table, ReadingOptions(kind, separator, decimal, encoding, sheet)) as file:
        id_column = id_column_of(detector, file, id_column)
        keep = kept_columns(file, keep, id_column, ())
        if row_id is not None and id_column is None:
            raise InputError(
                f"--row-id needs to know which column of {file.name} has the ids; name it with "
                "--id COL"
            )
        batch = _rows(detector, file, row, id_column, row_id, top, jobs, keep)
    rule, new = batch.rule, batch.new_texts(detector.model_)
    why = explain_rows(detector.prepared, batch.values, rule, new_texts=new)
    nearest = nearest_normal(detector.prepared, batch.values, rule, new_texts=new)
    names = [batch.name(i) for i in range(len(why))]
    kept = [batch.kept_cells(i) for i in range(len(why))]
    if as_json:
        rows = _as_json(why, nearest, names, n_reasons)
        if keep:
            rows = [line | {"kept": cells} for line, cells in zip(rows, kept, strict=True)]
        say_json(rows)
        return
    texts = []
    for i, name in enumerate(names):
        text = why.text(i, n_reasons).removeprefix(f"Row {i}")
        if why.flagged[i]:
            change = nearest.text(i).removeprefix(f"Row {i}")
            text += f"\n  It{change}" if nearest.found[i] else f"\n  N{change.removeprefix(': n')}"
        cells = f" ({kept_text(kept[i])})" if keep else ""
        texts.append(f"Row {printable(name)}{cells}{text}")
    say("\n\n".join(texts))


def _rows(
    detector: DiffInt,
    file: TableFile,
    row: int | None,
    id_column: str | None,
    row_id: str | None,
    top: int | None,
    jobs: int,
    keep: list[str],
) -> ScoredBatch:
    """The rows to explain; with an id, all rows that have it."""
    highest = Highest(top or 1)
    found: list[ScoredBatch] = []
    count = 0
    for batch in scored_batches(detector, file, id_column, jobs, keep=keep):
        count = batch.first + len(batch.scores)
        if top is not None:
            highest.add(batch)
        elif row is not None and row <= count:
            return batch.where(batch.numbers == row)
        elif row_id is not None:
            matching = np.array([str(name) == row_id for name in batch.ids or []], dtype=bool)
            found += [batch.where(matching)] if matching.any() else []
    if highest.rows is not None:
        return highest.rows
    if found:
        return joined(found)
    if row is not None:
        raise InputError(f"there is no row {row:,}; {file.name} has {counted(count, 'row')}")
    raise InputError(f"no row of {file.name} has the id {row_id!r} in column {id_column!r}")


def _as_json(
    why: LocalExplanation, nearest: NearestNormal, names: list[str], n_reasons: int
) -> Any:
    found, parts = why.reasons_frame(n_reasons), why.to_frame(n_reasons)
    changes = nearest.to_frame()
    rows = []
    for i, name in enumerate(names):
        reasons = found[found["row"] == i].drop(columns=["row", "rank"])
        lines = parts[parts["row"] == i].drop(columns=["row", "unit"])
        suggested = changes[changes["row"] == i][["feature", "value", "suggested", "least"]]
        rows.append(
            {
                "row": name,
                "score": why.score[i],
                "p_value": why.p_value[i],
                "threshold": None if np.isinf(why.threshold_of(i)) else why.threshold_of(i),
                "flagged": bool(why.flagged[i]),
                "pattern": int(why.unit[i]),
                "reasons": records(reasons),
                "text": why.reasons(i, n_reasons),
                "parts": records(lines),
                "nearest_normal": records(suggested),
            }
        )
    return rows
