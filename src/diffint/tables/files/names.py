"""Names of columns and sheets: several in one option, and which one was meant."""

from __future__ import annotations

import csv
import difflib
import io
import re
import shlex
from collections.abc import Iterable, Sequence

from ...core.errors import InputError
from ...core.formatting import listed

_MOST_NAMED = 5  # columns that one message names


def split_names(text: str, existing: Iterable[str]) -> list[str]:
    """The names in the value of an option: ``a,b``; names with commas are in quotation marks.

    A text that is itself the name of an existing column is that name.
    """
    if text in existing:
        return [text]
    try:
        cells = next(csv.reader([text], skipinitialspace=True)) or [""]
    except csv.Error:
        return [text]
    return [cell.strip() for cell in cells]


def option_value(names: Sequence[str]) -> str:
    """Names as one value of an option, to paste into a shell."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(names)
    text = line.getvalue() if len(names) > 1 else names[0]
    if re.fullmatch(r"[\w.,:/=+-]+", text):
        return text
    # Double quotation marks also work on Windows, unless there is something special inside.
    return shlex.quote(text) if re.search(r'["$`\\!%]', text) else f'"{text}"'


def did_you_mean(name: str, existing: Sequence[str]) -> str:
    """``(did you mean 'amount'?)`` for the nearest existing name, or nothing."""
    folded = {other.casefold(): other for other in existing}
    close = difflib.get_close_matches(name.casefold(), folded, 1)
    return f" (did you mean {folded[close[0]]!r}?)" if close else ""


def check_has_columns(
    table: str, columns: Sequence[str], names: Sequence[str], needed_by: str, hint: str = ""
) -> None:
    """Raise an error if a table lacks columns.

    table: what to call it; columns: those that it has; names: those that it should have; needed_by:
    e.g. ``the model needs``; hint: the end of the message.
    """
    missing = [name for name in names if name not in columns]
    if missing:
        unknown_first = sorted(columns, key=lambda name: name in names)
        shown = [f"{name!r}{did_you_mean(name, unknown_first)}" for name in missing[:_MOST_NAMED]]
        shown += [f"{len(missing) - _MOST_NAMED} more"] if len(missing) > _MOST_NAMED else []
        existing = [repr(name) for name in unknown_first[:_MOST_NAMED]] or ["none"]
        others = ", …" if len(columns) > _MOST_NAMED else ""
        raise InputError(
            f"{table} lacks {'a column' if len(missing) == 1 else 'columns'} that "
            f"{needed_by}: {listed(shown)}; it has {listed(existing)}{others}{hint}"
        )
