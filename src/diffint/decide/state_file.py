"""Files of what is remembered between batches: one JSON object with a version and a checksum."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.errors import DiffIntError, ModelFileError
from ..tables.atomic_write import atomic_write


@dataclass(frozen=True)
class StateFile:
    """One kind of file.

    key, version: the first entry of the object. thing: what it holds, with its article; fresh: what
    to begin instead of a damaged one. longest: more bytes than such a file has. is_possible:
    whether something can have this state, besides its ``model``, which is a text.
    """

    key: str
    version: int
    thing: str
    fresh: str
    longest: int
    is_possible: Callable[[dict[str, Any]], bool]

    def write(self, path: str | os.PathLike[str], state: dict[str, Any]) -> None:
        """Write a state, completely or not at all."""
        atomic_write(path, self._text(state), is_last=True)

    def read(self, path: str | os.PathLike[str]) -> dict[str, Any]:
        """The checked state in a file."""
        if Path(path).is_dir():
            raise IsADirectoryError(f"{str(path)!r} is a folder; give a file of {self.thing}")
        with open(path, "rb") as file:
            content = file.read(self.longest + 1)
        try:
            state = json.loads(content)
            version = state.pop(self.key)
            del state["checksum"]
            if version != self.version:
                raise ModelFileError(
                    f"{self._the_thing} has format version {str(version)[:20]}, which this diffint "
                    "does not read; upgrade diffint"
                )
            intact = self._text(state) == content
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            if isinstance(error, ModelFileError):
                raise
            raise ModelFileError(f"not {self.thing}; such files are written by `save`") from None
        if not (intact and isinstance(state.get("model"), str) and self.is_possible(state)):
            raise self.damaged()
        return dict(state)

    @contextmanager
    def errors_that_name(self, path: str | os.PathLike[str]) -> Iterator[None]:
        """Raise errors about the content of a file with its name."""
        try:
            yield
        except DiffIntError as error:
            raise ModelFileError(f"{str(path)!r}: {error}") from None

    def damaged(self) -> ModelFileError:
        """The error about a file that was not written like this."""
        return ModelFileError(
            f"{self._the_thing} was damaged or changed after it was written; use a copy of it, or "
            f"begin {self.fresh}"
        )

    def of_another_model(self) -> ModelFileError:
        """The error about a state that a detector cannot continue."""
        return ModelFileError(
            f"{self._the_thing} belongs to another model; load it with the detector that it began "
            f"with, or begin {self.fresh}"
        )

    @property
    def _the_thing(self) -> str:
        return "the " + self.thing.split(maxsplit=1)[1]

    def _text(self, state: dict[str, Any]) -> bytes:
        """The only file content for this state, with a checksum against damage."""
        state = {self.key: self.version, **state}
        digest = hashlib.sha256(json.dumps(state).encode("ascii")).hexdigest()
        return (json.dumps({**state, "checksum": digest}, indent=1) + "\n").encode("ascii")
