"""``diffint drift``: whether the rows of a file come from where the training rows came from."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from ..core.checks import check_real, resolve_jobs
from ..core.errors import InputError
from ..core.formatting import counted, shown_name
from ..tables.atomic_write import check_not_an_input, check_writable
from ..tables.files.reading import ReadingOptions, TableFile, open_table
from ..tables.training_table import TrainingTableSearch
from . import arguments
from .columns import check_columns
from .loading import load_detector
from .output import say, say_json
from .streaming import RandomRows, cell_text, scored_batches

if TYPE_CHECKING:
    from ..decide.drift import Drift
    from ..estimator import DiffInt

MOST_PARTS = 200  # values of a column that have verdicts of their own
NO_VALUE = "(missing)"


def drift(
    model: arguments.Model,
    table: arguments.Table,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="One verdict for the rows of each value of this column, such as a month.",
            rich_help_panel=arguments.COLUMNS,
        ),
    ] = None,
    monitor: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Watch file after file: add the rows to the drift monitor in FILE, which begins "
            "with the first of them.",
        ),
    ] = None,
    level: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="Probability of seeing a drift where there is none, at most; with --monitor, of "
            "ever seeing one. Default: 0.01, or that of the monitor.",
        ),
    ] = None,
    fpr: arguments.Rate = None,
    as_json: arguments.Json = False,
    jobs: arguments.Jobs = -1,
    kind: arguments.Kind = None,
    sheet: arguments.Sheet = None,
    separator: arguments.Separator = None,
    decimal: arguments.Decimal = ".",
    encoding: arguments.Encoding = "utf-8",
) -> None:
    """Say whether the population has moved since the fit, where, and what that explains.

    The exit code is 0 if it has not moved, 1 if it has, and 2 for input that
    cannot be used. With --by it is 1 if the rows of any value have moved; the
    level then holds for all values together. With --monitor it is 1 if the
    monitor has raised an alarm, with these rows or before.

    Example: diffint drift payments.diffint new.csv
    """
    from ..decide.drift import FEWEST_ROWS, LEVEL, check_comparable

    if level is not None:
        level = check_real("--level", level, above=0.0, below=1.0)
    how = ReadingOptions(kind, separator, decimal, encoding, sheet)
    if monitor is not None:
        if by is not None or fpr is not None:
            given = "--by" if by is not None else "--fpr"
            raise InputError(f"{given} cannot be combined with --monitor; leave one of them out")
        _watch(model, table, monitor, level, how, jobs, as_json)
        return
    level = LEVEL if level is None else level
    detector = load_detector(model, jobs, fpr, table)
    check_comparable(detector.model_)
    with open_table(table, how) as file:
        parts = _read_parts(detector, file, by, jobs)
        name = file.name
    enough = {value: part for value, part in parts.items() if part.sample.n_rows >= FEWEST_ROWS}
    if not enough:
        most = max((part.sample.n_rows for part in parts.values()), default=0)
        which = "" if by is None else f" for a value of {by!r}"
        raise InputError(f"drift needs at least {FEWEST_ROWS} rows{which}; {name} has only {most}")
    found: dict[str, Drift] = {}
    for value, part in enough.items():
        each = level / len(enough)
        found[value] = drift_of(detector, part.sample, part.training_rows, each, jobs)
    if by is None:
        (only,) = found.values()
        say_json(only.to_dict()) if as_json else say(only.text())
    elif as_json:
        say_json([{"value": value} | _as_json(found.get(value), parts[value]) for value in parts])
    else:
        say(
            "\n".join(
                f"{shown_name(value)}: {_said(found.get(value), parts[value])}" for value in parts
            )
        )
    if any(result.drifted for result in found.values()):
        _say_next_step(model, as_json)
        raise typer.Exit(1)


def drift_of(
    detector: DiffInt,
    sample: RandomRows,
    training_rows: bool,
    level: float,
    jobs: int,
) -> Drift:
    """Whether the rows of a stream have moved, by a sample of them.

    training_rows: whether the model was trained on some of them
    """
    from ..decide.drift import WholeTable, find_drift

    rows, whole = sample.rows, WholeTable(sample.n_rows, sample.n_flagged, training_rows)
    return find_drift(
        *(detector.prepared, rows.values, rows.scores, rows.rule, level),
        *(resolve_jobs(jobs), whole),
    )


def _watch(
    model: str,
    table: str,
    path: str,
    rate: float | None,
    how: ReadingOptions,
    jobs: int,
    as_json: bool,
) -> None:
    """Add the rows of a file to the monitor in a file, and say where it stands."""
    from ..decide.drift_monitor import DriftMonitor

    if path == "-":
        raise InputError("--monitor needs the name of a file; - is none")
    check_not_an_input(path, model, table)
    check_writable(path)
    detector = load_detector(model, jobs, None, table)
    monitor = DriftMonitor.for_file(path, detector, rate)  # before the work, to fail early
    blocks = []
    with open_table(table, how) as file:
        for batch in scored_batches(detector, file, None, jobs):
            blocks += monitor.bins(batch.values, batch.scores)
    state = DriftMonitor.add_to_file(path, detector, blocks, rate)
    say_json(state.to_dict()) if as_json else say(state.text())
    if state.drifted:
        _say_next_step(model, as_json)
        raise typer.Exit(1)


def _say_next_step(model: str, as_json: bool) -> None:
    """What to do if the population has moved, on standard error."""
    if not as_json:
        say(
            "If the recent rows are normal, adapt the model to them: "
            f"diffint refresh {shlex.quote(model)} RECENT -o NEW",
            err=True,
        )


def _said(found: Drift | None, part: _Part) -> str:
    return f"too few rows ({part.sample.n_rows})." if found is None else found.text()


def _as_json(found: Drift | None, part: _Part) -> dict[str, Any]:
    if found is None:
        return {"drifted": None, "n_rows": part.sample.n_rows, "text": "too few rows"}
    return found.to_dict()


@dataclass
class _Part:
    """The rows of one value: a sample, and whether the model was trained on them."""

    sample: RandomRows
    search: TrainingTableSearch
    training_rows: bool = False


def _read_parts(detector: DiffInt, file: TableFile, by: str | None, jobs: int) -> dict[str, _Part]:
    """The rows of a file by the values of a column, in the order of the file."""
    from ..decide.drift import rows_to_compare

    if by is not None:
        check_columns(file, [by], "--by names")
    rng, limit = np.random.default_rng(0), rows_to_compare(detector.model_)
    parts: dict[str, _Part] = {}
    every = TrainingTableSearch(detector.model_)
    for batch in scored_batches(detector, file, None, jobs, keep=[] if by is None else [by]):
        every.add(batch.values)
        values = np.full(len(batch.scores), "", dtype=object)
        if by is not None:
            values[:] = [cell_text(cell).strip() or NO_VALUE for cell in batch.kept[by]]
        keys = rng.random(len(values))
        if len({*parts, *values}) > MOST_PARTS:
            raise InputError(
                f"{file.name}: column {by!r} has more than {counted(MOST_PARTS, 'value')}; name "
                "one with fewer, such as a month, with --by"
            )
        for value in dict.fromkeys(values):
            own = np.flatnonzero(values == value)
            if value not in parts:
                parts[value] = _Part(RandomRows(limit), TrainingTableSearch(detector.model_))
            parts[value].sample.add(batch.take(own), keys[own])
            parts[value].search.add(batch.values[own])
    for part in parts.values():
        part.training_rows = every.found_all or part.search.found
    return parts
