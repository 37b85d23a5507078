"""Options that choose columns, and one message for all columns that cannot be used."""

import io
import json
import shlex

import numpy as np
import pandas as pd
import pytest

from diffint import DiffInt
from diffint.tables.files.names import option_value, split_names

from ..show.report.tables import data_of
from .conftest import make_payments

QUICK = ("--epochs", 2, "--members", 1, "--units", 8)


def diamonds(n_rows=60):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "stone": [f"S{i}" for i in range(n_rows)],
            "carat": rng.uniform(0.2, 2, n_rows).round(2),
            "cut": rng.choice(["Ideal", "Good"], n_rows),
            "color, letter": rng.choice(list("DEF"), n_rows),
            "price": rng.integers(300, 9000, n_rows),
            "depth": rng.normal(61, 1, n_rows).round(1),
        }
    )


@pytest.fixture
def fit(run, tmp_path):
    """fit(frame, *options) → what the command did; the model is m.diffint"""

    def fit_frame(frame, *options):
        frame.to_csv(tmp_path / "t.csv", index=False)
        return run("fit", tmp_path / "t.csv", "-o", tmp_path / "m.diffint", *QUICK, *options)

    return fit_frame


def features(tmp_path):
    return list(DiffInt.load(tmp_path / "m.diffint").feature_names_in_)


def assert_refused(done, *messages):
    assert done.code == 2
    assert done.err.startswith("diffint: ")
    assert done.err.count("\n") == 1
    for message in messages:
        assert message in done.err, done.err


def test_all_unusable_columns_are_named_with_options_to_paste(fit, tmp_path, monkeypatch):
    monkeypatch.setattr("diffint.tables.files.text._BLOCK_BYTES", 200)
    frame = diamonds().drop(columns=["stone", "cut"]).astype({"price": str, "depth": str})
    frame.loc[50:, "price"] = "sold"
    frame.loc[40, "depth"] = "6l.5"
    done = fit(frame)
    assert_refused(
        done,
        "2 columns cannot be used: 'price' ('sold' in line 52 is not a number) and 'depth' "
        "('6l.5' in line 42 is not a number); correct the cells, use columns as categories with "
        "--categories price,depth, or leave them out with --ignore price,depth",
    )
    assert not (tmp_path / "m.diffint").exists()
    # A column of numbers with errors is not left out silently.
    done = fit(frame, "--numeric-only", "--ignore", "price")
    assert_refused(done, "1 column cannot be used: 'depth'", "--categories depth, or leave it out")
    assert fit(frame, "--categories", "price,depth").code == 0
    assert fit(frame, "--ignore", "price,depth").code == 0
    assert features(tmp_path) == ["carat", "color, letter"]


def test_a_hint_at_decimal_commas(run, payments, tmp_path):
    semicolons = make_payments().to_csv(index=False, sep=";", decimal=",")
    (tmp_path / "t.csv").write_text(semicolons)
    fit = ("fit", tmp_path / "t.csv", "-o", tmp_path / "m", "--id", "payment")
    score = ("score", payments / "m.diffint", tmp_path / "t.csv")
    for command in (fit, (*fit, "--numeric-only"), score):
        done = run(*command, "--separator", ";")
        assert_refused(done, "2 columns cannot be used: 'age' ", "then add --decimal ,)")
    assert run(*score, "--decimal", ",").code == 0


def test_only_numeric_columns(fit, tmp_path):
    done = fit(diamonds(), "--numeric-only")
    assert done.code == 0, done.err
    assert "Not used: 'stone', 'cut', 'color, letter' (not numeric)." in done.out
    assert features(tmp_path) == ["carat", "price", "depth"]
    assert_refused(fit(diamonds()[["cut"]], "--numeric-only"), "has no numeric column")
    done = fit(diamonds(), "--numeric-only", "--categories", "cut")
    assert done.code == 0, done.err
    assert features(tmp_path) == ["carat", "cut", "price", "depth"]


def test_many_unusable_columns(fit, tmp_path):
    frame = pd.DataFrame({f"c{i}": ["1", "2", "a"] for i in range(30)} | {"x": [1, 2, 3]})
    assert_refused(fit(frame), "30 columns", "'c9'", "and 20 more; ", "with --categories c0,c1,")
    frame = pd.DataFrame({f"c{i}": ["a", "b", "a"] for i in range(30)} | {"x": [1, 2, 3]})
    done = fit(frame, "--numeric-only")
    assert "'c9', 20 more (not numeric)." in done.out


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--columns", "carat,price"), ["carat", "price"]),
        (("--columns", "price", "--columns", "carat"), ["carat", "price"]),
        (("--columns", " price , carat"), ["carat", "price"]),
        (("--ignore", "stone,cut,depth", "--ignore", "color, letter"), ["carat", "price"]),
        (("--ignore", 'stone,cut,"color, letter"'), ["carat", "price", "depth"]),
        (("--columns", "carat,cut,depth", "--numeric-only"), ["carat", "depth"]),
        (("--id", "stone", "--columns", "carat"), ["carat"]),
    ],
)
def test_chosen_columns(fit, tmp_path, options, expected):
    done = fit(diamonds(), *options)
    assert done.code == 0, done.err
    assert features(tmp_path) == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--columns", "carrat"), "that --columns names: 'carrat' (did you mean 'carat'?)"),
        (("--ignore", "Cut,Depht"), "'Cut' (did you mean 'cut'?) and 'Depht' (did you mean 'depth"),
        (("--categories", "carrat"), "that --categories names: 'carrat' (did you mean 'carat'?)"),
        (("--categories", "cut", "--ignore", "cut"), "'cut' cannot be both a category"),
        (("--categories", "cut", "--columns", "carat"), "both a category (--categories) and left"),
        (("--categories", "stone", "--id", "stone"), "both a category (--categories) and --id"),
        (("--ignore", "zzzz"), "that --ignore names: 'zzzz'; it has"),
        (("--id", "ston"), "that --id names: 'ston' (did you mean 'stone'?)"),
        (("--group", "CUT"), "that --group names: 'CUT' (did you mean 'cut'?)"),
        (("--label", "prise"), "that --label names: 'prise' (did you mean 'price'?)"),
        (("--columns", "carat", "--ignore", "cut"), "either --columns or --ignore"),
        (("--columns", "carat,stone", "--id", "stone"), "'stone' cannot be both a feature"),
        (("--scaling", "log"), "diffint: --scaling="),
        (("--members", "none"), "diffint: --members="),
        (("--units", "0"), "diffint: --units="),
        (("--kept-rows", "-1"), "diffint: --kept-rows="),
    ],
)
def test_wrong_choices(fit, tmp_path, options, message):
    assert_refused(fit(diamonds(), *options), message)
    assert not (tmp_path / "m.diffint").exists()


def test_settings_of_a_fit(fit, run, tmp_path):
    done = fit(diamonds(), "--columns", "carat,price,depth", "--scaling", "minmax")
    assert done.code == 0, done.err
    settings = json.loads(run("info", tmp_path / "m.diffint", "--json").out)["settings"]
    assert (settings["n_members"], settings["n_units"]) == (1, 8)
    assert settings["scaling"] == "minmax"


def test_a_misspelt_column_of_the_model(run, payments, tmp_path):
    make_payments().rename(columns={"visits": "Visits"}).to_csv(tmp_path / "t.csv", index=False)
    done = run("score", payments / "m.diffint", tmp_path / "t.csv")
    assert_refused(done, "that the model needs: 'visits' (did you mean 'Visits'?)")


def test_all_wrong_cells_of_a_batch_are_named(run, payments, tmp_path):
    (tmp_path / "t.csv").write_text("age,amount,visits\n1,x,3\n1,2,3\ny,2,inf\n1,2,3\n")
    done = run("score", payments / "m.diffint", tmp_path / "t.csv", "-o", tmp_path / "o.csv")
    assert_refused(
        done,
        "3 columns cannot be used: 'age' ('y' in line 4 is not a number), 'amount' ('x' in line 2 ",
        "'visits' (infinite in line 4); correct the cells",
    )
    assert not (tmp_path / "o.csv").exists()


@pytest.mark.parametrize(
    "names",
    [["a"], ["a b"], ["a,b"], ["a", "b c"], ["a,b", 'c"d'], ["it's", "x"], [""], ["", "a"], ["$x"]],
)
def test_names_to_paste_are_read_back(names):
    (word,) = shlex.split(option_value(names))
    assert split_names(word, names) == names


class TestKeep:
    def test_score(self, run, payments, tmp_path):
        table = make_payments()
        table["city, country"] = ["Paris, FR", "=1+1"] * 200
        table.to_csv(tmp_path / "t.csv", index=False)
        command = ("score", payments / "m.diffint", tmp_path / "t.csv", "--top", 3)
        kept = ("--keep", "age,fraud", "--keep", "city, country", "--keep", "payment")
        done = run(*command, *kept)
        assert done.code == 0, done.err
        read = pd.read_csv(io.StringIO(done.out), dtype=str)
        others = ["score", "p_value", "flagged", "reasons"]
        assert list(read.columns) == ["payment", "age", "fraud", "city, country", *others]
        for _, row in read.iterrows():
            expected = table[table["payment"] == row["payment"]].iloc[0]
            assert float(row["age"]) == expected["age"]
            assert row["city, country"].lstrip("'") == expected["city, country"]
        assert '"\'=1+1"' in run(*command[:-2], *kept).out  # a spreadsheet takes no formula

    def test_types_are_kept(self, run, payments, tmp_path):
        table = make_payments()
        table["when"] = pd.date_range("2024-01-01", periods=len(table))
        table.to_parquet(tmp_path / "t.parquet")
        out = tmp_path / "o.parquet"
        files = (payments / "m.diffint", tmp_path / "t.parquet", "-o", out)
        assert run("score", *files, "--keep", "when,visits").code == 0
        read = pd.read_parquet(out)
        pd.testing.assert_frame_equal(read[["when", "visits"]], table[["when", "visits"]])

    def test_explain_and_report(self, run, payments, tmp_path):
        files = (payments / "m.diffint", payments / "t.csv")
        done = run("explain", *files, "--row", 8, "--keep", "fraud,visits")
        assert done.out.startswith("Row 000007 (fraud = 1, visits = 3): score ")
        done = run("explain", *files, "--row", 8, "--keep", "fraud", "--json")
        assert json.loads(done.out)[0]["kept"] == {"fraud": "1"}
        done = run("report", *files, "--keep", "fraud", "-o", tmp_path / "r.html")
        assert done.code == 0
        data = data_of((tmp_path / "r.html").read_text())
        assert data["kept"] == ["fraud"]
        assert ["1"] in [row[-1] for row in data["rows"]]

    def test_a_report_shows_the_columns_that_the_model_does_not_use(self, run, payments, tmp_path):
        table = make_payments().assign(parts=[[1]] * 400, blank=None)
        table["clerk"] = "<b>Ann</b>"
        table["when"] = pd.date_range("2024-01-01", periods=len(table))
        table = table.assign(**{f"more {i}": i for i in range(20)})
        table.to_parquet(tmp_path / "t.parquet")
        page = tmp_path / "r.html"
        files = (payments / "m.diffint", tmp_path / "t.parquet", "-o", page)
        assert run("report", *files).code == 0
        data = data_of(page.read_text())
        shown = ["fraud", "clerk", "when", *(f"more {i}" for i in range(5))]
        assert data["kept"] == shown  # without those that are empty or cannot be shown
        row = data["rows"][0]
        place = table["payment"].tolist().index(row[0])
        assert row[-1][:3] == [
            str(table["fraud"][place]),
            "<b>Ann</b>",
            str(table["when"][place]),
        ]
        assert run("report", *files, "--keep", "clerk").code == 0
        assert data_of(page.read_text())["kept"] == ["clerk"]

    def test_names_that_the_output_has(self, run, payments, tmp_path):
        make_payments().rename(columns={"payment": "score", "fraud": "row"}).to_csv(
            tmp_path / "t.csv", index=False
        )
        for column in ("score", "row"):
            done = run("score", payments / "m.diffint", tmp_path / "t.csv", "--keep", column)
            assert_refused(done, f"the kept column {column!r} has the same name", "rename it")

    def test_columns_that_do_not_exist_or_cannot_be_kept(self, run, payments, tmp_path):
        files = (payments / "m.diffint", payments / "t.csv")
        for command in ("score", "explain", "report"):
            more = ("--top", 1) if command == "explain" else ("-o", tmp_path / "new")
            done = run(command, *files, *more, "--keep", "frauds")
            assert_refused(done, "that --keep names: 'frauds' (did you mean 'fraud'?)")
        table = make_payments().assign(parts=[[1]] * 400)
        table.to_parquet(tmp_path / "t.parquet")
        done = run("score", payments / "m.diffint", tmp_path / "t.parquet", "--keep", "parts")
        assert_refused(done, "the column 'parts' of type list", "cannot be kept")
