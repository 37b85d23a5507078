"""Attribution methods that explain a detector's score from outside.

Each gives attributions (rows, features); the most responsible feature has the largest one.
"""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.config import Config
from ..core.constants import MIN_MEMBERSHIP, NORM_EPSILON
from ..core.model import Member
from ..estimator import DiffInt

Array = NDArray[np.float64]

BACKGROUND_ROWS = 20


def is_installed(package: str) -> bool:
    """Whether a package that a method needs can be imported."""
    return importlib.util.find_spec(package) is not None


def kernel_shap(
    detector: DiffInt, train: Array, rows: Array, seed: int, n_samples: int | str = "auto"
) -> Array:
    """KernelSHAP on the anomaly score, with a k-means background of the training rows.

    n_samples: evaluations of each row, times the rows of the background; shap's default depends on
    the features. All features get a value: by default shap gives one to 10 of them, whatever its
    sign, and 0 to the others, so that in wide tables the responsible one often ties with those.
    """
    import shap

    n_distinct = len(np.unique(train, axis=0))
    background = shap.kmeans(train, min(BACKGROUND_ROWS, n_distinct))
    explainer = shap.KernelExplainer(detector.anomaly_score, background)
    np.random.seed(seed)  # noqa: NPY002 - shap draws from the global state
    values = explainer.shap_values(rows, silent=True, l1_reg=False, nsamples=n_samples)
    return np.asarray(values)


def integrated_gradients(detector: DiffInt, train: Array, rows: Array, steps: int) -> Array:
    """Integrated gradients of the score from the median training row, in scaled units."""
    median = np.median(train, axis=0, keepdims=True)
    total = np.zeros(rows.shape)
    for member in detector.model_.members:
        end, start = (_target(detector, member, x) for x in (rows, median))
        points = (start + (end - start) * (step + 0.5) / steps for step in range(steps))  # midpoint
        slopes = sum(_gradients(detector.model_.config, member, point) for point in points)
        total += slopes * (end - start) / steps
    return total / len(detector.model_.members)


def gradient_times_input(detector: DiffInt, rows: Array) -> Array:
    """The gradient of the score times the scaled value."""
    total = np.zeros(rows.shape)
    for member in detector.model_.members:
        point = _target(detector, member, rows)
        total += _gradients(detector.model_.config, member, point) * point
    return total / len(detector.model_.members)


def ecod_tails(train: Array, rows: Array) -> Array:
    """−log of the smaller tail probability among the training values and the row's value."""
    ordered = np.sort(train, axis=0)
    n_rows = len(ordered)
    result = np.empty(rows.shape)
    for j, column in enumerate(ordered.T):
        upto = np.searchsorted(column, rows[:, j], side="right")
        onwards = n_rows - np.searchsorted(column, rows[:, j], side="left")
        result[:, j] = -np.log((np.minimum(upto, onwards) + 1) / (n_rows + 1))
    return result


# --- Gradients ---------------------------------------------------------------------------------


def _target(detector: DiffInt, member: Member, x: Array) -> Array:
    """What the error is measured against: (rows, features) scaled."""
    return member.scaler.target(x, detector.error).astype(np.float64)


def _gradients(config: Config, member: Member, point: Array) -> Array:
    """Slopes of a member's score at scaled rows. point: (rows, features) → the same shape"""
    import torch

    torch.set_num_threads(1)  # with few rows more threads are slower
    x = torch.tensor(point, dtype=torch.float32, requires_grad=True)
    torch_scores(config, member, x).sum().backward()
    slopes: Array = torch.nan_to_num(x.grad).numpy().astype(np.float64)
    return slopes


def torch_scores(config: Config, member: Member, x: Any) -> Any:
    """The member's score of scaled rows in torch. (rows, features) → (rows,)

    For tables of numbers without missing cells.
    """
    import torch
    from torch.nn import functional

    decoder = {name: torch.tensor(value) for name, value in vars(member.decoder).items()}
    lower, upper = torch.tensor(member.lower), torch.tensor(member.upper)
    low, high = torch.tensor(member.scaler.lower), torch.tensor(member.scaler.upper)
    value = torch.minimum(torch.maximum(x, low.float()), high.float()).unsqueeze(1)
    logs = functional.logsigmoid((value - lower) / config.temperature)
    logs = logs + functional.logsigmoid((upper - value) / config.temperature)
    code = torch.softmax(logs.clamp_min(float(np.log(MIN_MEMBERSHIP))).sum(dim=2), dim=1)
    hidden = code @ decoder["hidden_weight"] + decoder["hidden_bias"]
    if config.decoder == "free":
        gain, shift = decoder["norm_gain"], decoder["norm_shift"]
        hidden = functional.layer_norm(hidden, gain.shape, gain, shift, NORM_EPSILON)
    output = torch.relu(hidden) @ decoder["output_weight"] + decoder["output_bias"]
    total = (x - output).abs().sum(dim=1)
    if len(member.kept_rows):
        kept, weight = torch.tensor(member.kept_rows), torch.tensor(member.kept_weight)
        apart = torch.cdist(x * weight.float(), kept.float(), p=1)
        total = total + member.distance_weight * apart.min(dim=1).values
    return total / member.scaler.n_seen
