"""Options and arguments that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

Model = Annotated[str, typer.Argument(metavar="MODEL", help="Model file that `fit` wrote.")]
Table = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="CSV, TSV, Parquet or Arrow/Feather file (text also .gz or .zst); - for standard "
        "input.",
    ),
]
Id = Annotated[str | None, typer.Option("--id", metavar="COL", help="Column that names the rows.")]
Kind = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="KIND",
        help="Of TABLE, if not by its name: csv, tsv, parquet, arrow.",
    ),
]
Separator = Annotated[
    str | None, typer.Option(metavar="CHAR", help="Between columns of text; \\t for a tab.")
]
Decimal = Annotated[str, typer.Option(metavar="CHAR", help="Decimal sign of text: . or ,")]
Encoding = Annotated[str, typer.Option(metavar="NAME", help="Encoding of text.")]
Jobs = Annotated[int, typer.Option(metavar="N", help="Threads; -1 for all cores.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Rate = Annotated[
    float | None,
    typer.Option("--fpr", help="Another share of normal rows that may be flagged."),
]
