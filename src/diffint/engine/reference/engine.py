"""The reference engine: plain torch. Slow; for comparison with the fast engines."""

from __future__ import annotations

import numpy as np

from ...core.config import Config
from ..interface import Progress, TrainedMember, TrainingRun, epoch_orders
from .network import train_eagerly


class ReferenceEngine:
    """Trains one member after the other with `train_eagerly`."""

    is_compiled_by_numba = False

    def train(
        self,
        runs: list[TrainingRun],
        config: Config,
        n_jobs: int = 1,
        progress: Progress | None = None,
    ) -> list[TrainedMember]:
        """As `Engine.train`; `n_jobs` is ignored."""
        return [self._train(i, run, config, progress) for i, run in enumerate(runs)]

    def _train(
        self, member: int, run: TrainingRun, config: Config, progress: Progress | None
    ) -> TrainedMember:
        rng = np.random.default_rng(run.seed)
        start = run.initial_parameters(rng, config)
        rng.integers(2**63)  # the other engines draw the seed of their power iteration here
        epochs, batch_size = int(config.epochs), min(int(config.batch_size), len(run.rows))
        network, support, history = train_eagerly(
            run.rows,
            start,
            epoch_orders(rng, len(run.rows), epochs),
            batch_size,
            epochs * -(-len(run.rows) // batch_size),
            config,
        )
        if progress is not None:
            for loss in history:
                progress(member, loss)
        return TrainedMember(start, network.parameters_as_arrays(), support, np.array(history))
