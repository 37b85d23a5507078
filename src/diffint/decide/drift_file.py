"""What a drift monitor remembers of earlier rows, and its file."""

from __future__ import annotations

import base64
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engine.reference.drift_evidence import BETS, FIRST_SHARE
from .drift_statistics import DriftStatistics
from .state_file import StateFile

Array = NDArray[np.float64]


@dataclass
class Evidence:
    """What is remembered of earlier rows, for each statistic; `add_rows` says what it is."""

    counts: NDArray[np.int64]
    seen: NDArray[np.int64]
    money: Array
    units: NDArray[np.int64]
    log_money: Array
    growth: Array
    begun: NDArray[np.int64]
    log_most: Array
    since: NDArray[np.int64]
    alarm_row: NDArray[np.int64]

    @classmethod
    def before(cls, statistics: DriftStatistics) -> Evidence:
        """That before the first row."""
        n, n_bets = len(statistics), BETS.most
        money = np.zeros((n, n_bets))
        for s, statistic in enumerate(statistics.statistics):
            own = len(BETS.odds) if statistic.is_binary else len(BETS.slopes) + 2 * len(BETS.tails)
            money[s, :own] = FIRST_SHARE / own
        none = np.zeros(n, dtype=np.int64)
        return cls(
            counts=statistics.counts.copy(),
            seen=none.copy(),
            money=money,
            units=none.copy(),
            log_money=np.zeros(n),
            growth=np.ones((n, n_bets)),
            begun=np.zeros((n, n_bets), dtype=np.int64),
            log_most=np.zeros(n),
            since=none.copy(),
            alarm_row=np.array([-1]),
        )

    def copy(self) -> Evidence:
        return Evidence(*(getattr(self, field.name).copy() for field in fields(self)))


def encoded(array: NDArray[Any]) -> str:
    """An array as text, little-endian."""
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return base64.b64encode(little.tobytes()).decode("ascii")


def decoded(text: str, like: NDArray[Any]) -> NDArray[Any]:
    """The array of a text, with the shape and type of another one."""
    try:
        data = np.frombuffer(base64.b64decode(text, validate=True), like.dtype.newbyteorder("<"))
        array = data.reshape(like.shape).astype(like.dtype)
    except ValueError:
        raise STATE_FILE.damaged() from None
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise STATE_FILE.damaged()
    return array


def _possible(state: dict[str, Any]) -> bool:
    """Whether a monitor can have this state, as far as its model does not matter."""
    rate, n_rows = state.get("false_alarm_rate"), state.get("n_rows")
    return (
        type(rate) is float
        and 0 < rate < 1
        and type(n_rows) is int
        and n_rows >= 0
        and all(isinstance(state.get(field.name), str) for field in fields(Evidence))
    )


STATE_FILE = StateFile(
    key="diffint_drift_monitor",
    version=1,
    thing="a drift monitor",
    fresh="a new monitor",
    longest=2**30,
    is_possible=_possible,
)
