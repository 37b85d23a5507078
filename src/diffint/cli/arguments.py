"""Options and arguments that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from ..core.config import SETTINGS

Model = Annotated[str, typer.Argument(metavar="MODEL", help="Model file, written by `fit`.")]
Table = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="CSV, TSV, Parquet or Arrow/Feather file (CSV and TSV also as .gz or .zst); - for "
        "standard input.",
    ),
]
Id = Annotated[
    str | None, typer.Option("--id", metavar="COL", help="Column with the ids of the rows.")
]
Kind = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="KIND",
        help="Format of TABLE: csv, tsv, parquet or arrow. Default: from its name.",
    ),
]
Separator = Annotated[
    str | None, typer.Option(metavar="CHAR", help="Column separator of text files; \\t for a tab.")
]
Decimal = Annotated[str, typer.Option(metavar="CHAR", help="Decimal sign in text files: . or ,")]
Encoding = Annotated[str, typer.Option(metavar="NAME", help="Encoding of text files.")]
Jobs = Annotated[int, typer.Option(metavar="N", help=SETTINGS["n_jobs"].meaning)]
Seed = Annotated[int, typer.Option(metavar="N", help=SETTINGS["random_state"].meaning)]
DEVICE = SETTINGS["device"]
Device = Annotated[str, typer.Option(metavar="NAME", help=DEVICE.meaning)]
Epochs = Annotated[str | None, typer.Option(metavar="N", help=SETTINGS["epochs"].meaning)]
Group = Annotated[
    str | None,
    typer.Option(
        metavar="COL",
        help="Column that is equal for rows that belong together (one subject, machine or day), so "
        "that the threshold holds for new ones. Not a feature.",
    ),
]
Ignore = Annotated[
    list[str] | None, typer.Option(metavar="COL", help="Column to leave out; repeatable.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Rate = Annotated[
    float | None,
    typer.Option(
        "--fpr", help=f"{SETTINGS['false_positive_rate'].meaning} Default: as in the fit."
    ),
]


def whole_or_word(text: str) -> int | str:
    """The value of an option that is a whole number or a word, which is checked elsewhere."""
    return int(text) if text.isdecimal() else text
