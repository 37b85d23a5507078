"""What a fitted detector does: scores, decisions, explanations, the report."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .core.checks import check_count, check_real, resolve_jobs
from .core.config import check_confidence, check_false_positive_rate
from .core.errors import InputError
from .core.flag_rule import FlagRule
from .core.row_labels import index_of
from .decide import thresholds
from .score.scoring import anomaly_scores
from .tables.frames import new_texts_of, read_table
from .tables.row_marks import segment_codes, without_segments

if TYPE_CHECKING:
    import pandas

    from .core.model import FittedModel
    from .decide.selection import Selection
    from .explain.global_explanation import GlobalExplanation
    from .explain.local_explanation import LocalExplanation
    from .explain.nearest_normal import NearestNormal
    from .explain.pattern_set import PatternSet
    from .score.prepared import PreparedModel

Scores = NDArray[np.float64]


class FittedDetector:
    """The methods of a fitted detector; `DiffInt` has them, and can be fitted.

    All results are computed from `model_`, for the current rate, confidence and number of threads.
    """

    model_: FittedModel
    false_positive_rate: float
    confidence: float | None
    n_jobs: int | None
    # Column of the training table with the segments, if they are from a column.
    segment_column_: str | None = None
    # Files that must not be overwritten by mistake, where they are known.
    _model_file: str | os.PathLike[str] | None = None
    _table_file: str | os.PathLike[str] | None = None

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
        wanted = self.model_.calibration, rate, check_confidence(self.confidence)
        # Kept, as finding the scores of many segments takes longer than scoring a row.
        rule = self.__dict__.get("_rule")
        if rule is None or (rule.calibration, rule.rate, rule.confidence) != wanted:
            rule = self.__dict__["_rule"] = FlagRule(*wanted)
        return rule

    def _rule_for(
        self, X: Any, segments: Any = None, warn: bool = True, scores: Scores | None = None
    ) -> FlagRule:
        """The rule for the rows of a table: with segments, each has a threshold of its own.

        warn: whether calibration rows may be too few for the rate; scores: (rows,) of the rows,
        if they are known
        """
        rule = self.rule
        if warn:
            thresholds.warn_if_out_of_reach(rule)
            thresholds.warn_of_pooled_segments(rule)
        names = rule.calibration.segment_names
        if names:
            rule = rule.for_rows(segment_codes(X, segments, names, self.segment_column_))
        elif segments is not None:
            raise InputError("segments are given, but the model was fitted without them")
        if not len(self.model_.accepted):
            return rule
        return self._with_accepted(rule, self._read(X), scores)

    def _with_accepted(
        self, rule: FlagRule, table: NDArray[Any], scores: Scores | None = None
    ) -> FlagRule:
        """The rule for rows (rows, features) of which some may be like rows called normal."""
        from .explain.acceptance import are_accepted

        if not len(self.model_.accepted):
            return rule
        jobs = resolve_jobs(self.n_jobs)
        if scores is None:
            scores = anomaly_scores(self.prepared, table, jobs)
        return rule.with_accepted(are_accepted(self.prepared, table, scores, rule, jobs))

    # --- Scoring ---------------------------------------------------------------------------

    def anomaly_score(self, X: Any) -> Scores:
        """Anomaly scores: means over the features of the error and the distance from kept rows.

        Parameters
        ----------
        X : table of shape (rows, features)

        Returns
        -------
        scores : ndarray of shape (rows,)
            Higher is more anomalous. A row without any value scores 0 if missing cells are ignored.
        """
        return self._scores(self._read(X))

    def _scores(self, table: NDArray[np.floating[Any]]) -> Scores:
        """Scores of a checked matrix, with a warning about rows without any value."""
        from .score.scoring import count_blank_rows, warn_of_blank_rows

        scores = anomaly_scores(self.prepared, table, resolve_jobs(self.n_jobs))
        warn_of_blank_rows(count_blank_rows(self.model_, table, scores))
        return scores

    def score_samples(self, X: Any) -> Scores:
        """Negated anomaly scores (rows,); higher is more normal."""
        return -self.anomaly_score(X)

    def decision_function(self, X: Any, segments: Any = None) -> Scores:
        """Signed distance of `score_samples` to the threshold (rows,); negative for outliers."""
        scores = self.anomaly_score(X)
        return self._rule_for(X, segments, scores=scores).threshold - scores

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
        rule = self._rule_for(X, segments, scores=scores)
        if weights is None:
            return thresholds.p_values(rule, scores)
        from .decide.shift import weighted_p_values

        if self.model_.calibration.segment_names:
            raise InputError("weights cannot be combined with segments")
        found = weighted_p_values(self.model_, self._read(X), scores, weights, rule.rate)
        return found if rule.accepted is None else np.where(rule.accepted, 1.0, found)

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
        rule = replace(self._rule_for(X, segments, False, scores), confidence=None)
        return select_rows(rule, scores, rate, method, sure, index_of(X))

    def reconstruct(self, X: Any) -> Scores:
        """Reconstructed rows in original units (rows, features)."""
        from .score.scoring import reconstructions

        return reconstructions(self.prepared, self._read(X), resolve_jobs(self.n_jobs))

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
        from .explain.pattern_search import find_patterns

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
        return self._report(X, path, max_rows, kept, None, segments)

    def _report(
        self,
        X: Any,
        path: Any,
        max_rows: int,
        kept: Any,
        rule: FlagRule | None,
        segments: Any = None,
    ) -> Path:
        """`report`, by another rule than the detector's if one is given."""
        from .decide.drift import LEVEL, find_drift, is_comparable
        from .show.report.writing import scored_rows, write_page
        from .tables.atomic_write import check_not_an_input, check_writable

        check_writable(path)
        check_not_an_input(path, file_of(X), self._model_file, self._table_file)
        max_rows, table = check_count(max_rows, "rows"), self._read(X)
        scores, jobs = self._scores(table), resolve_jobs(self.n_jobs)
        rule, drift = rule or self._rule_for(X, segments, scores=scores), None
        if is_comparable(self.model_, len(table)):
            drift = find_drift(self.prepared, table, scores, rule, LEVEL, jobs)
        scored = scored_rows(
            self.model_,
            self._features_of(X),
            table,
            scores,
            rule,
            max_rows,
            kept,
            Path(path).stem,
            drift,
        )
        return write_page(self.prepared, scored, path, rule, jobs)


def file_of(table: Any) -> str | os.PathLike[str] | None:
    """The file of a memory-mapped array."""
    return getattr(table, "filename", None) if isinstance(table, np.memmap) else None
