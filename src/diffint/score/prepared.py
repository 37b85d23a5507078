"""A fitted model with derived values, each computed once when it is first needed.

A `FittedModel` has plain arrays. Scoring needs them packed for the compiled code, bounds need
singular values, explanations need boxes in original units. These are kept in a `PreparedModel`,
which belongs to its user (an estimator, a server); no module has a cache. Thread-safe.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..core.config import Config
from ..core.model import FittedModel, Member
from ..engine.cpu.packed_members import PackedMembers

T = TypeVar("T")


class PreparedMembers:
    """Members and their configuration: all that scores and bounds need from a model.

    No lock is held while something is computed, so that a process forked at that moment cannot
    wait for it. Threads that need the same value at once may all compute it; the first one is kept.
    """

    def __init__(self, config: Config, members: tuple[Member, ...]) -> None:
        self.config, self.members = config, members
        self._derived: dict[Any, Any] = {}

    def derived(self, make: Callable[[Config, Member], T]) -> tuple[T, ...]:
        """make(config, member) of every member; computed once."""
        return self._once(make, lambda: tuple(make(self.config, m) for m in self.members))

    @property
    def packed(self) -> PackedMembers:
        """All members packed for the compiled code."""
        return self._once(PackedMembers, lambda: PackedMembers(self.config, self.members))

    def _once(self, key: Any, compute: Callable[[], T]) -> T:
        if key not in self._derived:
            self._derived.setdefault(key, compute())
        return self._derived[key]  # type: ignore[no-any-return]

    def __reduce__(self) -> Any:
        return type(self), (self.config, self.members)


class PreparedModel(PreparedMembers):
    """A whole model, which explanations and decisions need."""

    def __init__(self, model: FittedModel) -> None:
        super().__init__(model.config, model.members)
        self.model = model

    def once(self, make: Callable[[FittedModel], T]) -> T:
        """make(model); computed once."""
        return self._once(make, lambda: make(self.model))

    def __reduce__(self) -> Any:
        return type(self), (self.model,)
