"""A table of normal rows to a `FittedModel`: split, scale, train, measure, calibrate."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import scoring
from .calibration import MAX_SCORES, Calibration
from .certificate import flag_rates
from .config import CalibrationKind, Config
from .describing import describe
from .errors import CalibrationWarning, InputError, InputWarning, TrainingWarning
from .measuring import summarise_features
from .model import FittedModel, TrainingSummary
from .progress import training_progress
from .sampling import Rows, at_most
from .scaling import fit_scaler
from .training import TrainedMember, TrainingRun, train_members
from .version import __version__

LEFT_OUT_SHARE = 0.2  # of the rows, for calibration
_FEWEST_ROWS_TO_SPLIT = 5
_FLAGGED_ROWS = 10_000  # a certificate's flags are measured on at most this many
_LEAST_FALL = 1e-6  # of the loss, from the first epoch to the last
_STILL = 1e-3  # mean movement of the centers, in scaled units, below which nothing was learned


@dataclass(frozen=True)
class Split:
    """Which rows each member trains on and which it leaves out; indices into the table."""

    kind: CalibrationKind
    train: list[Rows]
    left_out: list[Rows]


def fit_model(
    x: NDArray[Any],
    feature_names: list[str],
    config: Config,
    seed: np.random.SeedSequence,
    *,
    anomalies: NDArray[np.bool_],
    device: str = "cpu",
    n_jobs: int = 1,
    verbose: int = 0,
) -> FittedModel:
    """Fit on the rows of x (rows, features) that `anomalies` (rows,) does not mark."""
    started = time.perf_counter()
    blank = np.isnan(x).all(axis=1)
    usable = np.flatnonzero(~anomalies & ~blank)
    if len(usable) < 2:
        raise InputError(
            f"only {len(usable)} of {len(x)} rows have any value and are not marked as anomalies; "
            "at least 2 are needed to train on"
        )
    _warn_about_table(x, usable, feature_names, int((blank & ~anomalies).sum()))

    split_seed, *member_seeds = seed.spawn(1 + config.n_members)
    split = split_rows(usable, config, np.random.default_rng(split_seed))
    settled = config.settled(len(usable), len(split.train[0]))

    scalers = [fit_scaler(x[rows], config.scaling) for rows in split.train]
    runs = [
        TrainingRun(scaler.transform(x[rows])[0], member_seed)
        for scaler, rows, member_seed in zip(scalers, split.train, member_seeds, strict=True)
    ]
    with training_progress(int(settled.epochs), config.n_members, verbose) as progress:
        trained = train_members(runs, settled, device=device, n_jobs=n_jobs, progress=progress)
    _warn_about_training(trained)

    members = describe(x, config, scalers, split.train, split.left_out, runs, trained)
    model = FittedModel(
        config=config,
        feature_names=tuple(feature_names),
        members=members,
        features=summarise_features(x[usable]),
        calibration=Calibration(split.kind, np.zeros(1)),
        training=TrainingSummary(
            n_rows=len(usable),
            n_known_anomalies=int(anomalies.sum()),
            n_blank_rows=int((blank & ~anomalies).sum()),
            batch_size=int(settled.batch_size),
            epochs=int(settled.epochs),
            seconds=0.0,
            device=device,
            created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            version=__version__,
        ),
    )
    calibration = calibrate(model, x, split, n_jobs, np.random.default_rng(split_seed.spawn(1)[0]))
    rates = None
    if config.decoder == "certified":
        rates = flag_rates(model, x[at_most(usable, _FLAGGED_ROWS, np.random.default_rng(0))])
    seconds = time.perf_counter() - started
    return replace(
        model,
        calibration=calibration,
        training=replace(model.training, seconds=seconds),
        flag_rates=rates,
    )


def split_rows(usable: Rows, config: Config, rng: np.random.Generator) -> Split:
    """Decide who trains on what. Left-out windows of a random order, spread evenly."""
    n_rows, n_members = len(usable), config.n_members
    n_left = int(LEFT_OUT_SHARE * n_rows)
    if config.calibration == "training" or n_rows < _FEWEST_ROWS_TO_SPLIT:
        if config.calibration != "training":
            warnings.warn(
                f"{n_rows} rows are too few to leave any out for calibration: the threshold rests "
                "on the training rows and is optimistic",
                CalibrationWarning,
                stacklevel=4,
            )
        nothing = np.empty(0, dtype=np.intp)
        return Split("training", [usable] * n_members, [nothing] * n_members)
    order = rng.permutation(usable)
    if config.calibration == "holdout":
        left, kept = order[:n_left], np.sort(order[n_left:])
        return Split("holdout", [kept] * n_members, [left] * n_members)
    train, left_out = [], []
    for member in range(n_members):
        rolled = np.roll(order, -(member * n_rows // n_members))
        left_out.append(rolled[:n_left])
        train.append(np.sort(rolled[n_left:]))
    return Split("members", train, left_out)


def calibrate(
    model: FittedModel, x: NDArray[Any], split: Split, n_jobs: int, rng: np.random.Generator
) -> Calibration:
    """Scores of inliers: of rows left out, by the members that left them out."""
    if split.kind == "members":
        total, count = np.zeros(len(x)), np.zeros(len(x), dtype=np.int64)
        for member, rows in zip(model.members, split.left_out, strict=True):
            rows = at_most(rows, MAX_SCORES, rng)
            total[rows] += scoring.evaluate(model, member, x[rows], n_jobs).scores
            count[rows] += 1
        scores = total[count > 0] / count[count > 0]
        scores = rng.permutation(scores)[:MAX_SCORES]
    else:
        source = split.left_out[0] if split.kind == "holdout" else split.train[0]
        rows = at_most(source, MAX_SCORES, rng)
        scores = scoring.anomaly_scores(model, x[rows], n_jobs)
    return Calibration(split.kind, np.sort(scores))


def _warn_about_table(x: NDArray[Any], usable: Rows, names: list[str], n_blank: int) -> None:
    if n_blank:
        warnings.warn(
            f"{n_blank} rows have no value at all and were left out of training",
            InputWarning,
            stacklevel=4,
        )
    kept = x[usable]
    empty = np.isnan(kept).all(axis=0)
    if empty.any():
        listed = ", ".join(repr(names[j]) for j in np.flatnonzero(empty)[:5])
        warnings.warn(
            f"{int(empty.sum())} columns have no value in the training rows and are ignored: "
            f"{listed}",
            InputWarning,
            stacklevel=4,
        )
    with np.errstate(invalid="ignore"):
        varies = np.fmin.reduce(kept, axis=0) < np.fmax.reduce(kept, axis=0)
    if not varies.any():
        warnings.warn(
            "every column is constant: the detector can only tell values that differ from it",
            InputWarning,
            stacklevel=4,
        )


def _warn_about_training(trained: list[TrainedMember]) -> None:
    first = float(np.mean([t.history[0] for t in trained]))
    last = float(np.mean([t.history[-1] for t in trained]))
    if len(trained[0].history) > 1 and last > first * (1 - _LEAST_FALL):
        warnings.warn(
            f"the loss did not fall ({first:.4g} in the first epoch, {last:.4g} in the last); "
            "train longer or with another learning_rate",
            TrainingWarning,
            stacklevel=4,
        )
    moved = float(np.mean([np.abs(t.parameters.center - t.start.center).mean() for t in trained]))
    if moved < _STILL:
        warnings.warn(
            f"the intervals hardly moved from their start (centers by {moved:.2g} on average, in "
            "scaled units): they were not learned, and reading them explains little; train longer "
            "or with a larger learning_rate",
            TrainingWarning,
            stacklevel=4,
        )
