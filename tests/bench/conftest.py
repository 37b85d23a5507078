"""One whole report for all the tests that read it."""

from __future__ import annotations

import time

import pytest

from diffint.bench.baselines import METHODS
from diffint.bench.report import write_report

from .synthetic import synthetic_rows


@pytest.fixture(scope="session")
def whole_rows():
    """36 tables × 25 methods and a plugin × 2 regimes × 10 seeds."""
    return synthetic_rows(methods=(*METHODS, "Mine"))


@pytest.fixture(scope="session")
def whole_report(whole_rows, tmp_path_factory):
    """The folder, and how long it took."""
    folder = tmp_path_factory.mktemp("report")
    start = time.perf_counter()
    write_report(whole_rows, folder)
    return folder, time.perf_counter() - start
