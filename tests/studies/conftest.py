"""A study that takes no time, and small tables for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from diffint.studies import registry

from ..cli.conftest import run  # noqa: F401
from . import tiny


@pytest.fixture
def tiny_study(monkeypatch):
    """The study of `tiny`, known to the command under its name."""
    monkeypatch.setattr(registry, "NAMES", (*registry.NAMES, "tiny"))
    known = registry.study_named

    def study_named(name: str):
        return tiny.STUDY if name == "tiny" else known(name)

    monkeypatch.setattr(registry, "study_named", study_named)
    monkeypatch.setattr("diffint.studies.run.study_named", study_named)
    return tiny.STUDY


@pytest.fixture
def tables(tmp_path) -> Path:
    """A folder with two of the three tables of the tiny study."""
    folder = tmp_path / "tables"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for name in ("14_glass", "45_wine"):
        y = (np.arange(60) % 6 == 0).astype(int)
        np.savez(folder / f"{name}.npz", X=rng.normal(size=(60, 3)) + 3.0 * y[:, None], y=y)
    return folder
