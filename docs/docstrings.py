"""A griffe extension: format docstrings and defaults for the documentation site.

Our docstrings describe an argument or attribute on a line ``name: description``. Markdown would
join such lines into one paragraph, so they become a list. Defaults that refer to the recommended
configuration are shown as values.
"""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from typing import Any

from griffe import Class, Docstring, Extension, Function, Object

from diffint.core.config import SETTINGS

# Docstrings that are generated at import from the table of settings.
_GENERATED = {
    "diffint.core.config.Config",
    "diffint.estimator.DiffInt",
    "diffint.pyod_detector.DiffIntDetector",
}
_ENTRY = re.compile(r"(?P<names>`?\w+`?(?:, `?\w+`?)*) ?: (?P<text>.*)")
_HEADING = re.compile(r"(?P<title>\w[\w ]*)\n-{3,}\n")


class AsShown(Extension):
    """Format docstring entries as lists, and defaults as values."""

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
    """Names that a docstring may describe: arguments, attributes, arguments of ``__init__``."""
    names = {parameter.name for parameter in getattr(described, "parameters", ())}
    if isinstance(described, Class):
        names.update(described.members)
        start = described.members.get("__init__")
        names.update(parameter.name for parameter in getattr(start, "parameters", ()))
    return names


def with_lists(text: str, names: set[str]) -> str:
    """The text with headings in bold and each entry as a list item."""
    text = _HEADING.sub(lambda found: f"**{found['title']}**\n\n", text)
    lines: list[str] = []
    in_list = False
    source = text.splitlines()
    for line, following in zip(source, [*source[1:], ""], strict=True):
        entry = _ENTRY.fullmatch(line)
        described = re.findall(r"\w+", entry["names"]) if entry else []
        # Attributes that `fit` sets end in an underscore; the class does not declare them.
        if entry and all(name in names or name.endswith("_") for name in described):
            if not in_list:
                lines.append("")
            shown = ", ".join(f"`{name}`" for name in described)
            # In numpydoc form the type follows the name, and the description is indented.
            typed = following.startswith("    ")
            lines.append(
                f"- {shown} ({entry['text']}):" if typed else f"- {shown}: {entry['text']}"
            )
            in_list = True
        elif in_list and line.strip():
            lines.append(f"    {line.strip()}")
        else:
            in_list = False
            lines.append(line)
    return "\n".join(lines)
