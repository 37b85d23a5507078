"""Columns of times: which they are, and the features that they become.

A time becomes its hour, weekday and month, which are categories, and its position in the span of
the training times, in days. Times outside of the span have no position: new rows are nearly always
later, and that alone is no anomaly. (With the position of the last training time, their weekdays
and months would be compared with those of the last training days.)
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InputError, InputTypeError
from ..core.formatting import moments_beside
from ..core.kinds import CYCLES, TimeColumn

Array = NDArray[np.float64]

_ISO_DAY = re.compile(r"\s*\d{4}-\d\d-\d\d")
WEEKDAYS = (*("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),)
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
# A column with this many different texts, of which this share are times, is one of times.
_FEWEST_TIMES, _MOSTLY_TIMES = 20, 0.9
_DAY = np.timedelta64(1, "D") / np.timedelta64(1, "ms")


def find_times(frame: Any, others: Collection[str] = ()) -> dict[str, TimeColumn]:
    """The columns of a training table that are times, by name.

    Those of a time type, and those of texts that are all times in the format of ISO 8601.
    others: columns that are not taken as times.
    """
    found = {}
    for j, name in enumerate(frame.columns):
        if str(name) in others:
            continue
        times = _as_times(frame.iloc[:, j])
        if times is None:
            _check_not_times(frame.iloc[:, j], str(name))
            continue
        zone, local = _zone(times), _local(times)
        known = local[~np.isnat(local)]
        if not len(known):
            continue
        start, days = known.min().astype("datetime64[D]"), _days_since(known.max(), known.min())
        parts = _parts(known)
        repeated = [
            part
            for part, cycle in CYCLES.items()
            if days >= cycle and (parts[part] != parts[part][0]).any()
        ]
        last = float(_days_since(known.max(), start))
        found[str(name)] = TimeColumn(zone, str(start), last, tuple(repeated))
    return found


def with_time_parts(frame: Any, times: Mapping[str, TimeColumn]) -> Any:
    """A pandas frame with the features of the columns of times in their place."""
    if not times:
        return frame
    import pandas

    columns: dict[str, Any] = {}
    for j, name in enumerate(map(str, frame.columns)):
        column = frame.iloc[:, j]
        if name not in times:
            columns[name] = column
            continue
        time = times[name]
        local = _like_training(column, name, time)
        missing = np.isnat(local)
        # The parts of NaT mean nothing.
        parts = _parts(np.where(missing, np.datetime64(0, "ms"), local))
        for part, feature in zip(time.parts, time.features(name), strict=False):
            columns[feature] = parts[part]
            columns[feature][missing] = None
        days = _days(local, time)
        columns[time.features(name)[-1]] = np.where(_is_inside(days, time), days, np.nan)
    return pandas.DataFrame(columns, index=frame.index)


def beyond_training(frame: Any, times: Mapping[str, TimeColumn]) -> dict[str, dict[int, str]]:
    """The times before the first or after the last training time as texts, by feature and row."""
    found = {}
    for j, name in enumerate(map(str, frame.columns)):
        if name in times:
            time = times[name]
            days = _days(_like_training(frame.iloc[:, j], name, time), time)
            beyond = np.flatnonzero(~_is_inside(days, time) & ~np.isnan(days)).tolist()
            found[time.features(name)[-1]] = {i: _text_beyond(days[i], time) for i in beyond}
    return found


def _text_beyond(days: float, time: TimeColumn) -> str:
    """A time, with the parts that tell it from the first or last training time."""
    end = 0.0 if days < 0 else time.days
    return moments_beside(time.start, end, end, days)[2]


def _is_inside(days: Array, time: TimeColumn) -> NDArray[np.bool_]:
    """Which days (rows,) are in the span of the training times."""
    return np.asarray((days >= 0.0) & (days <= time.days))


def _days(local: NDArray[np.datetime64], time: TimeColumn) -> Array:
    """The days since the start of the training times, NaN where missing. → (rows,)"""
    days = _days_since(local, np.datetime64(time.start))
    return np.where(np.isnat(local), np.nan, days)


def _like_training(column: Any, name: str, time: TimeColumn) -> NDArray[np.datetime64]:
    """The local times of a column, in the zone of the training times. → (rows,)"""
    times = _as_times(column)
    if times is None:
        if _texts(column).isna().all():
            return np.full(len(column), np.datetime64("NaT", "ms"))
        raise InputTypeError(
            f"column {name!r} had times in training and now has other values (such as "
            f"{_not_a_time(column)!r}); pass times, or text in the format 2013-12-31 23:59"
        )
    zone = _zone(times)
    if (zone is None) != (time.zone is None):
        now, then = ("no", f"the zone {time.zone!r}") if zone is None else ("a", "none")
        raise InputTypeError(
            f"the times of column {name!r} have {now} time zone, but had {then} in training; "
            "write them like those of the training table (in pandas with Series.dt.tz_localize)"
        )
    if time.zone is None:
        return _local(times)
    try:
        return _local(times.dt.tz_convert(time.zone))
    except (KeyError, ValueError, OSError) as error:
        raise InputError(f"the time zone {time.zone!r} is not known here ({error})") from error


def _as_times(column: Any) -> Any | None:
    """A pandas column as a column of a time type; None if it has anything else."""
    import pandas

    kind = column.dtype
    if isinstance(kind, pandas.ArrowDtype) and str(kind).startswith(("timestamp", "date")):
        return pandas.to_datetime(pandas.Series(column.to_numpy(dtype=object)))
    if pandas.api.types.is_datetime64_any_dtype(kind):
        return column
    if not (pandas.api.types.is_object_dtype(kind) or pandas.api.types.is_string_dtype(kind)):
        return None
    if isinstance(kind, pandas.CategoricalDtype):
        return None
    seen = pandas.api.types.infer_dtype(column, skipna=True)
    if seen in ("datetime", "datetime64", "date"):
        return _in_one_zone(column)
    if seen != "string":
        return None
    texts = _texts(column)
    known = texts.dropna()
    if not len(known) or not all(_ISO_DAY.match(text) for text in known.unique()):
        return None
    try:
        return _in_one_zone(texts, format="ISO8601")
    except ValueError:
        return None


def _in_one_zone(column: Any, **options: Any) -> Any:
    """A column of a time type; times of different zones are those of UTC."""
    import pandas

    try:
        return pandas.to_datetime(column, **options)
    except ValueError:  # also: the zones differ
        return pandas.to_datetime(column, utc=True, **options)


def _texts(column: Any) -> Any:
    """The cells of a column, with None for those that are missing or blank."""
    import pandas

    cells = [
        None if missing or (isinstance(cell, str) and not cell.strip()) else cell
        for cell, missing in zip(column.to_numpy(dtype=object), column.isna(), strict=True)
    ]
    return pandas.Series(cells, index=column.index, dtype=object)  # any text, also a broken one


def _check_not_times(column: Any, name: str) -> None:
    """Raise an error for a column of many different times with a few cells of other text."""
    import pandas

    if pandas.api.types.infer_dtype(column, skipna=True) != "string":
        return
    different = pandas.Series(column.dropna().unique(), dtype=object)
    different = different[different.str.strip() != ""]
    if len(different) < _FEWEST_TIMES or different.str.match(_ISO_DAY).mean() < _MOSTLY_TIMES:
        return
    times = pandas.to_datetime(different, format="ISO8601", utc=True, errors="coerce")
    wrong = different[times.isna()]
    if len(wrong) <= (1.0 - _MOSTLY_TIMES) * len(different):
        raise InputTypeError(
            f"column {name!r} has times, but also other text (first {wrong.iloc[0]!r}); correct "
            "these cells, or use the column as a category (categories in Python, --categories on "
            "the command line)"
        )


def _not_a_time(column: Any) -> Any:
    known = column.dropna()
    return next((cell for cell in known if not _ISO_DAY.match(str(cell))), known.iloc[0])


def _zone(times: Any) -> str | None:
    zone = getattr(times.dtype, "tz", None)
    return None if zone is None else str(zone)


def _local(times: Any) -> NDArray[np.datetime64]:
    """As clocks in the zone show them. → (rows,)"""
    naive = times if _zone(times) is None else times.dt.tz_localize(None)
    return np.asarray(naive.to_numpy().astype("datetime64[ms]"))


def _parts(times: NDArray[np.datetime64]) -> dict[str, NDArray[np.object_]]:
    """The parts of times that are not missing, as texts. → (rows,) each"""
    days = times.astype("datetime64[D]")
    hour = (times - days).astype("timedelta64[h]").astype(np.intp)
    month = times.astype("datetime64[M]").astype(np.int64) % 12
    hours = np.array([str(hour) for hour in range(24)], dtype=object)
    return {
        "hour": hours[hour],
        # The first day of 1970 was a Thursday.
        "weekday": np.array(WEEKDAYS, dtype=object)[(days.astype(np.int64) + 3) % 7],
        "month": np.array(MONTHS, dtype=object)[month],
    }


def _days_since(times: Any, start: np.datetime64) -> Any:
    return (times - start).astype("timedelta64[ms]").astype(np.float64) / _DAY
