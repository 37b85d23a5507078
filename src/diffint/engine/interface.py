"""What every engine does: train members. The pipeline knows nothing else about devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..core.config import Config
from ..core.errors import TrainingError
from ..core.scaling import SCALERS
from .parameters import Parameters

LARGEST_WEIGHT = 1e15  # beyond it scores overflow

Progress = Callable[[int, float], None]
"""Called after every epoch of every member with (member, loss)."""


@dataclass(frozen=True)
class TrainingRun:
    """One member's work: its scaled rows (rows, features) float32, and its own randomness."""

    rows: NDArray[np.float32]
    seed: np.random.SeedSequence


@dataclass(frozen=True)
class TrainedMember:
    """What training one member gives.

    start, parameters: before and after; decoder weights as in force.
    support: (units, features) bias-corrected running mean of memberships.
    history: (epochs,) mean loss.
    """

    start: Parameters
    parameters: Parameters
    support: NDArray[np.float32]
    history: NDArray[np.float64]


class Engine(Protocol):
    """Trains members on some device.

    Start and epoch orders of a run depend on its own randomness alone, so that engines agree on
    everything but rounding, and a run's result does not depend on the runs beside it.

    is_compiled_by_numba: whether training needs kernels that numba compiles.
    """

    is_compiled_by_numba: bool

    def train(
        self,
        runs: list[TrainingRun],
        config: Config,
        n_jobs: int = 1,
        progress: Progress | None = None,
    ) -> list[TrainedMember]:
        """Train every run; batch size and epochs of the configuration must be numbers.

        n_jobs: threads; never changes a result.
        """
        ...


def diverged(epoch: int, config: Config) -> TrainingError:
    """The error for a loss or parameters that are not finite after `epoch`."""
    remedy = "a smaller learning_rate"
    if not SCALERS[config.scaling].clips:
        remedy = f"scaling='minmax' or {remedy}"
    return TrainingError(f"training diverged in epoch {epoch + 1}; use {remedy}")


def epoch_orders(rng: np.random.Generator, n_rows: int, epochs: int) -> Iterator[NDArray[np.int64]]:
    """A fresh permutation of the rows for every epoch."""
    for _ in range(epochs):
        yield rng.permutation(n_rows)
