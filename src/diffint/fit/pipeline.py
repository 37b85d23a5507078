"""Fits a `FittedModel` on a table: split, scale, train, measure, calibrate."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..certify.rows import flag_rates
from ..core.config import Config
from ..core.decoder import DECODERS
from ..core.errors import InputError
from ..core.formatting import counted
from ..core.model import FittedModel, TrainingSummary
from ..core.scaling import fit_scaler
from ..core.version import __version__
from ..engine.compile_ahead import FitKind, compile_for_a_fit
from ..engine.cpu.intervals import SAFE_EXPONENT, largest_magnitude
from ..engine.devices import engine_for
from ..engine.interface import TrainedMember, TrainingRun
from ..score.prepared import PreparedMembers
from ..tables.fingerprint import fingerprint
from .calibrate import calibrate
from .category_positions import are_listed, category_curves, with_values_of
from .feature_summary import summarise_features
from .fit_warnings import (
    warn_about_decoder,
    warn_about_former_groups,
    warn_about_groups,
    warn_about_table,
    warn_about_training,
    warn_about_values,
)
from .measurement import measure_members
from .progress import compiling_progress, training_progress
from .row_groups import find_row_groups
from .row_split import HELD_OUT_SHARE, split_rows
from .sampling import Rows, at_most
from .task import Split, Task
from .warm_start import warm_runs, with_fewer_epochs

_FLAGGED_ROWS = 10_000  # largest sample on which the rates of certificate flags are measured


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
    decoder = DECODERS[config.decoder]
    kind = FitKind(
        decoder.certified,
        decoder.normalised,
        prepared.by_difference,
        engine.is_compiled_by_numba,
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
        warn_about_table(x, self.usable, feature_names, self.n_blank, ignored)
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
        categories, chosen = task.kinds.categories, are_listed(task.kinds.categories)
        if (len(self.split.held_out) and categories) or not chosen:
            if self.split.kind == "members" and not chosen:
                self.split = replace(self.split, choosing=_some_groups(self.seen, groups))
            before = None if task.start is None else task.start.categories
            x, values = with_values_of(x, categories, self.seen, self.split.choosing, before)
            warn_about_values(feature_names, categories, values)
            self.task = task = replace(task, x=x, kinds=replace(task.kinds, categories=values))
        curves = category_curves(x[self.seen], task.kinds.n_values)
        suspects = self._suspects()
        self.scalers = [
            fit_scaler(self._and_more(x[rows]), config.scaling, curves, suspects)
            for rows in self.split.train
        ]
        self.runs = [
            TrainingRun(scaler.transform(x[rows])[0], member_seed)
            for scaler, rows, member_seed in zip(
                self.scalers, self.split.train, member_seeds, strict=True
            )
        ]
        if task.start is not None:
            self.runs = warm_runs(self.runs, self.scalers, task.kinds, task.start)
            self.resolved = with_fewer_epochs(self.resolved)

    def _groups(self, config: Config) -> NDArray[np.intp]:
        """The group of each usable row, with warnings about rows that are not independent."""
        if self.task.groups is not None:
            return self.task.groups[self.usable]
        if config.calibration == "training":  # no row is left out
            return np.arange(len(self.usable))
        # Rows of a table like one without groups are not compared with their neighbours again.
        former = self.task.start
        search_near = former is None or former.calibration.grouped
        found = find_row_groups(self.task.x[self.usable], search_near)
        warn_about_groups(found)
        if former is not None:
            warn_about_former_groups(found, former.calibration)
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

    def _and_more(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Rows (rows, features), followed by values of further rows.

        Those of a feature without any value in the rows are left out: it cannot be learned.
        """
        if self.task.more is None:
            return rows
        return np.concatenate([rows, np.where(np.isnan(rows).all(axis=0), np.nan, self.task.more)])

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
        former = self.task.start
        if former is None:  # a network that was trained before need not move
            warn_about_training(trained)
            warn_about_decoder(type(trained[0].parameters.decoder), self.runs, trained)
        x, kinds, config, split = self.task.x, self.task.kinds, self.config, self.split
        features = summarise_features(self._known_values(), self.task.more)
        members = measure_members(
            x,
            config,
            self.scalers,
            split.train,
            split.left_out,
            self.runs,
            trained,
            np.isnan(x[self.seen]).mean(axis=0),
            kinds.n_values,
            n_jobs,
            kinds.calendar_pairs(self.feature_names),
            kinds.positions(self.feature_names),
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
            refreshed_from=() if former is None else former.lineage,
        )


def _some_groups(rows: Rows, groups: NDArray[np.intp]) -> Rows:
    """The rows of half of the groups. rows: indices; groups: (all rows,)"""
    names = np.random.default_rng(0).permutation(np.unique(groups[rows]))
    return rows[np.isin(groups[rows], names[: len(names) // 2])]
