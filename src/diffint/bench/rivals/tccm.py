"""TCCM, a one-step flow-matching detector, implemented from its published description.

A network f(x, t) learns the direction from a normal row x to the origin, f(x, t) = −x, for every
time t in [0, 1]; the score is its error at t = 1, ‖f(x, 1) + x‖₂.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

_HIDDEN = 256
_TIME_WIDTH = 128
_LARGE_TABLE = 20_000  # with more rows than this the batch is larger
_BLOCK_ROWS = 65_536


class ContractionField(nn.Module):
    """f(x, t): (rows, features) and (rows,) times to (rows, features)."""

    def __init__(self, n_features: int) -> None:
        super().__init__()
        half = _TIME_WIDTH // 2
        # Sines and cosines of geometrically spaced frequencies, from 1 to 1,000.
        self.register_buffer("frequencies", torch.logspace(0.0, 3.0, half))
        self.layers = nn.Sequential(
            nn.Linear(n_features + _TIME_WIDTH, _HIDDEN),
            nn.ReLU(),
            nn.Linear(_HIDDEN, _HIDDEN),
            nn.ReLU(),
            nn.Linear(_HIDDEN, n_features),
        )

    def forward(self, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        angles = t[:, None] * self.frequencies
        return self.layers(torch.cat([x, angles.sin(), angles.cos()], dim=1))


class TCCM:
    """Time-conditioned contraction matching, for scaled rows.

    Parameters
    ----------
    steps : number of optimiser steps, for any table. The authors set the number of epochs by hand
        for every dataset, from 1 to 5000; here one number of steps is used for all.
    learning_rate : learning rate of Adam.
    random_state : seed of the weights, the batches and the times.
    """

    def __init__(
        self, steps: int = 4000, learning_rate: float = 0.005, random_state: int | None = None
    ) -> None:
        self.steps = steps
        self.learning_rate = learning_rate
        self.random_state = random_state

    def fit(self, X: NDArray[Any], y: Any = None) -> TCCM:
        """Train on X (rows, features); y is ignored."""
        rows = torch.as_tensor(np.asarray(X), dtype=torch.float32)
        with torch.random.fork_rng(devices=[]):
            seed = torch.seed() if self.random_state is None else self.random_state
            torch.manual_seed(seed)
            self.field_ = ContractionField(rows.shape[1])
            optimiser = torch.optim.Adam(self.field_.parameters(), lr=self.learning_rate)
            batch_size = 1024 if len(rows) > _LARGE_TABLE else 512
            order = torch.empty(0, dtype=torch.long)
            for _ in range(self.steps):
                if len(order) == 0:
                    order = torch.randperm(len(rows))
                batch, order = rows[order[:batch_size]], order[batch_size:]
                loss = (self.field_(batch, torch.rand(len(batch))) + batch).square().mean()
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
        return self

    @torch.no_grad()
    def decision_function(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """The error of the field at t = 1. X: (rows, features) → (rows,) high = anomalous"""
        rows = torch.as_tensor(np.asarray(X), dtype=torch.float32)
        errors = [
            (self.field_(part, torch.ones(len(part))) + part).norm(dim=1)
            for part in rows.split(_BLOCK_ROWS)
        ]
        return np.asarray(torch.cat(errors).numpy().astype(np.float64))
