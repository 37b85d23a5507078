"""Fit a detector on the rows of a Spark data frame.

Spark draws a sample of the rows, on which the detector is trained and calibrated by the library.
Over all other rows Spark finds the smallest and the largest value of each column and its quantiles,
from which, with the rows that are trained on, the scaling follows. Rows that the detector is
calibrated on have no part in what a score depends on, so that its p-values stay proven.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import functions, types

from ...core.checks import check_whole
from ...core.constants import LARGEST_TRAINING_VALUE
from ...core.errors import InputError, InputTypeError
from ...core.formatting import counted
from ...estimator import DiffInt, _seed_sequence
from ...fit.row_split import HELD_OUT_SHARE
from ...tables.files.names import check_has_columns
from .columns import check_cells, check_frame, column, is_number, is_time
from .worker_errors import plain_errors

if TYPE_CHECKING:
    import pandas
    from pyspark.sql import Column, DataFrame

SAMPLE_ROWS = 100_000
_FEWEST_ROWS = 5_000  # of a sample
_N_QUANTILES = 1_001
_RANK_ERROR = 10_000  # a quantile's rank is off by at most this part of the rows
_DRAW = "__diffint_draw"


def fit(
    df: DataFrame,
    *,
    anomalies: str | None = None,
    segments: str | None = None,
    ignore: Sequence[str] = (),
    sample_rows: int = SAMPLE_ROWS,
    **settings: Any,
) -> DiffInt:
    """Fit a detector on the normal rows of a Spark data frame.

    A table of at most 1.25 × `sample_rows` rows is fitted as by `DiffInt.fit`. Of a larger one,
    Spark draws `sample_rows` rows to train on and a quarter as many for the calibration, and finds
    ranges and quantiles over all others. Columns of text are categories and have the values of the
    sample; hours, weekdays and months of times are those of the session's time zone.

    Parameters
    ----------
    df : Spark DataFrame
        Read three times; `df.cache()` helps if it is computed rather than read.
    anomalies : name of a column, default=None
        True/False or 0/1 per row. Rows marked as anomalies are left out; the column is no feature.
    segments : name of a column, default=None
        As in `DiffInt.fit`.
    ignore : list of names, default=()
        Columns that are no features, such as an id.
    sample_rows : int, default=100000
        Rows to train on.
    **settings
        Parameters of `DiffInt`. The same integer `random_state` gives the same detector as long as
        the rows come in the same partitions and order.

    Returns
    -------
    detector : DiffInt
        Fitted on the driver.
    """
    check_frame(df)
    if "groups" in settings:
        raise InputError(
            "a Spark fit cannot keep groups of rows together; fit a sample with DiffInt.fit"
        )
    n_trained = check_whole("sample_rows", sample_rows, at_least=_FEWEST_ROWS)
    detector = DiffInt(**settings)
    features = _feature_names(df, anomalies, segments, ignore)
    with plain_errors():
        rows, n_rows = _normal_rows(df, anomalies)
        rows = rows.select(
            [column(name) for name in [*features, *([segments] if segments else [])]]
        )
        n_drawn = math.ceil(n_trained / (1 - HELD_OUT_SHARE))
        if n_rows <= n_drawn:
            detector._fit(_collected(rows), None, None, segments)
            return detector
        seed = int(_seed_sequence(detector.random_state).generate_state(1)[0])
        drawn = rows.withColumn(_DRAW, functions.rand(seed))
        sample, last = _sample(drawn, n_rows, n_drawn)
        others = drawn.where(column(_DRAW) > last)
        named = () if isinstance(detector.categories, str) else tuple(detector.categories)
        more = _quantile_frame(others, features, named)
    detector._fit(sample, None, None, segments, more=more)
    return detector


def _feature_names(
    df: DataFrame, anomalies: str | None, segments: str | None, ignore: Sequence[str]
) -> list[str]:
    """The columns to learn from."""
    if isinstance(ignore, str):
        raise InputTypeError(f"ignore is the text {ignore!r}; pass a list of column names")
    for names, option in (([anomalies], "anomalies"), ([segments], "segments"), (ignore, "ignore")):
        given = [name for name in names if name is not None]
        check_has_columns("the table", df.columns, given, f"{option} names")
    others = {anomalies, segments, *ignore}
    features = [name for name in df.columns if name not in others]
    if not features:
        raise InputError("the table has no column left to learn from")
    check_cells(df, features, "leave it out with ignore=, or cast it to")
    return features


def _normal_rows(df: DataFrame, anomalies: str | None) -> tuple[DataFrame, int]:
    """The rows that are not marked as anomalies, and their number."""
    if anomalies is None:
        n_rows = df.count()
        return df, _enough(n_rows, n_rows)
    kind = df.schema[anomalies].dataType
    if not is_number(kind):
        raise InputTypeError(
            f"column {anomalies!r}, named by anomalies, has the type {kind.simpleString()}; it "
            "must be True/False or 0/1"
        )
    mark = column(anomalies).cast("double")
    total, n_marked, n_normal = df.agg(
        functions.count(functions.lit(1)),
        functions.count(functions.when(mark == 1.0, 1)),
        functions.count(functions.when(mark == 0.0, 1)),
    ).first()
    if n_marked + n_normal < total:
        raise InputError(
            f"column {anomalies!r}, named by anomalies, must be True/False or 0/1; "
            f"{counted(total - n_marked - n_normal, 'row')} of {total:,} have something else"
        )
    return df.where(mark == 0.0), _enough(n_normal, total)


def _enough(n_normal: int, total: int) -> int:
    if n_normal < 2:
        raise InputError(
            f"{n_normal} of {counted(total, 'row')} can be trained on; training needs at least 2"
        )
    return n_normal


def _collected(rows: DataFrame) -> pandas.DataFrame:
    """The rows, on the driver; times are local times of the session, days are midnights."""
    times = [field.name for field in rows.schema if is_time(field.dataType)]
    for name in times:
        rows = rows.withColumn(name, column(name).cast("timestamp_ntz"))
    frame: pandas.DataFrame = rows.toArrow().to_pandas()
    return frame


def _sample(drawn: DataFrame, n_rows: int, n_drawn: int) -> tuple[pandas.DataFrame, float]:
    """`n_drawn` rows at random, and the largest number drawn for any of them."""
    # Six standard deviations more than expected, so that there are enough.
    share = (n_drawn + 6 * math.sqrt(n_drawn) + 36) / n_rows
    frame = _collected(drawn.where(column(_DRAW) < share))
    frame = frame.sort_values(_DRAW, kind="stable", ignore_index=True)[:n_drawn]
    return frame.drop(columns=_DRAW), float(frame[_DRAW].iloc[-1])


def _quantile_frame(
    others: DataFrame, features: Sequence[str], categories: Sequence[str]
) -> pandas.DataFrame:
    """Quantiles of each column of numbers or times, the smallest and the largest value included.

    → (quantiles, features); other columns are empty
    """
    import pandas

    frame = pandas.DataFrame(index=range(_N_QUANTILES + 2), columns=list(features), dtype=object)
    kinds = {name: others.schema[name].dataType for name in features if name not in categories}
    kinds = {name: kind for name, kind in kinds.items() if is_number(kind) or is_time(kind)}
    if not kinds:
        return frame
    levels = np.linspace(0, 1, _N_QUANTILES).tolist()
    wanted: list[Column] = []
    for name, kind in kinds.items():
        cell = _cell(name, kind)
        wanted += [functions.min(cell), functions.max(cell)]
        wanted += [functions.percentile_approx(cell, levels, _RANK_ERROR)]
    found = others.agg(*wanted).first()
    for i, (name, kind) in enumerate(kinds.items()):
        smallest, largest, quantiles = found[3 * i : 3 * i + 3]
        values = [smallest, *(quantiles or [None] * _N_QUANTILES), largest]
        if is_time(kind):
            frame[name] = pandas.to_datetime(pandas.Series(values, dtype=object))
        else:
            frame[name] = np.array(values, dtype=np.float64)
            _check_extremes(name, frame[name].to_numpy())
    return frame


def _cell(name: str, kind: types.DataType) -> Column:
    """A cell of a column of numbers or times as Spark compares them; NaN is a missing value."""
    if is_time(kind):
        return column(name).cast("timestamp_ntz")
    cell = column(name).cast("double")
    return functions.when(~functions.isnan(cell), cell)


def _check_extremes(name: str, values: NDArray[np.float64]) -> None:
    """Raise an error if a column has values that cannot be trained on. values: (any number,)"""
    if np.isinf(values).any():
        raise InputError(f"column {name!r} has infinite values; drop or cap them")
    largest = np.abs(values).max(initial=0.0, where=~np.isnan(values))
    if largest > LARGEST_TRAINING_VALUE:
        raise InputError(
            f"column {name!r} has the value ±{largest:.3g}, beyond the largest that can be trained "
            f"on, ±{LARGEST_TRAINING_VALUE:g}; if it marks a missing value, replace it with null, "
            "else divide the column by a constant"
        )
