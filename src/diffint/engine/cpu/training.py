"""The training loop on the CPU: members in parallel, threads, epochs, progress."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.config import Config
from ...core.constants import LARGEST_WEIGHT
from ...core.errors import TrainingError
from ..interface import (
    Progress,
    TrainedMember,
    TrainingRun,
    diverged,
    epoch_orders,
)
from . import layout, spectral, steps
from .intervals import largest_magnitude
from .team import abort

# Elements (rows × units × features) trained per compiled call. A call takes about a tenth of a
# second, so that an interrupt takes effect soon.
_ELEMENTS_PER_CALL = 2e8
_MOST_THREADS = 4  # per member; a batch of 64 rows does not keep more threads busy


class CpuEngine:
    """Trains with the compiled network; up to `n_jobs` threads, across or within members."""

    is_compiled_by_numba = True

    def train(
        self,
        runs: list[TrainingRun],
        config: Config,
        n_jobs: int = 1,
        progress: Progress | None = None,
    ) -> list[TrainedMember]:
        """As `Engine.train`."""
        return train_members(runs, config, n_jobs, progress)


def train_members(
    runs: list[TrainingRun],
    config: Config,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> list[TrainedMember]:
    """Train every run, up to `n_jobs` at a time; the results do not depend on `n_jobs`."""
    # As many members as there are threads train at the same time, each with one thread, which need
    # not wait for another. The threads are shared among the members that are left.
    n_last = len(runs) % n_jobs if n_jobs < len(runs) else len(runs)
    n_first = len(runs) - n_last
    shared = max(1, min(n_jobs // max(n_last, 1), _MOST_THREADS)) if hasattr(os, "fork") else 1
    stop = threading.Event()

    def train(member: int) -> TrainedMember:
        def report(loss: float) -> None:
            if progress is not None:
                progress(member, loss)

        threads = 1 if member < n_first else shared
        return _train_member(runs[member], config, threads, stop, report)

    first = _at_the_same_time(train, range(n_first), n_jobs, stop)
    return first + _at_the_same_time(train, range(n_first, len(runs)), n_last, stop)


def _at_the_same_time(
    train: Callable[[int], TrainedMember], members: range, at_once: int, stop: threading.Event
) -> list[TrainedMember]:
    """Train members, `at_once` at a time; after an error or an interrupt `stop` is set."""
    if at_once <= 1:
        return [train(member) for member in members]
    pool = ThreadPoolExecutor(at_once, thread_name_prefix="diffint")
    succeeded = False
    try:
        futures = [pool.submit(train, member) for member in members]
        pending: set[Future[TrainedMember]] = set(futures)
        while pending:
            # With a timeout, because on some systems a wait cannot be interrupted.
            done, pending = wait(pending, timeout=0.2)
            for future in done:
                future.result()  # raises the member's exception, if any
        succeeded = True
        return [future.result() for future in futures]
    finally:
        # After an interrupt or an error the other members stop at their next call. Do not wait for
        # that (they may be compiling), so that the exception is raised at once.
        if not succeeded:
            stop.set()
        pool.shutdown(wait=False, cancel_futures=True)


def _train_member(
    run: TrainingRun,
    config: Config,
    threads: int,
    stop: threading.Event,
    report: Callable[[float], None],
) -> TrainedMember:
    rng = np.random.default_rng(run.seed)
    n_rows, n_features = run.rows.shape
    start = run.initial_parameters(rng, config)
    epochs, batch_size = int(config.epochs), min(int(config.batch_size), n_rows)
    steps_per_epoch = -(-n_rows // batch_size)
    shape = layout.shape_of(start, config.temperature, largest_magnitude(run.rows))
    flat = layout.pack(start, shape)
    weights = layout.views(flat, shape)
    gradients, moment1, moment2 = (layout.views(np.zeros_like(flat), shape) for _ in range(3))
    singular = spectral.start_spectral(np.random.default_rng(rng.integers(2**63)), weights, shape)
    work = layout.workspace(shape, weights, batch_size)
    support = np.zeros_like(weights.center, dtype=np.float64)
    support_weight = np.zeros(n_features)
    schedule = layout.Schedule(
        float(config.learning_rate),
        float(config.interval_rate),
        epochs * steps_per_epoch,
        config.schedule == "cosine",
        float(config.coverage_weight),
    )
    elements_per_step = batch_size * config.n_units * n_features
    rows_per_call = batch_size * max(1, int(_ELEMENTS_PER_CALL / elements_per_step))

    parts = steps.parts_for(shape, weights, singular, work)
    history = np.zeros(epochs)
    step = 0
    with Team(threads, work.team) as team:
        for epoch, order in enumerate(epoch_orders(rng, n_rows, epochs)):
            total = 0.0
            for first in range(0, n_rows, rows_per_call):
                if stop.is_set():
                    raise TrainingError("training was stopped")
                loss, step = team.call(
                    steps.train_steps,
                    parts,
                    run.rows,
                    order,
                    first,
                    min(first + rows_per_call, n_rows),
                    batch_size,
                    step,
                    schedule,
                    shape,
                    weights,
                    gradients,
                    moment1,
                    moment2,
                    singular,
                    work,
                    support,
                    support_weight,
                    float(config.support_decay),
                )
                total += loss
            history[epoch] = total / n_rows
            if not np.isfinite(history[epoch]):
                raise diverged(epoch, config)
            report(float(history[epoch]))

    if not np.abs(flat).max() < LARGEST_WEIGHT:  # also true for NaN
        raise diverged(epochs - 1, config)
    if shape.normalised:
        # The model stores the effective weights, normalised one last time.
        spectral.use_weights(weights, singular, work)
        weights.hidden_weight[:] = work.hidden_weight
        weights.output_weight[:] = work.output_weight
    corrected = support / np.where(support_weight > 0, support_weight, 1.0)[:, None]
    return TrainedMember(
        start=start,
        parameters=layout.unpack(weights, shape, type(start.decoder)),
        support=corrected[:, : shape.units].T.astype(np.float32),
        history=history,
    )


class Team:
    """Threads, including the calling one, that run one compiled function together."""

    def __init__(self, threads: int, state: NDArray[np.int64]) -> None:
        self._threads, self._state = threads, state
        self._pool = ThreadPoolExecutor(threads - 1, "diffint-team") if threads > 1 else None

    def __enter__(self) -> Team:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False)

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call function(thread, threads, *arguments) on every thread. → the result of thread 0"""
        if self._pool is None:
            return function(0, 1, *arguments)
        try:
            others = [
                self._pool.submit(function, thread, self._threads, *arguments)
                for thread in range(1, self._threads)
            ]
            result = function(0, self._threads, *arguments)
            for other in others:
                other.result()
        except BaseException:  # no thread may wait at a barrier for one that was interrupted
            abort(self._state)
            raise
        return result
