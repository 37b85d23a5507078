"""Interpretable anomaly detection for numerical tables."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .core.config import Config
from .core.errors import (
    CacheWarning,
    CalibrationWarning,
    CompilationError,
    DiffIntError,
    InputError,
    InputWarning,
    ModelFileError,
    TrainingError,
    TrainingWarning,
)
from .core.version import __version__

if TYPE_CHECKING:
    from .core.model import FittedModel
    from .estimator import DiffInt

__all__ = [
    "CacheWarning",
    "CalibrationWarning",
    "CompilationError",
    "Config",
    "DiffInt",
    "DiffIntError",
    "FittedModel",
    "InputError",
    "InputWarning",
    "ModelFileError",
    "TrainingError",
    "TrainingWarning",
    "__version__",
]

# Imported on first use: importing scikit-learn takes a second, and the command's help does not
# need it.
_LAZY = {"DiffInt": ".estimator", "FittedModel": ".core.model"}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_LAZY[name], __name__), name)
    return value


def __dir__() -> list[str]:
    return __all__
