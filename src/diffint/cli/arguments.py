"""Options and arguments that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from ..core.config import MISSING_WORDS

READING, COLUMNS, TRAINING = "Reading the table", "Columns", "Training"
KINDS = "csv, tsv, parquet, arrow or xlsx"

Model = Annotated[str, typer.Argument(metavar="MODEL", help="Model file, written by `fit`.")]
Table = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="CSV, TSV, Excel, Parquet or Arrow/Feather file; - for standard input.",
    ),
]
Id = Annotated[
    str | None,
    typer.Option(
        "--id", metavar="COL", help="Column with the ids of the rows.", rich_help_panel=COLUMNS
    ),
]
Keep = Annotated[
    list[str] | None,
    typer.Option(
        "--keep",
        metavar="COL,…",
        help="Columns to copy into the output.",
        rich_help_panel=COLUMNS,
    ),
]
Kind = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="KIND",
        help=f"Format of TABLE: {KINDS}. Default: found from its name and content.",
        rich_help_panel=READING,
    ),
]
Sheet = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Sheet of an Excel workbook.", rich_help_panel=READING),
]
Separator = Annotated[
    str | None,
    typer.Option(
        metavar="CHAR",
        help="Column separator of text files; \\t for a tab.",
        rich_help_panel=READING,
    ),
]
Decimal = Annotated[
    str,
    typer.Option(
        metavar="CHAR", help="Decimal sign in text files: . or ,", rich_help_panel=READING
    ),
]
Encoding = Annotated[
    str,
    typer.Option(metavar="NAME", help="Encoding of text files.", rich_help_panel=READING),
]
MissingWords = Annotated[
    list[str] | None,
    typer.Option(
        metavar="WORD,…",
        help="Words that stand for a missing cell in text files and workbooks, here and whenever "
        f"the model reads one. Default: {', '.join(MISSING_WORDS)}; none if TABLE is Parquet or "
        "Arrow/Feather.",
        rich_help_panel=READING,
    ),
]
Jobs = Annotated[int, typer.Option(metavar="N", help="Threads; -1 uses all cores.")]
Seed = Annotated[
    int,
    typer.Option(metavar="N", help="The same seed gives the same model.", rich_help_panel=TRAINING),
]
Device = Annotated[
    str,
    typer.Option(
        metavar="NAME", help="Where to train: auto, cpu, cuda or ray.", rich_help_panel=TRAINING
    ),
]
Epochs = Annotated[
    str | None,
    typer.Option(metavar="N", help="Passes over the training rows.", rich_help_panel=TRAINING),
]
Group = Annotated[
    str | None,
    typer.Option(
        metavar="COL",
        help="Column that is equal for rows of one subject, machine or day.",
        rich_help_panel=COLUMNS,
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(metavar="COL,…", help="Learn from these columns only.", rich_help_panel=COLUMNS),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COL,…", help="Learn from all columns but these.", rich_help_panel=COLUMNS
    ),
]
Categories = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COL,…",
        help="Columns that are categories also if they have numbers, such as postal codes. Columns "
        "of text always are.",
        rich_help_panel=COLUMNS,
    ),
]
NumericOnly = Annotated[
    bool,
    typer.Option(
        "--numeric-only",
        help="Leave out every column that is not numeric.",
        rich_help_panel=COLUMNS,
    ),
]
Accepted = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Table of flagged rows that are normal after all; rows like them are not flagged.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Rate = Annotated[
    float | None,
    typer.Option(
        "--fpr",
        metavar="RATE",
        help="Share of normal rows that may be flagged. Default: as in the fit.",
    ),
]


def whole_or_word(text: str) -> int | str:
    """The value of an option that is a whole number or a word, which is checked elsewhere."""
    return int(text) if text.isdecimal() else text
