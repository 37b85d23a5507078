"""A fitted detector in a world that moves: drift, rows that are called normal, a refresh."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .certifying_detector import CertifyingDetector
from .core.checks import check_real, resolve_jobs
from .core.errors import InputError, InputTypeError
from .decide import thresholds
from .fitted_detector import FittedDetector, file_of
from .score.scoring import anomaly_scores
from .tables.frames import read_table
from .tables.row_marks import read_anomalies, read_groups, read_segments

if TYPE_CHECKING:
    import pandas

    from .decide.drift import Drift
    from .explain.comparison import ModelComparison


class MovingDetector(CertifyingDetector):
    """A fitted detector whose model can be adapted to recent rows, and compared with others."""

    _train: Any  # of `DiffInt`

    def drift(self, X: Any, level: float = 0.01, *, segments: Any = None) -> Drift:
        """Whether the population has moved since the fit, where, and what alerts that explains.

        Every feature is compared with the calibration rows that the model stores: its mean and
        spread, its missing cells, its values if it is a category, its products with other numbers,
        and, with calibration="holdout", the score. All functions are bounded, so that a few
        anomalies are no drift. The p-values are from permutations of the rows: exact if rows are
        exchangeable, that is, independent. Copies and rows that belong together make them too
        small. Features of times, and a score with times in it, are not compared, as new rows
        always have new ones.

        Parameters
        ----------
        X : table of shape (rows, features)
            At least 20 rows; of more than 5,000, these many are compared, drawn at random.
        level : float, default=0.01
            Probability of seeing a drift where there is none, at most; over all features.
        segments : array-like of shape (rows,), default=None
            As in `p_values`; they decide which rows are flagged.

        Returns
        -------
        drift : Drift
            `drifted`, `p_value`, `features` (the one that moved most first), `to_frame()`,
            `explained` (share of flagged rows if features were as in training), `text()`, `plot()`.
        """
        from .decide.drift import check_enough_rows, find_drift

        level = check_real("level", level, above=0.0, below=1.0)
        check_is_fitted(self, "model_")
        check_enough_rows(X)
        table = self._read(X)
        scores = self._scores(table)
        rule = self._rule_for(X, segments, False, scores)
        return find_drift(self.prepared, table, scores, rule, level, resolve_jobs(self.n_jobs))

    # --- Accepting -------------------------------------------------------------------------

    def accept(self, X: Any, segments: Any = None) -> pandas.DataFrame:
        """Call flagged rows normal: rows like them are not flagged from the next call on.

        A row is like an accepted one if it has nearly the same values in the features for which
        that was flagged, and would not be flagged with plausible values there: what else is wrong
        with it is still found. Its p-value is 1, so that `select` never chooses it; the false
        discovery rate of the others holds as before. No refit; the rows become part of the model
        and of its file. `withdraw` takes them back.

        Parameters
        ----------
        X : table of shape (rows, features)
            Rows that are flagged; others need not be accepted, and are ignored with a warning.
        segments : array-like of shape (rows,), default=None
            As in `p_values`.

        Returns
        -------
        accepted : DataFrame
            All rows that are accepted now, as `accepted` has them.
        """
        from .explain.acceptance import accepted_rows

        table, jobs = self._read(X), resolve_jobs(self.n_jobs)
        found, flagged = accepted_rows(self.prepared, table, self._rule_for(X, segments), jobs)
        thresholds.warn_of_accepted_rows(int((~flagged).sum()))
        self._set_model(replace(self.model_, called_normal=self.model_.accepted.and_also(found)))
        return self.accepted

    def withdraw(self, accepted: Any) -> pandas.DataFrame:
        """Take back what was accepted. accepted: index labels of the frame `accepted`"""
        places = np.atleast_1d(np.asarray(accepted))
        known = np.arange(len(self.model_.accepted))
        if places.size and (places.dtype.kind not in "iu" or not np.isin(places, known).all()):
            numbers = f"from 0 to {len(known) - 1}; " if len(known) else ""
            raise InputError(
                f"withdraw takes numbers of accepted rows, {numbers}there are {len(known)}"
            )
        remaining = self.model_.accepted.without(places)
        self._set_model(replace(self.model_, called_normal=remaining if len(remaining) else None))
        return self.accepted

    @property
    def accepted(self) -> pandas.DataFrame:
        """One line per row that was accepted: when, for which features, and all its values."""
        from .explain.acceptance import accepted_frame

        check_is_fitted(self, "model_")
        return accepted_frame(self.model_)

    # --- Refreshing ------------------------------------------------------------------------

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
        return self._rule_for(X, segments, False, scores).flagged(scores)

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
