"""Which training rows a row is compared with, and how far they are from it."""

from __future__ import annotations

from ..kernel_cache import compiled


@compiled
def find_meeting(rows, order, feature, n, conditions, lower, upper, found):
    """Copy the values of a feature, in order, of the rows that meet all conditions; how many.

    rows: (features, rows); order: (features, rows) the rows in the order of their values, of which
    the first n have one; conditions: (some,) features; lower, upper: (some,) their ranges;
    found: (at least n,)
    """
    count = 0
    for k in range(n):
        one = order[feature, k]
        meets = True
        for i in range(len(conditions)):
            value = rows[conditions[i], one]
            meets &= (value >= lower[i]) & (value <= upper[i])
        found[count] = rows[feature, one]
        count += meets
    return count


@compiled
def add_differences(row, rows, features, total):
    """Add the differences of a row from all rows in some features; of missing values, none.

    row: (features,); rows: (features, rows), NaN where missing; total: (rows,)
    """
    for j in features:
        value = row[j]
        if value != value:
            continue
        column = rows[j]
        for k in range(len(total)):
            difference = abs(value - column[k])
            total[k] += difference if difference == difference else 0.0
