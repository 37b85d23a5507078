"""Numbers that users ask for rows, units and features by, checked."""

from __future__ import annotations

import numpy as np

from .errors import InputError
from .formatting import counted


def asked_index(value: object, count: int, thing: str, where: str) -> int:
    """A number from 0, or from −1 backwards."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise InputError(f"{thing}={value!r} must be a whole number")
    if not -count <= value < count:
        raise InputError(f"{thing}={value} does not exist; {counted(count, thing)} {where}")
    return int(value) % count


def asked_count(value: object, things: str) -> int:
    """How many to show."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise InputError(f"{value!r} {things} cannot be shown; give a whole number of at least 1")
    return int(value)
