"""Ours, and those from outside, against each other method."""

from __future__ import annotations

import pandas

from ..markdown import bold, difference_text, escaped, p_text, table
from ..paper_numbers import METRICS
from ..ranking import ALPHA, TIE
from .common import METRIC_NAMES, Report, absent_line, shown_method


def comparisons_page(report: Report) -> str:
    """Wins, ties and losses with their tests, of ours and of those from outside."""
    parts = [
        "# Head to head\n",
        "Over the tables that both finished: wins–ties–losses by the mean over seeds (a tie is a "
        f"difference below {TIE}), the mean difference, and the p-value of Wilcoxon's two-sided "
        "signed-rank test after Holm's correction for the number of opponents; bold below "
        f"{ALPHA}.\n",
        absent_line(report.results),
    ]
    records = report.comparisons
    if records.empty:
        parts.append("Neither DiffInt nor a method from outside is among these rows.\n")
        return "\n".join(parts)
    for regime in report.results.regimes:
        parts.append(f"## {regime.capitalize()} regime\n")
        here = records[records["regime"] == regime]
        if here.empty:
            parts.append("There is no one to compare with.\n")
        for method in dict.fromkeys(here["method"]):
            mine = here[here["method"] == method]
            parts += [f"### {escaped(method)}\n", _comparison_table(mine)]
    return "\n".join(parts)


def _comparison_table(records: pandas.DataFrame) -> str:
    header = ["against", "tables"]
    for metric in METRICS:
        header += [METRIC_NAMES[metric], "difference", "p"]
    rows = []
    for opponent in dict.fromkeys(records["opponent"]):
        pair = records[records["opponent"] == opponent].set_index("metric")
        counts = dict.fromkeys(str(pair.loc[metric, "n_tables"]) for metric in METRICS)
        row = [shown_method(opponent), " / ".join(counts)]
        for metric in METRICS:
            one = pair.loc[metric]
            p = p_text(one["p_holm"])
            row += [
                f"{one['wins']}–{one['ties']}–{one['losses']}",
                difference_text(one["mean_difference"]),
                bold(p) if one["p_holm"] < ALPHA else p,
            ]
        rows.append(row)
    return table(header, rows)
