"""Public name of the figures in `diffint.show.plots`."""

from .show.plots import *  # noqa: F403
from .show.plots import __all__ as __all__
