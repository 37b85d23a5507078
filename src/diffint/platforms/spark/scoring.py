"""Score the rows of a Spark data frame, at rest or streaming.

Rows travel by `mapInArrow`: the Arrow batches of `mapInPandas`, but columns that are only kept pass
unchanged, while pandas would turn whole numbers with missing cells into floats.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow
from pyspark.sql import types

from ...core.errors import InputError
from ...core.version import __version__
from ...tables.files.reading import BATCH_ROWS
from ...tables.inputs import input_columns
from ..model_bytes import check_worker_version, detector_of, model_bytes, worker_scorer
from ..score_frame import N_REASONS, FrameScorer, ScoringOptions
from .columns import check_cells, check_frame, check_numbers, column, with_local_times
from .worker_errors import plain_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ...estimator import DiffInt

_ADDED = {
    "score": types.DoubleType(),
    "p_value": types.DoubleType(),
    "flagged": types.BooleanType(),
    "reasons": types.StringType(),
}


def score(
    model: str | os.PathLike[str] | DiffInt,
    df: DataFrame,
    *,
    reasons: bool = True,
    n_reasons: int = N_REASONS,
    false_positive_rate: float | None = None,
    keep: Sequence[str] | None = None,
) -> DataFrame:
    """Score the rows of a Spark data frame; the same values as from the detector, to the bit.

    The model is checked and prepared on the workers at once, by a small job; rows are scored when
    the result is used. A streaming data frame gives a streaming data frame.

    Parameters
    ----------
    model : DiffInt or path
        A fitted detector, or its file, which only the driver reads.
    df : Spark DataFrame
        Columns are found by name; others than the model's are only kept.
    reasons : bool, default=True
        Whether flagged rows get a line of reasons.
    n_reasons : int, default=3
        Most reasons of a row.
    false_positive_rate : float, default=None
        Instead of the model's.
    keep : list of names, default=None
        Columns that the result has too, such as an id; None for all.

    Returns
    -------
    scored : Spark DataFrame
        The kept columns, score, p_value, flagged and reasons (null for rows that are not flagged).
    """
    check_frame(df)
    options = ScoringOptions(reasons, n_reasons, false_positive_rate, keep)
    content = model_bytes(model)
    scorer = FrameScorer(detector := detector_of(content), options)
    scorer.check_columns(df.columns)
    kinds = input_columns(detector.model_)
    check_numbers(df, [name for name, kind in kinds.items() if kind == "number"])
    check_cells(df, [name for name, kind in kinds.items() if kind == "cells"], "the model needs")
    scorer.warn()
    kept = scorer.kept(df.columns)
    session = df.sparkSession
    _check_kept(session, kept, options)
    used = tuple(dict.fromkeys([*kept, *scorer.needed]))
    work = _ScoreBatches(
        content,
        replace(options, keep=()),
        used,
        tuple(scorer.needed),
        tuple(kept),
        tuple(name for name, time in detector.model_.kinds.times.items() if time.zone is not None),
        int(session.conf.get("spark.task.cpus", "1") or 1),
        __version__,
    )
    with plain_errors():
        _prepare_workers(session, work)
    fields = [df.schema[name] for name in kept]
    fields += [types.StructField(name, _ADDED[name]) for name in options.added]
    # Spark looks up the columns by name once more, which fails for names with dots.
    numbered = df.select([column(name).alias(f"c{i}") for i, name in enumerate(used)])
    return numbered.mapInArrow(work, types.StructType(fields))


def _check_kept(session: SparkSession, kept: Sequence[str], options: ScoringOptions) -> None:
    """Raise an error if a kept column cannot be told from a column of the output."""
    if str(session.conf.get("spark.sql.caseSensitive", "false")).lower() == "true":
        return
    for name in kept:
        if name.lower() in options.added:
            raise InputError(
                f"the kept column {name!r} has the same name as a column of the output, as Spark "
                "ignores case; rename it, or name the columns to keep"
            )


@dataclass(frozen=True)
class _ScoreBatches:
    """What a worker does with the batches of a partition.

    model: the bytes of its file; Spark sends a function of more than 1 MB once to each executor.
    columns: the names of all columns of a batch, in order; needed, kept: some of them; zoned:
    columns of times whose time zone the model knows; n_jobs: threads of a worker; version: of the
    driver.
    """

    model: bytes
    options: ScoringOptions
    columns: tuple[str, ...]
    needed: tuple[str, ...]
    kept: tuple[str, ...]
    zoned: tuple[str, ...]
    n_jobs: int
    version: str

    def prepared(self) -> FrameScorer:
        """The scorer of this process."""
        check_worker_version(self.version)
        return worker_scorer(self.model, self.options, self.n_jobs)

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """pyarrow batches with the kept columns and those that are added; rows in order."""
        scorer = self.prepared()
        for batch in _joined(batches):
            table = batch.rename_columns(list(self.columns))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # nobody sees them here
                added = scorer(with_local_times(table.select(self.needed), self.zoned))
            every = [*(table.column(name) for name in self.kept), *added.columns]
            names = [*self.kept, *added.column_names]
            yield from pyarrow.table(every, names=names).to_batches()


def _joined(batches: Iterable[Any]) -> Iterator[Any]:
    """Tables of about as many rows as the command scores at once; Spark's batches are small."""
    waiting: list[Any] = []
    for batch in batches:
        waiting.append(batch)
        if sum(one.num_rows for one in waiting) >= BATCH_ROWS:
            yield pyarrow.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pyarrow.Table.from_batches(waiting)


def _prepare_workers(session: SparkSession, work: _ScoreBatches) -> None:
    """Prepare the model on the workers, so that a worker that cannot do it is known at once."""

    def prepare(batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            work.prepared()
            yield batch.slice(0, 0)

    session.range(1_000).mapInArrow(prepare, "id bigint").count()
