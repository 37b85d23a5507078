"""Public name of the HTML report in `diffint.show.report`."""

from .show.report import *  # noqa: F403
from .show.report import __all__ as __all__
