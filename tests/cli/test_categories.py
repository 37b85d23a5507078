"""Columns of text through the command: every format, every kind of column, and what is shown."""

import io
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from diffint import DiffInt
from diffint.tables.inputs import input_columns

QUICK = ("--epochs", 20, "--members", 2, "--units", 16)


def make_orders(n_rows=300, seed=0):
    """A shop that decides the amount, a zip code and a yes or no."""
    rng = np.random.default_rng(seed)
    shop = rng.integers(0, 3, n_rows)
    return pd.DataFrame(
        {
            "shop": np.array(["north", "south", "east"])[shop],
            "amount": (10.0 * shop + rng.normal(size=n_rows)).round(3),
            "zip": np.array(["02139", "10115", "75001"])[rng.integers(0, 3, n_rows)],
            "gift": rng.random(n_rows) < 0.5,
            "age": rng.normal(40, 9, n_rows).round(1),
        }
    )


@pytest.fixture(scope="module")
def orders(tmp_path_factory):
    """A folder with the same orders in every format."""
    folder = tmp_path_factory.mktemp("orders")
    frame = make_orders()
    frame.loc[5, "shop"] = None
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_csv(folder / "t.tsv", index=False, sep="\t")
    frame.to_excel(folder / "t.xlsx", index=False)
    frame.to_parquet(folder / "t.parquet")
    frame.to_feather(folder / "t.feather")
    frame.astype({"shop": "category"}).to_parquet(folder / "dictionary.parquet")
    new = make_orders(60, seed=1)
    new.loc[0, "shop"], new.loc[1, "shop"] = "west", ""
    new.to_csv(folder / "new.csv", index=False)
    return folder


@pytest.fixture
def fit(run, orders, tmp_path):
    """fit("t.csv", *options) → what the command did; the model is m.diffint"""

    def fit_file(name, *options):
        output = ("-o", tmp_path / "m.diffint")
        return run("fit", orders / name, *output, *QUICK, *options)

    return fit_file


def categories(path):
    model = DiffInt.load(path).model_
    return {model.feature_names[j]: set(v) for j, v in model.categories.items()}


SHOPS = {"north", "south", "east"}


@pytest.mark.parametrize(
    "name", ["t.csv", "t.tsv", "t.xlsx", "t.parquet", "t.feather", "dictionary.parquet"]
)
def test_every_format_gives_the_same_model(fit, run, orders, tmp_path, name):
    zips = ("--categories", "zip")
    done = fit(name, *zips)
    assert done.code == 0, done.err
    assert "of 5 features (2 categories)" in done.out
    assert categories(tmp_path / "m.diffint") == {"shop": SHOPS, "zip": {"02139", "10115", "75001"}}
    frame = make_orders()
    frame.loc[5, "shop"] = None
    detector = DiffInt(epochs=20, n_members=2, n_units=16, random_state=0).fit(frame)
    new = pd.read_csv(orders / "new.csv", dtype={"zip": str})
    done = run("score", tmp_path / "m.diffint", orders / "new.csv", "-o", tmp_path / "o.parquet")
    assert done.code == 0, done.err
    scores = pd.read_parquet(tmp_path / "o.parquet")["score"]
    np.testing.assert_array_equal(scores, detector.anomaly_score(new))


def test_numbers_alone_take_the_same_path_as_before(fit, orders, tmp_path):
    assert fit("t.csv", "--numeric-only").code == 0
    frame = make_orders().astype({"gift": float, "zip": float})[["amount", "zip", "gift", "age"]]
    detector = DiffInt(epochs=20, n_members=2, n_units=16, random_state=0).fit(frame.to_numpy())
    loaded = DiffInt.load(tmp_path / "m.diffint")
    assert list(loaded.feature_names_in_) == list(frame)
    np.testing.assert_array_equal(
        loaded.anomaly_score(frame), detector.anomaly_score(frame.to_numpy())
    )


def test_values_are_shown_by_name(fit, run, orders, tmp_path):
    fit("t.csv", "--categories", "zip")
    files = (tmp_path / "m.diffint", orders / "new.csv")
    done = run("score", *files, "--top", 1)
    assert "shop = west, a new value" in done.out
    (row,) = json.loads(run("explain", *files, "--row", 1, "--json").out)
    reason = row["reasons"][0]
    assert (reason["feature"], reason["value"], reason["kind"]) == ("shop", "west", "new")
    part = row["parts"][0]
    assert (part["feature"], part["value"], part["side"]) == ("shop", "west", "outside")
    assert set(part["values"]) <= SHOPS
    assert row["nearest_normal"][0]["suggested"] in SHOPS
    text = run("explain", *files, "--row", 1).out
    assert " instead of west" in text
    assert "shop is missing" in run("explain", *files, "--row", 2).out  # an empty cell
    info = run("info", tmp_path / "m.diffint").out
    assert "of 5 features (2 categories)" in info
    assert "zip (" in info
    assert "02139" in info
    info = json.loads(run("info", tmp_path / "m.diffint", "--json").out)
    assert set(info["categories"]["shop"]) == SHOPS
    learned = json.loads(run("constraints", tmp_path / "m.diffint", "--json").out)["constraints"]
    for line in learned:
        if line["feature"] in ("shop", "zip"):
            assert set(line["values"]) <= SHOPS | {"02139", "10115", "75001"}
            assert line["lower"] is None
        else:
            assert line["values"] is None
    assert run("report", *files, "-o", tmp_path / "r.html").code == 0
    page = (tmp_path / "r.html").read_text()
    assert '"west"' in page
    assert "shop = west" in page.replace('"', "") or " = west, a value" in page


def test_find_shows_values_by_name(run, orders, tmp_path):
    table = make_orders()
    table.loc[7, ["shop", "amount"]] = "south", 60.0
    table.to_csv(tmp_path / "t.csv", index=False)
    outputs = ("-o", tmp_path / "o.csv", "--report", tmp_path / "r.html", "--model", tmp_path / "m")
    done = run(
        "find", tmp_path / "t.csv", *outputs, "--categories", "zip", "--epochs", 20, "--top", 1
    )
    assert done.code == 0, done.err
    assert "Row 8: score" in done.out
    assert pd.read_csv(tmp_path / "o.csv")["row"][0] == 8
    assert '"south"' in (tmp_path / "r.html").read_text()
    assert categories(tmp_path / "m")["zip"] == {"02139", "10115", "75001"}
    again = run("score", tmp_path / "m", tmp_path / "t.csv", "-o", tmp_path / "o.csv")
    assert "these are the rows that the model was trained on" in again.err


def test_identifiers_are_not_learned_and_not_needed_later(run, tmp_path):
    table = make_orders()
    table.insert(0, "order no", [f"A{i}" for i in range(len(table))])
    table.to_csv(tmp_path / "t.csv", index=False)
    done = run("fit", tmp_path / "t.csv", "-o", tmp_path / "m", *QUICK)
    assert done.code == 0, done.err
    assert 'like identifiers: order no (300); use --id "order no" if' in done.err
    assert 'with --ignore "order no".' in done.err
    assert done.err.count("Note: ") == 1
    assert "of 5 features (1 category)" in done.out
    assert "ignored     order no" in run("info", tmp_path / "m").out
    make_orders(20, seed=1).to_csv(tmp_path / "new.csv", index=False)
    done = run("score", tmp_path / "m", tmp_path / "new.csv")
    assert done.code == 0, done.err
    assert len(pd.read_csv(io.StringIO(done.out))) == 20
    model = DiffInt.load(tmp_path / "m").model_
    assert input_columns(model)["order no"] == "unused"


def test_identifiers_of_a_small_table(run, tmp_path):
    table = make_orders(40).assign(name=[f"n{i}" for i in range(40)])
    table.to_csv(tmp_path / "t.csv", index=False)
    done = run("fit", tmp_path / "t.csv", "-o", tmp_path / "m", *QUICK)
    assert "like identifiers: name (40)" in done.err


def test_thousands_of_different_texts(run, tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"town": [f"t{i % 1500}" for i in range(4000)], "x": rng.normal(size=4000).round(3)}
    )
    table.to_csv(tmp_path / "t.csv", index=False)
    done = run("fit", tmp_path / "t.csv", "-o", tmp_path / "m", *QUICK)
    assert done.code == 0, done.err
    assert "only the 199 most common values are learned one by one of town (1,500)" in done.err
    (tmp_path / "new.csv").write_text("town,x\nt9999,50\nt9999,0\n")
    done = run("score", tmp_path / "m", tmp_path / "new.csv")
    assert list(pd.read_csv(io.StringIO(done.out))["flagged"]) == [True, False]
    done = run("explain", tmp_path / "m", tmp_path / "new.csv", "--row", 1, "--json")
    values = {part["feature"]: part["value"] for part in json.loads(done.out)[0]["parts"]}
    assert values["town"] == "t9999"


def test_categories_only_and_a_single_value(run, tmp_path):
    table = make_orders()[["shop", "zip"]].assign(zip="x", country="here")
    table.to_csv(tmp_path / "t.csv", index=False)
    done = run("fit", tmp_path / "t.csv", "-o", tmp_path / "m", *QUICK)
    assert done.code == 0, done.err
    assert "of 3 features (3 categories)" in done.out
    (tmp_path / "new.csv").write_text("shop,zip,country\nnorth,x,here\nnorth,x,elsewhere\n")
    done = run("score", tmp_path / "m", tmp_path / "new.csv")
    read = pd.read_csv(io.StringIO(done.out))
    assert read["score"][1] > 2 * read["score"][0]
    assert "country = elsewhere, a new value" in read["reasons"][1]


def test_a_table_with_text_in_every_batch(run, tmp_path, monkeypatch):
    """The first values of a column come late, and the kind of a column is decided at the end."""
    monkeypatch.setattr("diffint.tables.files.text._BLOCK_BYTES", 300)
    table = make_orders().assign(note=None, code=[*"abcdefghij", *["7"] * 290])
    table.loc[250:, "note"] = np.resize(["late", "later"], 50)
    table.to_csv(tmp_path / "t.csv", index=False)
    done = run("fit", tmp_path / "t.csv", "-o", tmp_path / "m", *QUICK)
    assert done.code == 2
    assert "1 column cannot be used: 'code' ('a' in line 2 is not a number)" in done.err
    done = run("fit", tmp_path / "t.csv", "-o", tmp_path / "m", *QUICK, "--ignore", "code")
    assert done.code == 0, done.err
    assert categories(tmp_path / "m")["note"] == {"late", "later"}


@pytest.mark.parametrize("cells", [["1,234"], ["$5"], ["5 %", "6.5 %"], ["12 €"], ["1.234.567"]])
def test_numbers_in_disguise_are_not_categories(run, tmp_path, cells):
    make_orders().assign(price=np.resize(cells, 300)).to_csv(tmp_path / "t.csv", index=False)
    done = run("fit", tmp_path / "t.csv", "-o", tmp_path / "m", *QUICK)
    assert done.code == 2
    assert f"'price' ({cells[0]!r} in line 2 is not a number)" in done.err
    assert "use it as a category with --categories price" in done.err
    options = ("--categories", "price")
    assert run("fit", tmp_path / "t.csv", "-o", tmp_path / "m", *QUICK, *options).code == 0


def test_true_and_false_beside_another_word(run, tmp_path):
    table = make_orders().assign(gift=np.resize(["true", "false", "unknown"], 300))
    table.to_csv(tmp_path / "t.csv", index=False)
    assert run("fit", tmp_path / "t.csv", "-o", tmp_path / "m", *QUICK).code == 0
    assert categories(tmp_path / "m")["gift"] == {"true", "false", "unknown"}
    make_orders(20, 1).assign(gift="true").to_csv(tmp_path / "new.csv", index=False)
    assert run("score", tmp_path / "m", tmp_path / "new.csv").code == 0


def test_one_column_that_is_several(run, tmp_path):
    (tmp_path / "t.csv").write_text("a;b\n1;x\n2;y\n")
    done = run("fit", tmp_path / "t.csv", "-o", tmp_path / "m", *QUICK)
    assert done.code == 2
    assert "are the columns separated by ';'? then add --separator ';'" in done.err


class TestOtherKindsLater:
    def score(self, run, tmp_path, **changed):
        make_orders(20, seed=2).assign(**changed).to_csv(tmp_path / "new.csv", index=False)
        return run("score", tmp_path / "m.diffint", tmp_path / "new.csv")

    def test_text_where_numbers_were(self, fit, run, tmp_path):
        fit("t.csv")
        done = self.score(run, tmp_path, age="old")
        assert done.code == 2
        assert "column 'age' has 'old' in line 2, which is not a number" in done.err
        assert done.err.count("\n") == 1

    def test_numbers_where_text_was(self, fit, run, tmp_path):
        fit("t.csv")
        done = self.score(run, tmp_path, shop=7)
        assert done.code == 2
        assert "column 'shop' has numbers, but had text in training, such as '" in done.err
        assert done.err.count("\n") == 1

    def test_new_numbers_of_a_category_of_numbers(self, fit, run, tmp_path):
        fit("t.csv", "--categories", "zip")
        done = self.score(run, tmp_path, zip="99999")
        assert done.code == 0, done.err
        assert pd.read_csv(io.StringIO(done.out))["flagged"].all()
        assert "zip = 99999, a new value" in done.out

    def test_a_missing_category(self, fit, run, tmp_path):
        fit("t.csv")
        done = self.score(run, tmp_path, shop=None)
        assert done.code == 0, done.err


def test_words_for_missing_cells(run, tmp_path):
    """Marks are missing cells; words may be values of a column of text."""
    cells = ["north", "NA", "n/a", "?", "-", " ", "none", "south"]
    make_orders(240).assign(shop=np.resize(cells, 240)).to_csv(tmp_path / "t.csv", index=False)
    assert run("fit", tmp_path / "t.csv", "-o", tmp_path / "m", *QUICK).code == 0
    assert categories(tmp_path / "m") == {"shop": {"north", "south", "none"}}


def test_spaces_around_values_do_not_matter(run, orders, tmp_path):
    text = (orders / "t.csv").read_text()
    (tmp_path / "spaces.csv").write_text(text.replace("north,", "  north ,"))
    assert run("fit", tmp_path / "spaces.csv", "-o", tmp_path / "m", *QUICK).code == 0
    assert categories(tmp_path / "m")["shop"] == SHOPS
    frame = make_orders().replace({"shop": {"north": " north"}})  # as pandas reads such a file
    detector = DiffInt(epochs=1, n_members=1, n_units=8).fit(frame)
    assert set(detector.model_.categories[0]) == SHOPS


def test_accuracy_with_labels(run, tmp_path):
    table = make_orders().assign(fraud=0, note=None)
    table.loc[:9, ["shop", "fraud"]] = "west", 1
    table.loc[0, "note"] = "only anomalies have notes"
    table.to_csv(tmp_path / "t.csv", index=False)
    done = run("fit", tmp_path / "t.csv", "-o", tmp_path / "m", *QUICK, "--label", "fraud")
    assert done.code == 0, done.err
    assert "AUROC 1.000" in done.out


def test_types_that_are_neither_numbers_nor_text(run, tmp_path):
    table = make_orders().assign(parts=[[1, 2]] * 300)
    table.to_parquet(tmp_path / "t.parquet")
    done = run("fit", tmp_path / "t.parquet", "-o", tmp_path / "m", *QUICK)
    assert done.code == 2
    assert "1 column cannot be used: 'parts' (type list<" in done.err
    assert "leave it out with --ignore parts" in done.err
    done = run("fit", tmp_path / "t.parquet", "-o", tmp_path / "m", *QUICK, "--numeric-only")
    assert "'shop', 'parts' (not numeric)" in done.out


def test_hostile_values_are_harmless(run, tmp_path):
    values = ["\x1b[31mred", "a\nb", "=1+1", "<script>alert(1)</script>", "x" * 500, "\u202eok"]
    table = make_orders().assign(shop=np.resize(values, 300))
    table.to_csv(tmp_path / "t.csv", index=False)
    assert run("fit", tmp_path / "t.csv", "-o", tmp_path / "m", *QUICK).code == 0
    make_orders(20, 1).assign(shop="\x1b[2Jnew").to_csv(tmp_path / "new.csv", index=False)
    for command in (
        ("score", tmp_path / "m", tmp_path / "new.csv"),
        ("explain", tmp_path / "m", tmp_path / "t.csv", "--top", 9),
        ("info", tmp_path / "m"),
        ("constraints", tmp_path / "m", "--patterns", 20),
        ("find", tmp_path / "t.csv", "--epochs", 2),
    ):
        done = run(*command)
        assert done.code == 0, done.err
        assert "\x1b" not in done.out + done.err
        assert "\u202e" not in done.out + done.err
    assert run("report", tmp_path / "m", tmp_path / "new.csv", "-o", tmp_path / "r").code == 0
    assert "<script>alert(1)" not in (tmp_path / "r").read_text()


def test_times_are_passed_on_as_they_are(tmp_path):
    from diffint.cli.training_columns import TrainingColumns
    from diffint.tables.files.reading import open_table

    zoned = pd.date_range("2024-01-01", periods=5, freq="D", tz="Europe/Berlin")
    table = pa.table(
        {
            "when": pa.array(zoned),
            "day": pa.array(zoned.date),
            "text": ["2024-01-01T12:00", None, "", "2024-01-02", "x"],
            "n": [1.5, None, 3.0, 4.0, 5.0],
        }
    )
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    with open_table(str(tmp_path / "t.parquet")) as file:
        columns = TrainingColumns(file, file.columns, [])
        for first, batch in file.batches(file.columns):
            columns.add(batch, first)
        frame, left_out = columns.frame(False)
    assert left_out == []
    assert isinstance(frame["when"].dtype, pd.DatetimeTZDtype)
    assert list(frame["when"]) == list(zoned)
    assert frame["day"].dtype.kind == "M"
    assert frame["n"].dtype == np.float64
    assert list(frame["text"]) == ["2024-01-01T12:00", None, None, "2024-01-02", "x"]
    assert frame["text"].dtype == object


def test_new_parts_of_times_are_named_as_in_the_library(run, tmp_path):
    rng = np.random.default_rng(0)
    days = pd.Series(pd.date_range("2024-01-01", periods=300, freq="D"))
    time = days + pd.to_timedelta(rng.integers(8, 18, 300), "h")
    table = pd.DataFrame({"time": time, "x": rng.normal(size=300)})
    rows = table.iloc[:1].assign(time=pd.Timestamp("2034-01-01 03:00"))
    table.to_csv(tmp_path / "t.csv", index=False)
    rows.to_csv(tmp_path / "new.csv", index=False)
    model = tmp_path / "m.diffint"
    assert run("fit", tmp_path / "t.csv", "-o", model, *QUICK).code == 0
    shown = run("explain", model, tmp_path / "new.csv", "--top", 1).out
    assert "time (hour) = 3, a value that no training row has" in shown
    assert "(days since 2024-01-01) = " not in shown  # a later time is no reason
    for reason in DiffInt.load(model).explain(rows).reasons(0, 5):
        assert reason in shown


def test_a_column_without_training_values_may_be_anything_later(run, tmp_path):
    orders = make_orders()
    empty = orders.assign(sent=pd.Series([pd.NaT] * 300, dtype="datetime64[ns]"), note="")
    empty.to_parquet(tmp_path / "t.parquet")
    orders.assign(sent=pd.Timestamp("2024-03-01"), note=7).to_parquet(tmp_path / "full.parquet")
    orders.to_parquet(tmp_path / "without.parquet")
    model = tmp_path / "m.diffint"
    assert run("fit", tmp_path / "t.parquet", "-o", model, *QUICK).code == 0
    scores = [
        run("score", model, tmp_path / f"{name}.parquet", "-o", "-").out
        for name in ("t", "full", "without")
    ]
    assert scores[0].count("\n") == 301
    assert len(set(scores)) == 1
