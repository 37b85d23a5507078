"""One page over all studies, from the rows that they have left."""

from __future__ import annotations

from pathlib import Path

from ..core.formatting import counted, listed
from .page import present, sentence
from .registry import NAMES, study_named
from .row_file import FULL, read_rows
from .study import Row

_INTRODUCTION = """\
# The paper, measured again

Each study measures a table, figure or statement of the paper again. The comparison with other
detectors is not among them: ranks and the values of each table (fig:cd, tab:ranks, tab:strat,
tab:rank-sens, tab:auc-\\*) are measured by `diffint bench` on the 36 available of the paper's 48
tables ([How detectors compare](benchmark.md)). `diffint study NAME --data FOLDER` runs a study with
this package, from a folder of ADBench tables, and writes a page with the paper's numbers beside
ours, a figure, and a CSV file with every row. `diffint study list` shows the names and what they
cost, `diffint study all` runs them all, and `--quick` gives a rough version in seconds. This page
is made from those files by `python docs/make_studies.py`.

Verdicts are computed from the numbers, by a rule in the file of the study (`src/diffint/studies/`).
"Undecided" is a difference within two standard errors both of none and of the paper's, "vacuous" a
statement that could not have failed. After ± is the standard error of a mean over tables. In
brackets after the name is on how many ADBench tables and seeds a study is run; some have rows of
their own making. The second column has the labels that tables, figures and sections have in the
paper's source.
"""


def overview_page(results: Path, link: str) -> str:
    """The page as Markdown.

    results: the folder of the studies' files; link: the same folder, as seen from the page.
    """
    lines = [
        "| study | of the paper | the paper says | paper | ours | verdict |",
        "| :-- | :-- | :-- | --: | --: | :-- |",
    ]
    missing = []
    for name in NAMES:
        study, path = study_named(name), results / f"{name}.csv"
        rows = list(read_rows(path, study).values()) if path.is_file() else []
        if not rows or any(row["run"] != FULL for row in rows):
            missing.append(name)
            continue
        shown, place = f"[{name}]({link}/{name}.md){_extent(rows)}", study.paper
        for claim in study.report(rows).claims:
            cells = (shown, place, claim.statement, claim.paper, claim.ours, sentence(claim))
            lines.append(f"| {' | '.join(cells)} |")
            shown = place = ""
    text = _INTRODUCTION + "\n" + "\n".join(lines) + "\n"
    if missing:
        text += f"\nNot measured yet: {listed(missing)}.\n"
    return text


def _extent(rows: list[Row]) -> str:
    """`` (7 tables, 3 seeds)``; empty if the rows have neither a table nor a seed."""
    numbers = []
    for name in ("table", "seed"):
        values = [v for v in present(rows, name) if v not in ("", None)] if name in rows[0] else []
        if values:
            numbers.append(counted(len(values), name))
    return f" ({', '.join(numbers)})" if numbers else ""
