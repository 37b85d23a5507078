"""A base for dataclasses whose arrays cannot be changed."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np


class Immutable:
    """Makes the arrays of a dataclass read-only, also after unpickling."""

    def __post_init__(self) -> None:
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray) and value.flags.writeable:
                value = value.view()
                value.flags.writeable = False
                object.__setattr__(self, field.name, value)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()
