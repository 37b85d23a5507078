"""Imports rich so that Python's global random state stays as it is.

rich draws from it when it is imported, which scikit-learn may do in the middle of a fit.
"""

import random

_state = random.getstate()
import rich.style  # noqa: E402, F401

random.setstate(_state)
