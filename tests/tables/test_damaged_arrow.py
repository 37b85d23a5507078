"""Tables of Arrow with wrong offsets or positions are refused before anything reads them."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from diffint import DiffInt, InputError, find_anomalies
from diffint.platforms.score_frame import score_frame

from .damaged_arrow import wrong_dictionary, wrong_offset, wrong_position

N_ROWS = 120
SOUND = pa.table(
    {
        "a": np.random.default_rng(0).normal(size=N_ROWS),
        "b": np.random.default_rng(1).normal(size=N_ROWS),
        "city": np.resize(["Oslo", "Rome"], N_ROWS),
    }
)


def with_column(column):
    return SOUND.set_column(2, "city", column)


def with_index(column):
    return SOUND.to_pandas().set_index(pd.Index(column.to_pandas()))


def arrow_dtype(table):
    return table.to_pandas(types_mapper=pd.ArrowDtype)


TEXTS = wrong_offset(N_ROWS)
TABLES = {
    "table": with_column(TEXTS),
    "batch": with_column(TEXTS).to_batches()[0],
    "chunks": pa.concat_tables([SOUND, with_column(TEXTS)]),
    "dictionary": with_column(wrong_dictionary(N_ROWS)),
    "position": with_column(wrong_position(N_ROWS)),
    "pandas": with_column(TEXTS).to_pandas(),
    "pandas ArrowDtype": arrow_dtype(with_column(TEXTS)),
    "pandas index": with_index(TEXTS),
}


@pytest.fixture(scope="module")
def detector():
    return DiffInt(epochs=2, n_units=8, n_members=2, random_state=0).fit(SOUND)


@pytest.mark.parametrize("table", TABLES.values(), ids=list(TABLES))
@pytest.mark.parametrize(
    "method", ["anomaly_score", "predict", "explain", "match", "drift", "refresh", "accept"]
)
def test_fitted_detectors_refuse_them(detector, table, method):
    with pytest.raises(InputError, match=r"the table has damaged Arrow data \(.+\); read or make"):
        getattr(detector, method)(table)


@pytest.mark.parametrize("table", TABLES.values(), ids=list(TABLES))
@pytest.mark.parametrize("search", [DiffInt(epochs=2).fit, find_anomalies])
def test_fits_refuse_them(table, search):
    with pytest.raises(InputError, match="the table has damaged Arrow data"):
        search(table)


def test_what_is_given_beside_a_table(detector, tmp_path):
    fit = DiffInt(epochs=2).fit
    for use in (
        lambda: fit(SOUND, groups=TEXTS),
        lambda: fit(SOUND, segments=TEXTS),
        lambda: fit(SOUND, groups=TEXTS.to_pandas()),
        lambda: detector.report(SOUND, tmp_path / "report.html", kept={"name": TEXTS}),
        # Columns that are not read here, but go on to the output.
        lambda: score_frame(detector, SOUND.append_column("name", TEXTS)),
    ):
        with pytest.raises(InputError, match="the table has damaged Arrow data"):
            use()


def test_an_index_beside_numbers(detector):
    """Only results read it."""
    numbers = with_index(TEXTS)[["a", "b"]]
    fitted = DiffInt(epochs=2, n_units=8, n_members=2).fit(numbers.reset_index(drop=True))
    with pytest.raises(InputError, match="the table has damaged Arrow data"):
        fitted.explain(numbers)
