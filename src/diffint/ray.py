"""Detectors on a Ray cluster (needs the extra ``ray``)."""

from .platforms.ray import FittedMany, RowsError, fit, fit_many, score

__all__ = ["FittedMany", "RowsError", "fit", "fit_many", "score"]
