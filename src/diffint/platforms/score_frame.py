"""Scores, p-values, flags and reasons of the rows of a frame: what every platform computes.

The values are those of `anomaly_score`, `p_values`, `predict` and `explain(…).brief`, to the bit,
and those that ``diffint score`` writes to a Parquet file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow
from numpy.typing import NDArray

from ..core.arrow_checks import check_arrow
from ..core.checks import check_whole, resolve_jobs
from ..core.config import check_false_positive_rate
from ..core.errors import InputError, InputTypeError
from ..core.formatting import listed
from ..decide import thresholds
from ..tables.files.names import check_has_columns
from ..tables.frames import as_pandas, new_texts_of, with_text_names
from ..tables.inputs import input_columns
from ..tables.row_marks import segment_codes

if TYPE_CHECKING:
    from ..core.flag_rule import FlagRule
    from ..estimator import DiffInt

N_REASONS = 3
SCORE_TYPES = {
    "score": pyarrow.float64(),
    "p_value": pyarrow.float64(),
    "flagged": pyarrow.bool_(),
    "reasons": pyarrow.string(),
}


@dataclass(frozen=True)
class ScoringOptions:
    """What to compute for each row, beside score, p_value and flagged.

    reasons: whether flagged rows get a line of reasons; n_reasons: how many at most;
    false_positive_rate: instead of the model's; keep: columns of the input that the output has too,
    None for all.
    """

    reasons: bool = True
    n_reasons: int = N_REASONS
    false_positive_rate: float | None = None
    keep: Sequence[str] | None = None

    def __post_init__(self) -> None:
        check_whole("n_reasons", self.n_reasons)
        if self.false_positive_rate is not None:
            check_false_positive_rate(self.false_positive_rate)
        if isinstance(self.keep, str):
            raise InputTypeError(f"keep is the text {self.keep!r}; pass a list of column names")
        if self.keep is not None:  # so that options are equal if they say the same
            object.__setattr__(self, "keep", tuple(self.keep))

    @property
    def added(self) -> dict[str, Any]:
        """The columns that scoring adds, with their pyarrow types."""
        return {
            name: kind for name, kind in SCORE_TYPES.items() if self.reasons or name != "reasons"
        }


class FrameScorer:
    """Scores frames, one after another, with one fitted detector.

    Columns are found by name, in any order; columns that the model does not know are only kept.
    Raises an error at once if the detector cannot score rows of a frame. Uses `n_jobs` of the
    detector.
    """

    def __init__(self, detector: DiffInt, options: ScoringOptions | None = None) -> None:
        self._detector, self._options = detector, options or ScoringOptions()
        # For all frames, as finding the scores of many segments takes long.
        rule, rate = detector.rule, self._options.false_positive_rate
        self._rule: FlagRule = rule if rate is None else replace(rule, rate=float(rate))
        self._kinds = input_columns(detector.model_)
        self._segment_column = detector.segment_column_ if self._segment_names else None
        if self._segment_names and self._segment_column is None:
            raise InputError(
                "the model has segments that are not from a column, so that they cannot be found "
                "in a frame; fit with the name of a column"
            )

    @property
    def _segment_names(self) -> tuple[str, ...]:
        return self._detector.model_.calibration.segment_names

    @property
    def needed(self) -> list[str]:
        """The columns that frames must have, in the model's order."""
        names = [name for name, kind in self._kinds.items() if kind != "unused"]
        others = [] if self._segment_column in (None, *names) else [str(self._segment_column)]
        return names + others

    def kept(self, columns: Sequence[str]) -> list[str]:
        """The columns of a frame that the output has too; columns: all of its columns."""
        keep = self._options.keep
        return list(columns if keep is None else dict.fromkeys(keep))

    def check_columns(self, columns: Sequence[str]) -> None:
        """Raise an error if frames with these columns cannot be scored."""
        repeated = [name for name in dict.fromkeys(columns) if list(columns).count(name) > 1]
        if repeated:
            names = listed([repr(name) for name in repeated])
            raise InputError(f"column names must be unique; repeated: {names}")
        check_has_columns("the table", columns, self.needed, "the model needs")
        kept = self.kept(columns)
        check_has_columns("the table", columns, kept, "keep names")
        taken = [name for name in kept if name in self._options.added]
        if taken:
            raise InputError(
                f"the kept column {taken[0]!r} has the same name as a column of the output; rename "
                "it, or name the columns to keep"
            )

    def warn(self) -> None:
        """Give the model's warnings: too few calibration scores for the rate, or optimistic."""
        thresholds.warn_if_out_of_reach(self._rule)
        thresholds.warn_of_pooled_segments(self._rule)
        thresholds.warn_if_optimistic(self._rule)

    def __call__(self, rows: Any) -> Any:
        """The kept columns of a frame, then score, p_value, flagged and reasons.

        rows: pandas frame or pyarrow table with n rows, also none → the same kind of frame, n rows
        in the same order, a pandas frame with the same index. reasons is null unless flagged.
        """
        if isinstance(rows, pyarrow.RecordBatch):
            rows = pyarrow.Table.from_batches([rows])
        is_arrow = isinstance(rows, pyarrow.Table)
        if is_arrow:
            check_arrow(rows)  # kept columns too, which are not read here
        else:
            frame = as_pandas(rows)
            if frame is None:
                raise InputTypeError(
                    f"the rows are a {type(rows).__name__}; pass a pandas frame or a pyarrow table"
                )
            rows = with_text_names(frame)
        columns = list(rows.column_names if is_arrow else rows.columns)
        self.check_columns(columns)
        needed = [name for name in columns if name in self._kinds or name == self._segment_column]
        added = self._scored(rows.select(needed).to_pandas() if is_arrow else rows[needed])
        kept = self.kept(columns)
        if not is_arrow:
            arrays = {name: array.to_numpy(zero_copy_only=False) for name, array in added.items()}
            return rows[kept].assign(**arrays)
        every = [*(rows.column(name) for name in kept), *added.values()]
        return pyarrow.table(every, names=[*kept, *added])

    def _scored(self, frame: Any) -> dict[str, Any]:
        """The added columns, as pyarrow arrays (rows,)."""
        types = self._options.added
        if not len(frame):
            return {name: pyarrow.array([], kind) for name, kind in types.items()}
        detector = self._detector
        features = self._features(frame)
        values = detector._read(features)
        scores = detector._scores(values)
        rule = detector._with_accepted(self._rule.for_rows(self._segments(frame)), values, scores)
        flagged = rule.flagged(scores)
        found: dict[str, Any] = {
            "score": scores,
            "p_value": rule.p_values(scores),
            "flagged": flagged,
        }
        if self._options.reasons:
            found["reasons"] = self._reasons(features, values, rule, flagged)
        return {name: pyarrow.array(found[name], kind) for name, kind in types.items()}

    def _features(self, frame: Any) -> Any:
        """The columns of the training table, in its order; those that the fit ignored are empty."""
        import pandas

        names = self._detector.model_.columns
        unused = [name for name, kind in self._kinds.items() if kind == "unused"]
        if unused:
            empty = pandas.Series([None] * len(frame), index=frame.index, dtype=object)
            frame = frame.assign(**dict.fromkeys(unused, empty))
        features = frame[names]
        if not hasattr(self._detector, "feature_names_in_"):  # fitted on an array
            features = features.set_axis(range(len(names)), axis=1)
        return features

    def _segments(self, frame: Any) -> NDArray[np.int64] | None:
        if not self._segment_names:
            return None
        return segment_codes(frame, None, self._segment_names, self._segment_column)

    def _reasons(
        self, features: Any, values: NDArray[Any], rule: FlagRule, flagged: NDArray[np.bool_]
    ) -> list[str | None]:
        """One line for each flagged row, None for the others. (rows,)"""
        from ..explain.explain_rows import brief_reasons

        detector = self._detector
        new = new_texts_of(features, values, detector.model_.kinds, np.flatnonzero(flagged))
        n_reasons, jobs = self._options.n_reasons, resolve_jobs(detector.n_jobs)
        return brief_reasons(detector.prepared, values, rule, flagged, new, n_reasons, jobs)


def score_frame(
    detector: DiffInt,
    rows: Any,
    *,
    reasons: bool = True,
    n_reasons: int = N_REASONS,
    false_positive_rate: float | None = None,
    keep: Sequence[str] | None = None,
) -> Any:
    """Score the rows of one frame.

    Parameters
    ----------
    detector : DiffInt
        Fitted.
    rows : pandas DataFrame or pyarrow Table of n rows
        Columns are found by name; others than the model's are only kept.
    reasons : bool, default=True
        Whether flagged rows get a line of reasons.
    n_reasons : int, default=3
        Most reasons of a row.
    false_positive_rate : float, default=None
        Instead of the model's.
    keep : list of names, default=None
        Columns that the output has too; None for all.

    Returns
    -------
    scored : DataFrame or Table of n rows, as `rows`
        The kept columns, score, p_value, flagged and reasons (null for rows that are not flagged).
    """
    scorer = FrameScorer(detector, ScoringOptions(reasons, n_reasons, false_positive_rate, keep))
    scorer.warn()
    return scorer(rows)
