"""Search for the highest and the lowest score in a region, to test bounds on scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

import numpy as np
import torch

from diffint.core.constants import MIN_MEMBERSHIP
from diffint.core.model import FittedModel, Member
from diffint.core.scaling import SCALERS, Curve

_BEYOND = 3.0  # how far the adversary follows errors beyond the training range


class TorchScore:
    """The score of rows in original units, differentiable, in float64."""

    def __init__(self, model: FittedModel) -> None:
        self.temperature, self.error = model.config.temperature, model.config.error
        self.clips = SCALERS[model.config.scaling].clips
        self.members = [(_tensors(member), member.scaler.curves) for member in model.members]
        self.normalises = model.members[0].decoder.layer_norm

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """x: (rows, features) → (rows,)"""
        return torch.stack([self._member(*member, x) for member in self.members]).mean(dim=0)

    def _member(
        self, t: dict[str, torch.Tensor], curves: Mapping[int, Curve], x: torch.Tensor
    ) -> torch.Tensor:
        linear = torch.where(t["known"], (x - t["offset"]) / t["divisor"], -1.0)
        columns = list(linear.unbind(dim=1))
        for j, curve in curves.items():
            columns[j] = _along(curve, x[:, j])
        scaled = torch.stack(columns, dim=1)
        clipped = torch.clamp(scaled, t["first"], t["last"]) if self.clips else scaled
        value = clipped[:, None, :]
        low = torch.sigmoid((value - t["lower"]) / self.temperature)
        up = torch.sigmoid((t["upper"] - value) / self.temperature)
        code = torch.softmax((low * up).clamp_min(MIN_MEMBERSHIP).log().sum(dim=2), dim=1)
        hidden = code @ t["hidden_weight"] + t["hidden_bias"]
        if self.normalises:
            norm = torch.nn.functional.layer_norm
            hidden = norm(hidden, hidden.shape[1:], t["norm_gain"], t["norm_shift"])
        output = hidden.relu() @ t["output_weight"] + t["output_bias"]
        target = clipped if self.error == "clipped" else scaled.clamp(-_BEYOND, _BEYOND)
        score = (target - output).abs().mean(dim=1)
        if len(t["kept_rows"]):
            apart = torch.cdist(target * t["kept_weight"], t["kept_rows"], p=1).amin(dim=1)
            score = score + t["distance_weight"] * apart / x.shape[1]
        return score


def _along(curve: Curve, x: torch.Tensor) -> torch.Tensor:
    """Values (rows,) in the scaled units of a curve."""
    values, scaled, runs = map(torch.tensor, (curve.values, curve.scaled, curve.runs))
    i = (
        torch.searchsorted(values, x.detach().contiguous(), right=True)
        .sub(1)
        .clamp(0, len(values) - 2)
    )
    inside = scaled[i] + (x - values[i]) / runs[i]
    return torch.maximum(torch.minimum(inside, scaled[i + 1]), scaled[i])


def _tensors(member: Member) -> dict[str, torch.Tensor]:
    """Arrays needed for the score; constant features (no divisor) are checked by random rows."""
    arrays = {f.name: getattr(member.decoder, f.name) for f in fields(member.decoder)}
    scaler, known = member.scaler, member.scaler.divisor > 0
    arrays |= {"lower": member.lower, "upper": member.upper, "offset": scaler.offset}
    arrays |= {"first": scaler.lower, "last": scaler.upper}
    arrays |= {"kept_rows": member.kept_rows, "kept_weight": member.kept_weight}
    arrays["distance_weight"] = np.array(member.distance_weight)
    arrays["divisor"] = np.where(known, scaler.divisor, 1.0)
    tensors = {name: torch.from_numpy(a.astype(np.float64)) for name, a in arrays.items()}
    return {**tensors, "known": torch.from_numpy(known)}


def follow_gradient(
    score: TorchScore, low: np.ndarray, high: np.ndarray, starts: np.ndarray, steps: int
) -> np.ndarray:
    """All rows visited by Adam, which maximises and minimises the score from every start.

    low, high: (features,) finite ends of the region; starts: (starts, features) shares of the way
    from low to high → (2 · starts · steps, features)
    """
    place = torch.from_numpy(np.concatenate([starts, starts])).requires_grad_()
    sign = torch.ones(2 * len(starts), dtype=torch.float64)
    sign[len(starts) :] = -1.0
    optimizer = torch.optim.Adam([place], lr=0.05)
    start, span = torch.from_numpy(low), torch.from_numpy(high - low)
    visited = []
    for _ in range(steps):
        optimizer.zero_grad()
        rows = start + span * place
        visited.append(rows.detach().numpy().copy())
        (-(sign * score(rows))).sum().backward()
        optimizer.step()
        with torch.no_grad():
            place.clamp_(0.0, 1.0)
    return np.asarray(np.clip(np.concatenate(visited), low, high))
