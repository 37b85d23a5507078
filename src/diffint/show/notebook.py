"""Results as HTML for notebooks: light tables without scripts or colours of their own.

Notebooks have light and dark themes, so text keeps the notebook's colours. Everything is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..core.formatting import counted, number, percent, printable, rounded_down, shown_name
from ..core.row_labels import row_name
from .wording.comparison import after_text, before_text, comparison_text
from .wording.drift import change_text, drift_text, p_text
from .wording.patterns import condition_text, summary
from .wording.selections import selection_text
from .wording.values import name_of

if TYPE_CHECKING:
    from ..certify.rows import Certificate
    from ..decide.drift import Drift
    from ..decide.selection import Selection
    from ..explain.alert_groups import AlertGroups
    from ..explain.comparison import ModelComparison
    from ..explain.global_explanation import GlobalExplanation
    from ..explain.local_explanation import LocalExplanation
    from ..explain.nearest_normal import NearestNormal
    from ..explain.pattern_set import PatternSet
    from ..finding import AnomaliesFound

MOST_LINES = 10  # of a table; the rest is only counted
_N_REASONS, _N_FEATURES = 3, 10

Cell = str | Sequence[str]


def html_table(
    title: str, headings: Sequence[str], lines: Sequence[Sequence[Cell]], n_more: int = 0
) -> str:
    """A titled table. A cell that is a list of texts has one line for each.

    n_more: number of lines that are not shown
    """
    head = "".join(f"<th {_CELL}>{_escaped(heading)}</th>" for heading in headings)
    body = "".join(f"<tr>{''.join(map(_cell, line))}</tr>" for line in lines)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if lines else ""
    more = f"<p>and {n_more:,} more</p>" if n_more > 0 else ""
    return f"<div><p><strong>{_escaped(title)}</strong></p>{table}{more}</div>"


def html_text(text: str) -> str:
    """Lines of text, as paragraphs."""
    return f"<div>{''.join(f'<p>{_escaped(line)}</p>' for line in text.splitlines() if line)}</div>"


_CELL = 'style="text-align: left; vertical-align: top"'


def _escaped(text: str) -> str:
    return escape(printable(text))


def _cell(cell: Cell) -> str:
    texts = [cell] if isinstance(cell, str) else cell
    return f"<td {_CELL}>{'<br>'.join(map(_escaped, texts))}</td>"


# --- Results ---------------------------------------------------------------------------------


def explanation_html(why: LocalExplanation) -> str:
    """The rows with the highest scores, and their reasons."""
    shown = _highest(why.score)
    lines: list[list[Cell]] = [
        [
            row_name(i, why.index),
            number(why.score[i]),
            number(why.p_value[i], 2),
            "flagged" if why.flagged[i] else "",
            why.reasons(i, _N_REASONS),
        ]
        for i in shown
    ]
    title = (
        f"{counted(len(why), 'row')} explained, {int(why.flagged.sum()):,} flagged "
        f"({_threshold_text(why)}); highest scores first"
    )
    headings = ("Row", "Score", "p-value", "", "Reasons")
    return html_table(title, headings, lines, len(why) - len(shown))


def _threshold_text(why: LocalExplanation) -> str:
    if isinstance(why.threshold, float):
        return f"threshold {number(why.threshold)}"
    finite = np.unique(why.threshold[np.isfinite(why.threshold)])
    if len(finite) == 1:
        return f"threshold {number(finite[0])}"
    return "thresholds of their segments"


def found_html(found: AnomaliesFound) -> str:
    """What a search has found, and the rows with the highest scores."""
    shown = found.order[:MOST_LINES]
    lines = [
        [
            row_name(i, found.index),
            number(found.scores[i]),
            "beyond chance" if found.beyond_chance[i] else "",
            "left out of training" if found.suspects[i] else "",
        ]
        for i in shown
    ]
    n_more = len(found.order) - len(shown)
    return html_table(found.text(), ("Row", "Score", "", ""), lines, n_more)


def selection_html(selection: Selection) -> str:
    """The selected rows with the highest scores."""
    shown = selection.order[:MOST_LINES]
    lines = [
        [
            row_name(i, selection.index),
            number(selection.scores[i]),
            number(selection.p_values[i], 2),
            percent(selection.bounds[i]),
        ]
        for i in shown
    ]
    headings = ("Row", "Score", "p-value", "False at most, up to this row")
    n_more = selection.n_selected - len(shown)
    return html_table(selection_text(selection), headings, lines, n_more)


def drift_html(drift: Drift) -> str:
    """The features that moved most."""
    shown = drift.shifts[:MOST_LINES]
    lines = [
        [shown_name(shift.feature), change_text(shift), p_text(shift.p_value)] for shift in shown
    ]
    n_more = len(drift.shifts) - len(shown)
    return html_table(drift_text(drift), ("Feature", "Change", "p-value"), lines, n_more)


def comparison_html(found: ModelComparison) -> str:
    """What is different between two models, with the ranges that moved most."""
    shown = found.ranges[:MOST_LINES]
    lines = [[f"{s.pattern}", shown_name(s.feature), before_text(s), after_text(s)] for s in shown]
    title = comparison_text(found).split("\n")[0]
    headings = ("Pattern", "Feature", "Before", "Now")
    return html_table(title, headings, lines, len(found.ranges) - len(shown))


def groups_html(groups: AlertGroups) -> str:
    """The largest groups of flagged rows."""
    shown = groups.groups[:MOST_LINES]
    index = groups.explanation.index
    lines = [
        [
            group.name,
            f"{len(group):,}",
            number(group.score_high),
            row_name(int(group.rows[0]), index),
            group.text,
        ]
        for group in shown
    ]
    n_rows = sum(map(len, groups))
    title = f"{counted(n_rows, 'flagged row')} in {counted(len(groups), 'group')}; largest first"
    headings = ("Group", "Rows", "Highest score", "Example", "Its reason")
    return html_table(title, headings, lines, len(groups) - len(shown))


def changes_html(nearest: NearestNormal) -> str:
    """What would make the flagged rows with the highest scores normal."""
    flagged = np.flatnonzero(nearest.flagged)
    shown = [int(flagged[place]) for place in _highest(nearest.score[flagged])]
    lines = [
        [
            row_name(i, nearest.index),
            number(nearest.score[i]),
            number(nearest.new_score[i]) if nearest.found[i] else "",
            nearest.text(i),
        ]
        for i in shown
    ]
    title = f"{counted(len(flagged), 'flagged row')} of {counted(len(nearest), 'row')}"
    headings = ("Row", "Score", "New score", "Nearest normal")
    return html_table(title, headings, lines, len(flagged) - len(shown))


def certificate_html(certificate: Certificate) -> str:
    """The rows with the highest proven bounds."""
    c = certificate
    shown = _highest(c.bound)
    lines = [
        [row_name(i, c.index), number(c.score[i]), rounded_down(c.bound[i]), c.text(i).split("\n")]
        for i in shown
    ]
    title = (
        f"{counted(len(c), 'row')} certified, {int((c.bound > 0).sum()):,} with a positive bound; "
        "highest bounds first"
    )
    return html_table(
        title, ("Row", "Score", "At least", "What is proven"), lines, len(c) - len(shown)
    )


def learned_html(learned: GlobalExplanation) -> str:
    """The most important features, and the ranges of the most important patterns."""
    order = learned.feature_order[~learned.constant[learned.feature_order]]
    features = [
        [shown_name(learned.feature_names[j]), f"{learned.feature_importance[j]:.2f}"]
        for j in order[:_N_FEATURES]
    ]
    title = (
        f"Learned from {counted(learned.n_rows, 'row')}: "
        f"{counted(int(learned.is_pattern.sum()), 'pattern')}"
    )
    patterns: list[list[Cell]] = []
    for unit in learned.top_units():
        _, *ranges = learned.unit_text(unit)
        patterns.append([f"Pattern {unit}", [" ".join(text.split()) for text in ranges]])
    n_more = max(len(order) - _N_FEATURES, 0)
    return html_table(title, ("Feature", "Importance"), features, n_more) + html_table(
        "Most important patterns", ("Pattern", "Ranges"), patterns
    )


def patterns_html(patterns: PatternSet) -> str:
    """All patterns of a compact set."""
    lines: list[list[Cell]] = [
        [
            str(k + 1),
            [
                f"{name_of(patterns, j)}: {condition_text(patterns, k, j)}"
                for j in patterns.conditions(k)
            ],
            percent(patterns.coverage[k]),
            percent(patterns.anomalies_outside[k]) if patterns.n_anomalies else "",
        ]
        for k in range(len(patterns))
    ]
    headings = ("Pattern", "Conditions", "Normal rows inside", "Artificial anomalies outside")
    return html_table(summary(patterns), headings, lines)


def _highest(values: NDArray[np.float64]) -> list[int]:
    """Positions of the highest values (rows,), highest first."""
    return [int(i) for i in np.argsort(-values, kind="stable")[:MOST_LINES]]
