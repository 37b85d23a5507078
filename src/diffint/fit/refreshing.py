"""What a model that is refreshed keeps of the former one, and whether it has seen the rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.accepted import Accepted
from ..core.errors import CalibrationWarning, warn
from ..core.formatting import percent
from ..core.kinds import Kinds
from ..core.model import FittedModel
from ..tables.categories import OTHER
from ..tables.fingerprint import fingerprint

_MOST_KNOWN = 0.1  # share of stored rows that may be found again by chance


def warn_of_known_rows(former: FittedModel, x: NDArray[Any]) -> None:
    """Warn if rows (rows, features), as the former model reads them, are some that it has seen.

    The table is recognised by its fingerprint, and another one with some of its rows by the
    calibration rows that the model stores. Of a table with many equal rows nothing can be said.
    """
    known = 1.0 if fingerprint(x) == former.training.fingerprint else _known_share(former, x)
    if known > _MOST_KNOWN:
        warn(
            f"about {percent(known)} of the rows that the model was trained on are in the table to "
            "refresh it with; rows that the networks have seen do not show how new ones score, so "
            "that more of these are flagged than the false-positive rate says: pass only newer "
            "rows, or use fit",
            CalibrationWarning,
        )


def _known_share(former: FittedModel, x: NDArray[Any]) -> float:
    """The share of the stored calibration rows that are rows of a table."""
    stored = _texts(former.calibration.sample)
    if len(set(stored)) < (1 - _MOST_KNOWN) * max(len(stored), 1):
        return 0.0
    rows = set(_texts(x))
    if len(rows) < (1 - _MOST_KNOWN) * len(x) or not stored:
        return 0.0
    return sum(row in rows for row in stored) / len(stored)


def _texts(rows: NDArray[Any]) -> list[bytes]:
    """Rows as bytes that are equal for equal values, as far as float32 tells them apart."""
    with np.errstate(over="ignore"):
        same = rows.astype(np.float32) + np.float32(0.0)  # −0 is 0
    same = np.where(np.isnan(same), np.float32(np.nan), same)
    return [row.tobytes() for row in same]


def with_accepted_of(model: FittedModel, former: FittedModel) -> FittedModel:
    """The model with the rows that a person has called normal before: that is still their word.

    The values of categories get the codes that they have now; one that is unknown now is new.
    """
    accepted = former.called_normal
    if accepted is None:
        return model
    rows = _with_codes_of(accepted.rows, former.kinds, model.kinds)
    return replace(model, called_normal=Accepted(rows, accepted.wrong, accepted.when))


def _with_codes_of(rows: NDArray[np.float64], before: Kinds, now: Kinds) -> NDArray[np.float64]:
    rows = rows.copy()
    for j, values in before.categories.items():
        place = {value: float(code) for code, value in enumerate(now.categories[j])}
        new = place.get(OTHER, float(len(place)))
        codes = np.array([*(place.get(value, new) for value in values), float(len(place)), np.nan])
        known = np.where(np.isnan(rows[:, j]), len(values) + 1, rows[:, j])
        rows[:, j] = codes[known.astype(np.intp)]
    return rows
