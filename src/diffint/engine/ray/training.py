"""Trains members on the workers of a Ray cluster, each on one CPU."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from ...core.config import Config
from ..cpu.training import CpuEngine
from ..interface import Progress, TrainedMember, TrainingRun
from .tasks import check_workers, run_tasks


class RayEngine:
    """Trains as `CpuEngine` does, to the bit, but each member on another worker."""

    is_compiled_by_numba = True

    def train(
        self,
        runs: list[TrainingRun],
        config: Config,
        n_jobs: int = 1,
        progress: Progress | None = None,
    ) -> list[TrainedMember]:
        """As `Engine.train`; n_jobs is not used, and progress is reported member by member."""
        check_workers()
        trained: dict[int, Any] = {}
        given = ((run, config) for run in runs)
        with closing(run_tasks(_train_member, given)) as results:  # an error stops the others
            for member, result in results:
                if isinstance(result, Exception):
                    raise result
                trained[member] = result
                if progress is not None:
                    for loss in result.history:
                        progress(member, float(loss))
        return [trained[member] for member in range(len(runs))]


def _train_member(run: TrainingRun, config: Config) -> TrainedMember:
    return CpuEngine().train([run], config)[0]
