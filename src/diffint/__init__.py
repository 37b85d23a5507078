"""Interpretable anomaly detection for numerical tables."""

from .config import Config
from .errors import (
    CalibrationWarning,
    InputError,
    InputWarning,
    ModelFileError,
    TrainingError,
    TrainingWarning,
)
from .estimator import DiffInt
from .model import FittedModel
from .version import __version__

__all__ = [
    "CalibrationWarning",
    "Config",
    "DiffInt",
    "FittedModel",
    "InputError",
    "InputWarning",
    "ModelFileError",
    "TrainingError",
    "TrainingWarning",
    "__version__",
]
