"""The list of studies. A new one is a file of this folder with a `STUDY`, and its name here."""

from __future__ import annotations

import difflib
import importlib

from ..core.errors import InputError
from .study import Study

# In the order of the paper.
NAMES = (
    "paper-check",
    "pipeline",
    "toy",
    "capacity",
    "reconstruction",
    "units",
    "normalization",
    "contamination",
    "certify",
    "projection",
    "support",
    "temperature",
    "active-threshold",
    "clamping",
    "stability",
    "faithfulness",
    "conciseness",
    "attribution",
    "complexity",
)


def study_named(name: str) -> Study:
    """The study of this name, from the file of the same name."""
    if name not in NAMES:
        close = difflib.get_close_matches(name, NAMES, 1, 0.5)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(NAMES)}"
        raise InputError(f"no study is called {name!r}; {hint}")
    module = importlib.import_module(f".{name.replace('-', '_')}", __package__)
    study: Study = module.STUDY
    return study
