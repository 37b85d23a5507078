"""Errors of Spark's workers as the errors that they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException

from ...core import errors
from ...core.errors import DiffIntError, PlatformError
from ...core.version import __version__

_OURS = re.compile(
    r"diffint\.core\.errors\.(\w+): (.*?)\s*(?:SQLSTATE: \w{5}\b|\n\s+at |\n\n|\Z)", re.DOTALL
)
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")


@contextmanager
def plain_errors() -> Iterator[None]:
    """Raise what a worker complains of as an error of this package, without Spark's trace.

    Spark starts to score when its result is used, and an error of a worker, such as for an infinite
    cell, then comes in a `PySparkException`. Around that action, this raises the worker's own error
    instead, or a `PlatformError` if its Python lacks a package.

    Examples
    --------
    ::

        with plain_errors():
            score("payments.diffint", payments).write.parquet("scored")
    """
    try:
        yield
    except PySparkException as error:
        plain = _plain(str(error))
        if plain is None:
            raise
        raise plain from None


def _plain(message: str) -> DiffIntError | None:
    """The error of which a message of Spark's tells, None if it is another one."""
    if found := _OURS.search(message):
        kind = getattr(errors, found[1], DiffIntError)
        plain: DiffIntError = kind(found[2])
        return plain
    if found := _NO_MODULE.search(message):
        package = found[1].split(".")[0]
        have = "another version of the package" if package != found[1] else "no package"
        return PlatformError(
            f"the Python of Spark's workers has {have} {package!r}; install diffint-ad "
            f"{__version__} there, or choose another Python with the environment variable "
            "PYSPARK_PYTHON"
        )
    return None
