"""BinaPs: binary pattern networks, implemented from their publication.

Fischer and Vreeken, "Differentiable Pattern Set Mining", KDD 2021. An autoencoder for binary rows
with one hidden layer. Its weights are probabilities, drawn as 0 or 1 in every step, so that the
weights of a hidden neuron are a set of columns, a pattern; the decoder has the same weights. A
neuron is active if a row has more columns of its pattern than the neuron's negative bias, of which
the least is 1; a column is reconstructed if an active pattern has it.

As published: the loss counts ones that are missing with the share of zeros in the table, and zeros
that are reconstructed as ones with the share of ones. Gradients pass through the drawing of the
weights and the rounding of activations unchanged, but only through active neurons; a bias is not
lowered for what an inactive neuron did not do. After each step weights are kept between 1/columns
and 1, so that a pattern has a column to start from, and biases at most −1. Adam, learning rate
0.01, batches of 64 rows.

Ruled here, as the method is for binary rows and the paper that compares with it does not say how
numbers became binary: each feature is cut into ten equal bins of its training range, which are ten
columns (those that no training row has are left out). A reconstructed number is the mean of the
training means of the reconstructed bins of its feature, and the training mean if there are none.
After training a weight counts if it is above one half.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .batches import batches

_BATCH_ROWS = 64
_LEAST_BIAS = 1.0


class Binning:
    """Numbers in [−1, 1] as columns of zeros and ones, and back."""

    def __init__(self, rows: NDArray[np.float64], n_bins: int) -> None:
        """rows: (rows, features) of training, scaled to [−1, 1]"""
        self.n_bins, self.means = n_bins, rows.mean(axis=0)
        bins = self._bins(rows)
        counts = np.stack([(bins == b).sum(axis=0) for b in range(n_bins)], axis=1)
        sums = np.stack([np.where(bins == b, rows, 0.0).sum(axis=0) for b in range(n_bins)], axis=1)
        self.feature, self.bin = np.nonzero(counts)  # of each column
        self.level = (sums / np.maximum(counts, 1))[self.feature, self.bin]

    def _bins(self, rows: NDArray[np.float64]) -> NDArray[np.int64]:
        places = np.floor((rows + 1.0) / 2.0 * self.n_bins)
        return np.clip(places, 0, self.n_bins - 1).astype(np.int64)

    def columns(self, rows: NDArray[np.float64]) -> NDArray[np.bool_]:
        """rows: (rows, features) → (rows, columns)"""
        return np.asarray(self._bins(rows)[:, self.feature] == self.bin)

    def numbers(self, columns: NDArray[np.bool_]) -> NDArray[np.float64]:
        """columns: (rows, columns) → (rows, features)"""
        owner = np.zeros((len(self.feature), len(self.means)))
        owner[np.arange(len(self.feature)), self.feature] = 1.0
        counts = columns @ owner
        sums = (columns * self.level) @ owner
        return np.asarray(np.where(counts > 0, sums / np.maximum(counts, 1), self.means))


class _Drawn(torch.autograd.Function):
    """A product with weights that are drawn as 0 or 1; its gradient has the weights themselves."""

    @staticmethod
    def forward(
        context: Any, rows: torch.Tensor, weight: torch.Tensor, drawn: torch.Tensor
    ) -> torch.Tensor:
        """rows: (rows, inputs); weight, drawn: (outputs, inputs) → (rows, outputs)"""
        context.save_for_backward(rows, weight)
        return rows @ drawn.T

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None]:
        rows, weight = context.saved_tensors
        return gradient @ weight, gradient.T @ rows, None


class _Active(torch.autograd.Function):
    """Whether neurons are active: their sum plus a rounded bias, rounded to 0 or 1."""

    @staticmethod
    def forward(context: Any, total: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        """total: (rows, neurons); bias: (neurons,)"""
        active = (total + bias.trunc()).clamp(0, 1).round()
        context.save_for_backward(active)
        return active

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        (active,) = context.saved_tensors
        of_bias = torch.where(active > 0, gradient, gradient.clamp(max=0)).sum(0)
        return active * gradient, of_bias


class BinaPs:
    """An autoencoder of numbers in [−1, 1] by patterns of their bins.

    Parameters
    ----------
    n_patterns : neurons of the hidden layer.
    n_bins : bins of each feature.
    epochs : passes over the training rows.
    most_steps : the number of optimiser steps after which a fit ends in any case.
    learning_rate : learning rate of Adam.
    random_state : seed of the batches and of the drawn weights.
    """

    def __init__(
        self,
        n_patterns: int = 200,
        n_bins: int = 10,
        epochs: int = 1000,
        most_steps: int = 5_000,
        learning_rate: float = 0.01,
        random_state: int | None = None,
    ) -> None:
        self.n_patterns = n_patterns
        self.n_bins = n_bins
        self.epochs = epochs
        self.most_steps = most_steps
        self.learning_rate = learning_rate
        self.random_state = random_state

    def fit(self, X: NDArray[Any], y: Any = None) -> BinaPs:
        """Train on X (rows, features), scaled to [−1, 1]; y is ignored."""
        rows = np.asarray(X, dtype=np.float64)
        self.binning_ = Binning(rows, self.n_bins)
        ones = torch.as_tensor(self.binning_.columns(rows), dtype=torch.float32)
        share = float(ones.mean())
        n_columns = ones.shape[1]
        self.n_steps_ = 0
        with torch.random.fork_rng(devices=[]):
            seed = torch.seed() if self.random_state is None else self.random_state
            torch.manual_seed(seed)
            weight = torch.full((self.n_patterns, n_columns), 1 / n_columns, requires_grad=True)
            bias = torch.full((self.n_patterns,), -_LEAST_BIAS, requires_grad=True)
            optimiser = torch.optim.Adam([weight, bias], lr=self.learning_rate)
            for chosen in batches(len(ones), _BATCH_ROWS, self.epochs, self.most_steps):
                batch = ones[chosen]
                drawn = weight.detach().bernoulli()
                active = _Active.apply(_Drawn.apply(batch, weight, drawn), bias)
                total = _Drawn.apply(active, weight.T, drawn.T)
                output = total + (total.clamp(0, 1) - total).detach()
                too_many, too_few = (output - batch).relu(), (batch - output).relu()
                loss = (share * too_many + (1 - share) * too_few).sum(1).mean()
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                with torch.no_grad():
                    weight.clamp_(1 / n_columns, 1)
                    bias.clamp_(max=-_LEAST_BIAS)
                self.n_steps_ += 1
        self.patterns_ = (weight.detach() > 0.5).numpy()
        self.bias_ = bias.detach().trunc().numpy()
        return self

    def reconstruct(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """The rows as their patterns describe them. X: (rows, features) → (rows, features)"""
        columns = self.binning_.columns(np.asarray(X, dtype=np.float64))
        active = columns.astype(np.float64) @ self.patterns_.T + self.bias_ > 0
        return self.binning_.numbers(active.astype(np.float64) @ self.patterns_ > 0)
