"""Validation of the arguments of figures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.checks import check_index
from ...core.errors import InputError, InputTypeError
from ...core.formatting import counted
from ...core.model import FeatureSummary, FittedModel
from ...explain.global_explanation import GlobalExplanation, explain_model

if TYPE_CHECKING:
    from ...estimator import DiffInt


def explanation_of(explained: GlobalExplanation | FittedModel | DiffInt) -> GlobalExplanation:
    """The global explanation of a detector or model; an explanation is returned unchanged."""
    if isinstance(explained, GlobalExplanation):
        return explained
    if isinstance(explained, FittedModel):
        return explain_model(explained)
    if hasattr(explained, "explain_global"):
        return explained.explain_global()
    raise InputTypeError(
        f"this figure cannot draw {type(explained).__name__}; pass a fitted detector, its model_ "
        "or its explain_global()"
    )


def features_of(
    explained: GlobalExplanation | FittedModel | DiffInt,
    features: FeatureSummary | None,
    n_features: int,
) -> FeatureSummary:
    """Statistics of the training values: `features` if given, else those of the model."""
    if features is None:
        model = getattr(explained, "model_", explained)
        features = model.features if isinstance(model, FittedModel) else None
    if not isinstance(features, FeatureSummary):
        raise InputTypeError(
            "an explanation does not contain the training values; pass the features of its model "
            "(detector.model_.features), or pass the detector instead of the explanation"
        )
    if len(features.whole) != n_features:
        raise InputError(
            f"features has {counted(len(features.whole), 'feature')}, the explanation "
            f"{n_features}; pass the features of the same model"
        )
    return features


def check_unit(explanation: GlobalExplanation, unit: int | None, n_constraints: int) -> int:
    """The unit to draw; if None, the top one by its `n_constraints` most important constraints."""
    if unit is not None:
        return check_index(unit, len(explanation.importance), "unit", "in the model")
    top = explanation.top_units(1, n_constraints)
    return top[0] if top else int(np.argmax(explanation.box_rows))


def check_features(names: tuple[str, ...], features: str | int | Sequence[str | int]) -> list[int]:
    """Indices of features given by name or number.

    If some number is out of range, all numbers that equal a feature's name are read as names.
    """
    single = isinstance(features, str) or not isinstance(features, Iterable)
    chosen: list[Any] = [features] if single else list(features)  # type: ignore[arg-type]
    whole = [f for f in chosen if isinstance(f, (int, np.integer)) and not isinstance(f, bool)]
    all_in_range = all(-len(names) <= number < len(names) for number in whole)
    if not all_in_range:
        chosen = [str(f) if f in whole and str(f) in names else f for f in chosen]
    return [_check_feature(names, feature) for feature in chosen]


def _check_feature(names: tuple[str, ...], feature: object) -> int:
    if isinstance(feature, (int, np.integer)) and not isinstance(feature, bool):
        return check_index(feature, len(names), "feature", "in the model")
    if feature not in names:
        listed = ", ".join(repr(name) for name in names[:5]) + (", …" if len(names) > 5 else "")
        raise InputError(
            f"there is no feature {feature!r}; pass names or whole numbers. The features are "
            f"{listed}"
        )
    return names.index(str(feature))


def row_mask(labels: Any, n_rows: int, name: str) -> NDArray[np.bool_]:
    """(rows,) from True/False or 0/1; None or an empty list marks no row."""
    mask = np.zeros(n_rows, dtype=bool) if labels is None else np.asarray(labels)
    if mask.size == 0:
        return np.zeros(n_rows, dtype=bool)
    if mask.shape != (n_rows,) or not np.isin(mask, (0, 1)).all():
        raise InputError(
            f"{name} must contain True/False or 0/1 for each of the {counted(n_rows, 'row')}"
        )
    return mask.astype(bool)


def score_list(scores: Any, name: str) -> NDArray[np.float64]:
    """Check scores: (rows,) finite numbers, at least one."""
    try:
        values = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        values = np.empty(0)
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
        raise InputError(
            f"{name} must be a list of at least one finite number, for example anomaly_score(X)"
        )
    return values


def check_threshold(threshold: Any) -> float:
    """Check a threshold: a finite number."""
    try:
        value = math.nan if isinstance(threshold, (str, bool)) else float(threshold)
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if not math.isfinite(value):
        raise InputError(
            f"threshold={threshold!r} must be a finite number; the threshold of a detector is "
            "-detector.offset_"
        )
    return value
