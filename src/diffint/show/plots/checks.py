"""What a figure is asked for, checked."""

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
    """What a model learned, given as that, as the model or as the detector."""
    if isinstance(explained, GlobalExplanation):
        return explained
    if isinstance(explained, FittedModel):
        return explain_model(explained)
    if hasattr(explained, "explain_global"):
        return explained.explain_global()
    raise InputTypeError(
        f"{type(explained).__name__} cannot be drawn here; pass a fitted detector, its model_, or "
        "what its explain_global() returns"
    )


def features_of(
    explained: GlobalExplanation | FittedModel | DiffInt,
    features: FeatureSummary | None,
    n_features: int,
) -> FeatureSummary:
    """The training values of the features: as given, or of the model or detector itself."""
    if features is None:
        model = getattr(explained, "model_", explained)
        features = model.features if isinstance(model, FittedModel) else None
    if not isinstance(features, FeatureSummary):
        raise InputTypeError(
            "an explanation does not hold the training values; pass the features of its model "
            "(detector.model_.features), or the detector in the explanation's place"
        )
    if len(features.whole) != n_features:
        raise InputError(
            f"features describes {counted(len(features.whole), 'feature')}, the explanation "
            f"{n_features}; pass the features of the same model"
        )
    return features


def check_unit(explanation: GlobalExplanation, unit: int | None, n_constraints: int) -> int:
    """The unit to draw; where none is asked for the top one by so many of its constraints."""
    if unit is not None:
        return check_index(unit, len(explanation.importance), "unit", "in the model")
    top = explanation.top_units(1, n_constraints)
    return top[0] if top else int(np.argmax(explanation.box_rows))


def check_features(names: tuple[str, ...], features: str | int | Sequence[str | int]) -> list[int]:
    """The numbers of features given by name or number.

    Where some number is not that of a feature, numbers may be names, which are kept as strings.
    """
    single = isinstance(features, str) or not isinstance(features, Iterable)
    asked: list[Any] = [features] if single else list(features)  # type: ignore[arg-type]
    whole = [a for a in asked if isinstance(a, (int, np.integer)) and not isinstance(a, bool)]
    all_in_range = all(-len(names) <= number < len(names) for number in whole)
    if not all_in_range:
        asked = [str(a) if a in whole and str(a) in names else a for a in asked]
    return [_check_feature(names, feature) for feature in asked]


def _check_feature(names: tuple[str, ...], feature: object) -> int:
    if isinstance(feature, (int, np.integer)) and not isinstance(feature, bool):
        return check_index(feature, len(names), "feature", "in the model")
    if feature not in names:
        listed = ", ".join(repr(name) for name in names[:5]) + (", …" if len(names) > 5 else "")
        raise InputError(
            f"there is no feature {feature!r}; give names or whole numbers; the features are "
            f"{listed}"
        )
    return names.index(str(feature))


def row_mask(labels: Any, n_rows: int, name: str) -> NDArray[np.bool_]:
    """(rows,) from booleans or zeros and ones; nothing, or an empty list, marks no row."""
    mask = np.zeros(n_rows, dtype=bool) if labels is None else np.asarray(labels)
    if mask.size == 0:
        return np.zeros(n_rows, dtype=bool)
    if mask.shape != (n_rows,) or not np.isin(mask, (0, 1)).all():
        raise InputError(
            f"{name} must hold True/False or 0/1, one for each of the {counted(n_rows, 'row')}"
        )
    return mask.astype(bool)


def score_list(scores: Any, name: str) -> NDArray[np.float64]:
    """(rows,) finite numbers."""
    try:
        values = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        values = np.empty(0)
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
        raise InputError(
            f"{name} must be a list of one or more finite numbers, such as anomaly_score(X) returns"
        )
    return values


def check_threshold(threshold: Any) -> float:
    """A finite number."""
    try:
        value = math.nan if isinstance(threshold, (str, bool)) else float(threshold)
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if not math.isfinite(value):
        raise InputError(
            f"threshold={threshold!r} must be a finite number; a detector's own is "
            "-detector.offset_"
        )
    return value
