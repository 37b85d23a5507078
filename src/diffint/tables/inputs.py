"""The columns of a table that a model needs, and how each of them is read."""

from __future__ import annotations

from typing import Literal

from ..core.model import FittedModel

InputKind = Literal["number", "cells", "unused"]


def input_columns(model: FittedModel) -> dict[str, InputKind]:
    """The columns of the training table, in its order, and how new rows' cells are read.

    ``number``: as numbers. ``cells``: as they are, texts or points in time. ``unused``: not at all,
    since the fit ignored the column; a table may lack it.
    """
    kinds: dict[str, InputKind] = dict.fromkeys(model.columns, "number")
    for name, share in zip(model.feature_names, model.features.missing_share, strict=True):
        if name in kinds and share == 1.0:
            kinds[name] = "unused"
    for name in model.kinds.times:
        kinds[name] = "cells"
    for j, values in model.categories.items():
        if model.feature_names[j] in kinds:  # not the hour of a time, which is a category too
            kinds[model.feature_names[j]] = "cells" if values else "unused"
    return kinds


def ignored_columns(model: FittedModel) -> list[str]:
    """The columns of the training table that the fit ignored."""
    return [name for name, kind in input_columns(model).items() if kind == "unused"]
