"""The choice of the device."""

import pytest

from diffint.core.errors import InputError
from diffint.engine.devices import resolve_device


def test_unknown_device():
    with pytest.raises(InputError, match="is not one of 'auto', 'cpu', 'cuda'"):
        resolve_device("tpu", 0.0)


def test_cpu_is_used_if_requested():
    assert resolve_device("cpu", 1e30) == "cpu"
