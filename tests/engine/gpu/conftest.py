"""The device of the GPU tests, and runs to train.

Without a GPU, but with triton installed, TRITON_INTERPRET=1 runs these tests in Triton's
interpreter.
"""

import os

import numpy as np
import pytest

from diffint.engine.interface import TrainingRun


def make_runs(sizes, n_features, missing=0.0, scale=1.0):
    runs = []
    for seed, n_rows in enumerate(sizes):
        rng = np.random.default_rng(seed)
        rows = scale * rng.uniform(-1, 1, (n_rows, n_features)).astype(np.float32)
        rows[rng.random(rows.shape) < missing] = np.nan
        rows[:, 0] = np.nan_to_num(rows[:, 0])  # every row has a value
        runs.append(TrainingRun(rows, np.random.SeedSequence(seed)))
    return runs


def _device() -> str | None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("triton")
    if torch.cuda.is_available():
        return "cuda"
    return "cpu" if os.environ.get("TRITON_INTERPRET") == "1" else None


@pytest.fixture
def device():
    device = _device()
    if device is None:
        pytest.skip("no CUDA GPU")
    return device


@pytest.fixture
def train_on_gpu(device):
    from diffint.engine.gpu.training import train_members_on_gpu

    return lambda runs, config, **more: train_members_on_gpu(runs, config, device, **more)
