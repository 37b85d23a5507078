"""Numbers and tables as Markdown, for the pages of a report."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from ..core.formatting import number

MISSING = "–"
_NO_BREAK_SPACE = "\u00a0"
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_REASONS = {"timeout": "time", "out of memory": "memory", "ok": "no value"}


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table: the first column left-aligned, the others right-aligned."""
    lines = [header, [":--"] + ["--:"] * (len(header) - 1), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def escaped(text: str, longest: int = 160) -> str:
    """Any text as one line of a table, with Markdown characters escaped."""
    text = " ".join(text.split())
    if len(text) > longest:
        text = text[: longest - 1] + "…"
    for sign in "\\`*_[]<>|~":
        text = text.replace(sign, "\\" + sign)
    return text


def bold(text: str) -> str:
    """Bold text, for the best value of a column."""
    return f"**{text}**"


def rank_text(rank: float, paper: float = math.nan) -> str:
    """``4.35 [4.10]``: a mean rank, with the paper's in square brackets."""
    text = MISSING if math.isnan(rank) else f"{rank:.2f}"
    return text if math.isnan(paper) else f"{text} [{paper:.2f}]"


def score_text(mean: float, sd: float, rank: float, state: str, slow: bool) -> str:
    """``0.953 ± 0.021 (3)``, or a dash and the reason; † if it took longer than the time limit."""
    if math.isnan(mean):
        return f"{MISSING} {_REASONS.get(state, state)}".replace(" ", _NO_BREAK_SPACE)
    spread = "" if math.isnan(sd) else f" ± {sd:.3f}"
    place = f"{rank:.1f}".removesuffix(".0")
    text = f"{mean:.3f}{spread} ({place}){'†' if slow else ''}"
    return text.replace(" ", _NO_BREAK_SPACE)


def p_text(p: float) -> str:
    """``0.031``, ``2·10⁻⁷``"""
    if math.isnan(p):
        return MISSING
    if p >= 0.001:
        return f"{p:.3f}"
    if p == 0:
        return "under 10⁻³⁰⁰"
    digit, exponent = f"{p:.0e}".split("e")
    return f"{digit}·10{str(int(exponent)).translate(_SUPERSCRIPTS)}"


def seconds_text(seconds: float, at_least: bool = False, estimated: bool = False) -> str:
    """``≥ 12.3``, ``≈ 250``"""
    if math.isnan(seconds):
        return MISSING
    signs = ("≥ " if at_least else "") + ("≈ " if estimated else "")
    return signs + (number(seconds, 2) if seconds >= 0.01 else "< 0.01")


def difference_text(value: float) -> str:
    """``+0.012``, ``−0.003``"""
    return MISSING if math.isnan(value) else f"{value:+.3f}".replace("-", "−")


def ranges_text(numbers: Iterable[int]) -> str:
    """``0–4, 7``"""
    runs: list[list[int]] = []
    for one in sorted(set(numbers)):
        if runs and one == runs[-1][-1] + 1:
            runs[-1].append(one)
        else:
            runs.append([one])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs)


def wrapped_names(names: Sequence[str]) -> str:
    """Names separated by commas, with Markdown characters escaped."""
    return ", ".join(escaped(name) for name in names)
