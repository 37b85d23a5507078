"""What the studies of importance share: both formulas, random intervals, agreement of orders."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.model import FittedModel
from ..engine.parameters import softplus
from ..estimator import DiffInt
from ..explain.importance import feature_importance
from ..explain.stability_over_fits import rank_correlations
from ..fit.boxes import mean_memberships
from .study import Setup

Array = NDArray[np.float64]

# The values of `importance`, and how they are named in tables.
FORMULAS = {"paper": "the paper's formula", "boxes": "ours"}
_START = 0.1  # standard deviation of the paper's initial centers and width logits
_RANDOM_MODELS = 5


def detector_of(configuration: str, setup: Setup, n_rows: int, seed: int) -> DiffInt:
    """A detector in a configuration, not fitted: "paper", "recommended", or the latter without
    curves ("minmax").
    """
    if configuration == "paper":
        return setup.paper_detector(n_rows, seed)
    changes: dict[str, Any] = {"epochs": 60, "n_members": 2} if setup.quick else {}
    if configuration == "minmax":
        changes["scaling"] = "minmax"
    return DiffInt(random_state=seed, n_jobs=1, device=setup.device, **changes)


def with_formula(model: FittedModel, formula: str) -> FittedModel:
    """The same model with importance by this formula."""
    return replace(model, config=replace(model.config, importance=formula))


def importance_by(model: FittedModel, formula: str) -> Array:
    """Importance of every feature by this formula. → (features,)"""
    return feature_importance(with_formula(model, formula))


def with_random_intervals(model: FittedModel, rows: Array, seed: int) -> FittedModel:
    """The same model with the paper's random initial intervals, and boxes equal to them.

    The support is measured anew on the training rows. rows: (rows, features) in original units
    """
    rng = np.random.default_rng(seed)
    members = []
    for member in model.members:
        center = rng.normal(0, _START, member.center.shape).astype(np.float32)
        half_width = softplus(rng.normal(0, _START, center.shape)).astype(np.float32)
        scaled = member.scaler.transform(rows)[0]
        ends = center - half_width, center + half_width
        support = mean_memberships(scaled, *ends, model.config.temperature)
        members.append(
            replace(
                member,
                center=center,
                half_width=half_width,
                support=support,
                mean_membership=support,
                stability=np.ones_like(support),
                box_scale=1.0,
            )
        )
    return replace(model, members=tuple(members))


def correlation_with_random(model: FittedModel, rows: Array, formula: str) -> float:
    """Rank correlation of the importance with that of random intervals, mean over five draws."""
    own = importance_by(model, formula)
    others = [
        importance_by(with_random_intervals(model, rows, seed), formula)
        for seed in range(_RANDOM_MODELS)
    ]
    return float(np.mean([rank_correlations(np.array([own, other])) for other in others]))
