"""A model file named on the command line."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..core.errors import InputError
from ..tables.files.reading import TableFile

if TYPE_CHECKING:
    from ..estimator import DiffInt


def load_detector(path: str, jobs: int = -1, fpr: float | None = None) -> DiffInt:
    """The detector in a model file, or an error that says what is wrong with it.

    fpr: another false-positive rate than the model's own.
    """
    from ..estimator import DiffInt

    if not os.path.exists(path):
        raise FileNotFoundError(f"there is no model file {path!r}; `diffint fit` writes one")
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path!r} is a folder; name a model file")
    if os.path.getsize(path) == 0:
        raise InputError(f"{path!r} is empty, not a model file")
    detector = DiffInt.load(path)
    detector.n_jobs = jobs
    if fpr is not None:
        detector.false_positive_rate = fpr
    return detector


def id_column_of(detector: DiffInt, table: TableFile, asked: str | None) -> str | None:
    """The column that names the rows: the one asked for, or else the one known from the fit."""
    known = detector.id_column_
    return known if asked is None and known in table.columns else asked
