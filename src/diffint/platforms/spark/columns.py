"""Columns of Spark data frames: their names, their types, and their cells as pandas has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow
import pyarrow.compute as compute
from pyspark.sql import DataFrame as SparkFrame
from pyspark.sql import functions, types

from ...core.errors import InputTypeError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_NUMBERS = (types.NumericType, types.BooleanType, types.NullType)
_TIMES = (types.TimestampType, types.TimestampNTZType, types.DateType)


def column(name: str) -> Column:
    """The column with exactly this name, which may have dots in it."""
    return functions.col(f"`{name.replace('`', '``')}`")


def is_number(kind: types.DataType) -> bool:
    """Whether cells of a Spark type are numbers."""
    return isinstance(kind, _NUMBERS)


def is_time(kind: types.DataType) -> bool:
    """Whether cells of a Spark type are points in time."""
    return isinstance(kind, _TIMES)


def check_frame(df: Any) -> None:
    """Raise an error if this is not a Spark data frame."""
    if not isinstance(df, SparkFrame):
        raise InputTypeError(
            f"the rows are a {type(df).__module__.split('.')[0]} {type(df).__name__}; pass a Spark "
            "data frame, such as spark.createDataFrame(frame)"
        )


def check_numbers(df: DataFrame, names: Sequence[str]) -> None:
    """Raise an error if columns that a model needs as numbers have another type."""
    for name in names:
        kind = df.schema[name].dataType
        if not is_number(kind):
            raise InputTypeError(
                f"column {name!r} has the type {kind.simpleString()}, but had numbers in training; "
                "cast it to double, or fit a new model"
            )


def check_cells(df: DataFrame, names: Sequence[str], advice: str) -> None:
    """Raise an error if columns have a type of which no feature can be made."""
    for name in names:
        kind = df.schema[name].dataType
        if not (is_number(kind) or is_time(kind) or isinstance(kind, types.StringType)):
            raise InputTypeError(
                f"column {name!r} has the type {kind.simpleString()}; {advice} numbers, text or "
                "times"
            )


def with_local_times(table: Any, zoned: Sequence[str] = ()) -> Any:
    """A pyarrow table with the times of Spark as pandas has them: local times of the session.

    Spark's timestamps are moments, shown in the session's time zone (`spark.sql.session.timeZone`).
    zoned: columns that keep their time zone, because the model's times have one.
    """
    for i, field in enumerate(table.schema):
        zone = field.type.tz if pyarrow.types.is_timestamp(field.type) else None
        if zone is not None and field.name not in zoned:
            table = table.set_column(i, field.name, compute.local_timestamp(table.column(i)))
    return table
