"""`DiffInt`, the scikit-learn estimator."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils.validation import check_is_fitted

from .core.checks import check_count, check_real, resolve_jobs
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
from .core.flag_rule import FlagRule
from .core.row_labels import index_of
from .decide import thresholds
from .engine.devices import resolve_device
from .tables.frames import (
    check_training_values,
    find_kinds,
    new_texts_of,
    read_table,
)
from .tables.frames import feature_names as names_of
from .tables.row_marks import (
    read_anomalies,
    read_groups,
    read_segments,
    segment_codes,
    without_segments,
)

if TYPE_CHECKING:
    import pandas

    from .certify.regions import RegionCertificate
    from .certify.rows import Certificate
    from .core.model import FittedModel
    from .decide.selection import Selection
    from .explain.global_explanation import GlobalExplanation
    from .explain.local_explanation import LocalExplanation
    from .explain.nearest_normal import NearestNormal
    from .explain.pattern_set import PatternSet
    from .fit.pipeline import Split
    from .score.prepared import PreparedModel

Scores = NDArray[np.float64]


class DiffInt(OutlierMixin, BaseEstimator):  # type: ignore[misc]
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
    # Column of the training table with the segments, if they are from a column.
    segment_column_: str | None = None
    # Files that must not be overwritten by mistake, where they are known.
    _model_file: str | os.PathLike[str] | None = None
    _table_file: str | os.PathLike[str] | None = None

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
        calibration: str = RECOMMENDED.calibration,
        suspected_share: float | str = RECOMMENDED.suspected_share,
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
        self.calibration = calibration
        self.suspected_share = suspected_share
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
            warning names them. A column given by its name is no feature, and new rows need it too;
            if labels are given, new rows take them from the column of the same name, or from the
            `segments` argument of a method.

        Returns
        -------
        self : DiffInt
        """
        self._fit(X, anomalies, groups, segments)
        return self

    def _fit(
        self, X: Any, anomalies: Any, groups: Any, segments: Any = None, every_row: bool = False
    ) -> Split:
        """Fit; every_row: each row is left out by some member. → the rows of each member"""
        from .fit.category_positions import with_ordered_values
        from .fit.pipeline import Task, fit_and_split
        from .fit.progress import announced_fit
        from .fit.suspects import without_suspects

        # Removed first, so that a failed or interrupted fit does not keep the old model.
        self.__dict__.pop("model_", None)
        self.__dict__.pop("suspects_", None)
        self._model_file, self._table_file = None, _file_of(X)
        config = self.config
        check_false_positive_rate(self.false_positive_rate), check_confidence(self.confidence)
        n_jobs = resolve_jobs(self.n_jobs)
        seed = _seed_sequence(self.random_state)
        X, parted = read_segments(X, segments)
        kinds = find_kinds(X, self.categories)
        table = read_table(self, X, reset=True, kinds=kinds)
        if kinds.categories:
            table, values = with_ordered_values(table, kinds.categories)
            kinds = replace(kinds, categories=values)
        names = kinds.features(names_of(self))
        index = getattr(X, "index", None)
        mask = read_anomalies(anomalies, len(table), index)
        codes = read_groups(groups, len(table), index)
        check_training_values(table, mask, names)
        sized = config.for_table(*table.shape).resolved(len(table), len(table))
        elements = float(table.size) * sized.n_units * int(sized.n_members) * int(sized.epochs)
        device = resolve_device(self.device, elements)
        task = Task(table, mask, seed, codes, kinds, every_row=every_row)
        if parted is not None:
            task = replace(task, segments=parted.codes, segment_names=parted.names)
        with announced_fit(len(table) - int(mask.sum()), table.shape[1], self.verbose):
            how: dict[str, Any] = {"device": device, "n_jobs": n_jobs, "verbose": self.verbose}
            task = without_suspects(task, names, config, **how)
            model, split = fit_and_split(task, names, config, **how)
        self._set_model(model)
        self.suspects_ = task.left_out & ~mask
        self.segment_column_ = None if parted is None else parted.column
        thresholds.warn_if_out_of_reach(self.rule)
        thresholds.warn_of_pooled_segments(self.rule)
        return split

    @property
    def config(self) -> Config:
        """The validated settings of the model."""
        return Config(**{name: getattr(self, name) for name in Config.names()})

    def _set_model(self, model: FittedModel) -> None:
        from .score.prepared import PreparedModel

        self.model_ = model
        self._prepared_model = PreparedModel(model)

    @property
    def prepared(self) -> PreparedModel:
        """The fitted model with cached derived data, as taken by the library's functions."""
        check_is_fitted(self, "model_")
        prepared = self.__dict__.get("_prepared_model")
        # Prepared again after unpickling, and if model_ was replaced.
        if prepared is None or prepared.model is not self.model_:
            self._set_model(self.model_)
        return self._prepared_model

    def _read(self, X: Any) -> NDArray[np.floating[Any]]:
        """Validate new rows and return them as a matrix (rows, features)."""
        check_is_fitted(self, "model_")
        return read_table(self, self._features_of(X), reset=False, kinds=self.model_.kinds)

    def _features_of(self, X: Any) -> Any:
        """A table without the column of segments."""
        return without_segments(X, self.segment_column_, self.model_.columns)

    @property
    def rule(self) -> FlagRule:
        """Which rows are flagged, for the current `false_positive_rate` and `confidence`."""
        check_is_fitted(self, "model_")
        rate = check_false_positive_rate(self.false_positive_rate)
        return FlagRule(self.model_.calibration, rate, check_confidence(self.confidence))

    def _rule_for(self, X: Any, segments: Any = None) -> FlagRule:
        """The rule for the rows of a table: with segments, each has a threshold of its own."""
        rule = self.rule
        thresholds.warn_if_out_of_reach(rule)
        names = rule.calibration.segment_names
        if not names:
            if segments is not None:
                raise InputError("segments are given, but the model was fitted without them")
            return rule
        return rule.for_rows(segment_codes(X, segments, names, self.segment_column_))

    # --- Scoring ---------------------------------------------------------------------------

    def anomaly_score(self, X: Any) -> Scores:
        """Anomaly scores: means over the features of the error and the distance from kept rows.

        Parameters
        ----------
        X : table of shape (rows, features)

        Returns
        -------
        scores : ndarray of shape (rows,)
            Higher is more anomalous. A row without any value scores 0.
        """
        return self._scores(self._read(X))

    def _scores(self, table: NDArray[np.floating[Any]]) -> Scores:
        """Scores of a checked matrix, with a warning about rows without any value."""
        from .score.scoring import anomaly_scores, count_blank_rows, warn_of_blank_rows

        scores = anomaly_scores(self.prepared, table, resolve_jobs(self.n_jobs))
        warn_of_blank_rows(count_blank_rows(self.model_, table, scores))
        return scores

    def score_samples(self, X: Any) -> Scores:
        """Negated anomaly scores (rows,); higher is more normal."""
        return -self.anomaly_score(X)

    def decision_function(self, X: Any, segments: Any = None) -> Scores:
        """Signed distance of `score_samples` to the threshold (rows,); negative for outliers."""
        scores = self.score_samples(X)
        return scores + self._rule_for(X, segments).threshold

    def predict(self, X: Any, segments: Any = None) -> NDArray[np.int64]:
        """Labels (rows,): −1 for outliers (p ≤ `false_positive_rate`), +1 for inliers."""
        distance = self.decision_function(X, segments)
        thresholds.warn_if_optimistic(self.rule)
        return np.where(distance < 0, -1, 1)

    def p_values(self, X: Any, segments: Any = None, *, weights: Any = None) -> Scores:
        """Conformal p-values (rows,): the share of normal rows that score at least as high.

        Parameters
        ----------
        X : table of shape (rows, features)
        segments : array-like of shape (rows,), default=None
            The segment of each row, for a model with segments; None takes them from the column
            that the model was fitted with.
        weights : callable or "estimate", default=None
            For rows that come from elsewhere than the training rows: how many times as common such
            a row is among the new normal rows as among the training rows. A function from a data
            frame of features to weights (rows,), or "estimate" to find them from `X`, which should
            then have few anomalies. Weighted conformal p-values are valid for known weights.
        """
        scores = self.anomaly_score(X)
        if weights is None:
            return thresholds.p_values(self._rule_for(X, segments), scores)
        from .decide.shift import weighted_p_values

        if self.model_.calibration.segment_names:
            raise InputError("weights cannot be combined with segments")
        return weighted_p_values(self.model_, self._read(X), scores, weights, self.rule.rate)

    def select(
        self,
        X: Any,
        false_discovery_rate: float = 0.1,
        *,
        method: str = "benjamini-hochberg",
        confidence: float = 0.95,
        segments: Any = None,
    ) -> Selection:
        """The rows to look at, so that few of them are false alerts.

        Parameters
        ----------
        X : table of shape (rows, features)
            All rows to choose from, for example those of a day.
        false_discovery_rate : float, default=0.1
            Expected share of normal rows among the selected ones, at most.
        method : {"benjamini-hochberg", "storey"}, default="benjamini-hochberg"
            "storey" estimates the share of normal rows and selects more rows if many are anomalies.
        confidence : float, default=0.95
            Probability with which the bounds on the share of false alerts hold, all at once.
        segments : array-like of shape (rows,), default=None
            As in `p_values`.

        Returns
        -------
        selection : Selection
            `selected` (rows,), `bound` (the largest share of false alerts among them), `bounds`
            (rows,) the same at every other threshold, `to_frame()`, `text()`.
        """
        from .decide.selection import select_rows

        rate = check_real("false_discovery_rate", false_discovery_rate, above=0.0, below=1.0)
        sure = check_real("confidence", confidence, above=0.0, below=1.0)
        scores = self.anomaly_score(X)
        rule = replace(self._rule_for(X, segments), confidence=None)
        return select_rows(rule, scores, rate, method, sure, index_of(X))

    def reconstruct(self, X: Any) -> Scores:
        """Reconstructed rows in original units (rows, features)."""
        from .score.scoring import reconstructions

        return reconstructions(self.prepared, self._read(X), resolve_jobs(self.n_jobs))

    # --- Certifying ------------------------------------------------------------------------

    def certify(self, X: Any) -> Certificate:
        """Proven lower bounds on the scores of rows; requires ``decoder="certified"``."""
        from .certify.rows import certify

        table, jobs = self._read(X), resolve_jobs(self.n_jobs)
        return certify(self.prepared, table, jobs, index_of(X))

    def certify_region(self, lower: Any, upper: Any, *, splits: int = 0) -> RegionCertificate:
        """Proven bounds on the score of every complete row in a region, with any decoder.

        Parameters
        ----------
        lower, upper : array-like, mapping or None
            Ends of the region in original units: one per feature, or a mapping from feature names
            to ends. Features not in the mapping are unbounded; with None, all are. An end of a
            category is one of its values.
        splits : int, default=0
            How many times a part of the region may be halved to tighten the bounds.
        """
        from .certify.regions import certify_region

        prepared = self.prepared
        return certify_region(prepared, lower, upper, splits, threshold=-self.offset_)

    # --- Thresholds ------------------------------------------------------------------------

    @property
    def offset_(self) -> float:
        """Minus the threshold on the anomaly score, for the current `false_positive_rate`.

        With segments, that of all rows together.
        """
        thresholds.warn_if_out_of_reach(self.rule)
        return -float(self.rule.threshold)

    @property
    def history_(self) -> NDArray[np.float64]:
        """Training loss of every epoch, mean over the members. (epochs,)"""
        check_is_fitted(self, "model_")
        return np.asarray(np.mean([member.history for member in self.model_.members], axis=0))

    # --- Explaining ------------------------------------------------------------------------

    def explain_global(self) -> GlobalExplanation:
        """What the model learned: importance of features, ranges of patterns and their coverage."""
        from .explain.global_explanation import explain_model

        check_is_fitted(self, "model_")
        return explain_model(self.model_)

    def patterns(self, max_patterns: int = 20, max_conditions: int = 5) -> PatternSet:
        """The model on one page: a few patterns of normal rows with a few conditions each.

        Parameters
        ----------
        max_patterns : int, default=20
            Largest number of patterns.
        max_conditions : int, default=5
            Largest number of conditions of a pattern, each on another feature.
        """
        from .explain.pattern_set import find_patterns

        return find_patterns(self.prepared, max_patterns, max_conditions, resolve_jobs(self.n_jobs))

    def explain(self, X: Any, segments: Any = None) -> LocalExplanation:
        """Why rows score as they do: nearest pattern, violated ranges, responsible features.

        segments: as in `p_values`
        """
        return self._explain(X, self._rule_for(X, segments))

    def _explain(self, X: Any, rule: FlagRule) -> LocalExplanation:
        from .explain.explain_rows import explain_rows

        table, jobs = self._read(X), resolve_jobs(self.n_jobs)
        new = new_texts_of(self._features_of(X), table, self.model_.kinds)
        return explain_rows(self.prepared, table, rule, jobs, index_of(X), new)

    def nearest_normal(
        self, X: Any, *, max_changes: int = 3, segments: Any = None
    ) -> NearestNormal:
        """For each flagged row the smallest set of changes found after which it is not flagged.

        Parameters
        ----------
        X : table of shape (rows, features)
        max_changes : int, default=3
            Largest number of features to change.
        segments : array-like of shape (rows,), default=None
            As in `p_values`.
        """
        return self._nearest_normal(X, self._rule_for(X, segments), max_changes)

    def _nearest_normal(self, X: Any, rule: FlagRule, max_changes: int) -> NearestNormal:
        from .explain.nearest_normal import nearest_normal

        table, jobs = self._read(X), resolve_jobs(self.n_jobs)
        new = new_texts_of(self._features_of(X), table, self.model_.kinds)
        return nearest_normal(self.prepared, table, rule, max_changes, jobs, index_of(X), new)

    def match(self, X: Any) -> pandas.DataFrame:
        """The nearest pattern of each row, and whether the row lies inside its box.

        Returns
        -------
        frame : DataFrame, with the index of X if X is a pandas DataFrame
            One line per row: `unit` (numbered consecutively over all members), `inside` (whether
            the row lies inside the unit's box in every feature), `violations` (number of features
            outside) and `box_rows` (number of training rows inside the box).
        """
        import pandas

        from .score.nearest_pattern import match_rows

        found = match_rows(self.prepared, self._read(X), resolve_jobs(self.n_jobs))
        rows = np.stack([member.box_rows for member in self.model_.members])
        return pandas.DataFrame(
            {
                "unit": found.member * self.model_.config.n_units + found.unit,
                "inside": found.inside,
                "violations": found.violations,
                "box_rows": rows[found.member, found.unit],
            },
            index=index_of(X),
        )

    def report(
        self,
        X: Any,
        path: str | os.PathLike[str],
        *,
        max_rows: int = 1_000,
        kept: Mapping[str, Any] | None = None,
        segments: Any = None,
    ) -> Path:
        """Write an HTML page with the flagged rows, their reasons, and what the model learned.

        Parameters
        ----------
        X : table of shape (rows, features)
            Rows are named by its index if X is a pandas DataFrame, else numbered from 0.
        path : path of the file
            Written completely or not at all.
        max_rows : int, default=1000
            How many flagged rows to show at most, highest scores first.
        kept : DataFrame or mapping from names to columns of shape (rows,), default=None
            Columns that are not features, such as names, to show with each row. Columns that the
            fit ignored are shown too.
        segments : array-like of shape (rows,), default=None
            As in `p_values`.

        Returns
        -------
        path : Path
        """
        return self._report(X, path, max_rows, kept, self._rule_for(X, segments))

    def _report(self, X: Any, path: Any, max_rows: int, kept: Any, rule: FlagRule) -> Path:
        from .show.report.writing import scored_rows, write_page
        from .tables.atomic_write import check_not_an_input

        check_not_an_input(path, _file_of(X), self._model_file, self._table_file)
        max_rows, table = check_count(max_rows, "rows"), self._read(X)
        scored = scored_rows(
            self.model_,
            self._features_of(X),
            table,
            self._scores(table),
            rule,
            max_rows,
            kept,
            Path(path).stem,
        )
        return write_page(self.prepared, scored, path, rule, resolve_jobs(self.n_jobs))

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

    # --- scikit-learn ----------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        # Derived data is computed again when needed.
        state = dict(super().__getstate__())
        for name in ("_prepared_model", "_model_file", "_table_file"):
            state.pop(name, None)
        return state

    def __sklearn_is_fitted__(self) -> bool:
        return "model_" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _file_of(table: Any) -> str | os.PathLike[str] | None:
    """The file of a memory-mapped array."""
    return getattr(table, "filename", None) if isinstance(table, np.memmap) else None


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
