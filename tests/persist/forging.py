"""Changes a model file as an attacker would: with a valid checksum."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.attacks.forged_files import ModelFile, sealed


def forge(
    path: Path,
    describe: Callable[[dict[str, Any]], Any] | None = None,
    arrays: Callable[[dict[str, Any]], Any] | None = None,
) -> None:
    """Change the description and the arrays of a model file in place."""
    file = ModelFile.parse(path.read_bytes())
    if describe is not None:
        describe(file.description)
    if arrays is not None:
        arrays(file.arrays)
    path.write_bytes(sealed(file.content()))
