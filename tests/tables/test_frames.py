import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from diffint import DiffInt, InputError
from diffint.tables.frames import read_table
from diffint.tables.row_marks import read_anomalies

from ..conftest import QUICK


def read(X, reset=True):
    return read_table(DiffInt(), X, reset=reset)


FRAME = pd.DataFrame({"amount": [1.0, 2.5, np.nan], "age": [3, 4, 5]})


@pytest.mark.parametrize(
    "table",
    [
        FRAME,
        pa.Table.from_pandas(FRAME),
        pl.from_pandas(FRAME),
        FRAME.astype({"age": "Int64"}),
        FRAME.astype(object),
        FRAME.to_numpy(),
        FRAME.to_numpy().astype(object),
        FRAME.to_numpy().tolist(),
        np.ma.masked_invalid(FRAME.to_numpy()),
        np.asfortranarray(FRAME.to_numpy()),
    ],
    ids=lambda t: type(t).__module__.split(".")[0] + "." + type(t).__name__,
)
def test_every_kind_of_table_reads_the_same(table):
    np.testing.assert_array_equal(read(table), FRAME.to_numpy())


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int64, bool, np.float16, np.float32])
def test_numeric_and_boolean_dtypes(dtype):
    x = np.array([[0, 1], [1, 1], [1, 0]], dtype=dtype)
    np.testing.assert_array_equal(read(x), x.astype(float))


def test_objects_that_are_numbers():
    x = np.array([[decimal.Decimal("1.5"), 10**30], [None, pd.NA]], dtype=object)
    np.testing.assert_array_equal(read(x), [[1.5, 1e30], [np.nan, np.nan]])


def test_names_are_kept_from_every_frame():
    for table in (FRAME, pa.Table.from_pandas(FRAME), pl.from_pandas(FRAME)):
        detector = DiffInt()
        read_table(detector, table, reset=True)
        assert list(detector.feature_names_in_) == ["amount", "age"]


@pytest.mark.parametrize("dtype", ["boolean", "bool[pyarrow]", "int64[pyarrow]", "Float32"])
def test_nullable_and_arrow_dtypes(dtype):
    frame = pd.DataFrame({"a": pd.array([1, None, 0], dtype=dtype)})
    np.testing.assert_array_equal(read(frame)[:, 0], [1, np.nan, 0])


def test_column_names_that_are_not_strings(rows):
    numbered = pd.DataFrame(rows)  # 0, 1, 2, …: unnamed
    detector = DiffInt(**QUICK).fit(numbered)
    np.testing.assert_array_equal(detector.anomaly_score(rows), detector.anomaly_score(numbered))
    with pytest.raises(InputError, match="fitted on unnamed columns"):
        detector.anomaly_score(numbered[[4, 3, 2, 1, 0]])
    years = pd.DataFrame(rows, columns=[2020, 2021, 2022, 2023, 2024])
    detector = DiffInt(**QUICK).fit(years)
    assert detector.model_.feature_names == ("2020", "2021", "2022", "2023", "2024")
    with pytest.raises(ValueError, match="same order"):
        detector.anomaly_score(years[years.columns[::-1]])


def test_a_memory_mapped_table_is_not_copied(tmp_path):
    x = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.float64, (10, 2))
    x[:] = 1.0
    assert np.shares_memory(read(x), x)


@pytest.mark.parametrize(
    ("table", "error", "message"),
    [
        (np.array([[1.0, np.inf], [1, -np.inf]]), ValueError, "column 'x1' has 2 infinite.*row 0"),
        (
            pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, np.inf]}),
            ValueError,
            "'b' has 1 infinite value .first at row 1",
        ),
        (np.array([["1", "2"], ["3", "x"]]), TypeError, "text .first.*'x'.*row 1, column 'x1'"),
        ([[1, "a"], [2, "b"]], TypeError, "text"),
        (np.array([[1, "u"], [2, "v"]], dtype=object), TypeError, "'x1' contains text .first 'u'"),
        (pd.DataFrame({"t": pd.to_timedelta([1, 2])}), TypeError, "'t' contains timedelta64"),
        (np.array([[1, {}], [2, 3]], dtype=object), TypeError, "column 'x1' has {} at row 0"),
        (np.array([[10**400], [1]], dtype=object), ValueError, "'x0'.*row 0.*too large"),
        (scipy.sparse.eye(3, format="csr"), TypeError, "[Ss]parse"),
        (np.ones((3, 2), dtype=complex), ValueError, "[Cc]omplex"),
        (pd.DataFrame({"z": [1j, 2j]}), ValueError, "[Cc]omplex"),
        (np.ones(3), ValueError, "2D array"),
        (np.ones((2, 2, 2)), ValueError, "dim 3"),
        (3.0, ValueError, "2D array"),
        (np.empty((0, 3)), ValueError, "0 sample"),
        (np.ones((1, 3)), ValueError, "1 sample"),
        (np.empty((3, 0)), ValueError, "0 feature"),
        (pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]), ValueError, "unique.*'a'"),
        ([[1, 2], [3]], ValueError, "do not form a table"),
        (np.array(["2020", "2021"], dtype="M8[Y]").reshape(2, 1), TypeError, "datetime64"),
        ("table.csv", ValueError, "."),
        (None, TypeError, "X is a NoneType; pass a DataFrame"),
        ({"a": [1, 2]}, TypeError, "X is a dict; pass a DataFrame"),
        ("table.csv", TypeError, "X is a str; pass a DataFrame"),
        ((i for i in range(3)), TypeError, "X is a generator"),
        ([{"a": 1}, {"a": 2}], TypeError, "rows of X are dict objects"),
        (np.zeros(3, dtype=[("a", float)]), TypeError, "structured array"),
        (pl.DataFrame({"a": [1, 2]}).lazy(), TypeError, "LazyFrame"),
        (np.ma.array(np.ones((3, 2)) * 1j), ValueError, "[Cc]omplex"),
        (np.ma.array([["1", "u"], ["2", "v"]]), TypeError, "text"),
        (pd.DataFrame({"s": pd.arrays.SparseArray([0.0, 1.0])}), TypeError, "'s' is sparse"),
        (np.full((4, 2), np.nan), ValueError, "only 0 of 4 rows have any value"),
    ],
)
def test_invalid_tables_raise_one_clear_error(table, error, message):
    with pytest.raises(error, match=message):
        DiffInt(**QUICK).fit(table)


@pytest.mark.parametrize("kind", [object, "str", "string", "category"])
def test_columns_of_text_are_categories(kind):
    table = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": pd.Series(["u", "v", "u"], dtype=kind)})
    assert set(DiffInt(**QUICK).fit(table).model_.categories[1]) == {"u", "v"}


@pytest.fixture(scope="module")
def detector():
    rng = np.random.default_rng(0)
    return DiffInt(**QUICK).fit(pd.DataFrame(rng.normal(size=(50, 2)), columns=["a", "b"]))


class TestLaterCalls:
    @pytest.mark.parametrize(
        ("columns", "message"),
        [
            (["b", "a"], "same order"),
            (["a", "c"], "unseen at fit time:\n- c(.|\n)*now missing:\n- b"),
            (["a", "b", "c"], "unseen at fit time:\n- c"),
            (["a"], "now missing:\n- b"),
        ],
    )
    def test_other_columns_are_named(self, detector, columns, message):
        with pytest.raises(ValueError, match=message):
            detector.anomaly_score(pd.DataFrame(np.ones((2, len(columns))), columns=columns))

    def test_wrong_feature_count(self, detector):
        with pytest.raises(ValueError, match="3 features, but DiffInt is expecting 2"):
            detector.predict(np.ones((2, 3)))

    def test_one_row_can_be_scored(self, detector):
        assert detector.anomaly_score(pd.DataFrame({"a": [0.0], "b": [1.0]})).shape == (1,)


class TestAnomalies:
    @pytest.mark.parametrize(
        "mask", [[0, 1, 0], [False, True, False], [0.0, 1.0, 0.0], pd.Series([0, 1, 0])]
    )
    def test_accepted(self, mask):
        np.testing.assert_array_equal(read_anomalies(mask, 3), [False, True, False])

    @pytest.mark.parametrize(
        ("mask", "message"),
        [
            ([0, 1], r"shape \(2,\), but the table has 3 rows"),
            ([[0], [1], [0]], "shape"),
            ([0, 1, 2], "row 2 has"),
            ([0, 1, -1], "row 2 has"),
            ([0, np.nan, 0], "row 1 has"),
            (["no", "yes", "no"], "True/False or 0/1"),
            (np.array(["0", "1", "0"], dtype=object), "True/False or 0/1"),
            ([1, 1, 1], "leaves fewer than 2 rows"),
            ([1, 1, 0], "leaves fewer than 2 rows"),
        ],
    )
    def test_invalid(self, mask, message):
        with pytest.raises(InputError, match=message):
            read_anomalies(mask, 3)

    def test_a_mask_with_another_index_raises(self):
        frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0]})
        mask = pd.Series([0, 0, 0, 1], index=[3, 2, 1, 0])
        with pytest.raises(InputError, match="different indexes"):
            DiffInt(**QUICK).fit(frame, anomalies=mask)


def test_a_frame_of_any_library_that_has_the_interchange_protocol_only():
    class Frame:
        def __dataframe__(self, **options):
            return FRAME.__dataframe__(**options)

    read_frame, read_pandas = read(Frame()), read(FRAME)
    np.testing.assert_array_equal(read_frame[0], read_pandas[0])
