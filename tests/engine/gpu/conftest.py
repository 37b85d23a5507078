"""The device of the GPU tests, and runs to train.

Without a GPU, Triton's interpreter runs the kernels on the CPU; it is slow, so that these tests
then take fewer rows and steps.
"""

import os

import numpy as np
import pytest

from diffint.engine.interface import TrainingRun

try:
    import torch
except ImportError:
    torch = None

INTERPRETED = torch is not None and not torch.cuda.is_available()
if INTERPRETED:  # set before anything imports triton, which reads it then
    os.environ["TRITON_INTERPRET"] = "1"
too_slow = pytest.mark.skipif(INTERPRETED, reason="takes too long in the interpreter")


def sized(on_a_gpu, interpreted):
    """The size of a test."""
    return interpreted if INTERPRETED else on_a_gpu


def make_runs(sizes, n_features, missing=0.0, scale=1.0):
    runs = []
    for seed, n_rows in enumerate(sizes):
        rng = np.random.default_rng(seed)
        rows = scale * rng.uniform(-1, 1, (n_rows, n_features)).astype(np.float32)
        rows[rng.random(rows.shape) < missing] = np.nan
        rows[:, 0] = np.nan_to_num(rows[:, 0])  # every row has a value
        runs.append(TrainingRun(rows, np.random.SeedSequence(seed)))
    return runs


@pytest.fixture
def device():
    pytest.importorskip("triton")
    return "cpu" if INTERPRETED else "cuda"


@pytest.fixture
def train_on_gpu(device):
    from diffint.engine.gpu.training import train_members_on_gpu

    return lambda runs, config, **more: train_members_on_gpu(runs, config, device, **more)
