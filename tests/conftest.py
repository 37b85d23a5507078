"""Shared tables and detectors."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from diffint import DiffInt

# The same examples on every machine, however slow it is.
settings.register_profile(
    "suite", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("suite")

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
    return _folder_of("ADBench")


@pytest.fixture(scope="session")
def macrodata() -> Path:
    """The folder of macrOData tables."""
    return _folder_of("macrOData")


def _folder_of(tables: str) -> Path:
    """The folder that an environment variable names; the test is skipped without it."""
    variable = f"DIFFINT_{tables.upper()}"
    folder = os.environ.get(variable)
    if not folder:
        pytest.skip(f"{variable} does not name a folder of {tables} tables")
    return Path(folder)
