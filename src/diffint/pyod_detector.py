"""`DiffIntDetector`, the detector with PyOD's interface (needs the extra ``pyod``)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .core import unchanged_random  # noqa: F401  # isort: skip # before scikit-learn, by PyOD

import numpy as np
from numpy.typing import NDArray
from pyod.models.base import BaseDetector
from sklearn.utils.validation import check_is_fitted

from .core.checks import check_choice
from .core.config import RECOMMENDED, RUN_SETTINGS, SETTINGS, parameters_section
from .core.errors import InputError
from .core.flag_rule import FlagRule
from .estimator import DiffInt

if TYPE_CHECKING:
    import pandas

    from .decide.selection import Selection
    from .explain.global_explanation import GlobalExplanation
    from .explain.local_explanation import LocalExplanation
    from .explain.nearest_normal import NearestNormal
    from .explain.pattern_set import PatternSet

# PyOD sets the threshold from the training scores, so these settings do not apply, or differ.
_OTHERS = ("false_positive_rate", "calibration", "confidence")
_SHARED = [s for s in SETTINGS.values() if s.name not in _OTHERS]
_CALIBRATIONS = ("training", "members")


class DiffIntDetector(BaseDetector):  # type: ignore[misc]
    __doc__ = f"""`DiffInt` with PyOD's interface.

`fit` trains on the rows and scores them; `threshold_` and `labels_` are computed from
`contamination`. The other parameters are those of `DiffInt`.

`explain`, `nearest_normal`, `match`, `explain_global`, `patterns`, `report`, `p_values` and
`select` are those of `DiffInt`, with PyOD's `threshold_`; everything else is available from
`detector_`.

Parameters
----------
contamination : float, default=0.1
    Share of outliers in the training set.
calibration : {{'training', 'members'}}, default='training'
    'training' trains on every row, so that p-values are optimistic and rows cannot be selected by
    a false discovery rate. With 'members' each member leaves some rows out, and training rows are
    scored by the members that left them out: `p_values` and `select` then hold. If the training
    rows have outliers, they hold but find less; `suspected_share` leaves outliers out.
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
        calibration: str = "training",
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
        categories: Any = RUN_SETTINGS["categories"].default,
        suspected_share: float | str = RECOMMENDED.suspected_share,
        missing_words: Sequence[str] = RECOMMENDED.missing_words,
        device: str = RUN_SETTINGS["device"].default,
        random_state: Any = RUN_SETTINGS["random_state"].default,
        n_jobs: int | None = RUN_SETTINGS["n_jobs"].default,
        verbose: int = RUN_SETTINGS["verbose"].default,
    ) -> None:
        super().__init__(contamination=contamination)
        self.calibration = calibration
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
        self.categories = categories
        self.suspected_share = suspected_share
        self.missing_words = missing_words
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
        check_choice("calibration", self.calibration, _CALIBRATIONS)
        # PyOD sets the threshold from the training scores: false_positive_rate is not used.
        self.detector_ = DiffInt(false_positive_rate=0.5, **shared)
        if self.calibration == "training":
            self.decision_scores_ = self.detector_.fit(X).anomaly_score(X)
        elif self.n_members == 1:
            raise InputError("calibration='members' needs n_members of at least 2")
        else:
            from .finding import found_by

            self.decision_scores_ = found_by(self.detector_, X).scores
        self._process_decision_scores()
        return self

    def _fitted(self) -> DiffInt:
        """The fitted detector; raises an error if there is none."""
        check_is_fitted(self, ["decision_scores_", "threshold_", "labels_"])
        return self.detector_

    def _rule(self) -> FlagRule:
        """Rows above `threshold_` are flagged."""
        calibration, threshold = self._fitted().model_.calibration, float(self.threshold_)
        rate = float((calibration.scores > threshold).mean())
        return FlagRule(calibration, rate, fixed=threshold)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Anomaly scores of the rows of X; higher is more anomalous. (rows,)"""
        return self._fitted().anomaly_score(X)

    def explain(self, X: Any) -> LocalExplanation:
        """Why rows score as they do: nearest pattern, violated ranges, responsible features.

        A row is flagged above `threshold_`. p-values are based on the training rows.
        """
        return self._fitted()._explain(X, self._rule())

    def nearest_normal(self, X: Any, *, max_changes: int = 3) -> NearestNormal:
        """For each row above `threshold_` the smallest set of changes found that makes it normal.

        Parameters
        ----------
        X : table of shape (rows, features)
        max_changes : int, default=3
            Largest number of features to change.
        """
        return self._fitted()._nearest_normal(X, self._rule(), max_changes)

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
        return self._fitted()._report(X, path, max_rows, kept, self._rule())

    def patterns(self, max_patterns: int = 20, max_conditions: int = 5) -> PatternSet:
        """The model on one page: a few patterns of normal rows with a few conditions each."""
        return self._fitted().patterns(max_patterns, max_conditions)

    def p_values(self, X: Any) -> NDArray[np.float64]:
        """The share of normal rows that score at least as high.

        Optimistic, with a warning, unless ``calibration="members"``.
        """
        return self._fitted().p_values(X)

    def select(
        self,
        X: Any,
        false_discovery_rate: float = 0.1,
        *,
        method: str = "benjamini-hochberg",
        confidence: float = 0.95,
    ) -> Selection:
        """The rows to look at, as `DiffInt.select` finds them; needs ``calibration="members"``."""
        if self.calibration == "training":
            raise InputError(
                "the p-values of this detector are those of training rows, from which no false "
                "discovery rate follows; fit it with calibration='members'"
            )
        fitted = self._fitted()
        return fitted.select(X, false_discovery_rate, method=method, confidence=confidence)
