"""A compact set of patterns as an SQL query."""

from __future__ import annotations

import numpy as np

from ...core.errors import InputError
from ...core.kinds import TimeColumn
from ...explain.pattern_set import PatternSet
from ...tables.categories import OTHER
from ...tables.times import MONTHS, WEEKDAYS

_FLAG = "outside_all_patterns"
# Characters that are cut off the ends of texts: those that Python calls white space.
_BLANKS = (
    " \t\n\v\f\r\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007"
    "\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)


def select_statement(patterns: PatternSet, table: str) -> str:
    """A SELECT of all columns and whether a row is outside all patterns, 1 or 0.

    NULL meets every condition, like a missing value.
    """
    if not isinstance(table, str) or not all(table.split(".")):
        raise InputError(f"table={table!r} must be the name of a table, such as 'schema.table'")
    if _FLAG in patterns.columns:
        raise InputError(f"the result would have two columns {_FLAG!r}; rename that of the table")
    name = ".".join(map(quoted, table.split(".")))
    columns = _columns(patterns)
    tests = []
    for k in range(len(patterns)):
        conditions = [_condition(patterns, k, j, *columns[j]) for j in patterns.conditions(k)]
        tests.append("(" + "\n        AND ".join(conditions) + ")")
    any_pattern = "\n      OR ".join(tests) or "1 = 0"
    return (
        "SELECT *,\n  CASE WHEN\n      "
        f"{any_pattern}\n    THEN 0 ELSE 1 END AS {quoted(_FLAG)}\nFROM {name}"
    )


def quoted(name: str) -> str:
    """A name in standard SQL's quotation marks."""
    if "\0" in name or not name:
        raise InputError(f"the name {name!r} cannot be written in SQL; rename the column")
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _columns(patterns: PatternSet) -> dict[int, tuple[str, TimeColumn | None, str]]:
    """For each feature its column, and if it is made from times, how and which part it is."""
    times = patterns.kinds.times
    made = {
        feature: (column, time, part)
        for column, time in times.items()
        for part, feature in zip((*time.parts, "days"), time.features(column), strict=True)
    }
    return {j: made.get(name, (name, None, "")) for j, name in enumerate(patterns.feature_names)}


def _condition(
    patterns: PatternSet, k: int, j: int, column: str, time: TimeColumn | None, part: str
) -> str:
    lower, upper = float(patterns.lower[k, j]), float(patterns.upper[k, j])
    name = quoted(column)
    if time is not None:
        return f"({name} IS NULL OR {_time_test(patterns, k, j, name, time, part)})"
    if j not in patterns.categories:
        # A column of truth values counts as 0 and 1.
        value = f"CAST({name} AS DOUBLE PRECISION)"
        return f"({name} IS NULL OR {value} BETWEEN {_number(lower)} AND {_number(upper)})"
    text = f"TRIM(BOTH {_text(_BLANKS)} FROM CAST({name} AS VARCHAR))"
    allowed = patterns.allowed_values(k, j)
    word = "IN"
    if OTHER in allowed:  # values that are not in the list are allowed too
        allowed = [v for v in patterns.categories[j] if v not in allowed]
        word = "NOT IN"
    if not allowed:
        return "(1 = 1)"
    written = [way for value in allowed for way in _ways_to_write(value)]
    values = ", ".join(map(_text, ["", *written] if word == "IN" else written))
    return f"({name} IS NULL OR {text} {word} ({values}))"


def _ways_to_write(value: str) -> list[str]:
    """A value of a category as a text, and as SQL writes a truth value or a whole number."""
    if value in ("True", "False"):
        return [value, value.lower()]
    return [value, f"{value}.0"] if value.removeprefix("-").isdecimal() else [value]


def _time_test(patterns: PatternSet, k: int, j: int, name: str, time: TimeColumn, part: str) -> str:
    local = f"CAST({name} AS TIMESTAMP)"  # from a text, too
    if time.zone is not None:
        moment = f"CAST({name} AS TIMESTAMP WITH TIME ZONE)"
        local = f"({moment} AT TIME ZONE {_text(time.zone)})"
    if part == "days":
        start = int(np.datetime64(time.start, "s").astype(np.int64))
        days = f"(EXTRACT(EPOCH FROM {local}) - {start}) / 86400.0"
        ends = float(patterns.lower[k, j]), float(patterns.upper[k, j])
        inside = f"{days} BETWEEN {_number(ends[0])} AND {_number(ends[1])}"
        # Times before the first or after the last training time have no position.
        return f"{inside} OR NOT {days} BETWEEN 0 AND {_number(time.days)}"
    allowed = patterns.allowed_values(k, j)
    field, number_of = {
        "hour": ("HOUR", {str(hour): hour for hour in range(24)}),
        "weekday": ("ISODOW", {day: i + 1 for i, day in enumerate(WEEKDAYS)}),
        "month": ("MONTH", {month: i + 1 for i, month in enumerate(MONTHS)}),
    }[part]
    values = ", ".join(map(str, sorted(number_of[value] for value in allowed)))
    return f"EXTRACT({field} FROM {local}) IN ({values})"


def _number(value: float) -> str:
    """Reads back as exactly the same double; with an exponent, since 0.1 alone is a decimal."""
    text = repr(value)
    return text if "e" in text else f"{text}e0"
