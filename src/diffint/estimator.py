"""`DiffInt`, the scikit-learn estimator."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils.validation import check_is_fitted

from .core import unchanged_random  # noqa: F401
from .core.checks import resolve_jobs
from .core.config import (
    PAPER,
    RECOMMENDED,
    RUN_SETTINGS,
    Config,
    check_confidence,
    check_false_positive_rate,
    parameters_section,
)
from .core.errors import InputError
from .decide import thresholds
from .engine.devices import resolve_device
from .fitted_detector import file_of
from .moving_detector import MovingDetector
from .tables.categories import warn_of_words
from .tables.frames import (
    check_training_values,
    find_kinds,
    read_table,
)
from .tables.frames import feature_names as names_of
from .tables.row_marks import (
    read_anomalies,
    read_groups,
    read_segments,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .core.kinds import Kinds
    from .core.model import FittedModel
    from .fit.task import Split
    from .tables.row_marks import Segments

Scores = NDArray[np.float64]


class DiffInt(OutlierMixin, MovingDetector, BaseEstimator):  # type: ignore[misc]
    __doc__ = f"""Interpretable anomaly detector for tables of numbers and categories.

An autoencoder whose bottleneck is a set of soft axis-aligned intervals, trained on normal rows. The
anomaly score is the reconstruction error and the distance from the nearest kept training row.
Values may be missing (NaN).

The defaults are the recommended configuration; `DiffInt.paper()` gives the paper's.

Parameters
----------
{parameters_section()}

Attributes
----------
model_ : FittedModel
    The fitted model, immutable. All results are computed from it.
suspects_ : ndarray of shape (rows,)
    Whether each row of the table given to `fit` was left out as a suspect (see `suspected_share`).
    Not stored in a model file, which has their number (`model_.training.n_suspects`).
history_ : ndarray of shape (epochs,)
    Training loss of every epoch, mean over the members.
offset_ : float
    `decision_function` = `score_samples` - `offset_`; minus the threshold on the anomaly score.
n_features_in_ : int
    Number of features seen during `fit`.
feature_names_in_ : ndarray of shape (n_features_in_,)
    Names of the features, if the table had column names.

See Also
--------
find_anomalies : Ranks the rows of one table, without a clean table to train on.
diffint.pyod_detector.DiffIntDetector : The same detector with PyOD's interface.

Examples
--------
>>> import numpy as np
>>> from diffint import DiffInt
>>> normal = np.random.default_rng(0).normal(size=(200, 3))
>>> detector = DiffInt(false_positive_rate=0.05, epochs=20, random_state=0).fit(normal)
>>> detector.predict([[0.0, 0.0, 0.0], [9.0, -9.0, 9.0]])
array([ 1, -1])
"""

    # Name of the id column of the training file. Set and used only by the command line.
    id_column_: str | None = None

    def __init__(
        self,
        *,
        n_units: int = RECOMMENDED.n_units,
        temperature: float = RECOMMENDED.temperature,
        n_members: int | str = RECOMMENDED.n_members,
        hidden_width: int = RECOMMENDED.hidden_width,
        decoder: str = RECOMMENDED.decoder,
        scaling: str = RECOMMENDED.scaling,
        init: str = RECOMMENDED.init,
        error: str = RECOMMENDED.error,
        missing: str = RECOMMENDED.missing,
        kept_rows: int | str = RECOMMENDED.kept_rows,
        epochs: int | str = RECOMMENDED.epochs,
        learning_rate: float = RECOMMENDED.learning_rate,
        schedule: str = RECOMMENDED.schedule,
        batch_size: int | str = RECOMMENDED.batch_size,
        support_decay: float = RECOMMENDED.support_decay,
        interval_rate: float = RECOMMENDED.interval_rate,
        coverage_weight: float = RECOMMENDED.coverage_weight,
        box_coverage: float = RECOMMENDED.box_coverage,
        importance: str = RECOMMENDED.importance,
        calibration: str = RECOMMENDED.calibration,
        suspected_share: float | str = RECOMMENDED.suspected_share,
        missing_words: Sequence[str] = RECOMMENDED.missing_words,
        categories: Any = RUN_SETTINGS["categories"].default,
        confidence: float | None = RUN_SETTINGS["confidence"].default,
        false_positive_rate: float = RUN_SETTINGS["false_positive_rate"].default,
        device: str = RUN_SETTINGS["device"].default,
        random_state: Any = RUN_SETTINGS["random_state"].default,
        n_jobs: int | None = RUN_SETTINGS["n_jobs"].default,
        verbose: int = RUN_SETTINGS["verbose"].default,
    ) -> None:
        self.n_units = n_units
        self.temperature = temperature
        self.n_members = n_members
        self.hidden_width = hidden_width
        self.decoder = decoder
        self.scaling = scaling
        self.init = init
        self.error = error
        self.missing = missing
        self.kept_rows = kept_rows
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.batch_size = batch_size
        self.support_decay = support_decay
        self.interval_rate = interval_rate
        self.coverage_weight = coverage_weight
        self.box_coverage = box_coverage
        self.importance = importance
        self.calibration = calibration
        self.suspected_share = suspected_share
        self.missing_words = missing_words
        self.categories = categories
        self.confidence = confidence
        self.false_positive_rate = false_positive_rate
        self.device = device
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @classmethod
    def paper(cls, **overrides: Any) -> DiffInt:
        """Detector with the paper's settings: one member, 1000 epochs, calibration="training"."""
        return cls(**{**PAPER.to_dict(), **overrides})

    # --- Fitting ---------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any = None,
        anomalies: Any = None,
        groups: Any = None,
        segments: Any = None,
    ) -> DiffInt:
        """Fit the detector on normal rows.

        Parameters
        ----------
        X : table of shape (rows, features)
            NaN marks a missing value.
        y : ignored
            Present for compatibility with scikit-learn.
        anomalies : array-like of shape (rows,), default=None
            True/False or 0/1 per row. Rows marked as anomalies are left out of training.
        groups : array-like of shape (rows,), default=None
            A label of any type per row, for rows that are not independent: measurements of one
            subject, machine or day have the same label. Rows of one group are never split between
            training and calibration and count once in the threshold, so that false-positive rate
            and p-values hold for rows of new groups. By default, copies of rows are found and
            are groups; if these are independent, give every row a label of its own.
        segments : name of a column, or array-like of shape (rows,), default=None
            Stores, regions or machines for each of which the false-positive rate is to hold: each
            has a threshold of its own. Segments with too few calibration rows share one, and a
            warning names them; which ones depends on the current `false_positive_rate`. A column
            given by its name is no feature, and new tables need it. If labels are given, new
            tables may have them in a column of the same name; otherwise they are passed as the
            `segments` argument of a method.

        Returns
        -------
        self : DiffInt
        """
        self._fit(X, anomalies, groups, segments)
        return self

    def fit_predict(self, X: Any, y: Any = None, **others: Any) -> NDArray[np.int64]:
        """Fit on the rows, and return their labels; others: as in `fit`."""
        segments = others.get("segments")
        return self.fit(X, **others).predict(X, None if isinstance(segments, str) else segments)

    def _fit(
        self,
        X: Any,
        anomalies: Any,
        groups: Any,
        segments: Any = None,
        every_row: bool = False,
        more: Any = None,
    ) -> Split:
        """Fit. → the rows of each member

        every_row: each row is left out by some member; more: a pandas frame with the features of X,
        whose cells are values of further rows, each column for itself (see `Task`)
        """
        # Removed first, so that a failed or interrupted fit does not keep the old model.
        self.__dict__.pop("model_", None)
        self.__dict__.pop("suspects_", None)
        self._model_file, self._table_file = None, file_of(X)
        config = self.config
        check_false_positive_rate(self.false_positive_rate), check_confidence(self.confidence)
        X, parted = read_segments(X, segments)
        kinds = find_kinds(X if more is None else _joined(X, more), self.categories)
        table = read_table(self, X, reset=True, kinds=kinds)
        warn_of_words(config.missing_words, table, kinds.features(names_of(self)), kinds.categories)
        if more is not None:
            more = read_table(self, more, reset=False, kinds=kinds).astype(np.float64)
            more[:, list(kinds.categories)] = np.nan
        mask = read_anomalies(anomalies, len(table), getattr(X, "index", None))
        codes = read_groups(groups, len(table), getattr(X, "index", None))
        return self._train(table, kinds, mask, codes, parted, config, every_row, more=more)

    def _train(
        self,
        table: NDArray[Any],
        kinds: Kinds,
        mask: NDArray[np.bool_],
        groups: NDArray[np.intp] | None,
        parted: Segments | None,
        config: Config,
        every_row: bool = False,
        start: FittedModel | None = None,
        more: NDArray[np.float64] | None = None,
    ) -> Split:
        """Train on a checked table (rows, features), from the networks of `start` if given."""
        from .fit.category_positions import with_ordered_values
        from .fit.pipeline import fit_and_split
        from .fit.progress import announced_fit
        from .fit.refreshing import with_accepted_of
        from .fit.suspects import without_suspects
        from .fit.task import Task

        n_jobs = resolve_jobs(self.n_jobs)
        seed = _seed_sequence(self.random_state)
        if kinds.categories:
            former = None if start is None else start.categories
            table, values = with_ordered_values(table, kinds.categories, former=former)
            kinds = replace(kinds, categories=values)
        names = kinds.features(names_of(self))
        check_training_values(table, mask, names)
        sized = config.for_table(*table.shape).resolved(len(table), len(table))
        elements = float(table.size) * sized.n_units * int(sized.n_members) * int(sized.epochs)
        device = resolve_device(self.device, elements)
        task = Task(table, mask, seed, groups, kinds, every_row=every_row, start=start, more=more)
        if parted is not None:
            task = replace(task, segments=parted.codes, segment_names=parted.names)
        size = len(table) - int(mask.sum()), table.shape[1]
        with announced_fit(*size, self.verbose, refresh=start is not None):
            how: dict[str, Any] = {"device": device, "n_jobs": n_jobs, "verbose": self.verbose}
            task = without_suspects(task, names, config, **how)
            model, split = fit_and_split(task, names, config, **how)
        self._set_model(model if start is None else with_accepted_of(model, start))
        self.suspects_ = task.left_out & ~mask
        self.segment_column_ = None if parted is None else parted.column
        thresholds.warn_if_out_of_reach(self.rule)
        thresholds.warn_of_pooled_segments(self.rule)
        return split

    @property
    def config(self) -> Config:
        """The validated settings of the model."""
        return Config(**{name: getattr(self, name) for name in Config.names()})

    # --- Saving ----------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a safetensors file; a failed write keeps the old file."""
        from .persist.model_file import save_model
        from .tables.atomic_write import check_not_an_input

        check_not_an_input(path, self._table_file)
        check_is_fitted(self, "model_")
        save_model(
            self.model_,
            path,
            settings={
                "false_positive_rate": check_false_positive_rate(self.false_positive_rate),
                "named": hasattr(self, "feature_names_in_"),
                "id_column": self.id_column_,
                "confidence": check_confidence(self.confidence),
                "segment_column": self.segment_column_,
            },
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> DiffInt:
        """Load a fitted detector from a file written by `save`. Does not need torch.

        `random_state`, `n_jobs`, `device` and `verbose` are not stored and get their defaults.
        """
        from .persist.model_file import load_model

        model, settings = load_model(path)
        estimator = cls(
            **model.config.to_dict(),
            false_positive_rate=settings["false_positive_rate"],
            confidence=settings["confidence"],
        )
        estimator._set_model(model)
        estimator.id_column_ = settings["id_column"]
        estimator.segment_column_ = settings["segment_column"]
        estimator._model_file = path
        estimator.n_features_in_ = len(model.columns)
        if settings["named"]:
            estimator.feature_names_in_ = np.array(model.columns, dtype=object)
        return estimator

    def to_onnx(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model as one ONNX graph, which runs without diffint.

        From the columns of a table to `score`, `p_value` and `flagged`, for the current
        `false_positive_rate` and `confidence`. Needs the extra ``onnx``.

        Parameters
        ----------
        path : path of the file
            Written completely or not at all.
        """
        from .tables.atomic_write import check_not_an_input

        check_is_fitted(self, "model_")
        check_not_an_input(path, self._model_file, self._table_file)
        try:
            from .export.onnx_file import write_onnx
        except ModuleNotFoundError as error:
            if error.name != "onnx":
                raise
            raise InputError(
                "writing ONNX files needs onnx; install it with: pip install onnx"
            ) from None
        rule = self.rule
        thresholds.warn_if_out_of_reach(rule)
        thresholds.warn_of_pooled_segments(rule)
        thresholds.warn_if_optimistic(rule)
        write_onnx(self.model_, rule, self.segment_column_, path)

    # --- scikit-learn ----------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        # Derived data is computed again when needed.
        state = dict(super().__getstate__())
        for name in ("_prepared_model", "_rule", "_model_file", "_table_file"):
            state.pop(name, None)
        return state

    def __sklearn_is_fitted__(self) -> bool:
        return "model_" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _joined(X: Any, more: Any) -> Any:
    """Two pandas frames with the same columns, one after the other."""
    import pandas

    return pandas.concat([X, more], ignore_index=True)


def _seed_sequence(random_state: Any) -> np.random.SeedSequence:
    """Seed from `random_state`; None is fresh entropy and does not use the global generator."""
    if random_state is None:
        return np.random.SeedSequence()
    if isinstance(random_state, np.random.RandomState):
        return np.random.SeedSequence(random_state.randint(0, 2**31, size=4).tolist())
    if isinstance(random_state, np.random.Generator):
        return np.random.SeedSequence(random_state.integers(0, 2**63, size=2).tolist())
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        if random_state < 0:
            raise InputError(f"random_state={random_state!r} must not be negative")
        return np.random.SeedSequence(int(random_state))
    raise InputError(
        f"random_state={random_state!r} must be None, an integer, a RandomState or a Generator"
    )
