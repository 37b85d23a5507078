"""Graphs of models with text and times take columns by name."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from diffint import DiffInt
from diffint.core.errors import InputError

from ..conftest import QUICK
from .running import assert_same, feeds_of, run_graph, session_of

FEW = {"false_positive_rate": 0.05}


def make_orders(n_rows: int, seed: int) -> pd.DataFrame:
    """Numbers, text, times, and texts like identifiers."""
    rng = np.random.default_rng(seed)
    city = rng.choice(["Oslo", "Rome", "Lima", "Bonn"], n_rows, p=[0.5, 0.3, 0.15, 0.05])
    amount = np.exp(rng.normal(size=n_rows)) * np.where(city == "Rome", 10.0, 1.0)
    days = pd.to_timedelta(rng.uniform(0, 800, n_rows), unit="D")
    table = pd.DataFrame(
        {
            "amount": amount,
            "score": rng.normal(size=n_rows),  # the name of an output
            "v1": rng.integers(0, 5, n_rows).astype(float),  # the name of an inner value
            "city": city,
            "plan": np.where(city == "Lima", "a", rng.choice(["b", "c"], n_rows)),
            "note": [f"note {i}" for i in range(n_rows)],
            "when": pd.Timestamp("2019-11-03") + days,
        }
    )
    for name in ("amount", "city", "plan", "when"):
        table.loc[rng.random(n_rows) < 0.04, name] = None
    return table


def make_other_orders(n_rows: int, seed: int) -> pd.DataFrame:
    """Orders with values that are new, and times of four centuries."""
    rng = np.random.default_rng(seed)
    table = make_orders(n_rows, seed)
    table.loc[::7, "city"], table.loc[::9, "plan"] = "Wien", "(any other value)"
    table.loc[::5, "amount"] *= 50.0
    seconds = rng.integers(-6 * 10**9, 6 * 10**9, n_rows // 2 + n_rows % 2)
    table.loc[::2, "when"] = pd.Timestamp("1970-01-01") + pd.to_timedelta(seconds, unit="s")
    return table


@pytest.mark.filterwarnings("ignore::diffint.core.errors.IdentifierWarning")
@pytest.mark.parametrize("changes", [{}, {"missing": "ignored"}, {"kept_rows": 0}], ids=str)
def test_mixed_tables_give_the_scores_of_the_library(changes, tmp_path):
    detector = DiffInt(**(QUICK | FEW | changes)).fit(make_orders(500, 0))
    rows = make_other_orders(1200, 1)
    found = run_graph(detector, tmp_path / "m.onnx", rows)
    assert_same(detector, found, rows)


@pytest.mark.filterwarnings("ignore::diffint.core.errors.IdentifierWarning")
def test_inputs_have_the_names_of_columns_and_do_not_clash(tmp_path):
    detector = DiffInt(**QUICK).fit(make_orders(300, 0))
    session = session_of(detector, tmp_path / "m.onnx")
    given = {one.name: (one.type, one.shape) for one in session.get_inputs()}
    assert given == {
        "amount": ("tensor(double)", ["rows"]),
        "score_": ("tensor(double)", ["rows"]),
        "v1": ("tensor(double)", ["rows"]),
        "city": ("tensor(string)", ["rows"]),
        "plan": ("tensor(string)", ["rows"]),
        "when": ("tensor(int64)", ["rows"]),
    }  # and no input for the notes, which the fit ignored
    described = json.loads(session.get_modelmeta().custom_metadata_map["diffint.inputs"])
    assert described[1] == {"name": "score_", "column": "score", "kind": "numbers"}


def test_many_values_count_as_one(tmp_path):
    """Rare values of a column with very many are one value; a new one is like them."""
    rng = np.random.default_rng(0)
    shops = [f"shop {i}" for i in (rng.pareto(0.5, 4000) * 30).astype(int) % 700]
    table = pd.DataFrame({"shop": shops, "sum": rng.normal(size=4000)})
    detector = DiffInt(**(QUICK | FEW | {"epochs": 1})).fit(table)
    assert "(any other value)" in detector.model_.categories[0]
    new = table[:900].copy()
    new.loc[::4, "shop"] = "a new shop"
    assert_same(detector, run_graph(detector, tmp_path / "m.onnx", new), new)


def test_numbers_named_as_categories_are_texts(tmp_path):
    rng = np.random.default_rng(0)
    code = rng.choice([1010, 2020, 3030], 300)
    table = pd.DataFrame({"code": code, "sum": rng.normal(size=300) + code})
    detector = DiffInt(**(QUICK | FEW), categories=["code"]).fit(table)
    new = pd.concat([table, table.assign(code=9999), table.assign(sum=0.0)], ignore_index=True)
    assert_same(detector, run_graph(detector, tmp_path / "m.onnx", new), new)


def test_times_with_a_zone_are_given_as_its_clocks_show_them(tmp_path):
    rng = np.random.default_rng(0)
    start = pd.Timestamp("2021-01-01", tz="UTC")
    when = start + pd.to_timedelta(rng.integers(0, 400 * 24, 500), unit="h")
    table = pd.DataFrame({"when": when.tz_convert("Europe/Oslo"), "x": rng.normal(size=500)})
    table["x"] += table["when"].dt.hour
    detector = DiffInt(**(QUICK | FEW)).fit(table)
    new = table.assign(x=np.where(np.arange(500) % 3, table["x"], 80.0))
    assert_same(detector, run_graph(detector, tmp_path / "m.onnx", new), new)


def test_what_python_writes_for_a_missing_text_is_missing(tmp_path):
    """ONNX Runtime turns None and NaN into the texts "None" and "nan"."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"city": rng.choice(["Oslo", "Rome"], 200), "x": rng.normal(size=200)})
    detector = DiffInt(**QUICK).fit(table)
    session = session_of(detector, tmp_path / "m.onnx")
    cells = np.array([None, np.nan, pd.NA, pd.NaT, ""], dtype=object)
    found = session.run(["score"], {"city": cells, "x": np.zeros(5)})[0]
    missing = detector.anomaly_score(pd.DataFrame({"city": [None, "Oslo"], "x": 0.0}))
    np.testing.assert_allclose(found, np.full(5, missing[0]), rtol=1e-6)


def test_values_that_are_called_like_missing_cells_are_values(tmp_path):
    rng = np.random.default_rng(0)
    city = rng.choice(["None", "nan", "NA", "?", "Rome"], 200)
    table = pd.DataFrame({"city": city, "x": rng.normal(size=200)})
    detector = DiffInt(**(QUICK | FEW)).fit(table)
    new = pd.concat([table, table.assign(x=30.0)], ignore_index=True)
    assert_same(detector, run_graph(detector, tmp_path / "m.onnx", new), new)


@pytest.mark.parametrize("where", ["name", "value"])
def test_texts_that_are_not_valid_unicode_are_refused(where, tmp_path):
    broken = "caf\udce9"  # a lone surrogate, as Python reads bytes of another encoding
    name, value = ("city", broken) if where == "value" else (broken, "Oslo")
    cells = np.array([value, "Rome"] * 50, dtype=object)
    columns = pd.Index([name, "x"], dtype=object)
    table = pd.DataFrame(list(zip(cells, np.arange(100.0), strict=True)), dtype=object)
    table.columns = columns
    detector = DiffInt(**QUICK).fit(table)
    with pytest.raises(InputError, match="is not valid Unicode"):
        detector.to_onnx(tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())


def test_texts_with_spaces_around_them_are_new_values(tmp_path):
    """The library removes them; ONNX has no operator that does, and the guide says so."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"city": rng.choice(["Oslo", "Rome"], 200), "x": rng.normal(size=200)})
    detector = DiffInt(**QUICK).fit(table)
    session = session_of(detector, tmp_path / "m.onnx")
    exact = session.run(["score"], feeds_of(session, table))[0]
    padded = session.run(["score"], feeds_of(session, table.assign(city=table["city"] + " ")))[0]
    new = session.run(["score"], feeds_of(session, table.assign(city="Wien")))[0]
    np.testing.assert_array_equal(padded, new)
    assert (padded > exact).mean() > 0.9
