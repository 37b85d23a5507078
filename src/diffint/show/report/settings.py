"""Data of the report's section on training: facts and settings."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ...core.config import MODEL_SETTINGS, RECOMMENDED, Config
from ...core.flag_rule import FlagRule
from ...core.formatting import counted, listed, number, printable
from ...core.model import FittedModel


@dataclass(frozen=True)
class ShownSetting:
    """One setting; changed: whether it differs from the recommended value."""

    name: str
    value: str
    meaning: str
    changed: bool


def settings(config: Config) -> list[ShownSetting]:
    """All settings of the model."""
    usual = RECOMMENDED.to_dict()
    return [
        ShownSetting(name, _written(value), MODEL_SETTINGS[name].meaning, value != usual[name])
        for name, value in config.to_dict().items()
    ]


def training_facts(model: FittedModel, rule: FlagRule) -> list[tuple[str, str]]:
    """Facts about the training as (term, description)."""
    training, calibration = model.training, model.calibration
    left_out = []
    if training.n_known_anomalies:
        left_out.append(f"{training.n_known_anomalies:,} marked as anomalies")
    if training.n_suspects:
        left_out.append(f"{training.n_suspects:,} suspected to be anomalies")
    if training.n_blank_rows:
        left_out.append(f"{training.n_blank_rows:,} without any value")
    missing = model.features.missing_share
    n_missing = int((missing > 0).sum())
    kinds = {
        "members": "scored by members that were not trained on them",
        "holdout": "left out of training",
        "training": "used in training, so it is optimistic",
    }
    in_groups = f", in {counted(calibration.n_groups, 'group')}" if calibration.grouped else ""
    facts = [
        ("Trained on", counted(training.n_rows, "row")),
        ("Left out", listed(left_out) if left_out else ""),
        ("Features", counted(model.n_features, "feature")),
        ("Missing values", f"in {counted(n_missing, 'feature')}" if n_missing else ""),
        ("Date", _moment(training.created)),
        ("Duration", f"{number(training.seconds, 2)} s on {printable(training.device)}"),
        ("Epochs", f"{training.epochs:,}, with batches of {counted(training.batch_size, 'row')}"),
        (
            "Threshold",
            f"{_threshold_text(rule)}, to flag at most {number(100 * rule.rate, 2)} % of normal "
            f"rows; from {counted(len(calibration.scores), 'row')} {kinds[calibration.kind]}"
            f"{in_groups}",
        ),
        ("Version", f"diffint {printable(training.version)}"),
    ]
    return [(term, text) for term, text in facts if text]


def _threshold_text(rule: FlagRule) -> str:
    if isinstance(rule.cut, float):
        return number(rule.cut)
    return f"one for each of {counted(len(rule.calibration.segment_names), 'segment')}"


def _moment(created: str) -> str:
    try:
        return f"{datetime.fromisoformat(created):%Y-%m-%d %H:%M %Z}".strip()
    except ValueError:  # a model file may contain any text here
        return printable(created)


def _written(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
