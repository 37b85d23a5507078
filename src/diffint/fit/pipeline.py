"""Fits a `FittedModel` on a table: split, scale, train, measure, calibrate."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..certify.rows import flag_rates
from ..core.calibration import MAX_SCORES, Calibration, group_sizes
from ..core.config import Config
from ..core.decoder import DECODERS
from ..core.errors import (
    CalibrationWarning,
    InputError,
    InputWarning,
    TrainingWarning,
    warn,
)
from ..core.formatting import counted
from ..core.kinds import ONLY_NUMBERS, Kinds
from ..core.model import FittedModel, TrainingSummary
from ..core.scaling import fit_scaler
from ..core.version import __version__
from ..engine.compile_ahead import FitKind, compile_for_a_fit
from ..engine.cpu.intervals import SAFE_EXPONENT, largest_magnitude
from ..engine.devices import engine_for
from ..engine.interface import TrainedMember, TrainingRun
from ..score.prepared import PreparedMembers
from ..score.scoring import anomaly_scores
from ..tables.categories import OTHER
from ..tables.fingerprint import fingerprint
from .category_positions import category_curves, order_values, with_new_values
from .feature_summary import summarise_features
from .measurement import measure_members
from .progress import compiling_progress, training_progress
from .row_groups import RowGroups, find_row_groups
from .sampling import Rows, at_most

LEFT_OUT_SHARE = 0.2  # share of the rows that a member leaves out
_SMALL_LEFT_OUT_SHARE = 0.1  # the same, where all members leave out others as well
HELD_OUT_SHARE = 0.2  # share of the rows that all members leave out, for calibration="holdout"
_FEWEST_ROWS_TO_SPLIT = 5  # or groups of rows
_FEW_GROUPS = 0.9  # groups per row
_COPIES_SHARE = 0.05  # largest share of copied rows without a warning
_EQUAL_SHARE = 0.2  # largest share of rows that may be copies without a warning
_SAMPLE_ROWS, _SAMPLE_CELLS = 2_000, 100_000  # most calibration rows that a model stores
_FLAGGED_ROWS = 10_000  # largest sample on which the rates of certificate flags are measured
_LEAST_FALL = 1e-6  # smallest relative decrease of the loss without a warning
_LEAST_MOVEMENT = 1e-3  # smallest mean movement of the centers, scaled, without a warning


@dataclass(frozen=True)
class Split:
    """Indices of the rows each member is trained on, and of those left out.

    kind: "members", "holdout" or "training". train, left_out: per member; what it left out is
    used to weigh the parts of its scores and to measure its patterns. held_out: rows that no
    member sees for any purpose, with kind "holdout". groups: (all rows,) the group of each row;
    rows of one group are never split.
    """

    kind: str
    train: list[Rows]
    left_out: list[Rows]
    groups: NDArray[np.intp]
    held_out: Rows


@dataclass(frozen=True)
class Task:
    """What to fit.

    x: (rows, features); anomalies: (rows,) known anomalies, left out of training; seed: the only
    source of randomness; groups: (rows,) a number for the group of each row, None to find repeated
    rows; kinds: the columns that are not numbers; suspects: (rows,) rows left out because they may
    be anomalies, None for none; segments: (rows,) the segment of each row, as a place in
    segment_names, None for no segments; doubtful: (rows,) rows that no member is trained on, but
    that count in the calibration, None for none; every_row: whether each row is to be left out by
    at least one member (if there are several).
    """

    x: NDArray[Any]
    anomalies: NDArray[np.bool_]
    seed: np.random.SeedSequence
    groups: NDArray[np.intp] | None = None
    kinds: Kinds = ONLY_NUMBERS
    suspects: NDArray[np.bool_] | None = None
    doubtful: NDArray[np.bool_] | None = None
    every_row: bool = False
    segments: NDArray[np.int64] | None = None
    segment_names: tuple[str, ...] = ()

    @property
    def left_out(self) -> NDArray[np.bool_]:
        """(rows,) known anomalies and suspects."""
        return self.anomalies if self.suspects is None else self.anomalies | self.suspects


def fit_model(
    task: Task,
    feature_names: list[str],
    config: Config,
    *,
    device: str = "cpu",
    n_jobs: int = 1,
    verbose: int = 0,
) -> FittedModel:
    """Fit a model on the rows of the task that are not marked as anomalies."""
    return fit_and_split(
        task, feature_names, config, device=device, n_jobs=n_jobs, verbose=verbose
    )[0]


def fit_and_split(
    task: Task,
    feature_names: list[str],
    config: Config,
    *,
    device: str = "cpu",
    n_jobs: int = 1,
    verbose: int = 0,
) -> tuple[FittedModel, Split]:
    """`fit_model`, with the rows that each member was trained on."""
    prepared = _SplitTask(task, feature_names, config)
    resolved, engine = prepared.resolved, engine_for(device)
    kind = FitKind(
        DECODERS[config.decoder].certified, prepared.by_difference, engine.is_compiled_by_numba
    )
    with compiling_progress(verbose) as callbacks:
        compile_for_a_fit(kind, n_jobs, **callbacks._asdict())
    with training_progress(int(resolved.epochs), len(prepared.runs), verbose) as progress:
        trained = engine.train(prepared.runs, resolved, n_jobs, progress)
    return prepared.finish(trained, device, n_jobs), prepared.split


def fit_models(
    tasks: list[Task], feature_names: list[str], config: Config, device: str
) -> list[FittedModel]:
    """Fit several tasks, training all their members together; same models as from `fit_model`.

    Useful on a GPU, which trains many small networks in the time of one.
    """
    prepared = [_SplitTask(task, feature_names, config) for task in tasks]
    trained: dict[int, list[TrainedMember]] = {}
    # The number of epochs may depend on the size of the table.
    for resolved in dict.fromkeys(p.resolved for p in prepared):
        alike = [i for i, p in enumerate(prepared) if p.resolved == resolved]
        together = iter(
            engine_for(device).train([r for i in alike for r in prepared[i].runs], resolved)
        )
        for i in alike:
            trained[i] = [next(together) for _ in prepared[i].runs]
    return [p.finish(trained[i], device, n_jobs=1) for i, p in enumerate(prepared)]


class _SplitTask:
    """A task after splitting and scaling, with the training runs of its members."""

    def __init__(self, task: Task, feature_names: list[str], config: Config) -> None:
        self.started = time.perf_counter()
        self.task, self.feature_names = task, feature_names
        x = task.x
        blank = np.isnan(x).all(axis=1)
        self.usable = np.flatnonzero(~task.left_out & ~blank)
        self.n_blank = int((blank & ~task.left_out).sum())
        if len(self.usable) < 2:
            verb = "has" if len(self.usable) == 1 else "have"
            raise InputError(
                f"only {len(self.usable)} of {counted(len(x), 'row')} {verb} any value and no "
                "anomaly mark; training needs at least 2 such rows"
            )
        ignored = [j for j, values in task.kinds.categories.items() if not values]
        _warn_about_table(x, self.usable, feature_names, self.n_blank, ignored)
        groups = np.zeros(len(x), dtype=np.intp)
        groups[self.usable] = self._groups(config)
        n_groups = len(np.unique(groups[self.usable]))
        self.config = config = config.for_table(
            len(self.usable), x.shape[1], n_groups, task.every_row
        )
        self._split_seed, *member_seeds = task.seed.spawn(1 + int(config.n_members))
        rng = np.random.default_rng(self._split_seed)
        self.split = self._split(groups, rng)
        self.resolved = config.resolved(len(self.usable), len(self.split.train[0]), x.shape[1])
        # Nothing that a score depends on may come from rows that are held out.
        self.seen = np.setdiff1d(self.usable, self.split.held_out)
        if len(self.split.held_out) and task.kinds.categories:
            self.task = task = _with_values_of(task, self.seen)
            x = task.x
        curves = category_curves(x[self.seen], task.kinds.n_values)
        suspects = self._suspects()
        self.scalers = [
            fit_scaler(x[rows], config.scaling, curves, suspects) for rows in self.split.train
        ]
        self.runs = [
            TrainingRun(scaler.transform(x[rows])[0], member_seed)
            for scaler, rows, member_seed in zip(
                self.scalers, self.split.train, member_seeds, strict=True
            )
        ]

    def _groups(self, config: Config) -> NDArray[np.intp]:
        """The group of each usable row, with warnings about rows that are not independent."""
        if self.task.groups is not None:
            return self.task.groups[self.usable]
        if config.calibration == "training":  # no row is left out
            return np.arange(len(self.usable))
        found = find_row_groups(self.task.x[self.usable])
        _warn_about_groups(found)
        return found.codes

    def _split(self, groups: NDArray[np.intp], rng: np.random.Generator) -> Split:
        """The split of the rows that are not doubtful; no member is trained on doubtful ones."""
        doubtful = self.task.doubtful
        if doubtful is None or not doubtful.any():
            return split_rows(self.usable, groups, self.config, rng, self.task.every_row)
        trusted, others = (self.usable[doubtful[self.usable] == d] for d in (False, True))
        split = split_rows(trusted, groups, self.config, rng, self.task.every_row)
        if split.kind == "training":
            return split
        if split.kind == "holdout":  # as large a share of them as of the others
            some = rng.permutation(others)[: round(HELD_OUT_SHARE * len(others))]
            return replace(split, held_out=np.concatenate([split.held_out, some]))
        return replace(split, left_out=[np.concatenate([rows, others]) for rows in split.left_out])

    def _suspects(self) -> NDArray[Any] | None:
        """Rows left out because they may be anomalies; as often, they are ordinary ones. (n, d)

        None if there are none, as usual: no member's rows have to be copied then.

        Whether a feature has long tails must not depend on whether its extreme values are suspects.
        """
        suspects = self.task.left_out & ~self.task.anomalies
        if self.task.doubtful is not None:
            suspects = suspects | self.task.doubtful
        return self.task.x[suspects] if suspects.any() else None

    @property
    def by_difference(self) -> bool:
        """Whether any rows leave the safe range of the exponentials."""
        largest = max(largest_magnitude(run.rows) for run in self.runs)
        return largest / self.config.temperature > SAFE_EXPONENT

    def _known_values(self) -> NDArray[Any]:
        """The usable rows; values of categories that only held-out rows have are missing."""
        x = self.task.x[self.usable]
        for j, count in self.task.kinds.n_values.items():
            x[x[:, j] >= count, j] = np.nan
        return x

    def finish(self, trained: list[TrainedMember], device: str, n_jobs: int) -> FittedModel:
        """Measure and calibrate the trained members, and build the model."""
        _warn_about_training(trained)
        x, config, split = self.task.x, self.config, self.split
        features = summarise_features(self._known_values())
        members = measure_members(
            x,
            config,
            self.scalers,
            split.train,
            split.left_out,
            self.runs,
            trained,
            np.isnan(x[self.seen]).mean(axis=0),
            self.task.kinds.n_values,
            n_jobs,
        )
        prepared = PreparedMembers(config, members)
        rng = np.random.default_rng(self._split_seed.spawn(1)[0])
        calibration = calibrate(prepared, self.task, split, n_jobs, rng)
        rates = None
        if members[0].decoder.certified:
            some = at_most(self.usable, _FLAGGED_ROWS, np.random.default_rng(0))
            rates = flag_rates(prepared, x[some])
        return FittedModel(
            config=config,
            feature_names=tuple(self.feature_names),
            members=members,
            features=features,
            calibration=calibration,
            training=TrainingSummary(
                n_rows=len(self.usable),
                n_known_anomalies=int(self.task.anomalies.sum()),
                n_suspects=int((self.task.left_out & ~self.task.anomalies).sum()),
                n_blank_rows=self.n_blank,
                batch_size=int(self.resolved.batch_size),
                epochs=int(self.resolved.epochs),
                seconds=time.perf_counter() - self.started,
                device=device,
                created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
                version=__version__,
                fingerprint=fingerprint(x),
            ),
            flag_rates=rates,
            kinds=self.task.kinds,
        )


def split_rows(
    usable: Rows,
    groups: NDArray[np.intp],
    config: Config,
    rng: np.random.Generator,
    every_row: bool = False,
) -> Split:
    """Choose the training rows of each member.

    usable: (rows,) indices; groups: (all rows,). Each member leaves out another window of a random
    order of the groups; the windows are spaced evenly. With a holdout, they are windows of the rows
    that are not held out.
    """
    n_rows, n_members = len(usable), int(config.n_members)
    names, group_of = np.unique(groups[usable], return_inverse=True)
    if config.calibration == "training" or len(names) < _FEWEST_ROWS_TO_SPLIT:
        if config.calibration != "training":
            kind = "row" if len(names) == n_rows else "group"
            warn(
                f"{counted(len(names), kind)} {'is' if len(names) == 1 else 'are'} too few to "
                "leave some out for calibration; the threshold is computed from the training rows "
                "and is optimistic",
                CalibrationWarning,
            )
        nothing = np.empty(0, dtype=np.intp)
        return Split("training", [usable] * n_members, [nothing] * n_members, groups, nothing)
    rank = np.argsort(rng.permutation(len(names)))[group_of.ravel()]  # of each row's group
    n_held = 0
    if config.calibration == "holdout":
        n_held = min(max(int(HELD_OUT_SHARE * len(names)), 1), MAX_SCORES)
    held_out = usable[np.argsort(rank, kind="stable")[: (rank < n_held).sum()]]
    usable, rank = usable[rank >= n_held], rank[rank >= n_held] - n_held
    n_groups = len(names) - n_held
    share = _SMALL_LEFT_OUT_SHARE if n_held else LEFT_OUT_SHARE
    n_left = max(int(share * n_groups), 1)
    covers = every_row or len(names) < _FEW_GROUPS * n_rows
    if covers and config.calibration == "members" and n_members > 1:
        # Groups are few, or asked for, so every one is left out by some member.
        n_left = max(n_left, math.ceil(n_groups / n_members))

    def leave_out(first: int) -> tuple[Rows, Rows]:
        rolled = (rank - first) % n_groups
        is_out = rolled < n_left
        return usable[~is_out], usable[np.argsort(rolled, kind="stable")[: is_out.sum()]]

    windows = [leave_out(member * n_groups // n_members) for member in range(n_members)]
    train, left_out = (list(part) for part in zip(*windows, strict=True))
    return Split(config.calibration, train, left_out, groups, held_out)


def calibrate(
    prepared: PreparedMembers, task: Task, split: Split, n_jobs: int, rng: np.random.Generator
) -> Calibration:
    """Calibration scores: left-out rows, scored by the members that were not trained on them."""
    x = task.x
    if split.kind == "members":
        total, count = np.zeros(len(x)), np.zeros(len(x), dtype=np.int64)
        for i, rows in enumerate(split.left_out):
            rows = at_most(rows, MAX_SCORES, rng)
            # A value that the member has not seen is as new to it as one that no row has.
            unknown = with_new_values(x[rows], x[split.train[i]], task.kinds.n_values)
            total[rows] += prepared.packed.member_scores(unknown, i, n_jobs)
            count[rows] += 1
        rows = rng.permutation(np.flatnonzero(count))[:MAX_SCORES]
        scores = total[rows] / count[rows]
    else:
        source = split.held_out if split.kind == "holdout" else split.train[0]
        rows = at_most(source, MAX_SCORES, rng)
        scores = anomaly_scores(prepared, x[rows], n_jobs)
    order = np.argsort(scores, kind="stable")
    groups, none = split.groups[rows], np.empty(0, dtype=np.int64)
    some = np.empty(0, dtype=np.intp)
    if len(prepared.members[0].kept_rows):  # a model that may store rows
        limit = min(_SAMPLE_ROWS, max(_SAMPLE_CELLS // x.shape[1], 1))
        some = np.sort(at_most(np.arange(len(rows)), limit, rng))
    return Calibration(
        split.kind,
        scores[order],
        group_sizes(groups)[order],
        none if task.segments is None else task.segments[rows][order],
        none if task.segments is None else np.asarray(groups[order], dtype=np.int64),
        task.segment_names,
        bool((task.left_out & ~task.anomalies).any()),
        x[rows[some]].astype(np.float64),
        scores[some],
    )


def _with_values_of(task: Task, seen: Rows) -> Task:
    """The task with the values of categories that the seen rows have, in their order.

    The values that other rows have are treated as those of later tables: as new ones, or as any
    other one of a column with very many values.
    """
    x, categories = task.x.copy(), {}
    for j, values in task.kinds.categories.items():
        codes = x[:, j]
        known = codes < len(values)
        found = np.unique(codes[seen][known[seen]]).astype(np.intp)
        kept = [values[i] for i in found]
        elsewhere = kept.index(OTHER) if OTHER in kept else len(found)
        places = np.full(len(values), elsewhere, dtype=np.float64)
        places[found] = np.arange(len(found))
        x[known, j] = places[codes[known].astype(np.intp)]
        x[codes >= len(values), j] = len(found)
        categories[j] = tuple(kept)
    order = order_values(x[seen], {j: len(values) for j, values in categories.items()})
    for j, values in categories.items():
        known = x[:, j] < len(values)
        x[known, j] = np.argsort(order[j])[x[known, j].astype(np.intp)]
        categories[j] = tuple(values[i] for i in order[j])
    return replace(task, x=x, kinds=replace(task.kinds, categories=categories))


def unseen_scores(
    prepared: PreparedMembers, x: NDArray[Any], split: Split, n_jobs: int
) -> NDArray[np.float64]:
    """The score of each row by the members that were not trained on it; NaN if there is none."""
    total, count = np.zeros(len(x)), np.zeros(len(x))
    for i, train in enumerate(split.train):
        rows = np.delete(np.arange(len(x)), train)
        total[rows] += prepared.packed.member_scores(x[rows], i, n_jobs)
        count[rows] += 1
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _warn_about_groups(found: RowGroups) -> None:
    n_rows, remedy = len(found.codes), "groups in Python, --group on the command line"
    if found.n_copies > _COPIES_SHARE * n_rows:
        warn(
            f"{found.n_copies:,} of {counted(n_rows, 'training row')} repeat other rows exactly or "
            "nearly; copies are left out together and count once in the threshold. If they are "
            f"independent observations, give every row a group of its own ({remedy})",
            CalibrationWarning,
        )
    if found.n_equal > _EQUAL_SHARE * n_rows:
        warn(
            f"{found.n_equal:,} of {counted(n_rows, 'training row')} agree with other rows in "
            "several columns, on values that occur nowhere else. If they are copies, or belong to "
            "one subject, machine or period, more new rows will be flagged than the "
            f"false-positive rate says: name the groups ({remedy})",
            CalibrationWarning,
        )
    if found.close:
        warn(
            f"training rows come in groups of about {found.close} that are close to each other. If "
            "these are measurements of one subject, machine or period, more new rows will be "
            f"flagged than the false-positive rate says: name the groups ({remedy})",
            CalibrationWarning,
        )


def _warn_about_table(
    x: NDArray[Any], usable: Rows, names: list[str], n_blank: int, ignored: list[int]
) -> None:
    """ignored: the columns of which a warning has said so before"""
    if n_blank:
        warn(
            f"{counted(n_blank, 'row')} without any value {'was' if n_blank == 1 else 'were'} left "
            "out of training",
            InputWarning,
        )
    kept = x[usable]
    empty = np.setdiff1d(np.flatnonzero(np.isnan(kept).all(axis=0)), ignored)
    if len(empty):
        listed = ", ".join(repr(names[j]) for j in empty[:5]) + (", …" if len(empty) > 5 else "")
        verb = (
            "has no value in the training rows and is"
            if len(empty) == 1
            else ("have no value in the training rows and are")
        )
        warn(f"{counted(len(empty), 'column')} {verb} ignored: {listed}", InputWarning)
    with np.errstate(invalid="ignore"):
        varies = np.fmin.reduce(kept, axis=0) < np.fmax.reduce(kept, axis=0)
    if not varies.any():
        warn(
            "every column is constant; the detector can only find values that differ from the "
            "constants",
            InputWarning,
        )


def _warn_about_training(trained: list[TrainedMember]) -> None:
    first = float(np.mean([t.history[0] for t in trained]))
    last = float(np.mean([t.history[-1] for t in trained]))
    if len(trained[0].history) > 1 and last > first * (1 - _LEAST_FALL):
        warn(
            f"the loss did not fall ({first:.4g} in the first epoch, {last:.4g} in the last); "
            "increase epochs or change learning_rate",
            TrainingWarning,
        )
    moved = float(np.mean([np.abs(t.parameters.center - t.start.center).mean() for t in trained]))
    if moved < _LEAST_MOVEMENT:
        warn(
            f"the intervals hardly moved during training (centers by {moved:.2g} on average, in "
            "scaled units), so explanations are not meaningful; increase epochs or learning_rate",
            TrainingWarning,
        )
