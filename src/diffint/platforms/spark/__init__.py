"""`fit` and `score` of Spark data frames."""

try:
    import pyspark.sql  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"diffint.spark needs the package {error.name}; install it with: pip install "
        "'diffint-ad[spark]'",
        name=error.name,
    ) from None

from .fitting import fit
from .scoring import score
from .worker_errors import plain_errors

__all__ = ["fit", "plain_errors", "score"]
