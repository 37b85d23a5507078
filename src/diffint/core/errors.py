"""The errors and warnings a user can meet, each a subclass of what they already catch."""

from __future__ import annotations


class InputError(ValueError):
    """A table, mask or setting that cannot be used: what, where, and what to do."""


class InputTypeError(InputError, TypeError):
    """The same, where callers expect a `TypeError` (cells that are not numbers, sparse input)."""


class TrainingError(RuntimeError):
    """Training could not produce a usable model."""


class ModelFileError(ValueError):
    """A file that is not a diffint model, is damaged, or was written by a newer version."""


class TrainingWarning(UserWarning):
    """Training finished, but something about it deserves a look."""


class CalibrationWarning(UserWarning):
    """The threshold or the p-values rest on too few or on optimistic calibration scores."""


class InputWarning(UserWarning):
    """The table was accepted, but part of it could not be used."""
