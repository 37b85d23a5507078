"""What the command prints: text that is safe in a terminal, and JSON."""

from __future__ import annotations

import json
import math
from typing import Any

import typer

from ..core.formatting import printable


def say(text: str, err: bool = False) -> None:
    """Print text to standard output, or to standard error, without acting characters."""
    typer.echo(printable(text, keep="\n"), err=err)


def say_json(value: Any) -> None:
    """Print a value as JSON in ASCII; the strings in it can be read back unchanged."""
    # JSON escapes all other control characters.
    typer.echo(json.dumps(value, indent=2).replace("\x7f", "\\u007f"))


def records(frame: Any) -> Any:
    """The lines of a data frame as values for JSON; NaN and infinities are null."""
    return [
        {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in line.items()
        }
        for line in frame.to_dict(orient="records")
    ]
