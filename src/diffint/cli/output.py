"""What the command prints: text that is safe in a terminal, and JSON."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray

from ..core.formatting import printable, shown_name


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


def kept_text(cells: dict[str, str]) -> str:
    """``cut = Ideal, color = E``: the cells of kept columns."""
    return ", ".join(f"{shown_name(name)} = {printable(cell)}" for name, cell in cells.items())


def significant(values: NDArray[np.float64], digits: int) -> NDArray[np.float64]:
    """Numbers (rows,) rounded to this many significant digits, which is all that is written."""
    rounded = values.copy()
    size = np.abs(values)
    # Powers of ten up to 10^22 are exact, so that the quotient is the nearest to the decimal.
    regular = (size >= 10.0 ** (digits - 22)) & (size < 10.0**digits)
    places = digits - 1 - np.floor(np.log10(size, where=regular, out=np.zeros_like(size)))
    for place in np.unique(places[regular]):
        chosen = regular & (places == place)
        factor = 10.0 ** int(place)
        rounded[chosen] = np.rint(values[chosen] * factor) / factor
    others = np.flatnonzero(~regular & np.isfinite(values))
    rounded[others] = [float(f"{value:.{digits}g}") for value in values[others]]
    return rounded
