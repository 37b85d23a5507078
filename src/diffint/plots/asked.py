"""What a figure is asked for, checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..asked import asked_index
from ..errors import InputError
from ..formatting import counted
from ..global_explanation import GlobalExplanation


def asked_unit(explanation: GlobalExplanation, unit: int | None, n_constraints: int) -> int:
    """The unit to draw; where none is asked for the top one by so many of its constraints."""
    if unit is not None:
        return asked_index(unit, len(explanation.importance), "unit", "in the model")
    top = explanation.top_units(1, n_constraints)
    return top[0] if top else int(np.argmax(explanation.pattern_rows))


def asked_feature(names: tuple[str, ...], feature: str | int) -> int:
    """The number of a feature given by name or number."""
    if not isinstance(feature, str):
        return asked_index(feature, len(names), "feature", "in the model")
    if feature not in names:
        listed = ", ".join(repr(name) for name in names[:5]) + (", …" if len(names) > 5 else "")
        raise InputError(f"there is no feature {feature!r}; the features are {listed}")
    return names.index(feature)


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
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
        raise InputError(f"{name} must be a list of one or more finite numbers")
    return values
