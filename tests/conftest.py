"""Shared tables and detectors."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest

from diffint import DiffInt

# A shell that starts the suite in the background, or nohup, has it ignore signals that tests send.
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

QUICK = {"n_units": 16, "hidden_width": 16, "epochs": 5, "n_members": 2, "random_state": 0}


def make_rows(n_rows: int = 300, n_features: int = 5, seed: int = 0) -> np.ndarray:
    """Correlated normal rows in differing units."""
    rng = np.random.default_rng(seed)
    mixed = rng.normal(size=(n_rows, n_features)) @ rng.normal(size=(n_features, n_features))
    return mixed * 10.0 ** np.arange(n_features) + 100.0


@pytest.fixture(scope="session")
def rows() -> np.ndarray:
    return make_rows()


@pytest.fixture(scope="session")
def fitted(rows: np.ndarray) -> DiffInt:
    """A quick detector; tests must not change it."""
    return DiffInt(**QUICK, false_positive_rate=0.05).fit(rows)


@pytest.fixture(scope="session")
def adbench() -> Path:
    """The folder of ADBench tables."""
    folder = os.environ.get("DIFFINT_ADBENCH")
    if not folder:
        pytest.skip("DIFFINT_ADBENCH does not name a folder of ADBench tables")
    return Path(folder)


@pytest.fixture(scope="session")
def macrodata() -> Path:
    """The folder of macrOData tables."""
    folder = os.environ.get("DIFFINT_MACRODATA")
    if not folder:
        pytest.skip("DIFFINT_MACRODATA does not name a folder of macrOData tables")
    return Path(folder)
