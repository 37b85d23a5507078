"""``diffint drift``: whether the rows of a file come from where the training rows came from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from ..core.checks import check_real, resolve_jobs
from ..core.errors import InputError
from ..core.formatting import counted, shown_name
from ..tables.files.reading import ReadingOptions, TableFile, open_table
from . import arguments
from .columns import check_columns
from .loading import load_detector
from .output import say, say_json
from .streaming import ScoredBatch, cell_text, joined, scored_batches

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
    level: Annotated[
        float,
        typer.Option(
            metavar="P", help="Probability of seeing a drift where there is none, at most."
        ),
    ] = 0.01,
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
    level then holds for all values together.

    Example: diffint drift payments.diffint new.csv
    """
    from ..decide.drift import FEWEST_ROWS, check_comparable, find_drift

    level = check_real("--level", level, above=0.0, below=1.0)
    detector = load_detector(model, jobs, fpr, table)
    check_comparable(detector.model_)
    with open_table(table, ReadingOptions(kind, separator, decimal, encoding, sheet)) as file:
        parts = _read_parts(detector, file, by, jobs)
        name = file.name
    enough = {value: part for value, part in parts.items() if part.n_rows >= FEWEST_ROWS}
    if not enough:
        most = max((part.n_rows for part in parts.values()), default=0)
        which = "" if by is None else f" for a value of {by!r}"
        raise InputError(f"drift needs at least {FEWEST_ROWS} rows{which}; {name} has only {most}")
    found: dict[str, Drift] = {}
    for value, part in enough.items():
        rows, counts = part.rows, (part.n_rows, part.n_flagged)
        each, threads = level / len(enough), resolve_jobs(jobs)
        found[value] = find_drift(
            detector.prepared, rows.values, rows.scores, rows.rule, each, threads, counts
        )
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
        raise typer.Exit(1)


def _said(found: Drift | None, part: _Part) -> str:
    return f"too few rows ({part.n_rows})." if found is None else found.text()


def _as_json(found: Drift | None, part: _Part) -> dict[str, Any]:
    if found is None:
        return {"drifted": None, "n_rows": part.n_rows, "text": "too few rows"}
    return found.to_dict()


class _Part:
    """Some rows of a stream at random, as many as are compared, and how many rows there are."""

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


def _read_parts(detector: DiffInt, file: TableFile, by: str | None, jobs: int) -> dict[str, _Part]:
    """The rows of a file by the values of a column, in the order of the file."""
    from ..decide.drift import rows_to_compare

    if by is not None:
        check_columns(file, [by], "--by names")
    rng, limit = np.random.default_rng(0), rows_to_compare(detector.model_)
    parts: dict[str, _Part] = {}
    for batch in scored_batches(detector, file, None, jobs, keep=[] if by is None else [by]):
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
            parts.setdefault(value, _Part(limit)).add(batch.take(own), keys[own])
    return parts
