"""`DiffIntDetector`, the detector with PyOD's interface (needs the extra ``pyod``)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pyod.models.base import BaseDetector
from sklearn.utils.validation import check_is_fitted

from .core.config import RECOMMENDED, RUN_SETTINGS, SETTINGS, parameters_section
from .estimator import DiffInt

if TYPE_CHECKING:
    import pandas

    from .explain.global_explanation import GlobalExplanation
    from .explain.local_explanation import LocalExplanation
    from .explain.nearest_normal import NearestNormal
    from .explain.pattern_set import PatternSet

# PyOD sets the threshold from the training scores, so these two settings do not apply.
_SHARED = [s for s in SETTINGS.values() if s.name not in ("false_positive_rate", "calibration")]


class DiffIntDetector(BaseDetector):  # type: ignore[misc]
    __doc__ = f"""`DiffInt` with PyOD's interface.

`fit` trains on the rows and scores them; `threshold_` and `labels_` are computed from
`contamination`. The other parameters are those of `DiffInt`.

`explain`, `nearest_normal`, `match`, `explain_global`, `patterns`, `report` and `p_values` are
those of `DiffInt`, with PyOD's `threshold_`; everything else is available from `detector_`.

Parameters
----------
contamination : float, default=0.1
    Share of outliers in the training set.
{parameters_section(_SHARED)}

Attributes
----------
detector_ : DiffInt
    The fitted detector.
decision_scores_, threshold_, labels_
    As in every PyOD detector.
"""

    def __init__(
        self,
        contamination: float = 0.1,
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
        categories: Any = RUN_SETTINGS["categories"].default,
        suspected_share: float | str = RECOMMENDED.suspected_share,
        device: str = RUN_SETTINGS["device"].default,
        random_state: Any = RUN_SETTINGS["random_state"].default,
        n_jobs: int | None = RUN_SETTINGS["n_jobs"].default,
        verbose: int = RUN_SETTINGS["verbose"].default,
    ) -> None:
        super().__init__(contamination=contamination)
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
        self.categories = categories
        self.suspected_share = suspected_share
        self.device = device
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> DiffIntDetector:
        """Fit on X (rows, features); `y` is ignored."""
        for name in ("detector_", "decision_scores_", "threshold_", "labels_"):
            self.__dict__.pop(name, None)  # a failed fit does not keep the old model
        self._set_n_classes(y)
        shared = {k: v for k, v in self.get_params().items() if k != "contamination"}
        # PyOD sets the threshold from the training scores: no rows are left out for calibration,
        # and false_positive_rate is not used.
        self.detector_ = DiffInt(calibration="training", false_positive_rate=0.5, **shared).fit(X)
        self.decision_scores_ = self.detector_.anomaly_score(X)
        self._process_decision_scores()
        return self

    def _fitted(self) -> DiffInt:
        """The fitted detector; raises an error if there is none."""
        check_is_fitted(self, ["decision_scores_", "threshold_", "labels_"])
        return self.detector_

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Anomaly scores of the rows of X; higher is more anomalous. (rows,)"""
        return self._fitted().anomaly_score(X)

    def explain(self, X: Any) -> LocalExplanation:
        """Why rows score as they do: nearest pattern, violated ranges, responsible features.

        A row is flagged above `threshold_`. p-values are based on the training rows.
        """
        return self._fitted()._explain(X, float(self.threshold_))

    def nearest_normal(self, X: Any, *, max_changes: int = 3) -> NearestNormal:
        """For each row above `threshold_` the smallest set of changes found that makes it normal.

        Parameters
        ----------
        X : table of shape (rows, features)
        max_changes : int, default=3
            Largest number of features to change.
        """
        return self._fitted()._nearest_normal(X, float(self.threshold_), max_changes)

    def match(self, X: Any) -> pandas.DataFrame:
        """The nearest pattern of each row, and whether the row lies inside its box."""
        return self._fitted().match(X)

    def explain_global(self) -> GlobalExplanation:
        """What the model learned: importance of features, ranges of patterns and their coverage."""
        return self._fitted().explain_global()

    def report(
        self,
        X: Any,
        path: str | os.PathLike[str],
        *,
        max_rows: int = 1_000,
        kept: Mapping[str, Any] | None = None,
    ) -> Path:
        """Write an HTML page with the rows above `threshold_`, as `DiffInt.report` does."""
        detector, threshold = self._fitted(), float(self.threshold_)
        rate = float((detector.model_.calibration.scores > threshold).mean())
        return detector._report(X, path, max_rows, kept, threshold, rate)

    def patterns(self, max_patterns: int = 20, max_conditions: int = 5) -> PatternSet:
        """The model on one page: a few patterns of normal rows with a few conditions each."""
        return self._fitted().patterns(max_patterns, max_conditions)

    def p_values(self, X: Any) -> NDArray[np.float64]:
        """The share of training rows that score at least as high; optimistic, with a warning."""
        return self._fitted().p_values(X)
