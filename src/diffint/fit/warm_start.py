"""Where training goes on from a fitted model: its networks, in the units of another table.

The intervals of a number stay where they were in scaled units, and so do the outputs of the
decoder: if a feature has moved, or varies more, its patterns have moved with it. Those of a
category keep their values. A feature without variation before or now, and a category of which
fewer than two values remain, begins anew.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..core.config import Config
from ..core.kinds import Kinds
from ..core.model import FittedModel
from ..core.scaling import Scaler
from ..engine.interface import TrainingRun
from ..engine.parameters import Parameters, initial_parameters, inverse_softplus

EPOCHS_SHARE = 0.1  # of the epochs of a fit; more gain nothing (docs/results/refresh.md)
_NARROWEST = 1e-6  # half-width, in scaled units


def warm_runs(
    runs: list[TrainingRun], scalers: list[Scaler], kinds: Kinds, former: FittedModel
) -> list[TrainingRun]:
    """The runs with the networks of a former model as a start; kinds: of the columns now."""
    return [
        replace(run, start=_carried(run, scaler, kinds, former, place))
        for place, (run, scaler) in enumerate(zip(runs, scalers, strict=True))
    ]


def with_fewer_epochs(config: Config) -> Config:
    """The settings for networks that have been trained before; the epochs must be a number."""
    return replace(config, epochs=max(round(EPOCHS_SHARE * int(config.epochs)), 1))


def _carried(
    run: TrainingRun, scaler: Scaler, kinds: Kinds, former: FittedModel, place: int
) -> Parameters:
    member = former.members[place]
    drawn = initial_parameters(np.random.default_rng(run.seed.spawn(1)[0]), run.rows, former.config)
    center, half_width = (a.astype(np.float64) for a in (member.center, member.half_width))
    known = member.scaler.varies & scaler.varies
    for j in sorted({*kinds.categories, *former.categories}):
        codes = _same_values(former.categories.get(j, ()), kinds.categories.get(j, ()))
        if len(codes) < 2:
            known[j] = False
            continue
        n_before, n_now = len(former.categories[j]), len(kinds.categories[j])
        at = np.vstack([[-1, -1], codes, [n_before, n_now]]).T
        before = center - half_width, center + half_width
        ends = [member.scaler.to_original(end) for end in before]
        for end in ends:
            end[:, j] = np.interp(end[:, j], *at)
        low, up = (scaler.scaled(end)[:, j] for end in ends)
        center[:, j], half_width[:, j] = (low + up) / 2, (up - low) / 2
    width_logit = inverse_softplus(np.maximum(half_width, _NARROWEST))
    decoder, new = member.decoder, drawn.decoder
    return Parameters(
        center=np.where(known, center, drawn.center).astype(np.float32),
        width_logit=np.where(known, width_logit, drawn.width_logit).astype(np.float32),
        decoder=replace(
            decoder,
            output_weight=np.where(known, decoder.output_weight, new.output_weight),
            output_bias=np.where(known, decoder.output_bias, new.output_bias),
        ),
    )


def _same_values(before: tuple[str, ...], now: tuple[str, ...]) -> NDArray[np.float64]:
    """The codes, before and now, of values that a category still has, in order. → (values, 2)"""
    place = {value: code for code, value in enumerate(now)}
    codes = [(code, place[value]) for code, value in enumerate(before) if value in place]
    return np.array(codes, dtype=np.float64).reshape(-1, 2)
