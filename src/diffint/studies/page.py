"""The page of a study, and the numbers in it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..bench.markdown import MISSING, table
from ..core.formatting import counted, listed
from .study import Claim, Findings, Row, Study

QUICK_NOTE = (
    "**A quick run**: fewer tables, settings, seeds and epochs than the study has; its numbers are "
    "not for comparison with the paper's."
)


class About(NamedTuple):
    """What the page says about the run: its command, whether it was quick, missing tables."""

    command: str
    quick: bool
    missing: list[str]


def study_page(study: Study, rows: list[Row], findings: Findings, about: About) -> str:
    """The page as Markdown."""
    parts = [
        f"# Study: {study.name}",
        f"{study.question} (The paper: {study.paper}.)",
        _about_run(study, rows, about),
        QUICK_NOTE if about.quick else "",
        claims_table(findings.claims),
        f"![{study.name}]({study.name}.svg)",
        findings.text.strip(),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def claims_table(claims: Iterable[Claim]) -> str:
    """The claims with both numbers and the verdict."""
    lines = [("the paper says", "paper", "ours", "verdict"), (":--", "--:", "--:", ":--")]
    lines += [(c.statement, c.paper, c.ours, sentence(c)) for c in claims]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def sentence(claim: Claim) -> str:
    """``**Holds**: all four maps are within 0.01.``"""
    return f"**{claim.verdict.capitalize()}**: {claim.because}."


def _about_run(study: Study, rows: list[Row], about: About) -> str:
    seconds = sum(row["seconds"] for row in rows)
    processors = listed(list(dict.fromkeys(str(row["processor"]) for row in rows)))
    versions = "; or ".join(dict.fromkeys(str(row["versions"]) for row in rows))
    text = (
        f"Created by `{about.command}`: {counted(len(rows), 'row')} in "
        f"[{study.name}.csv]({study.name}.csv), {_duration(seconds)} of processor time in all "
        f"({processors}; {versions})."
    )
    if about.missing:
        text += f" Missing from the folder: {listed(about.missing)}."
    return text


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 300 else f"{seconds / 60:.0f} min"


# --- Numbers -------------------------------------------------------------------------------------


def values_of(rows: Iterable[Row], measure: str, **where: Any) -> list[float]:
    """The values of a measure in the rows whose columns have the given values."""
    chosen = (row for row in rows if all(row[name] == value for name, value in where.items()))
    return [float(row[measure]) for row in chosen if row[measure] is not None]


def mean_of(rows: Iterable[Row], measure: str, **where: Any) -> float:
    """The mean of a measure over the rows whose columns have the given values; NaN if none."""
    values = values_of(rows, measure, **where)
    return float(np.mean(values)) if values else math.nan


def standard_error(values: list[float]) -> float:
    """Of a mean; NaN for fewer than two values."""
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan


def figure_text(value: float | None, digits: int = 3) -> str:
    """``0.833``, or a dash for a number that there is not."""
    if value is None or math.isnan(value):
        return MISSING
    return f"{value:.{digits}f}".replace("-", "−")


def beside(ours: float | None, paper: float | None, digits: int = 3) -> str:
    """``0.831 [0.833]``: our number with the paper's in square brackets."""
    text = figure_text(ours, digits)
    return text if paper is None else f"{text} [{figure_text(paper, digits)}]"


def present(rows: Iterable[Row], name: str) -> list[Any]:
    """The different values of a column, in the order of the rows."""
    return list(dict.fromkeys(row[name] for row in rows))


def comparison_table(
    rows: list[Row],
    measure: str,
    column: str,
    settings: Mapping[Any, str],
    paper: Mapping[str, Mapping[Any, float]] | None = None,
    digits: int = 3,
) -> str:
    """Mean of a measure for each table (lines) and setting (columns), with the paper's in brackets.

    column: of the setting in the rows; settings: its values and their names in the header. The last
    line has the means over the tables.
    """
    paper = paper or {}
    lines, tables = [], present(rows, "table")
    ours = {
        (name, value): mean_of(rows, measure, **{"table": name, column: value})
        for name in tables
        for value in settings
    }
    for name in tables:
        known = paper.get(name, {})
        lines.append([name, *(beside(ours[name, v], known.get(v), digits) for v in settings)])
    if len(tables) > 1:
        means = []
        for value in settings:
            theirs = [paper[name][value] for name in tables if value in paper.get(name, {})]
            mean = float(np.mean([ours[name, value] for name in tables]))
            means.append(beside(mean, float(np.mean(theirs)) if theirs else None, digits))
        lines.append(["**mean**", *means])
    return table(("table", *settings.values()), lines)


def paired_difference(
    rows: list[Row], measure: str, one: Mapping[str, Any], other: Mapping[str, Any]
) -> tuple[float, float]:
    """Mean over tables of `one` minus `other`, and its standard error, from means over seeds."""
    differences = [
        mean_of(rows, measure, table=name, **one) - mean_of(rows, measure, table=name, **other)
        for name in present(rows, "table")
    ]
    differences = [value for value in differences if not math.isnan(value)]
    return float(np.mean(differences)), standard_error(differences)


def signed(value: float, error: float = math.nan, digits: int = 3) -> str:
    """``+0.012 ± 0.004``, with the standard error if there is one."""
    text = f"{value:+.{digits}f}".replace("-", "−")
    return text if math.isnan(error) else f"{text} ± {error:.{digits}f}"
