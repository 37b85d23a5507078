"""The network and its training loop in plain torch: the definition of training.

Simple and slow: every (row, unit, feature) element is written to memory several times per step.
`engine/cpu/` and `engine/gpu/` train the same network; the tests compare them step by step, and the
benchmarks measure speed relative to this one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ...core.config import Config
from ...core.constants import LOSS_EPSILON, MIN_MEMBERSHIP, NORM_EPSILON
from ..parameters import Parameters


class IntervalLayer(nn.Module):
    """K soft axis-aligned boxes. (rows, features) → log box memberships (rows, units)"""

    def __init__(self, center: Tensor, width_logit: Tensor, temperature: float) -> None:
        super().__init__()
        self.center = nn.Parameter(center)  # (units, features)
        self.width_logit = nn.Parameter(width_logit)
        self.temperature = temperature

    def memberships(self, x: Tensor) -> Tensor:
        """I of every element, 1 where x is missing. → (rows, units, features)"""
        half_width = nn.functional.softplus(self.width_logit)
        value = torch.nan_to_num(x).unsqueeze(1)
        low = torch.sigmoid((value - (self.center - half_width)) / self.temperature)
        up = torch.sigmoid((self.center + half_width - value) / self.temperature)
        membership = (low * up).clamp_min(MIN_MEMBERSHIP)
        return torch.where(torch.isnan(x).unsqueeze(1), 1.0, membership)

    def forward(self, x: Tensor) -> Tensor:
        return self.memberships(x).log().sum(dim=2)

    def looseness(self, log_box: Tensor, code: Tensor) -> Tensor:
        """Mean half-width minus twice the mean log membership of each row in its own boxes.

        Small when intervals are narrow and still cover the rows. log_box, code: (rows, units); the
        code weights the boxes and gets no gradient.
        """
        half_width = nn.functional.softplus(self.width_logit)
        covered = (code.detach() * log_box).sum(dim=1).mean() / self.center.shape[1]
        return half_width.mean() - 2.0 * covered


class Network(nn.Module):
    """Interval bottleneck and decoder of one member. (rows, features) → (rows, features)"""

    def __init__(self, start: Parameters, config: Config) -> None:
        super().__init__()
        self.intervals = IntervalLayer(
            torch.tensor(start.center), torch.tensor(start.width_logit), config.temperature
        )
        decoder = start.decoder
        hidden = _linear(decoder.hidden_weight, decoder.hidden_bias)
        output = _linear(decoder.output_weight, decoder.output_bias)
        self._decoder_type = type(decoder)
        if decoder.normalised:
            normalise = nn.utils.parametrizations.spectral_norm
            self.decoder = nn.Sequential(normalise(hidden), nn.ReLU(), normalise(output))
        elif not decoder.layer_norm:
            self.decoder = nn.Sequential(hidden, nn.ReLU(), output)
        else:
            norm = nn.LayerNorm(config.hidden_width, eps=NORM_EPSILON, dtype=output.weight.dtype)
            self.decoder = nn.Sequential(hidden, norm, nn.ReLU(), output)

    def forward(self, x: Tensor) -> Tensor:
        return self.decoder(torch.softmax(self.intervals(x), dim=1))

    def parameters_as_arrays(self) -> Parameters:
        """The effective weights (after any normalisation) as NumPy arrays."""
        layers = list(self.decoder)
        hidden, output = layers[0], layers[-1]
        norm = layers[1] if isinstance(layers[1], nn.LayerNorm) else None
        width = hidden.weight.shape[0]
        return Parameters(
            center=_array(self.intervals.center),
            width_logit=_array(self.intervals.width_logit),
            decoder=self._decoder_type(
                hidden_weight=_array(hidden.weight.T),
                hidden_bias=_array(hidden.bias),
                norm_gain=_array(norm.weight) if norm else np.ones(width, dtype=np.float32),
                norm_shift=_array(norm.bias) if norm else np.zeros(width, dtype=np.float32),
                output_weight=_array(output.weight.T),
                output_bias=_array(output.bias),
            ),
        )


def loss(x: Tensor, reconstruction: Tensor) -> Tensor:
    """Mean over the rows of the root mean squared error over each row's present features."""
    present = ~torch.isnan(x)
    squares = torch.where(present, (torch.nan_to_num(x) - reconstruction) ** 2, 0.0)
    mean_square = squares.sum(dim=1) / present.sum(dim=1)
    return torch.sqrt(mean_square + LOSS_EPSILON).mean()


def train_eagerly(
    rows: NDArray[np.floating[Any]],
    start: Parameters,
    orders: Iterable[NDArray[np.int64]],
    batch_size: int,
    total_steps: int,
    config: Config,
) -> tuple[Network, NDArray[np.float32], list[float]]:
    """Train on `rows` (rows, features), one epoch per permutation in `orders`.

    Computes in the precision of `rows` and `start`, float32 or float64. Returns the network, the
    bias-corrected support (units, features) and the loss of each epoch.
    """
    network = Network(start, config)
    optimizer = torch.optim.Adam(
        [
            {"params": network.decoder.parameters(), "factor": 1.0},
            {"params": network.intervals.parameters(), "factor": config.interval_rate},
        ]
    )
    data = torch.from_numpy(rows)
    support = torch.zeros_like(network.intervals.center)
    step, history = 0, []
    for order in orders:
        total = 0.0
        for batch in torch.from_numpy(order).split(batch_size):
            x = data[batch]
            rate = config.learning_rate
            if config.schedule == "cosine":
                rate *= 0.5 * (1.0 + math.cos(math.pi * step / total_steps))
            for group in optimizer.param_groups:
                group["lr"] = rate * group["factor"]
            optimizer.zero_grad()
            membership = network.intervals.memberships(x)
            log_box = membership.log().sum(dim=2)
            code = torch.softmax(log_box, dim=1)
            value = loss(x, network.decoder(code))
            (value + config.coverage_weight * network.intervals.looseness(log_box, code)).backward()
            optimizer.step()
            with torch.no_grad():
                mean = torch.where(torch.isnan(x).unsqueeze(1), torch.nan, membership).nanmean(0)
                support.mul_(config.support_decay).add_(mean, alpha=1 - config.support_decay)
            step += 1
            total += value.item() * len(batch)
        history.append(total / len(order))
    return network, _array(support) / (1 - config.support_decay**step), history


def _linear(weight: NDArray[np.float32], bias: NDArray[np.float32]) -> nn.Linear:
    layer = nn.Linear(*weight.shape)
    layer.weight = nn.Parameter(torch.tensor(weight.T))
    layer.bias = nn.Parameter(torch.tensor(bias))
    return layer


def _array(tensor: Tensor) -> NDArray[np.float32]:
    return np.ascontiguousarray(tensor.detach().numpy(), dtype=np.float32)
