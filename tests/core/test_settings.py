"""Every setting is defined once, and documented everywhere from there."""

import inspect
import re

import pytest

from diffint import Config, DiffInt
from diffint.core.config import MODEL_SETTINGS, SETTINGS


def test_every_parameter_is_a_setting():
    parameters = inspect.signature(DiffInt.__init__).parameters
    assert [name for name in parameters if name != "self"] == list(SETTINGS)
    for name, setting in SETTINGS.items():
        assert parameters[name].default == setting.default
    assert tuple(MODEL_SETTINGS) == Config.names()


@pytest.mark.parametrize("name", SETTINGS)
def test_help_documents_it_in_numpydoc_form(name):
    setting = SETTINGS[name]
    documentation = inspect.getdoc(DiffInt)
    line = f"{name} : {setting.kind}, default={setting.default!r}"
    assert line in documentation
    text = re.sub(r"\s+", " ", documentation)
    assert setting.meaning in text
    assert setting.advice in text
    assert setting.meaning.endswith(".")
    assert setting.advice.endswith(".")


def test_the_pyod_detector_is_documented_from_the_same_table():
    pytest.importorskip("pyod")
    from diffint.pyod_detector import DiffIntDetector

    documentation = inspect.getdoc(DiffIntDetector)
    for name in inspect.signature(DiffIntDetector.__init__).parameters:
        assert name == "self" or f"\n{name} : " in documentation
