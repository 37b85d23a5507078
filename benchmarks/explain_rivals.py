"""Attribution methods compared by `explain_quality.py`, with a common signature.

Each takes a `Setting` and rows (rows, features) and returns attributions of the same shape; the
most responsible feature has the largest value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from diffint.core.constants import MIN_MEMBERSHIP, NORM_EPSILON
from diffint.core.model import Member
from diffint.engine.cpu import explain_kernel, score_kernel
from diffint.explain.responsibility import responsibilities
from diffint.score.parts import feature_parts
from diffint.score.prepared import PreparedModel
from diffint.score.scoring import anomaly_scores

Matrix = NDArray[np.float64]

NEIGHBOURS = 20
BACKGROUND_ROWS = 20
GRADIENT_STEPS = 50


@dataclass(frozen=True)
class Setting:
    """A fitted model, its training rows, and the explained rows before planting (`before`)."""

    prepared: PreparedModel
    train: Matrix
    before: Matrix
    n_jobs: int


class Count:
    """Number of rows evaluated with the network of one member; members: how many there are."""

    def __init__(self, members: int) -> None:
        self.rows, self.members = 0, members


@contextmanager
def counted_rows(members: int) -> Iterator[Count]:
    """Count every row that scoring passes to a compiled network."""
    count = Count(members)
    score, explain = score_kernel.score_rows, explain_kernel.explain_rows

    def counting(original: Callable[..., None]) -> Callable[..., None]:
        def call(address: int, n_rows: int, *others: Any) -> None:
            count.rows += n_rows * count.members
            original(address, n_rows, *others)

        return call

    score_kernel.score_rows, explain_kernel.explain_rows = counting(score), counting(explain)
    try:
        yield count
    finally:
        score_kernel.score_rows, explain_kernel.explain_rows = score, explain


def ours(setting: Setting, rows: Matrix) -> Matrix:
    """`diffint.explain.responsibility.responsibilities`."""
    return responsibilities(setting.prepared, rows, setting.n_jobs)


def plain_residual(setting: Setting, rows: Matrix) -> Matrix:
    """Each feature's part of the score."""
    return feature_parts(setting.prepared, rows, setting.n_jobs)


def kernel_shap(setting: Setting, rows: Matrix) -> Matrix:
    """KernelSHAP on the anomaly score: default number of samples, k-means background."""
    import shap

    n_distinct = len(np.unique(setting.train, axis=0))
    background = shap.kmeans(setting.train, min(BACKGROUND_ROWS, n_distinct))
    explainer = shap.KernelExplainer(
        lambda x: anomaly_scores(setting.prepared, x, setting.n_jobs), background
    )
    return np.asarray(explainer.shap_values(rows, silent=True))


def integrated_gradients(setting: Setting, rows: Matrix) -> Matrix:
    """Integrated gradients of the anomaly score from the median training row, midpoint rule."""
    import torch

    torch.set_num_threads(1)  # with few rows more threads are slower
    median = np.median(setting.train, axis=0, keepdims=True)
    total = np.zeros(rows.shape)
    for member in setting.prepared.members:
        end = torch.tensor(member.scaler.transform(rows)[1])
        start = torch.tensor(member.scaler.transform(median)[1])
        sums = torch.zeros_like(end)
        for step in range(GRADIENT_STEPS):
            point = start + (end - start) * (step + 0.5) / GRADIENT_STEPS
            point.requires_grad_()
            _torch_scores(setting.prepared, member, point).sum().backward()
            sums += torch.nan_to_num(point.grad)
        total += (sums * (end - start)).numpy() / GRADIENT_STEPS
    return total / len(setting.prepared.members)


def _torch_scores(prepared: PreparedModel, member: Member, x: Any) -> Any:
    """The member's score of scaled, unclipped rows in torch. (rows, features) → (rows,)"""
    import torch
    from torch.nn import functional

    decoder = {name: torch.tensor(value) for name, value in vars(member.decoder).items()}
    lower, upper = torch.tensor(member.lower), torch.tensor(member.upper)
    low, high = torch.tensor(member.scaler.lower), torch.tensor(member.scaler.upper)
    value = torch.minimum(torch.maximum(x, low.float()), high.float()).unsqueeze(1)
    logs = functional.logsigmoid((value - lower) / prepared.config.temperature)
    logs = logs + functional.logsigmoid((upper - value) / prepared.config.temperature)
    code = torch.softmax(logs.clamp_min(float(np.log(MIN_MEMBERSHIP))).sum(dim=2), dim=1)
    hidden = code @ decoder["hidden_weight"] + decoder["hidden_bias"]
    if prepared.config.decoder == "free":
        gain, shift = decoder["norm_gain"], decoder["norm_shift"]
        hidden = functional.layer_norm(hidden, gain.shape, gain, shift, NORM_EPSILON)
    output = torch.relu(hidden) @ decoder["output_weight"] + decoder["output_bias"]
    return (x - output).abs().mean(dim=1)


def ecod_tails(setting: Setting, rows: Matrix) -> Matrix:
    """−log of the smaller tail probability among the training values and the row's value."""
    ordered = np.sort(setting.train, axis=0)
    n_rows = len(ordered)
    result = np.empty(rows.shape)
    for j, column in enumerate(ordered.T):
        upto = np.searchsorted(column, rows[:, j], side="right")
        onwards = n_rows - np.searchsorted(column, rows[:, j], side="left")
        result[:, j] = -np.log((np.minimum(upto, onwards) + 1) / (n_rows + 1))
    return result


def largest_z(setting: Setting, rows: Matrix) -> Matrix:
    """Distance to the mean in standard deviations."""
    deviation = setting.train.std(axis=0)
    return np.asarray(
        np.abs(rows - setting.train.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    )


def neighbours(setting: Setting, rows: Matrix) -> Matrix:
    """Distance to the median of the nearest training rows, relative to the range."""
    return _distance_to_neighbours(setting, rows, rows)


def neighbours_oracle(setting: Setting, rows: Matrix) -> Matrix:
    """The same with the neighbours of the row before planting."""
    return _distance_to_neighbours(setting, rows, setting.before)


def _distance_to_neighbours(setting: Setting, rows: Matrix, near: Matrix) -> Matrix:
    medians, span = neighbour_medians(setting.train, near)
    return np.abs(rows - medians) / span


def neighbour_medians(train: Matrix, rows: Matrix) -> tuple[Matrix, Matrix]:
    """Medians (rows, features) of each row's nearest training rows; ranges (features,)."""
    span = np.ptp(train, axis=0)
    span = np.where(span > 0, span, 1.0)
    index = NearestNeighbors(n_neighbors=min(NEIGHBOURS, len(train))).fit(train / span)
    return np.median(train[index.kneighbors(rows / span, return_distance=False)], axis=1), span


METHODS: dict[str, Callable[[Setting, Matrix], Matrix]] = {
    "responsibilities (ours)": ours,
    "plain residual": plain_residual,
    "KernelSHAP": kernel_shap,
    "integrated gradients": integrated_gradients,
    "ECOD tails": ecod_tails,
    "largest z-score": largest_z,
    "20 neighbours' median": neighbours,
    "the same before planting (oracle)": neighbours_oracle,
}
