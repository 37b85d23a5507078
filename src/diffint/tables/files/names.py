"""Names of columns and sheets: several in one option, and which one was meant."""

from __future__ import annotations

import csv
import difflib
import io
import re
import shlex
from collections.abc import Iterable, Sequence


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
