"""The parts of a GPU step that are done by plain torch.

Spectral normalisation, which only the paper's certified decoder needs, and decoders that are too
wide for the kernels of `decoder.py`. The first axis of every tensor is the run.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from ...core.constants import LOSS_EPSILON, NORM_EPSILON
from ..cpu.layout import Shape


def decode_by_torch(
    log_box: Tensor, x: Tensor, rows: Tensor, weights: Any, n: Shape, covering: float
) -> dict[str, Tensor]:
    """As `decoder.decode_rows`, for hidden layers of any width.

    rows: (runs,) rows in the batch; weights: `layout.Weights` with a first axis of runs. Returns
    the arrays that `decode_rows` fills, by name, with norm_sums (runs, 2 · hidden) and losses
    (runs,) summed over all rows.
    """
    code = torch.zeros_like(log_box)
    code[:, :, : n.units] = torch.softmax(log_box[:, :, : n.units], dim=2)
    product = torch.bmm(code, weights.hidden_weight)
    pre = product + weights.hidden_bias[:, None]
    if not n.layer_norm:
        active = pre.clamp_min(0.0)
    else:
        normed = pre - pre.sum(2, keepdim=True) / n.hidden
        normed[:, :, n.hidden :] = 0.0
        deviation = torch.sqrt((normed * normed).sum(2, keepdim=True) / n.hidden + NORM_EPSILON)
        normed /= deviation
        gain = weights.norm_gain[:, None]
        active = (normed * gain + weights.norm_shift[:, None]).clamp_min(0.0)
    there = ~torch.isnan(x)
    output = torch.bmm(active, weights.output_weight) + weights.output_bias[:, None]
    error = torch.where(there, output - x, 0.0)
    present = there.sum(2).clamp_min(1)
    rmse = torch.sqrt((error * error).sum(2) / present + LOSS_EPSILON)
    inside = torch.arange(x.shape[1], device=x.device) < rows[:, None]
    scale = torch.where(inside, 1.0 / (present * rmse * rows[:, None]), 0.0)
    slope = torch.bmm(error, weights.output_weight.transpose(1, 2))
    slope = torch.where(active > 0.0, slope * scale[:, :, None], 0.0)
    norm_sums = torch.zeros_like(pre[:, :2]).flatten(1)
    if n.layer_norm:
        norm_sums = torch.cat([(slope * normed).sum(1), slope.sum(1)], dim=1)
        slope *= gain
        along = (slope * normed).sum(2, keepdim=True) / n.hidden
        slope = (slope - slope.sum(2, keepdim=True) / n.hidden - normed * along) / deviation
        slope[:, :, n.hidden :] = 0.0
    covered = torch.where(inside, covering / rows[:, None], 0.0)
    return {
        "code": code,
        "activation": active * scale[:, :, None],
        "d_hidden": slope,
        "error": error,
        "scale": scale,
        "along": (slope * product).sum(2) + covered,
        "norm_sums": norm_sums,
        "losses": torch.where(inside, rmse, 0.0).sum(1),
    }


class Linear(NamedTuple):
    """The effective matrix of a linear map and, if normalised, the norm and singular vectors.

    weight: (runs, n, m); norm: (runs, 1, 1); left: (runs, n); right: (runs, m).
    """

    weight: Tensor
    norm: Tensor | None = None
    left: Tensor | None = None
    right: Tensor | None = None


def normalised(weight: Tensor, left: Tensor, active: Tensor) -> Linear:
    """weight / ‖weight‖ after one power iteration from `left`, which is updated in place.

    A run that is not `active` (runs,) keeps its vector.
    """
    right, _ = _unit(torch.bmm(left[:, None], weight)[:, 0])
    new_left, norm = _unit(torch.bmm(weight, right[:, :, None])[:, :, 0])
    left.copy_(torch.where(active[:, None], new_left, left))
    return Linear(weight / norm[:, :, None], norm[:, :, None], left, right)


def through_normalisation(gradient: Tensor, linear: Linear) -> None:
    """Gradient of W from that of W/‖W‖, in place: (G − ⟨G, W/‖W‖⟩ u vᵀ)/‖W‖."""
    assert linear.left is not None
    assert linear.right is not None
    along = (gradient * linear.weight).sum((1, 2), keepdim=True)
    gradient -= along * linear.left[:, :, None] * linear.right[:, None, :]
    gradient /= linear.norm


def _unit(vector: Tensor) -> tuple[Tensor, Tensor]:
    norm = vector.norm(dim=1, keepdim=True).clamp_min(1e-12)
    return vector / norm, norm
