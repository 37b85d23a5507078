"""What a drift monitor has found."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Change:
    """One property of the rows that has moved.

    what: ``score``, ``location``, ``spread``, ``missing``, ``value``, ``new value`` or
        ``correlation``; features: the names of those that it is about; value: of a category.
    p_value: how likely so much evidence ever is without drift, in this or any other property.
    since: the row, counted from 0, from which on the evidence is largest.
    """

    what: str
    features: tuple[str, ...]
    value: str | None
    p_value: float
    since: int


@dataclass(frozen=True)
class DriftState:
    """Where a drift monitor stands.

    drifted: whether there has been an alarm, and alarm_row: at which row, counted from 0.
    n_rows: rows so far.
    e_value: the evidence now; a bet of 1 on drift has become this, weights included.
    p_value: 1 / the largest evidence so far, at most 1. Without drift, it ever falls to α with a
        probability of at most α, so it may be looked at after every batch.
    features: those that have moved, with the strongest evidence first; each would have raised the
        alarm by itself or, if only a correlation has moved, together with another one. None if only
        the anomaly scores have moved so far; later batches may name some.
    changes: what has moved, the strongest evidence first.
    """

    drifted: bool
    alarm_row: int | None
    n_rows: int
    e_value: float
    p_value: float
    features: tuple[str, ...]
    changes: tuple[Change, ...]
    false_alarm_rate: float

    def to_dict(self) -> dict[str, Any]:
        """All results as values for JSON."""
        return asdict(self) | {"text": self.text()}

    def to_json(self) -> str:
        """`to_dict` as text."""
        return json.dumps(self.to_dict())

    def text(self) -> str:
        """Whether the rows have moved, what has, and since when."""
        from ..show.wording.drift_monitor import drift_text

        return drift_text(self)
