"""Frames are scored as the library and the command score them, to the bit."""

import sys
import warnings

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest

from diffint import DiffInt
from diffint.cli import main
from diffint.core.errors import CalibrationWarning, InputError, InputTypeError, InputWarning
from diffint.platforms.score_frame import FrameScorer, ScoringOptions, score_frame

from .tables import (
    QUICK,
    assert_same_bits,
    expected,
    mixed_table,
    number_detector,
    number_table,
)


def test_numbers_as_pandas_and_arrow(numbers):
    new = number_table(300, seed=2)
    wanted = expected(numbers, new.drop(columns="id"))
    found = score_frame(numbers, new)
    assert list(found) == [*new, "score", "p_value", "flagged", "reasons"]
    assert_same_bits(found, wanted)
    pd.testing.assert_frame_equal(found[list(new)], new)
    table = score_frame(numbers, pyarrow.Table.from_pandas(new))
    assert_same_bits(table.to_pandas(), wanted)
    assert table.schema.field("reasons").type == pyarrow.string()


def test_text_times_and_segments(mixed):
    new = mixed_table(300, seed=2)
    new.loc[5, "colour"] = "pink"
    wanted = expected(mixed, new.drop(columns="id"))
    assert wanted.loc[5, "flagged"]
    assert "pink" in wanted.loc[5, "reasons"]
    assert_same_bits(score_frame(mixed, new), wanted)
    assert_same_bits(score_frame(mixed, pyarrow.Table.from_pandas(new)).to_pandas(), wanted)


@pytest.mark.parametrize("backend", ["pyarrow", "numpy_nullable"])
def test_other_dtypes_of_pandas(mixed, numbers, backend):
    for detector, new in ((mixed, mixed_table(200, 3)), (numbers, number_table(200, 3))):
        wanted = expected(detector, new.drop(columns="id"))
        assert_same_bits(score_frame(detector, new.convert_dtypes(dtype_backend=backend)), wanted)


def test_types_of_engines(numbers, mixed):
    """Decimals, dictionaries and whole numbers in columns of any of these types."""
    new = number_table(100, 3).round(2)
    decimals = pyarrow.Table.from_pandas(new)
    decimals = decimals.set_column(0, "a", decimals["a"].cast(pyarrow.decimal128(12, 2)))
    wanted = expected(numbers, new.drop(columns="id"))
    assert_same_bits(score_frame(numbers, decimals).to_pandas(), wanted)
    texts = pyarrow.Table.from_pandas(mixed_table(100, 3))
    places = texts.column_names.index("colour")
    coded = texts.set_column(places, "colour", texts["colour"].dictionary_encode())
    assert_same_bits(score_frame(mixed, coded).to_pandas(), score_frame(mixed, texts).to_pandas())


def test_the_command_writes_the_same(numbers, mixed, tmp_path, monkeypatch):
    for detector, new in ((numbers, number_table(300, 4)), (mixed, mixed_table(300, 4))):
        detector.save(tmp_path / "model.diffint")
        new.to_parquet(tmp_path / "new.parquet")
        command = ["score", str(tmp_path / "model.diffint"), str(tmp_path / "new.parquet")]
        command += ["--id", "id", "-o", str(tmp_path / "out.parquet")]
        monkeypatch.setattr(sys, "argv", ["diffint", *command])
        with pytest.raises(SystemExit) as end:
            main()
        assert not end.value.code
        written = pd.read_parquet(tmp_path / "out.parquet")
        found = score_frame(DiffInt.load(tmp_path / "model.diffint"), new, keep=["id"])
        assert list(found) == list(written)
        assert_same_bits(found, written)


def test_parts_of_a_table_give_the_same_as_the_table(mixed):
    new = mixed_table(200, seed=5)
    scorer = FrameScorer(mixed)
    parts = [scorer(new.iloc[start : start + 7]) for start in range(0, 200, 7)]
    assert_same_bits(pd.concat(parts), expected(mixed, new.drop(columns="id")))


def test_options(numbers):
    new = number_table(300, seed=2)
    brief = score_frame(numbers, new, reasons=False, keep=["id"])
    assert list(brief) == ["id", "score", "p_value", "flagged"]
    other = number_detector()
    other.false_positive_rate = 0.3
    found = score_frame(numbers, new, n_reasons=1, false_positive_rate=0.3)
    assert_same_bits(found, expected(other, new.drop(columns="id"), n_reasons=1))
    assert numbers.false_positive_rate == 0.05


def test_accepted_rows_are_not_flagged():
    detector = number_detector()
    new = number_table(300, seed=2)
    flagged = score_frame(detector, new)["flagged"].to_numpy()
    detector.accept(new.drop(columns="id")[flagged])
    found = score_frame(detector, new)
    assert not found["flagged"].any()
    assert (found["p_value"][flagged] == 1.0).all()


def test_a_model_of_an_array_finds_its_columns_by_their_numbers():
    rows = number_table(300).drop(columns="id").to_numpy()
    detector = DiffInt(**QUICK, false_positive_rate=0.05).fit(rows)
    wanted = expected(detector, pd.DataFrame(rows))
    named = pd.DataFrame(rows, columns=["x0", "x1", "x2", "x3"])
    assert_same_bits(score_frame(detector, named[["x3", "x1", "x0", "x2"]]), wanted)
    assert_same_bits(score_frame(detector, pd.DataFrame(rows)), wanted)


def test_columns_that_the_fit_ignored_may_be_missing():
    rows = number_table(300).assign(empty=np.nan)
    with pytest.warns(InputWarning):
        detector = DiffInt(**QUICK).fit(rows.drop(columns="id"))
    new = number_table(50, 2)
    found = score_frame(detector, new)
    np.testing.assert_array_equal(
        found["score"], detector.anomaly_score(new.assign(empty=np.nan).drop(columns="id"))
    )


def test_no_rows_and_rows_without_values(mixed, numbers):
    for detector, new in ((mixed, mixed_table(20, 3)), (numbers, number_table(20, 3))):
        nothing = score_frame(detector, new.iloc[:0])
        assert list(nothing) == [*new, "score", "p_value", "flagged", "reasons"]
        assert len(nothing) == 0
        assert nothing["score"].dtype == np.float64
        assert score_frame(detector, pyarrow.Table.from_pandas(new.iloc[:0])).num_rows == 0
        blank = pyarrow.table({name: pyarrow.nulls(3) for name in new})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputWarning)  # of segments without a name
            found = score_frame(detector, blank).to_pandas()
            none = pd.DataFrame({name: [None] * 3 for name in new if name != "id"}, dtype=object)
            np.testing.assert_array_equal(found["score"], detector.anomaly_score(none))


def test_missing_columns_are_named_in_one_error(mixed):
    new = mixed_table(5).drop(columns=["size", "shop"]).rename(columns={"colour": "Colour"})
    message = (
        r"the table lacks columns that the model needs: 'colour' \(did you mean 'Colour'\?\), "
        r"'size' and 'shop'; it has 'id', 'Colour', 'count' and 'time'"
    )
    with pytest.raises(InputError, match=message):
        score_frame(mixed, new)
    with pytest.raises(InputError, match="lacks a column that keep names: 'name'"):
        score_frame(mixed, mixed_table(5), keep=["id", "name"])


def test_invalid_input(numbers):
    new = number_table(5)
    with pytest.raises(InputError, match="kept column 'score' has the same name"):
        score_frame(numbers, new.assign(score=1.0))
    assert len(score_frame(numbers, new.assign(score=1.0), keep=["id"])) == 5
    with pytest.raises(InputTypeError, match="the rows are a list"):
        score_frame(numbers, [[1.0]])
    with pytest.raises(InputError, match="column 'a' contains text"):
        score_frame(numbers, new.assign(a="many"))
    with pytest.raises(InputError, match="'a' has 5 infinite values"):
        score_frame(numbers, new.assign(a=np.inf))
    with pytest.raises(InputError, match="unique; repeated: 'a'"):
        score_frame(numbers, pyarrow.table([[1.0], [1.0]], names=["a", "a"]))
    with pytest.raises(InputTypeError, match="pass a list of column names"):
        score_frame(numbers, new, keep="id")
    with pytest.raises(InputError, match="n_reasons=0"):
        ScoringOptions(n_reasons=0)
    with pytest.raises(InputError, match="false_positive_rate"):
        ScoringOptions(false_positive_rate=2.0)


def test_segments_that_are_from_no_column():
    rows = number_table(300).drop(columns="id")
    detector = DiffInt(**QUICK, false_positive_rate=0.1).fit(rows, segments=["x", "y", "z"] * 100)
    with pytest.raises(InputError, match="segments that are not from a column"):
        FrameScorer(detector)


def test_warns_of_a_rate_out_of_reach(numbers):
    with pytest.warns(CalibrationWarning, match="too few for a false-positive rate of 1e-05"):
        score_frame(numbers, number_table(5), false_positive_rate=1e-5)
