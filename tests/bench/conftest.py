"""Fixtures: one complete report for all tests that read it."""

from __future__ import annotations

import pytest

from diffint.bench.baselines import METHODS
from diffint.bench.report import write_report

from .synthetic import synthetic_rows


@pytest.fixture(scope="session")
def all_rows():
    """36 tables × all methods and a plugin × 2 regimes × 10 seeds."""
    return synthetic_rows(methods=(*METHODS, "Plugin"))


@pytest.fixture(scope="session")
def full_report(all_rows, tmp_path_factory):
    """The folder of the report."""
    folder = tmp_path_factory.mktemp("report")
    write_report(all_rows, folder)
    return folder
