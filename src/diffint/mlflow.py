"""Detectors in MLflow, as a flavor and as a Python function (needs the extra ``mlflow``)."""

from .platforms.mlflow import _load_pyfunc, load_model, log_model, save_model, signature_of

__all__ = ["_load_pyfunc", "load_model", "log_model", "save_model", "signature_of"]
