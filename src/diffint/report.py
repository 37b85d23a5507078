"""The HTML report: `diffint.show.report` under its public name."""

from .show.report import *  # noqa: F403
from .show.report import __all__ as __all__
