"""Lines of a results file, printed as they come."""

from __future__ import annotations


def emit(lines: list[str], *more: str) -> None:
    """Print lines and add them to `lines` for the file."""
    for line in more:
        print(line, flush=True)
        lines.append(line)
