"""Results name their rows by the index of the table that was passed in."""

import pickle

import numpy as np
import pandas as pd
import pytest

from diffint import DiffInt

from ..conftest import QUICK, make_rows

N_ROWS = 6
INDEXES = {
    "texts": pd.Index(list("abcdef"), name="patient"),
    "repeated": pd.Index(list("aabbcc")),
    "numbers": pd.Index([30, 20, 10, 7, 8, 9]),
    "later rows": pd.RangeIndex(5, 5 + N_ROWS),
    "dates": pd.date_range("2024-03-01", periods=N_ROWS),
    "levels": pd.MultiIndex.from_product([["x", "y"], [1, 2, 3]], names=["site", "day"]),
    "categories": pd.CategoricalIndex(list("abcabc")),
    "intervals": pd.interval_range(0, N_ROWS),
}
NAMES = {
    "texts": "'c'",
    "repeated": "'b'",
    "numbers": "10",
    "later rows": "7",
    "dates": "2024-03-03 00:00:00",
    "levels": "('x', 3)",
    "categories": "'c'",
    "intervals": "(2, 3]",
}


@pytest.fixture(scope="module")
def detector():
    frame = pd.DataFrame(make_rows(200), columns=list("vwxyz"))
    return DiffInt(**QUICK, false_positive_rate=0.05, decoder="certified").fit(frame)


@pytest.fixture(scope="module")
def strange():
    """Rows that are flagged."""
    return make_rows(200)[:N_ROWS] * np.array([3.0, 1.0, 1.0, 1.0, 1.0])


@pytest.mark.parametrize("kind", INDEXES)
def test_frames_keep_the_index(detector, strange, kind):
    index = INDEXES[kind]
    table = pd.DataFrame(strange, columns=list("vwxyz"), index=index)
    for frame in (detector.match(table), detector.certify(table).to_frame()):
        pd.testing.assert_index_equal(frame.index, index, exact="equiv")
    why, nearest = detector.explain(table), detector.nearest_normal(table)
    for frame in (why.to_frame(), why.to_frame(2), nearest.to_frame()):
        assert len(frame)
        pd.testing.assert_index_equal(frame.index, index.take(frame["row"]), exact="equiv")


@pytest.mark.parametrize("kind", INDEXES)
def test_texts_have_the_label(detector, strange, kind):
    table = pd.DataFrame(strange, columns=list("vwxyz"), index=INDEXES[kind])
    name = f"Row {NAMES[kind]}"
    why = pickle.loads(pickle.dumps(detector.explain(table)))
    for text in (why.text(2), detector.nearest_normal(table).text(2)):
        assert text.startswith(name), text
    assert detector.certify(table).text(2).startswith(f"{name}: score")
    assert why.plot(2)._suptitle.get_text().startswith(name)


def test_rows_without_labels_have_positions(detector, strange):
    frame = pd.DataFrame(strange, columns=list("vwxyz"))
    polars = pytest.importorskip("polars")
    for table in (frame, polars.from_pandas(frame)):
        why = detector.explain(table)
        assert why.text(2).startswith("Row 2: score")
        assert why.to_frame(1).index.tolist() == list(range(N_ROWS))
        assert detector.nearest_normal(table).text(2).startswith("Row 2 ")
        assert detector.match(table).index.tolist() == list(range(N_ROWS))
        assert detector.certify(table).to_frame().index.tolist() == list(range(N_ROWS))


def test_labels_are_short_and_printable(detector, strange):
    index = ["\x1b[31m" + "long " * 50, *range(1, N_ROWS)]
    table = pd.DataFrame(strange, columns=list("vwxyz"), index=index)
    head = detector.explain(table).text(0).split(": score")[0]
    assert head.startswith(r"Row '\x1b[31mlong")
    assert len(head) < 50


def test_the_report_names_rows_by_their_labels(detector, strange, tmp_path):
    table = pd.DataFrame(strange, columns=list("vwxyz"), index=INDEXES["dates"])
    detector.report(table, tmp_path / "r.html")
    assert '"2024-03-03 00:00:00"' in (tmp_path / "r.html").read_text()
