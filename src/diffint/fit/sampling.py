"""Rows of a table by number, and a sample of them where all would be too many."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.intp]


def at_most(rows: Rows, limit: int, rng: np.random.Generator) -> Rows:
    """All the rows, or so many of them, chosen at random."""
    return rows if len(rows) <= limit else rng.choice(rows, limit, replace=False)
