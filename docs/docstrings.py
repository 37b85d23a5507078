"""An extension of griffe: docstrings and defaults as the site shows them.

Here an argument or attribute is described in the running text, ``name: what it is``. In Markdown
such lines would flow into one paragraph, so they are made a list. Defaults that are taken from the
recommended configuration are shown as the values they have.
"""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from typing import Any

from griffe import Class, Docstring, Extension, Function, Object

from diffint.core.config import SETTINGS

# Docstrings that are made from the table of settings, which cannot be read from the source.
_GENERATED = {
    "diffint.core.config.Config",
    "diffint.estimator.DiffInt",
    "diffint.pyod_detector.DiffIntDetector",
}
_ENTRY = re.compile(r"(?P<names>`?\w+`?(?:, `?\w+`?)*) ?: (?P<text>.*)")
_HEADING = re.compile(r"(?P<title>\w[\w ]*)\n-{3,}\n")


class AsShown(Extension):
    """Entries of a docstring become lists, and defaults values."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite the docstring and the defaults in place."""
        if obj.path in _GENERATED:
            described = getattr(import_module(obj.module.path), obj.name)
            obj.docstring = Docstring(inspect.getdoc(described) or "", parent=obj)
        if obj.docstring is not None and isinstance(obj, Class | Function):
            obj.docstring.value = with_lists(obj.docstring.value, names_of(obj))
        for parameter in getattr(obj, "parameters", ()) if isinstance(obj, Function) else ():
            if str(parameter.default).startswith(("RECOMMENDED.", "RUN_SETTINGS[", "_setting(")):
                parameter.default = repr(SETTINGS[parameter.name].default)


def names_of(described: Class | Function) -> set[str]:
    """What a docstring may describe: arguments, attributes, and arguments of ``__init__``."""
    names = {parameter.name for parameter in getattr(described, "parameters", ())}
    if isinstance(described, Class):
        names.update(described.members)
        start = described.members.get("__init__")
        names.update(parameter.name for parameter in getattr(start, "parameters", ()))
    return names


def with_lists(text: str, names: set[str]) -> str:
    """Headings as bold words, and each entry as an item of a list."""
    text = _HEADING.sub(lambda found: f"**{found['title']}**\n\n", text)
    lines: list[str] = []
    in_list = False
    for line in text.splitlines():
        entry = _ENTRY.fullmatch(line)
        described = re.findall(r"\w+", entry["names"]) if entry else []
        # A fit leaves attributes that end in an underscore; no line of the class declares them.
        if entry and all(name in names or name.endswith("_") for name in described):
            if not in_list:
                lines.append("")
            shown = ", ".join(f"`{name}`" for name in described)
            lines.append(f"- {shown}: {entry['text']}")
            in_list = True
        elif in_list and line.strip():
            lines.append(f"    {line.strip()}")
        else:
            in_list = False
            lines.append(line)
    return "\n".join(lines)
