"""Renders the report: builds its texts and data and fills the template."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup
from numpy.typing import NDArray

from ...core.flag_rule import FlagRule
from ...core.formatting import counted, listed, number, percent, printable, shortened, shown_name
from ...decide.thresholds import guarantee
from ...explain.explain_rows import explain_rows
from ...explain.global_explanation import GlobalExplanation, explain_model
from ...explain.nearest_normal import nearest_normal
from ...score.prepared import PreparedModel
from ..wording.values import plain_name
from .data import ScoredTable
from .drawing import Places
from .groups import group_data
from .learned import N_FEATURES, feature_bars, pattern_drawings
from .moved import drift_line, moved_part
from .rows import LEVEL, row_data
from .scores import draw_scores
from .settings import settings, training_facts
from .slider import Slider, rows_by_chance, slider

_LONGEST_CELL = 120  # characters of a kept cell
_NAMED = 10  # number of constant features that are named; the others are only counted


def render(
    prepared: PreparedModel,
    scored: ScoredTable,
    rule: FlagRule,
    created: datetime,
    n_jobs: int,
) -> str:
    """The report as HTML. rule: which of all rows are flagged"""
    model, threshold = prepared.model, rule.cut
    learned = explain_model(model)
    n_flagged = int(rule.flagged(scored.scores).sum())
    cuts = slider(rule, scored.scores)
    scores = None
    if len(scored.scores):
        others = np.array([position.threshold for position in cuts.positions])
        relative = not isinstance(threshold, float)
        shown = _relative(scored.scores, threshold) if relative else scored.scores
        scores = draw_scores(shown, others[cuts.own], others)
    data = _rows_block(prepared, scored, rule, cuts, n_jobs)
    if scores is not None:
        levels = [row[LEVEL] for row in data["rows"]]
        data["slider"] = _slider_block(cuts, scores.cuts, levels)
    script, style = _text_of("script.js"), _text_of("style.css")
    return _ENVIRONMENT.get_template("page.html").render(
        script=Markup(script),
        hash_of=_hash_of,
        placed=Places(),
        style=Markup(style),
        source=printable(scored.source),
        created=_moment(created),
        headline=headline(n_flagged, len(scored.scores)),
        meaning=_meaning(rule, len(scored.scores), n_flagged),
        found=printable(scored.found),
        agreement=_agreement(scored, rule),
        drift_line=drift_line(scored.drift),
        moved=moved_part(scored.drift),
        shown=_shown(len(scored.rows), n_flagged),
        n_shown=len(scored.rows),
        scores=scores,
        slider=cuts,
        own=cuts.positions[cuts.own],
        n_groups=len(data["groups"]),
        kept=data["kept"],
        data=_as_json(data),
        learned_from=_learned_from(learned),
        features=feature_bars(learned),
        more_features=_more_features(learned),
        patterns=pattern_drawings(learned, model.features),
        training=training_facts(model, rule),
        settings=settings(model.config),
        version=printable(model.training.version),
        held_out=model.calibration.held_out,
        box_coverage=percent(model.config.box_coverage) if model.config.box_coverage else "",
        kept_rows=len(model.members[0].kept_rows),
        missing_counts=model.config.missing == "signal",
    )


# --- Sentences -----------------------------------------------------------------------------------


def headline(n_flagged: int, n_rows: int) -> str:
    """``12 of 355 rows are flagged``"""
    if n_rows == 0:
        return "No rows were scored"
    if n_flagged == 0:
        return f"None of {counted(n_rows, 'row')} is flagged"
    return f"{n_flagged:,} of {counted(n_rows, 'row')} {'is' if n_flagged == 1 else 'are'} flagged"


def _relative(scores: NDArray[np.float64], threshold: Any) -> NDArray[np.float64]:
    """Scores as multiples of the thresholds of their segments, each (rows,)."""
    return np.asarray(scores / np.where(threshold > 0, threshold, 1.0))


def _meaning(rule: FlagRule, n_rows: int, n_flagged: int) -> list[str]:
    """When a row is flagged, and how many rows would be flagged if all were normal."""
    calibration = rule.calibration
    allowed = f"{number(100 * rule.rate, 2)} %"
    calibration_rows = counted(calibration.n_groups, f"calibration {calibration.unit}")
    above = "A row is flagged when its anomaly score is above "
    if isinstance(rule.cut, float):
        above += number(rule.cut)
    else:
        above += "the threshold of its segment; scores are drawn as multiples of it"
    if not calibration.reaches(rule.rate, rule.confidence):
        return [
            f"{above}, the largest score of {calibration_rows}. These are too few to guarantee "
            f"that at most {allowed} of normal rows are flagged."
        ]
    if not calibration.held_out:
        return [
            f"{above}. At most {allowed} of the training rows score higher; expect a larger share "
            "of new normal rows."
        ]
    by_chance = rows_by_chance(rule.rate, n_rows)
    chance = f"If all rows were normal, {by_chance} would be flagged by chance"
    may_be = 0 < n_flagged <= rule.rate * n_rows
    remark = ", so the flagged rows may all be normal." if may_be else "."
    promise = guarantee(calibration, rule.confidence)
    accepted = 0 if rule.accepted is None else int(rule.accepted.sum())
    if accepted:
        are = "is" if accepted == 1 else "are"
        remark += f" {counted(accepted, 'row')} like accepted ones {are} not flagged."
    return [f"{above}. At most {allowed} of normal rows score higher ({promise})."] + (
        [chance + remark] if n_rows else []
    )


def _agreement(scored: ScoredTable, rule: FlagRule) -> str:
    """How well the scores agree with the labels, if labels of both kinds are given."""
    if scored.labels is None:
        return ""
    labels = np.asarray(scored.labels).astype(bool)
    if labels.all() or not labels.any():
        return ""
    from sklearn.metrics import roc_auc_score

    flagged = rule.flagged(scored.scores)
    hits, false_alarms = int((flagged & labels).sum()), int((flagged & ~labels).sum())
    return (
        "Compared with the labels in the table, which the detector does not use: AUROC "
        f"{roc_auc_score(labels, scored.scores):.3f}; {hits:,} of "
        f"{counted(int(labels.sum()), 'row')} labelled as anomalies and {false_alarms:,} of "
        f"{counted(int((~labels).sum()), 'other row')} are flagged."
    )


def _shown(n_shown: int, n_flagged: int) -> str:
    if n_shown < n_flagged:
        return (
            f"Shown: {n_shown:,} of {n_flagged:,} flagged rows, those with the highest scores. The "
            "others are only counted."
        )
    return ""


def _learned_from(learned: GlobalExplanation) -> str:
    used = int(learned.is_pattern.sum())
    members = f" in {learned.n_members} members" if learned.n_members > 1 else ""
    return (
        f"The model learned {counted(used, 'pattern')}{members} from "
        f"{counted(learned.n_rows, 'row')} with "
        f"{counted(len(learned.feature_names), 'feature')}. A pattern has a range for every "
        "feature; similar normal rows lie inside these ranges."
    )


def _more_features(learned: GlobalExplanation) -> list[str]:
    """Sentences about the features without a bar."""
    lines = []
    n_varying = int((~learned.constant).sum())
    if n_varying > N_FEATURES:
        lines.append(f"The {N_FEATURES} most important of {n_varying:,} features are shown.")
    constant = [printable(learned.feature_names[j]) for j in np.flatnonzero(learned.constant)]
    if constant:
        more = [f"{len(constant) - _NAMED:,} more"] if len(constant) > _NAMED else []
        lines.append(f"Constant in training: {listed(constant[:_NAMED] + more)}.")
    return lines


def _moment(when: datetime) -> str:
    return f"{when:%Y-%m-%d %H:%M} {when.tzname() or ''}".strip()


# --- Data and template ---------------------------------------------------------------------------


def _rows_block(
    prepared: PreparedModel, scored: ScoredTable, rule: FlagRule, cuts: Slider, n_jobs: int
) -> dict[str, Any]:
    """Data from which the script draws the rows and their groups."""
    rows: list[list[Any]] = []
    groups: list[list[Any]] = []
    if len(scored.rows):
        new, own = scored.new_texts, replace(rule, codes=scored.row_segments, accepted=None)
        why = explain_rows(prepared, scored.rows, own, n_jobs, new_texts=new)
        if scored.row_scores is not None:
            p_values = own.p_values(scored.row_scores)
            why = replace(why, score=scored.row_scores, p_value=p_values)
        nearest = nearest_normal(prepared, scored.rows, own, n_jobs=n_jobs, new_texts=new)
        kept = [[_cell(text) for text in cells] for cells in scored.kept.values()]
        ids = [printable(name) for name in scored.ids]
        relative = not isinstance(own.cut, float)
        placed = _relative(why.score, own.cut) if relative else why.score
        rows = row_data(ids, cuts.levels(placed), why, nearest, kept)
        groups = group_data(why)
    model = prepared.model
    names = [printable(plain_name(model, j)) for j in range(model.n_features)]
    shown = [shown_name(name) for name in scored.kept]
    return {"names": names, "kept": shown, "rows": rows, "groups": groups}


def _cell(text: str) -> str:
    """The text of a kept column, not longer than is useful in a list."""
    return shortened(printable(text), _LONGEST_CELL)


def _slider_block(cuts: Slider, places: list[float], levels: list[int]) -> dict[str, Any]:
    """Data with which the script moves the threshold.

    For each position: rate, threshold, what it means, which rows are listed, place of the line.
    places: (positions,) of the line; levels: (shown rows,)
    """
    positions = []
    for level, (position, place) in enumerate(zip(cuts.positions, places, strict=True)):
        n_listed = sum(own <= level for own in levels)
        listed_rows = _shown(n_listed, position.n_flagged)
        numbers = position.rate_text, number(position.threshold)
        positions.append([*numbers, position.text, listed_rows, place])
    return {"own": cuts.own, "positions": positions}


def _as_json(value: Any) -> Markup:
    """JSON that is safe inside a script element. NaN, which is not valid JSON, raises."""
    return htmlsafe_json_dumps(
        value, dumps=json.dumps, ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )


_LOADER = PackageLoader("diffint.show.report")
_ENVIRONMENT = Environment(
    loader=_LOADER,
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def _hash_of(text: str) -> str:
    """The hash by which the page's security policy allows a script or a style sheet."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _text_of(name: str) -> str:
    """The text of a file in the template folder."""
    return _LOADER.get_source(_ENVIRONMENT, name)[0]
