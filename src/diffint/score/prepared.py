"""A fitted model with derived values, each computed once when it is first needed.

A `FittedModel` has plain arrays. Scoring needs them packed for the compiled code, bounds need
singular values, explanations need boxes in original units. These are kept in a `PreparedModel`,
which belongs to its user (an estimator, a server); no module has a cache. Thread-safe.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

from ..core.config import Config
from ..core.model import FittedModel, Member
from ..engine.cpu.packed_members import PackedMembers

T = TypeVar("T")


class PreparedMembers:
    """Members and their configuration: all that scores and bounds need from a model."""

    def __init__(self, config: Config, members: tuple[Member, ...]) -> None:
        self.config, self.members = config, members
        self._derived: dict[Any, Any] = {}
        self._lock = threading.RLock()

    def derived(self, make: Callable[[Config, Member], T]) -> tuple[T, ...]:
        """make(config, member) of every member; computed once."""
        with self._lock:
            if make not in self._derived:
                self._derived[make] = tuple(make(self.config, m) for m in self.members)
            return self._derived[make]  # type: ignore[no-any-return]

    @cached_property
    def packed(self) -> PackedMembers:
        """All members packed for the compiled code."""
        with self._lock:
            return PackedMembers(self.config, self.members)

    def __reduce__(self) -> Any:
        return type(self), (self.config, self.members)


class PreparedModel(PreparedMembers):
    """A whole model, which explanations and decisions need."""

    def __init__(self, model: FittedModel) -> None:
        super().__init__(model.config, model.members)
        self.model = model

    def once(self, make: Callable[[FittedModel], T]) -> T:
        """make(model); computed once."""
        with self._lock:
            if make not in self._derived:
                self._derived[make] = make(self.model)
            return self._derived[make]  # type: ignore[no-any-return]

    def __reduce__(self) -> Any:
        return type(self), (self.model,)
