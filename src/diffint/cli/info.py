"""``diffint info``: show what a model was trained on and its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.flag_rule import FlagRule
from ..core.formatting import counted, number, printable, shown_name
from ..core.model import FittedModel
from ..decide.thresholds import guarantee
from ..show.wording.learned import features_text, stored_rows
from . import arguments
from .loading import load_detector
from .output import say, say_json

if TYPE_CHECKING:
    from ..estimator import DiffInt

_VALUES = 8  # of a category that are named


def info(model: arguments.Model, as_json: arguments.Json = False) -> None:
    """Show what a model was trained on, when, and with which settings.

    Example: diffint info payments.diffint
    """
    detector = load_detector(model)
    fitted = detector.model_
    training, settings = fitted.training, fitted.config.to_dict()
    if as_json:
        say_json(
            {
                "features": list(fitted.feature_names),
                "categories": {
                    fitted.feature_names[j]: list(values)
                    for j, values in sorted(fitted.categories.items())
                },
                "id_column": detector.id_column_,
                "training": vars(training),
                "settings": settings,
                "false_positive_rate": detector.false_positive_rate,
                "confidence": detector.confidence,
                "threshold": -detector.offset_,
                "segment_column": detector.segment_column_,
                "segments": _segments(detector.rule),
                "stored_training_rows": fitted.n_kept_rows,
                "stored_calibration_rows": len(fitted.calibration.sample),
                "calibration": {
                    "kind": fitted.calibration.kind,
                    "rows": len(fitted.calibration.scores),
                    "groups": fitted.calibration.n_groups,
                    "proven": fitted.calibration.proven,
                },
            }
        )
        return
    calibration = fitted.calibration
    in_groups = f" in {counted(calibration.n_groups, 'group')}" if calibration.grouped else ""
    names = list(map(printable, fitted.feature_names))
    more = f", … ({len(names) - 10:,} more)" if len(names) > 10 else ""
    lines = {
        "trained on": f"{counted(training.n_rows, 'row')} of {features_text(fitted)}",
        "left out": f"{counted(training.n_known_anomalies, 'known anomaly')}, "
        f"{counted(training.n_suspects, 'suspect')}, "
        f"{counted(training.n_blank_rows, 'blank row')}",
        "stores": _stored(fitted),
        "features": ", ".join(names[:10]) + more,
        **_categories(fitted),
        "ids": repr(detector.id_column_) if detector.id_column_ else "row numbers",
        "when": f"{training.created}, {training.seconds:.1f} s on {training.device}, "
        f"diffint {training.version}",
        "threshold": f"{number(-detector.offset_)} (false-positive rate "
        f"{number(detector.false_positive_rate)}, calibrated on "
        f"{counted(len(calibration.scores), 'score')}{in_groups}: {calibration.kind}; "
        f"{guarantee(calibration, detector.confidence)})",
        **_segment_lines(detector),
        "settings": ", ".join(f"{name} {value}" for name, value in settings.items()),
    }
    width = max(len(name) for name in lines)
    for name, value in lines.items():
        say(f"{name:<{width}}  {printable(value)}")


def _categories(model: FittedModel) -> dict[str, str]:
    """Lines about the categories and their values."""
    lines = []
    for j, values in sorted(model.categories.items()):
        shown = [shown_name(value, 20) for value in values[:_VALUES]]
        shown += [f"{len(values) - _VALUES:,} more"] if len(values) > _VALUES else []
        if values:
            lines.append(f"{shown_name(model.feature_names[j])} ({', '.join(shown)})")
    ignored = [shown_name(model.feature_names[j]) for j, v in model.categories.items() if not v]
    more = f"; {len(lines) - 10:,} more" if len(lines) > 10 else ""
    found = {"categories": "; ".join(lines[:10]) + more} if lines else {}
    return found | ({"ignored": ", ".join(ignored)} if ignored else {})


def _segments(rule: FlagRule) -> list[dict[str, Any]]:
    """The segments: name, calibration rows, threshold, and whether it is their own."""
    names, counts = rule.calibration.segment_names, np.bincount(rule.calibration.segments)
    counts = np.pad(counts, (0, len(names) - len(counts)))
    return [
        {
            "name": name,
            "calibration_rows": int(counts[code]),
            "threshold": rule.part(code).threshold(rule.rate, rule.confidence),
            "pooled": code not in rule.own_segments,
        }
        for code, name in enumerate(names)
    ]


def _segment_lines(detector: DiffInt) -> dict[str, str]:
    found = _segments(detector.rule)
    if not found:
        return {}
    shown = [
        f"{shown_name(line['name'])} (threshold {number(line['threshold'])}"
        f"{', shared' if line['pooled'] else ''})"
        for line in found[:10]
    ]
    more = f", … ({len(found) - 10:,} more)" if len(found) > 10 else ""
    source = f" from {detector.segment_column_!r}" if detector.segment_column_ else ""
    return {"segments": f"{len(found):,}{source}: {', '.join(shown)}{more}"}


def _stored(model: FittedModel) -> str:
    stored = stored_rows(model)
    return f"{stored} (fit --kept-rows 0 stores none)" if stored else "no training rows"
