"""A fitted detector in a world that moves: a refresh with recent rows, and what has changed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .core.checks import resolve_jobs
from .core.errors import InputTypeError
from .fitted_detector import FittedDetector, file_of
from .score.scoring import anomaly_scores
from .tables.frames import read_table
from .tables.row_marks import read_anomalies, read_groups, read_segments

if TYPE_CHECKING:
    from .explain.comparison import ModelComparison


class MovingDetector(FittedDetector):
    """A fitted detector whose model can be adapted to recent rows, and compared with others."""

    _train: Any  # of `DiffInt`

    def refresh(
        self, X: Any, anomalies: Any = None, groups: Any = None, segments: Any = None
    ) -> ModelComparison:
        """Adapt the model to recent normal rows, and say what has moved.

        Training goes on from the networks of the model, for a tenth of the epochs of a fit, so that
        pattern k stays pattern k. Scaling, kept rows, ranges and threshold are those of the
        recent rows; the settings are the model's. Accepted rows stay accepted. If a refresh fails
        or is interrupted, the former model remains.

        The false-positive rate holds as after a fit if none of the rows were used for the former
        model: rows that the networks have seen do not show how new ones score. A warning is given
        if rows are recognised.

        Parameters
        ----------
        X : table of shape (rows, features)
            Recent rows, with the columns of the training table. New values of categories are
            learned, and values that do not occur any more are forgotten.
        anomalies, groups, segments : as in `fit`
            Of groups that are not given, only copies are found, unless the former rows had groups.
            Segments are by default those of the column that the model was fitted with.

        Returns
        -------
        comparison : ModelComparison
            What has changed: `ranges` of patterns that moved, `features`, thresholds, and the share
            of the rows that each model flags; `text()`, `to_frame()`.
        """
        from .explain.comparison import compare_models
        from .fit.refreshing import warn_of_known_rows
        from .tables.recent_kinds import find_recent_kinds

        check_is_fitted(self, "model_")
        former, former_rule, index = self.model_, self.rule, getattr(X, "index", None)
        if segments is None and former.calibration.segment_names:
            segments = self.segment_column_
        labels = None if isinstance(segments, str) else segments
        rows = self._read(X)
        was_flagged = self._flags(X, rows, labels)
        mask = read_anomalies(anomalies, len(rows), index)
        codes = read_groups(groups, len(rows), index)
        warn_of_known_rows(former, rows)
        table, parted = read_segments(X, segments)
        kinds = find_recent_kinds(table, former.kinds)
        recent = read_table(self, table, reset=False, kinds=kinds)
        state = dict(self.__dict__)
        try:
            self._train(recent, kinds, mask, codes, parted, former.config, start=former)
            self._table_file = file_of(X)
            flagged = self._flags(X, self._read(X), labels)
            found = compare_models(former, former_rule, self.model_, self.rule)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(state)
            raise
        usual = ~mask
        return replace(
            found,
            was_flagged=float(was_flagged[usual].mean()),
            flagged=float(flagged[usual].mean()),
        )

    def _flags(self, X: Any, table: NDArray[Any], segments: Any) -> NDArray[np.bool_]:
        """Which rows are flagged. table: (rows, features) the rows as `_read` gives them"""
        scores = anomaly_scores(self.prepared, table, resolve_jobs(self.n_jobs))
        return self._rule_for(X, segments, warn=False).flagged(scores)

    def compare(self, former: FittedDetector) -> ModelComparison:
        """What is different from another model: features, settings, threshold, ranges.

        If one is a refresh of the other, or both of the same model, their patterns are compared one
        by one; otherwise only the values of each feature. Needs no rows.
        """
        from .explain.comparison import compare_models

        check_is_fitted(self, "model_")
        if not isinstance(former, FittedDetector):
            raise InputTypeError(
                f"compare needs a detector, but got {type(former).__name__}; load the file of a "
                "model with DiffInt.load"
            )
        check_is_fitted(former, "model_")
        return compare_models(former.prepared.model, former.rule, self.model_, self.rule)
