"""The figures: `diffint.show.plots` under its public name."""

from .show.plots import *  # noqa: F403
from .show.plots import __all__ as __all__
