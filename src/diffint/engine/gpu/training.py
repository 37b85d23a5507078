"""The training loop on a CUDA GPU: all runs in one launch, many steps in one captured graph.

Runs train in parallel; the first axis of every array is the run. The host plans a chunk of epochs
(rows and learning rate of every step and run), uploads the plan, and replays the graph; it reads
the losses once per chunk. A run with fewer rows than the others does nothing in the remaining steps
of an epoch, so that its result is the same as when it trains alone.

Initial parameters and epoch orders are the same as on the CPU. Only above `_HOST_ORDER_ROWS` rows,
where drawing the permutations would take longer than training, the GPU draws them, with a generator
seeded from the run's seed.
"""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ...core.config import Config
from ...core.constants import LARGEST_WEIGHT
from ..cpu import layout, spectral
from ..cpu.intervals import SAFE_EXPONENT, largest_magnitude
from ..interface import Progress, TrainedMember, TrainingRun, diverged
from .launch import Launch

_HOST_ORDER_ROWS = 20_000
# A chunk takes well under a second, so that an interrupt takes effect soon.
_STEPS_PER_CHUNK = 2048
_ELEMENTS_PER_CHUNK = 2e11  # rows × units × features
_ORDERS_PER_CHUNK = 8_000_000


class GpuEngine:
    """Trains all runs at once on one CUDA device."""

    is_compiled_by_numba = False

    def __init__(self, device: str = "cuda") -> None:
        self._device = device

    def train(
        self,
        runs: list[TrainingRun],
        config: Config,
        n_jobs: int = 1,
        progress: Progress | None = None,
    ) -> list[TrainedMember]:
        """As `Engine.train`; `n_jobs` is ignored."""
        return train_members_on_gpu(runs, config, self._device, progress)


def train_members_on_gpu(
    runs: list[TrainingRun],
    config: Config,
    device: str = "cuda",
    progress: Progress | None = None,
) -> list[TrainedMember]:
    """Train every run on one GPU; batch size and epochs of the configuration must be numbers.

    device: as resolved; on the CPU, Triton's interpreter runs the kernels.
    """
    # Runs with values beyond the safe range of the exponentials are rare and slow: they train
    # separately.
    groups: dict[bool, list[int]] = {}
    for member, run in enumerate(runs):
        by_difference = largest_magnitude(run.rows) / config.temperature > SAFE_EXPONENT
        groups.setdefault(by_difference, []).append(member)
    trained: dict[int, TrainedMember] = {}
    for members in groups.values():

        def report(run: int, loss: float, members: list[int] = members) -> None:
            if progress:
                progress(members[run], loss)

        with torch.cuda.device(device) if device != "cpu" else contextlib.nullcontext():
            results = _train_together([runs[i] for i in members], config, device, report)
        trained.update(zip(members, results, strict=True))
    return [trained[member] for member in range(len(runs))]


def _train_together(
    runs: list[TrainingRun], config: Config, device: str, report: Progress
) -> list[TrainedMember]:
    rngs = [np.random.default_rng(run.seed) for run in runs]
    starts = [run.initial_parameters(rng, config) for rng, run in zip(rngs, runs, strict=True)]
    largest = max(largest_magnitude(run.rows) for run in runs)
    shape = layout.shape_of(starts[0], config.temperature, largest)
    flat = np.stack([layout.pack(start, shape) for start in starts])
    singular = [
        spectral.start_spectral(
            np.random.default_rng(rng.integers(2**63)), layout.views(one, shape), shape
        )
        for rng, one in zip(rngs, flat, strict=True)
    ]
    plan = _Plan([len(run.rows) for run in runs], config)
    total_epochs = int(config.epochs)
    elements = len(runs) * plan.batch_size * shape.units * shape.features * plan.steps
    chunk = int(
        min(
            total_epochs,
            _STEPS_PER_CHUNK // plan.steps,
            _ELEMENTS_PER_CHUNK // elements,
            _ORDERS_PER_CHUNK // sum(plan.n_rows),
        )
    )
    chunk = max(chunk, 1)
    orders = _Orders(rngs, plan.n_rows, chunk, device)
    launch = Launch(
        [run.rows for run in runs],
        flat,
        singular,
        shape,
        plan.batch_size,
        chunk * plan.steps,
        orders.on_device,
        float(config.support_decay),
        float(config.interval_rate),
        float(config.coverage_weight),
    )

    history = np.zeros((total_epochs, len(runs)))
    with ThreadPoolExecutor(1, thread_name_prefix="diffint-orders") as pool:
        drawn = pool.submit(orders.draw, chunk)
        for first in range(0, total_epochs, chunk):
            epochs = min(chunk, total_epochs - first)
            drawn.result()
            orders.upload(epochs)
            launch.load(*plan.lines(first, epochs, orders.starts))
            drawn = pool.submit(orders.draw, min(chunk, total_epochs - first - epochs))
            launch.run(epochs * plan.steps)
            row_losses = launch.losses_of(epochs * plan.steps).reshape(epochs, plan.steps, -1)
            history[first : first + epochs] = row_losses.sum(axis=1) / plan.n_rows
            for epoch, losses in enumerate(history[first : first + epochs], first):
                if not np.isfinite(losses).all():
                    raise diverged(epoch, config)
                for run, loss in enumerate(losses):
                    report(run, float(loss))
    flat, support = launch.results()
    if not np.abs(flat).max() < LARGEST_WEIGHT:  # also true for NaN
        raise diverged(total_epochs - 1, config)
    return [
        TrainedMember(
            start=start,
            parameters=layout.unpack(layout.views(flat[run], shape), shape, type(start.decoder)),
            support=support[run],
            history=history[:, run].copy(),
        )
        for run, start in enumerate(starts)
    ]


class _Plan:
    """Rows and learning rates of every run in every step."""

    def __init__(self, n_rows: list[int], config: Config) -> None:
        batch_size = int(config.batch_size)
        self.n_rows = n_rows
        self.batch_size = min(batch_size, max(n_rows))
        self._run_rows = np.array(n_rows)
        self._run_steps = -(-self._run_rows // batch_size)
        self.steps = int(self._run_steps.max())  # of an epoch, for the longest run
        self._config = config

    def lines(
        self, first_epoch: int, epochs: int, starts: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Plan (lines, runs, 2) and rates (lines, runs, 3) of `epochs` epochs, one line per step.

        starts: (runs,) index of each run's first order; its epochs follow each other.
        """
        epoch = np.arange(epochs)[:, None, None]
        t = np.arange(self.steps)[None, :, None]
        rows = np.clip(self._run_rows - t * self.batch_size, 0, self.batch_size)
        rows = np.broadcast_to(rows, (epochs, self.steps, len(self.n_rows)))
        first = starts + epoch * self._run_rows + t * self.batch_size
        plan = np.stack([np.where(rows > 0, first, 0), rows], axis=-1)

        step = (first_epoch + epoch) * self._run_steps + t  # 0-based, of each run
        rate = np.full(step.shape, self._config.learning_rate)
        if self._config.schedule == "cosine":
            rate *= 0.5 * (
                1.0 + np.cos(np.pi * step / (int(self._config.epochs) * self._run_steps))
            )
        beta1, beta2 = float(np.float32(0.9)), float(np.float32(0.999))
        rates = np.stack([rate, 1.0 - beta1 ** (step + 1), 1.0 - beta2 ** (step + 1)], axis=-1)
        lines = epochs * self.steps
        return (
            plan.reshape(lines, -1, 2).astype(np.int32),
            rates.reshape(lines, -1, 3).astype(np.float32),
        )


class _Orders:
    """A permutation of every run's rows for each epoch of a chunk, in one vector on the device."""

    def __init__(
        self, rngs: list[np.random.Generator], n_rows: list[int], chunk: int, device: str
    ) -> None:
        self._rngs, self._n_rows = rngs, n_rows
        ends = np.cumsum(n_rows) * chunk
        self.starts = ends - np.array(n_rows) * chunk
        self.on_device = torch.zeros(int(ends[-1]), dtype=torch.int32, device=device)
        pinned = self.on_device.is_cuda
        self._host = torch.zeros(int(ends[-1]), dtype=torch.int32, pin_memory=pinned)
        self._generators: dict[int, Any] = {}
        for run, n in enumerate(n_rows):
            if n > _HOST_ORDER_ROWS:
                generator = torch.Generator(device=device)
                self._generators[run] = generator.manual_seed(int(rngs[run].integers(2**63)))

    def draw(self, epochs: int) -> None:
        """Draw the next epochs' permutations on the host."""
        host = self._host.numpy()
        for run, n in enumerate(self._n_rows):
            if run not in self._generators:
                for epoch in range(epochs):
                    at = self.starts[run] + epoch * n
                    host[at : at + n] = self._rngs[run].permutation(n)

    def upload(self, epochs: int) -> None:
        """Copy the drawn permutations to the device, and draw the large ones there."""
        for run, n in enumerate(self._n_rows):
            start, stop = int(self.starts[run]), int(self.starts[run]) + epochs * n
            if run not in self._generators:
                self.on_device[start:stop].copy_(self._host[start:stop])
                continue
            for at in range(start, stop, n):
                generator = self._generators[run]
                torch.randperm(n, generator=generator, out=self.on_device[at : at + n])
