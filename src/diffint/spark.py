"""Fit on and score Spark data frames (needs the extra ``spark``)."""

from .platforms.spark import fit, plain_errors, score

__all__ = ["fit", "plain_errors", "score"]
