"""The page of pairwise comparisons: DiffInt and plugins against each other method."""

from __future__ import annotations

import pandas

from ..markdown import bold, difference_text, escaped, p_text, table
from ..paper_numbers import METRICS
from ..ranking import ALPHA, TIE
from .common import METRIC_NAMES, Report, absent_line, page_of, shown_method


def comparisons_page(report: Report) -> str:
    """Wins, ties and losses of DiffInt and plugins, with Wilcoxon's tests."""
    parts = [
        "# Pairwise comparisons\n",
        "Over the tables that both methods finished: wins–ties–losses by the mean over seeds (a "
        f"tie is a difference below {TIE}), the mean difference, and the p-value of Wilcoxon's "
        "two-sided signed-rank test, without and with Holm's correction for the number of "
        f"opponents; bold if below {ALPHA} with it.\n",
        absent_line(report.results),
    ]
    records = report.comparisons
    if records.empty:
        parts.append("These rows have neither DiffInt nor a plugin.\n")
        return page_of(parts)
    for regime in report.results.regimes:
        parts.append(f"## {regime.capitalize()} regime\n")
        in_regime = records[records["regime"] == regime]
        if in_regime.empty:
            parts.append("There is no other method to compare with.\n")
        for method in dict.fromkeys(in_regime["method"]):
            of_method = in_regime[in_regime["method"] == method]
            parts += [f"### {escaped(method)}\n", _comparison_table(of_method)]
    return page_of(parts)


def _comparison_table(records: pandas.DataFrame) -> str:
    header = ["against", "tables"]
    for metric in METRICS:
        header += [METRIC_NAMES[metric], "difference", "p", "p, Holm"]
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
                p_text(one["p"]),
                bold(p) if one["p_holm"] < ALPHA else p,
            ]
        rows.append(row)
    return table(header, rows)
