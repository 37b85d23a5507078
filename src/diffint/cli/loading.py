"""Load a model file given on the command line, and find the id column."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..core.errors import InputError
from ..tables.files.reading import TableFile

if TYPE_CHECKING:
    from ..estimator import DiffInt


def load_detector(path: str, jobs: int = -1, fpr: float | None = None) -> DiffInt:
    """The detector in a model file; raises an error that says what is wrong with the file.

    fpr: replaces the model's false-positive rate.
    """
    from ..estimator import DiffInt

    if not os.path.exists(path):
        raise FileNotFoundError(f"there is no model file {path!r}; `diffint fit` writes one")
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path!r} is a folder; give a model file")
    if os.path.isfile(path) and os.path.getsize(path) == 0:
        raise InputError(f"{path!r} is empty, not a model file")
    detector = DiffInt.load(path)
    detector.n_jobs = jobs
    if fpr is not None:
        detector.false_positive_rate = fpr
    return detector


def id_column_of(detector: DiffInt, table: TableFile, given: str | None) -> str | None:
    """The column with the ids: the given one, else that of the fit if the table has it."""
    fitted = detector.id_column_
    return fitted if given is None and fitted in table.columns else given
