"""The training loop on a CUDA GPU: all runs in one launch, many steps in one captured graph.

Runs train side by side along a leading run axis. A stretch of epochs is
planned on the host (which rows, which learning rate, for every step and run), uploaded, and
worked off by replaying the graph; the host hears of the losses once per stretch. A run that is
through with its rows before the others sits out the rest of the epoch untouched, so that every
run's result is what it would be alone.

Starts and epoch orders are those of the CPU. Only above `_HOST_ORDER_ROWS` rows, where drawing
the permutations would take longer than training on them, they come from the GPU's generator,
seeded from the run's own randomness.
"""

from __future__ import annotations

import contextlib
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.config import Config
from ...core.errors import InputError
from ..cpu import layout, spectral
from ..cpu.intervals import SAFE_EXPONENT, largest_magnitude
from ..interface import LARGEST_WEIGHT, Progress, TrainedMember, TrainingRun, diverged
from ..parameters import initial_parameters

try:
    import torch

    from .launch import Launch
except ImportError as error:
    raise InputError(
        "device='cuda' needs torch and triton; install them with "
        "pip install 'diffint-ad[gpu]', or use device='cpu'"
    ) from error

_HOST_ORDER_ROWS = 20_000
# A stretch of epochs ends in well under a second, so that an interrupt is heard soon.
_STEPS_PER_STRETCH = 2048
_ELEMENTS_PER_STRETCH = 2e11  # rows × units × features
_ORDERS_PER_STRETCH = 8_000_000


class GpuEngine:
    """All runs at once on one CUDA device."""

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
        """As `Engine.train`; `n_jobs` plays no part."""
        return train_members_on_gpu(runs, config, self._device, progress)


def train_members_on_gpu(
    runs: list[TrainingRun],
    config: Config,
    device: str = "cuda",
    progress: Progress | None = None,
) -> list[TrainedMember]:
    """Train every run on one GPU with batch size and epochs as numbers, as `Engine.train` does."""
    interpreted = os.environ.get("TRITON_INTERPRET") == "1"
    if not interpreted and not torch.cuda.is_available():
        raise InputError(
            f"device={device!r} needs a CUDA GPU, and torch {torch.__version__} sees none; "
            "install a CUDA build of torch on a machine with an NVIDIA GPU, or use device='cpu'"
        )
    # Runs beyond the safe range of the exponentials are rare and slow: they train by themselves.
    groups: dict[bool, list[int]] = {}
    for member, run in enumerate(runs):
        by_difference = largest_magnitude(run.rows) / config.temperature > SAFE_EXPONENT
        groups.setdefault(by_difference, []).append(member)
    trained: dict[int, TrainedMember] = {}
    for members in groups.values():

        def report(run: int, loss: float, members: list[int] = members) -> None:
            if progress:
                progress(members[run], loss)

        with contextlib.nullcontext() if interpreted else torch.cuda.device(device):
            results = _train_together([runs[i] for i in members], config, device, report)
        trained.update(zip(members, results, strict=True))
    return [trained[member] for member in range(len(runs))]


def _train_together(
    runs: list[TrainingRun], config: Config, device: str, report: Progress
) -> list[TrainedMember]:
    rngs = [np.random.default_rng(run.seed) for run in runs]
    starts = [initial_parameters(g, run.rows, config) for g, run in zip(rngs, runs, strict=True)]
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
    stretch = int(
        min(
            total_epochs,
            _STEPS_PER_STRETCH // plan.steps,
            _ELEMENTS_PER_STRETCH // elements,
            _ORDERS_PER_STRETCH // sum(plan.n_rows),
        )
    )
    stretch = max(stretch, 1)
    orders = _Orders(rngs, plan.n_rows, stretch, device)
    launch = Launch(
        [run.rows for run in runs],
        flat,
        singular,
        shape,
        plan.batch_size,
        stretch * plan.steps,
        orders.on_device,
        float(config.support_decay),
        float(config.interval_rate),
        float(config.coverage_weight),
    )

    history = np.zeros((total_epochs, len(runs)))
    with ThreadPoolExecutor(1, thread_name_prefix="diffint-orders") as pool:
        drawn = pool.submit(orders.draw, stretch)
        for first in range(0, total_epochs, stretch):
            epochs = min(stretch, total_epochs - first)
            drawn.result()
            orders.upload(epochs)
            launch.load(*plan.lines(first, epochs, orders.starts))
            drawn = pool.submit(orders.draw, min(stretch, total_epochs - first - epochs))
            launch.run(epochs * plan.steps)
            row_losses = launch.losses_of(epochs * plan.steps).reshape(epochs, plan.steps, -1)
            history[first : first + epochs] = row_losses.sum(axis=1) / plan.n_rows
            for epoch, losses in enumerate(history[first : first + epochs], first):
                if not np.isfinite(losses).all():
                    raise diverged(epoch, config)
                for run, loss in enumerate(losses):
                    report(run, float(loss))
    flat, support = launch.results()
    if not np.abs(flat).max() < LARGEST_WEIGHT:  # true for NaN as well
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
    """What every run does in every step of an epoch."""

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
        """The plan and the rates of `epochs` epochs: (lines, runs, 2) and (lines, runs, 3).

        starts: (runs,) where each run's orders begin, one epoch after the other.
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
    """A permutation of every run's rows for each epoch of a stretch, in one device vector."""

    def __init__(
        self, rngs: list[np.random.Generator], n_rows: list[int], stretch: int, device: str
    ) -> None:
        self._rngs, self._n_rows = rngs, n_rows
        ends = np.cumsum(n_rows) * stretch
        self.starts = ends - np.array(n_rows) * stretch
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
        """Put the drawn permutations on the device, and draw there the large ones."""
        for run, n in enumerate(self._n_rows):
            start, stop = int(self.starts[run]), int(self.starts[run]) + epochs * n
            if run not in self._generators:
                self.on_device[start:stop].copy_(self._host[start:stop])
                continue
            for at in range(start, stop, n):
                generator = self._generators[run]
                torch.randperm(n, generator=generator, out=self.on_device[at : at + n])
