"""The interface of all engines: how the pipeline trains members, on any device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..core.config import Config
from ..core.errors import TrainingError
from ..core.scaling import SCALERS
from .parameters import Parameters, initial_parameters

Progress = Callable[[int, float], None]
"""Called after every epoch of every member with (member, loss)."""


@dataclass(frozen=True)
class TrainingRun:
    """Input of one member's training.

    rows: (rows, features) float32, scaled. seed: of orders, and of the initial parameters unless
    they are given. start: the parameters to begin with, None to draw them.
    """

    rows: NDArray[np.float32]
    seed: np.random.SeedSequence
    start: Parameters | None = None

    def initial_parameters(self, rng: np.random.Generator, config: Config) -> Parameters:
        """The given parameters, or those drawn from the rows."""
        return self.start or initial_parameters(rng, self.rows, config)


@dataclass(frozen=True)
class TrainedMember:
    """Result of training one member.

    start, parameters: before and after training; afterwards a spectral decoder is normalised.
    support: (units, features) bias-corrected running mean of memberships.
    history: (epochs,) mean loss.
    """

    start: Parameters
    parameters: Parameters
    support: NDArray[np.float32]
    history: NDArray[np.float64]


class Engine(Protocol):
    """Trains members on some device.

    Initial parameters and epoch orders of a run depend only on its seed, so engines differ only in
    rounding, and a run's result does not depend on the other runs.

    is_compiled_by_numba: whether training uses kernels that numba compiles.
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

        n_jobs: number of threads; results do not depend on it.
        """
        ...


def diverged(epoch: int, config: Config) -> TrainingError:
    """The error for a loss or parameters that are not finite after `epoch`."""
    remedy = "a smaller learning_rate"
    if not SCALERS[config.scaling].clips:
        remedy = f"scaling='minmax' or {remedy}"
    return TrainingError(f"training diverged in epoch {epoch + 1}; use {remedy}")


def epoch_orders(rng: np.random.Generator, n_rows: int, epochs: int) -> Iterator[NDArray[np.int64]]:
    """A new permutation of the rows for every epoch."""
    for _ in range(epochs):
        yield rng.permutation(n_rows)
