"""Errors and warnings of the package, each a subclass of a built-in that users already catch."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path


class DiffIntError(Exception):
    """Base of all errors that the user can fix; the message says what, where, and what to do."""


class InputError(DiffIntError, ValueError):
    """A table, mask or setting that cannot be used."""


class InputTypeError(InputError, TypeError):
    """An `InputError` that is also a `TypeError` (cells that are not numbers, sparse input)."""


class TrainingError(DiffIntError, RuntimeError):
    """Training could not produce a usable model."""


class ModelFileError(DiffIntError, ValueError):
    """A file that is not a diffint model, is damaged, or was written by a newer version."""


class PlatformError(DiffIntError, RuntimeError):
    """A worker of an engine cannot do its part: a package is missing there, or is another one."""


class CompilationError(DiffIntError, RuntimeError):
    """Functions cannot be compiled in this environment."""


class TrainingWarning(UserWarning):
    """Training finished, but its result should be checked."""


class CalibrationWarning(UserWarning):
    """The threshold or the p-values are based on too few or on optimistic calibration scores."""


class InputWarning(UserWarning):
    """The table was accepted, but part of it could not be used."""


class IdentifierWarning(InputWarning):
    """Columns of text were ignored, because nearly all of their values are different.

    problem, remedy: the two parts of the message; columns: the names of the columns.
    """

    def __init__(self, problem: str, remedy: str, columns: tuple[str, ...]) -> None:
        super().__init__(f"{problem}; {remedy}")
        self.problem, self.columns = problem, columns


class CacheWarning(UserWarning):
    """Compiled code cannot be kept or used, so that it is compiled again in every process."""


_PACKAGE = str(Path(__file__).parents[1]) + os.sep
_CALL_BACK = ("numba.", "contextlib")  # modules that we call and that call us


def warn(message: str | Warning, category: type[Warning] | None = None) -> None:
    """Warn with the location of the line outside this package that called into it."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and (
        frame.f_code.co_filename.startswith(_PACKAGE)
        or frame.f_globals.get("__name__", "").startswith(_CALL_BACK)
    ):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
