"""``diffint refresh``: adapt a model to recent rows, and write the new model."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer

from ..core.config import SETTINGS
from ..core.errors import InputError
from ..tables.atomic_write import check_not_an_input, check_writable
from ..tables.files.number_parsing import are_numbers
from ..tables.files.reading import ReadingOptions, open_table
from ..tables.inputs import input_columns
from . import arguments
from .columns import Choice, check_columns
from .fit import other_columns, read_training_rows
from .labels import Label
from .loading import load_detector
from .output import say, say_json


def refresh(
    model: arguments.Model,
    table: arguments.Table,
    output: Annotated[
        str,
        typer.Option("-o", "--output", metavar="NEW", help="Model file to write; may be MODEL."),
    ],
    label: Annotated[
        str | None,
        typer.Option(
            metavar="COL[=VALUE]",
            help="Column that is 1 (or VALUE) for known anomalies, which are left out.",
            rich_help_panel=arguments.COLUMNS,
        ),
    ] = None,
    group: arguments.Group = None,
    fpr: arguments.Rate = None,
    as_json: arguments.Json = False,
    seed: arguments.Seed = 0,
    device: arguments.Device = SETTINGS["device"].default,
    jobs: arguments.Jobs = -1,
    kind: arguments.Kind = None,
    sheet: arguments.Sheet = None,
    separator: arguments.Separator = None,
    decimal: arguments.Decimal = ".",
    encoding: arguments.Encoding = "utf-8",
) -> None:
    """Adapt a model to recent normal rows, and say which ranges of its patterns moved.

    The rows should be newer than those that the model was trained on. MODEL is
    overwritten only if -o names it, and only when the new model is complete.

    Example: diffint refresh payments.diffint new.csv -o march.diffint
    """
    if output == "-":
        raise InputError("a model cannot be written to standard output; give a file with -o")
    check_not_an_input(output, table)
    check_writable(output)  # before the work, to fail early
    detector = load_detector(model, jobs, fpr, table)
    detector.random_state, detector.device, detector.verbose = seed, device, 1
    fitted, segment = detector.model_, detector.segment_column_
    if fitted.calibration.segment_names and segment is None:
        raise InputError(
            "the model has segments that are not from a column, so that they cannot be found in a "
            "file; refresh it with the library"
        )
    with open_table(table, ReadingOptions(kind, separator, decimal, encoding, sheet)) as file:
        kinds = input_columns(fitted)
        # A column that the model ignores may come back into use, where the file has it.
        used = [name for name, how in kinds.items() if how != "unused" or name in file.columns]
        check_columns(file, used, "the model needs")
        marked = None if label is None else Label(label, file)
        others = other_columns(file, marked, None, group, segment)
        for name in others:
            if name in used and name != segment:
                raise InputError(f"column {name!r} is a feature of the model, and cannot be more")
        # Categories that may have numbers; others are found, and are not to have numbers now.
        named = [
            fitted.feature_names[j]
            for j, values in fitted.categories.items()
            if fitted.feature_names[j] in used and np.nansum(are_numbers(list(values), decimal))
        ]
        chosen = Choice(used, named, {})
        rows = read_training_rows(
            file,
            chosen,
            marked,
            group,
            None,
            False,
            fitted.config.missing_words,
            segment=segment,
            numbers=[name for name, how in kinds.items() if how == "number"],
        )
    frame = rows.frame.reindex(columns=list(kinds))
    found = detector.refresh(frame, rows.anomalies, rows.groups, rows.segments)
    detector.segment_column_ = segment
    detector.save(output)
    if as_json:
        say_json(found.to_dict() | {"model": output})
        return
    say(found.text())
    say(f"Model file: {output}")
