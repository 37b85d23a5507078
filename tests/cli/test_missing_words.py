"""Words that stand for missing cells: those of the model in text files, none in other tables."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pytest

from diffint import DiffInt, InputWarning, find_anomalies
from diffint.core.config import MISSING_WORDS
from diffint.core.errors import InputError
from diffint.platforms.score_frame import FrameScorer

SETTINGS = {"epochs": 20, "n_members": 2, "n_units": 16, "random_state": 0}
QUICK = ("--epochs", 20, "--members", 2, "--units", 16)
WORDS = ["NA", "nan", "null", "?", "-"]
FILES = ["t.csv", "t.tsv", "t.xlsx", "t.parquet", "t.feather", "t.arrow", "dictionary.parquet"]


def make_visits(n_rows=300, seed=0):
    """Visits from countries, of which NA is Namibia; some countries and amounts are missing."""
    rng = np.random.default_rng(seed)
    countries = np.array([*WORDS, "AT", "none", "", None], dtype=object)
    country = rng.integers(0, len(countries), n_rows)
    frame = pd.DataFrame(
        {
            "country": countries[country],
            "amount": (10.0 * country + rng.normal(size=n_rows)).round(3),
            "visits": rng.poisson(3, n_rows),
            "start": pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(n_rows) * 7, "h"),
        }
    )
    frame.loc[rng.random(n_rows) < 0.1, "amount"] = np.nan
    frame.loc[rng.random(n_rows) < 0.1, "start"] = pd.NaT
    return frame


def write_everywhere(frame, folder):
    """The same table in every format that the command reads."""
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_csv(folder / "t.tsv", index=False, sep="\t")
    frame.to_excel(folder / "t.xlsx", index=False)
    frame.to_parquet(folder / "t.parquet")
    frame.astype({"country": "category"}).to_parquet(folder / "dictionary.parquet")
    table = pa.Table.from_pandas(frame, preserve_index=False)
    pyarrow.feather.write_feather(table, folder / "t.feather")
    with pa.ipc.new_stream(folder / "t.arrow", table.schema) as stream:
        stream.write_table(table, 100)


@pytest.fixture(scope="module")
def visits(tmp_path_factory):
    """A folder with new rows in every format, and a model that was fitted in Python."""
    folder = tmp_path_factory.mktemp("visits")
    write_everywhere(make_visits(200, seed=1), folder)
    DiffInt(**SETTINGS).fit(make_visits()).save(folder / "m.diffint")
    return folder


@pytest.fixture
def scores_of(run, tmp_path):
    """scores_of(model, table) → the scores that the command writes"""

    def score(model, table, *options):
        done = run("score", model, table, "-o", tmp_path / "scores.parquet", *options)
        assert done.code == 0, done.err
        return pd.read_parquet(tmp_path / "scores.parquet")["score"].to_numpy()

    return score


def values_of(path, column="country"):
    model = DiffInt.load(path).model_
    return set(model.categories[model.feature_names.index(column)])


@pytest.mark.parametrize("name", FILES)
def test_a_model_from_python_scores_every_file_as_python_does(visits, scores_of, name):
    expected = DiffInt.load(visits / "m.diffint").anomaly_score(make_visits(200, seed=1))
    assert values_of(visits / "m.diffint") == {*WORDS, "AT", "none"}
    np.testing.assert_array_equal(scores_of(visits / "m.diffint", visits / name), expected)


def test_every_kind_of_frame_gives_the_same_scores(visits):
    detector, frame = DiffInt.load(visits / "m.diffint"), make_visits(200, seed=1)
    expected = detector.anomaly_score(frame)
    frames = [
        polars.from_pandas(frame),
        pa.Table.from_pandas(frame),
        frame.astype({"country": "category"}),
        frame.astype({"country": "string"}),
        frame.replace({"country": {"": None}}),
    ]
    for other in frames:
        np.testing.assert_array_equal(detector.anomaly_score(other), expected)
    found = FrameScorer(detector)(frame)
    np.testing.assert_array_equal(found["score"].to_numpy(), expected)


@pytest.mark.parametrize("name", FILES)
def test_a_fit_on_every_file_is_the_fit_in_python(visits, run, scores_of, tmp_path, name):
    write_everywhere(make_visits(), tmp_path)
    words = () if name not in ("t.csv", "t.tsv", "t.xlsx") else ("--missing-words", "")
    done = run("fit", tmp_path / name, "-o", tmp_path / "m", *QUICK, *words)
    assert done.code == 0, done.err
    assert "missing_words" not in done.err
    expected = DiffInt.load(visits / "m.diffint").anomaly_score(make_visits(200, seed=1))
    for other in ("t.csv", "t.xlsx", "t.parquet"):
        np.testing.assert_array_equal(scores_of(tmp_path / "m", visits / other), expected)


def test_text_files_have_the_usual_words_unless_told_otherwise(visits, run, scores_of, tmp_path):
    write_everywhere(make_visits(), tmp_path)
    plain = make_visits().replace({"country": dict.fromkeys(WORDS)})
    new = make_visits(200, seed=1)
    expected = (
        DiffInt(**SETTINGS).fit(plain).anomaly_score(new.replace({"country": dict.fromkeys(WORDS)}))
    )
    for name in ("t.csv", "t.xlsx"):
        assert run("fit", tmp_path / name, "-o", tmp_path / "m", *QUICK).code == 0
        assert values_of(tmp_path / "m") == {"AT", "none"}
        for other in ("t.csv", "t.tsv", "t.xlsx"):
            np.testing.assert_array_equal(scores_of(tmp_path / "m", visits / other), expected)
        # In a file with types, the same texts are values: new ones for this model.
        found = scores_of(tmp_path / "m", visits / "t.parquet")
        detector = DiffInt.load(tmp_path / "m")
        assert detector.missing_words == MISSING_WORDS
        np.testing.assert_array_equal(found, detector.anomaly_score(new))
        assert not np.array_equal(found, expected)
    assert run("refresh", tmp_path / "m", visits / "t.csv", "-o", tmp_path / "new").code == 0
    assert values_of(tmp_path / "new") == {"AT", "none"}


def test_the_words_of_the_model_count_in_numbers_times_and_texts(run, scores_of, tmp_path):
    frame = make_visits()
    frame.loc[::9, "country"] = None
    table = frame.astype(object).where(frame.notna() & (frame != ""), "unknown")
    table.loc[::2] = table.loc[::2].replace("unknown", "-999")
    table.to_csv(tmp_path / "t.csv", index=False)
    options = ("--missing-words", "-999,Unknown", "--missing-words", '" unknown ",')
    done = run("fit", tmp_path / "t.csv", "-o", tmp_path / "m", *QUICK, *options)
    assert done.code == 0, done.err
    detector = DiffInt.load(tmp_path / "m")
    assert detector.missing_words == ("-999", "Unknown", "unknown")
    assert values_of(tmp_path / "m") == {*WORDS, "AT", "none"}
    own = DiffInt(**SETTINGS).fit(frame)
    np.testing.assert_array_equal(detector.anomaly_score(frame), own.anomaly_score(frame))
    np.testing.assert_array_equal(
        scores_of(tmp_path / "m", tmp_path / "t.csv"), own.anomaly_score(frame)
    )
    nothing = frame.assign(country=None)
    nothing.fillna({"country": "-999"}).to_csv(tmp_path / "nothing.csv", index=False)
    np.testing.assert_array_equal(
        scores_of(tmp_path / "m", tmp_path / "nothing.csv"), own.anomaly_score(nothing)
    )
    frame.to_csv(tmp_path / "empty.csv", index=False)
    usual = frame.astype({"amount": object, "start": object})
    for column, word in (("amount", "None"), ("start", "<na>")):
        usual.loc[frame[column].isna(), column] = word
    usual.to_csv(tmp_path / "usual.csv", index=False)
    for name in ("empty.csv", "usual.csv"):
        np.testing.assert_array_equal(
            scores_of(tmp_path / "m", tmp_path / name), own.anomaly_score(frame)
        )
    # The same holds for a fit.
    done = run("fit", tmp_path / "usual.csv", "-o", tmp_path / "m", *QUICK, *options[:2])
    assert done.code == 0, done.err
    np.testing.assert_array_equal(
        DiffInt.load(tmp_path / "m").anomaly_score(frame), own.anomaly_score(frame)
    )


def test_every_command_reads_with_the_words_of_the_model(visits, run, tmp_path):
    model, table = visits / "m.diffint", visits / "t.csv"
    country = make_visits(200, seed=1)["country"]
    row = int(np.flatnonzero(country == "NA")[0]) + 1
    (line,) = json.loads(run("explain", model, table, "--row", row, "--json").out)
    detector = DiffInt.load(model)
    expected = detector.anomaly_score(make_visits(200, seed=1))
    assert line["score"] == expected[row - 1]
    drift = json.loads(run("drift", model, table, "--json").out)
    assert drift["p_value"] == detector.drift(make_visits(200, seed=1)).p_value
    info = json.loads(run("info", model, "--json").out)
    assert info["settings"]["missing_words"] == []
    both = pd.concat([make_visits(seed=2), make_visits(seed=3)])
    both.to_csv(tmp_path / "both.csv", index=False)
    done = run("refresh", model, tmp_path / "both.csv", "-o", tmp_path / "new")
    assert done.code == 0, done.err
    assert values_of(tmp_path / "new") == values_of(model)
    assert DiffInt.load(tmp_path / "new").missing_words == ()


def test_find_takes_the_words_too(run, tmp_path):
    make_visits().to_csv(tmp_path / "t.csv", index=False)
    settings = {"epochs": 20, "random_state": 0}
    for words in ([], ["?"]):
        frame = make_visits().replace({"country": dict.fromkeys(words)})
        expected = find_anomalies(frame, **settings).scores
        options = ("--missing-words", ",".join(words), "-o", tmp_path / "o.parquet")
        done = run("find", tmp_path / "t.csv", "--epochs", 20, *options, "--model", tmp_path / "m")
        assert done.code == 0, done.err
        found = pd.read_parquet(tmp_path / "o.parquet").sort_values("row")["score"]
        np.testing.assert_array_equal(found, expected)
        assert list(DiffInt.load(tmp_path / "m").missing_words) == words


def test_a_column_of_nothing_but_words_is_text(run, scores_of, tmp_path):
    frame = make_visits(400).assign(country=["NA", "?"] * 200)
    write_everywhere(frame, tmp_path)
    expected = DiffInt(**SETTINGS).fit(frame).anomaly_score(frame)
    for name in ("t.csv", "t.parquet"):
        options = ("--missing-words", "") if name == "t.csv" else ()
        assert run("fit", tmp_path / name, "-o", tmp_path / "m", *QUICK, *options).code == 0
        assert values_of(tmp_path / "m") == {"NA", "?"}
        np.testing.assert_array_equal(scores_of(tmp_path / "m", tmp_path / name), expected)
    assert run("fit", tmp_path / "t.csv", "-o", tmp_path / "m", *QUICK).code == 0
    assert "country" not in DiffInt.load(tmp_path / "m").model_.categories


def test_words_before_the_first_other_text_are_values(run, tmp_path):
    """Also if they fill whole batches, which could be columns of numbers without a value."""
    table = pa.table({"country": ["none"] * 300 + ["AT"] * 300, "x": np.arange(600.0) % 7})
    with pa.ipc.new_stream(tmp_path / "t.arrow", table.schema) as stream:
        stream.write_table(table, 100)
    assert run("fit", tmp_path / "t.arrow", "-o", tmp_path / "m", *QUICK).code == 0
    model = DiffInt.load(tmp_path / "m").model_
    assert values_of(tmp_path / "m") == {"none", "AT"}
    assert model.features.missing_share[0] == 0


@pytest.mark.parametrize("kind", ["bool", "float64", "date", "time", "nothing"])
def test_named_categories_of_other_types_have_the_texts_of_frames(run, scores_of, tmp_path, kind):
    rng = np.random.default_rng(0)
    days = pd.Series(pd.Timestamp("2024-05-01") + pd.to_timedelta(rng.integers(0, 3, 300), "D"))
    cells = {
        "bool": rng.random(300) < 0.5,
        "float64": rng.integers(0, 4, 300) / 4 + np.where(rng.random(300) < 0.1, np.nan, 0.0),
        "date": days.dt.date,
        "time": days,
        "nothing": None,
    }
    frame = pd.DataFrame({"code": cells[kind], "x": rng.normal(size=300).round(3)})
    table = pa.Table.from_pandas(frame, preserve_index=False)
    if kind == "float64":  # NaN stays NaN
        table = table.set_column(0, "code", pa.array(frame["code"].to_numpy(), from_pandas=False))
    with pa.ipc.new_stream(tmp_path / "t.arrow", table.schema) as stream:
        stream.write_table(table, 100)
    detector = DiffInt(**SETTINGS, categories=["code"]).fit(frame)
    detector.save(tmp_path / "own")
    done = run("fit", tmp_path / "t.arrow", "-o", tmp_path / "m", *QUICK, "--categories", "code")
    assert done.code == 0, done.err
    frame.to_excel(tmp_path / "t.xlsx", index=False)  # times without a clock are dates there
    for model in ("own", "m"):
        for name in ("t.arrow", "t.xlsx") if kind != "time" else ("t.arrow",):
            np.testing.assert_array_equal(
                scores_of(tmp_path / model, tmp_path / name), detector.anomaly_score(frame)
            )


def test_not_available_is_a_missing_cell_in_a_workbook(visits, scores_of, tmp_path):
    frame = make_visits(60, seed=5).astype({"amount": object})
    frame.loc[::5, ["country", "amount"]] = "#N/A"  # written as an error
    frame.to_excel(tmp_path / "t.xlsx", index=False)
    frame.loc[::5, ["country", "amount"]] = None
    expected = DiffInt.load(visits / "m.diffint").anomaly_score(frame.astype({"amount": float}))
    np.testing.assert_array_equal(scores_of(visits / "m.diffint", tmp_path / "t.xlsx"), expected)


def test_texts_like_numbers_are_new_values_in_a_column_with_types(visits, scores_of, tmp_path):
    frame = make_visits(50, seed=4)
    frame["country"] = "7"
    frame.to_parquet(tmp_path / "t.parquet")
    expected = DiffInt.load(visits / "m.diffint").anomaly_score(frame)
    np.testing.assert_array_equal(scores_of(visits / "m.diffint", tmp_path / "t.parquet"), expected)


def test_a_fit_warns_of_values_that_are_missing_words():
    frame = make_visits()
    count = int(frame["country"].isin(["NA", "?"]).sum())
    with pytest.warns(
        InputWarning, match=rf"country \({count} cells with '\?' and 'NA'\)"
    ) as caught:
        DiffInt(**SETTINGS, missing_words=["na", "?", "unseen"]).fit(frame)
    assert sum(issubclass(one.category, InputWarning) for one in caught) == 1
    assert "frame.replace({'?': None})" in str(caught[0].message)
    assert set(frame.replace({"?": None})["country"].dropna()) == {*WORDS, "AT", "none", ""} - {"?"}


@pytest.mark.parametrize(
    "words", ["NA", [1], None, {"NA": 1}, ["x" * 101], ["x"] * 1_001, ["\udcff"]]
)
def test_words_are_short_texts_in_a_list(words):
    with pytest.raises(InputError, match=r"missing_words=.* must be a list of at most 1,000 texts"):
        DiffInt(**SETTINGS, missing_words=words).fit(make_visits())


def test_words_that_are_too_long_are_refused_by_the_command(visits, run, tmp_path):
    done = run("fit", visits / "t.csv", "-o", tmp_path / "m", "--missing-words", "x" * 101)
    assert done.code == 2
    assert done.err.startswith("diffint: --missing-words=")
    assert not (tmp_path / "m").exists()


def test_numbers_in_place_of_texts_such_as_nan_are_refused_in_python_too(visits):
    frame = make_visits(50, seed=4).assign(country=7.0)
    with pytest.raises(InputError, match="had text in training"):
        DiffInt.load(visits / "m.diffint").anomaly_score(frame)


def test_words_do_not_change_which_model_it_is(visits):
    model = DiffInt.load(visits / "m.diffint").model_
    other = replace(model, config=replace(model.config, missing_words=("NA",)))
    assert other.identity == model.identity
