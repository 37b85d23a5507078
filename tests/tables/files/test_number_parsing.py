"""Cells are parsed as numbers; an error names the first one that is not a number."""

import re
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from diffint.tables.files.number_parsing import NotNumbers, NotNumeric, as_numbers
from diffint.tables.files.parsing import parsed


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([1, None, 3]), [1, np.nan, 3]),
        (pa.array([True, False, None]), [1, 0, np.nan]),
        (pa.array([1.5, float("nan")], pa.float32()), [1.5, np.nan]),
        (pa.array([Decimal("1.25"), None]), [1.25, np.nan]),
        (pa.array([None, None]), [np.nan, np.nan]),
        (pa.array(["1", "2", "1"]).dictionary_encode(), [1, 2, 1]),
        (pa.chunked_array([["1"], ["2"]]), [1, 2]),
        (pa.array([" 1.5 ", "\t2", "-3e2", "NA", "", "n/a", "?"]), [1.5, 2, -300] + [np.nan] * 4),
        (pa.array(["True", "false", "0.5"]), [1, 0, 0.5]),
        (pa.array(["1e400", "-1e400"]), [np.inf, -np.inf]),
        (pa.array([2**60]), [float(2**60)]),
        (pa.array([], pa.string()), []),
    ],
)
def test_numbers(column, expected):
    np.testing.assert_array_equal(as_numbers(column), expected)


def test_decimal_commas():
    np.testing.assert_array_equal(as_numbers(pa.array(["1,5", "2"]), ","), [1.5, 2])


@pytest.mark.parametrize(
    ("column", "row", "value"),
    [
        (pa.array(["1", "NA", "dog", "cat"]), 2, "dog"),
        (pa.array(["1_000"]), 0, "1_000"),
        (pa.array(["1,5"]), 0, "1,5"),
    ],
)
def test_cells_that_are_not_numbers(column, row, value):
    with pytest.raises(NotNumbers) as found:
        as_numbers(column)
    assert (found.value.row, found.value.value) == (row, value)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([None, [1, 2]]),
        pa.array([{"x": 1}]),
        pa.array([b"1"]),
        pa.array([2**62], pa.timestamp("s")),  # a date that Python cannot show
        pa.array([1], pa.duration("s")),
    ],
)
def test_columns_that_are_neither_numbers_nor_text(column):
    with pytest.raises(NotNumeric, match=re.escape(str(column.type))):
        as_numbers(column)


@pytest.mark.parametrize(
    ("cell", "shown"), [("x" * 40, "x" * 40), ("x" * 41, "x" * 37 + "…"), ("oops", "oops")]
)
def test_a_long_cell_that_is_no_number_is_shown_in_part(cell, shown):
    batch = pa.record_batch({"a": ["1", "2", cell, "4"] * 5, "b": ["1.5"] * 20})
    values, unusable = parsed(batch, ["a", "b"], first=100)
    assert [found.name for found in unusable] == ["a"]
    assert (unusable[0].row, unusable[0].value) == (102, shown)
    np.testing.assert_array_equal(values[:, 1], 1.5)
