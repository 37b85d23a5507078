"""``diffint info``: show what a model was trained on and its settings."""

from __future__ import annotations

from ..core.formatting import counted, number, printable
from ..core.model import FittedModel
from ..show.wording.learned import stored_rows
from . import arguments
from .loading import load_detector
from .output import say, say_json


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
                "id_column": detector.id_column_,
                "training": vars(training),
                "settings": settings,
                "false_positive_rate": detector.false_positive_rate,
                "threshold": -detector.offset_,
                "stored_training_rows": fitted.n_kept_rows,
                "calibration": {
                    "kind": fitted.calibration.kind,
                    "rows": len(fitted.calibration.scores),
                    "groups": fitted.calibration.n_groups,
                },
            }
        )
        return
    calibration = fitted.calibration
    in_groups = f" in {counted(calibration.n_groups, 'group')}" if calibration.grouped else ""
    names = list(map(printable, fitted.feature_names))
    more = f", … ({len(names) - 10:,} more)" if len(names) > 10 else ""
    lines = {
        "trained on": f"{counted(training.n_rows, 'row')} of {counted(len(names), 'feature')}",
        "left out": f"{counted(training.n_known_anomalies, 'known anomaly')}, "
        f"{counted(training.n_suspects, 'suspect')}, "
        f"{counted(training.n_blank_rows, 'blank row')}",
        "stores": _stored(fitted),
        "features": ", ".join(names[:10]) + more,
        "ids": repr(detector.id_column_) if detector.id_column_ else "row numbers",
        "when": f"{training.created}, {training.seconds:.1f} s on {training.device}, "
        f"diffint {training.version}",
        "threshold": f"{number(-detector.offset_)} (false-positive rate "
        f"{number(detector.false_positive_rate)}, calibrated on "
        f"{counted(len(calibration.scores), 'score')}{in_groups}: {calibration.kind})",
        "settings": ", ".join(f"{name} {value}" for name, value in settings.items()),
    }
    width = max(len(name) for name in lines)
    for name, value in lines.items():
        say(f"{name:<{width}}  {printable(value)}")


def _stored(model: FittedModel) -> str:
    stored = stored_rows(model)
    return f"{stored}, scaled (fit --kept-rows 0 stores none)" if stored else "no training rows"
