"""Random samples of row indices."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.intp]


def at_most(rows: Rows, limit: int, rng: np.random.Generator) -> Rows:
    """All rows, or a random sample of `limit` rows if there are more."""
    return rows if len(rows) <= limit else rng.choice(rows, limit, replace=False)
