"""What alert streams and drift monitors share: checks of their detector and of their batches."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from ..core.errors import InputError, InputTypeError
from ..core.model import FittedModel


def model_of(detector: Any, thing: str, why: str) -> FittedModel:
    """The model of a detector whose calibration rows were left out of training.

    thing: what needs it, with its article; why: what is wrong with calibration on training rows
    """
    if not all(callable(getattr(detector, name, None)) for name in ("anomaly_score", "_rule_for")):
        raise InputTypeError(f"{thing} needs a fitted DiffInt, not {type(detector).__name__}")
    check_is_fitted(detector, "model_")
    model: FittedModel = detector.model_
    if not model.calibration.held_out:
        raise InputError(
            f"the detector is calibrated on its training rows, {why}; fit a DiffInt with "
            "calibration='holdout' or 'members'"
        )
    return model


def check_not_fitted_again(detector: Any, model: FittedModel, thing: str) -> None:
    """Raise an error if a detector does not give the scores of this model any more.

    Accepted rows may have been added or withdrawn: they change no score.
    """
    now: FittedModel = detector.model_
    if now.members is not model.members or now.calibration is not model.calibration:
        raise InputError(
            f"the detector was fitted again after this {thing} began; begin a new "
            f"{thing.split()[-1]}"
        )


def is_empty(table: Any) -> bool:
    """Whether a batch has no rows."""
    try:
        return len(table) == 0
    except TypeError:  # for the detector to refuse
        return False
