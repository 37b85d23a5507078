"""A browser for the tests of the report."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="package")
def started(tmp_path_factory):
    """A Chromium, closed after the tests of this folder."""
    pytest.importorskip("websocket", reason="websocket-client is not installed")
    from .browser import Browser, find_chromium

    command = find_chromium()
    if command is None:
        pytest.skip("no Chromium is installed")
    browser = Browser(command, tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()
