"""Interpretable anomaly detection for tables."""

TYPE_CHECKING = False  # as in typing, which takes a while to import
if TYPE_CHECKING:
    from .core.config import Config
    from .core.errors import (
        CacheWarning,
        CalibrationWarning,
        CompilationError,
        DiffIntError,
        InputError,
        InputWarning,
        ModelFileError,
        PlatformError,
        TrainingError,
        TrainingWarning,
    )
    from .core.model import FittedModel
    from .core.version import __version__
    from .decide.alert_stream import AlertStream
    from .decide.drift_monitor import DriftMonitor
    from .decide.drift_state import DriftState
    from .estimator import DiffInt
    from .explain.stability_over_fits import StabilityOverFits, stability_over_fits
    from .finding import AnomaliesFound, find_anomalies

__all__ = [
    "AlertStream",
    "AnomaliesFound",
    "CacheWarning",
    "CalibrationWarning",
    "CompilationError",
    "Config",
    "DiffInt",
    "DiffIntError",
    "DriftMonitor",
    "DriftState",
    "FittedModel",
    "InputError",
    "InputWarning",
    "ModelFileError",
    "PlatformError",
    "StabilityOverFits",
    "TrainingError",
    "TrainingWarning",
    "__version__",
    "find_anomalies",
    "stability_over_fits",
]

# All imported on first use: importing scikit-learn takes a second, which the command's help does
# not need, and the command handles Ctrl-C only after this module is imported.
_MODULES = {
    "AlertStream": ".decide.alert_stream",
    "AnomaliesFound": ".finding",
    "Config": ".core.config",
    "DiffInt": ".estimator",
    "DriftMonitor": ".decide.drift_monitor",
    "DriftState": ".decide.drift_state",
    "FittedModel": ".core.model",
    "StabilityOverFits": ".explain.stability_over_fits",
    "__version__": ".core.version",
    "find_anomalies": ".finding",
    "stability_over_fits": ".explain.stability_over_fits",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(_MODULES.get(name, ".core.errors"), __name__)
    value = globals()[name] = getattr(module, name)
    return value


def __dir__() -> list[str]:
    return __all__
