"""Fitted detectors for the tests of all platforms."""

import pytest

from .tables import mixed_detector, number_detector


@pytest.fixture(scope="module")
def numbers():
    return number_detector()


@pytest.fixture(scope="module")
def mixed():
    return mixed_detector()
