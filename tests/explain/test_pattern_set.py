"""Compact sets of patterns: what they cover, what they state, and how they are written."""

import dataclasses
import pickle
import re

import duckdb
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import same_color
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score

from diffint import DiffInt, InputError
from diffint.show.plots.drawing import NORMAL
from diffint.show.wording.ranges import values_text

QUICK = {"random_state": 0, "epochs": 40, "n_units": 60, "n_members": 3}


def planted(n_rows=600, seed=0):
    """Rows in one of two rectangles, of two and three features; the other features say nothing."""
    rng = np.random.default_rng(seed)
    rows = rng.uniform(0, 100, size=(n_rows, 6))
    first = np.arange(n_rows) % 2 == 0
    rows[first, 0] = rng.uniform(10, 25, size=first.sum())
    rows[first, 1] = rng.uniform(60, 80, size=first.sum())
    rows[~first, 2] = rng.uniform(70, 90, size=(~first).sum())
    rows[~first, 3] = rng.uniform(5, 20, size=(~first).sum())
    rows[~first, 4] = rng.uniform(40, 55, size=(~first).sum())
    return rows


def make_orders(n_rows=500, seed=0):
    """Prices that depend on the kind of goods, with a count, a time, and missing cells."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(["book", "wine", "o'clock"], n_rows)
    price = np.where(kind == "book", 15, np.where(kind == "wine", 60, 200))
    frame = pd.DataFrame(
        {
            "kind": kind,
            'price "net"': price * rng.lognormal(0, 0.1, n_rows),
            "count": rng.poisson(3, n_rows),
            "sold": pd.Timestamp("2024-03-01")
            + pd.to_timedelta(rng.uniform(0, 40 * 24, n_rows) // 0.5 * 0.5, unit="h"),
            "weight": rng.normal(5, 1, n_rows),
        }
    )
    frame.loc[rng.random(n_rows) < 0.1, "weight"] = np.nan
    frame.loc[rng.random(n_rows) < 0.05, "kind"] = None
    return frame


@pytest.fixture(scope="module")
def rectangles():
    return DiffInt(**QUICK).fit(planted()).patterns()


@pytest.fixture(scope="module")
def model_of_orders():
    return DiffInt(**QUICK).fit(make_orders())


@pytest.fixture(scope="module")
def orders(model_of_orders):
    return model_of_orders.patterns(max_patterns=8, max_conditions=3)


def test_planted_rectangles_are_found(rectangles):
    found = [set(np.flatnonzero(one).tolist()) for one in rectangles.has_condition]
    assert sorted(map(sorted, found)) == [[0, 1], [2, 3, 4]]
    first = rectangles.to_frame().query("feature == 'x0'").iloc[0]
    assert first["lower"] == pytest.approx(10, abs=1.5)
    assert first["upper"] == pytest.approx(25, abs=1.5)


def test_stated_coverage_is_that_of_new_rows(rectangles):
    new = planted(4_000, seed=1)
    assert rectangles.covers(new).mean() == pytest.approx(rectangles.set_coverage, abs=0.05)
    each = rectangles.inside(new).mean(axis=0)
    np.testing.assert_allclose(each, rectangles.coverage, atol=0.07)
    assert 0.85 < rectangles.set_coverage <= 1.0


def test_rows_outside_all_patterns_are_far(rectangles):
    new = planted(500, seed=1)
    anomalies = np.random.default_rng(2).uniform(0, 100, size=(500, 6))
    labels = np.repeat([0, 1], 500)
    distance = rectangles.distance(np.vstack([new, anomalies]))
    assert roc_auc_score(labels, distance) > 0.9
    assert abs(distance[:500].mean()) < 1.0
    assert rectangles.covers(anomalies).mean() < 0.2


def test_a_set_keeps_its_limits(orders):
    assert 1 <= len(orders) <= 8
    assert (orders.has_condition.sum(axis=1) <= 3).all()
    frame = orders.to_frame()
    assert len(frame) == orders.has_condition.sum()
    assert set(frame["pattern"]) == set(range(1, len(orders) + 1))


def test_the_same_model_gives_the_same_set(tmp_path):
    detector = DiffInt(**QUICK).fit(make_orders())
    one = detector.patterns()
    detector.save(tmp_path / "model")
    other = DiffInt.load(tmp_path / "model").patterns()
    np.testing.assert_array_equal(one.lower, other.lower)
    np.testing.assert_array_equal(one.coverage, other.coverage)


def test_a_set_cannot_be_changed(rectangles):
    with pytest.raises(ValueError, match="read-only"):
        rectangles.lower[0, 0] = 1.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        rectangles.kept = False
    copy = pickle.loads(pickle.dumps(rectangles))
    assert not copy.upper.flags.writeable


def test_missing_values_meet_every_condition(rectangles):
    rows = np.full((1, 6), np.nan)
    assert rectangles.covers(rows).all()
    assert rectangles.distance(rows) == 0.0


def test_texts_name_every_condition(orders):
    text, page = orders.text(), orders._repr_html_()
    assert text.count("Pattern ") == len(orders)
    assert page.count("<tr>") == len(orders) + 1
    assert "did not choose the patterns" in text
    assert repr(orders).startswith(f"PatternSet({len(orders)} patterns")
    for name in orders.to_frame()["feature"]:
        assert name.removesuffix(" (days since 2024-03-01)") in text


def test_texts_have_dates(model_of_orders):
    text = model_of_orders.patterns(max_patterns=8, max_conditions=5).text()
    assert re.search(r"sold +2024-\d\d-\d\d to 2024-\d\d-\d\d", text)


def test_html_is_escaped():
    rows = pd.DataFrame(planted(200), columns=["<b>", "a", "c", "d", "e", "f"])
    page = DiffInt(**QUICK).fit(rows).patterns()._repr_html_()
    assert "<b>" not in page
    assert "&lt;b&gt;" in page


def flagged_by_sql(patterns, frame):
    orders_table = frame  # noqa: F841 (DuckDB reads it by its name)
    query = patterns.to_sql("orders_table")
    found = duckdb.sql(query).df()
    assert list(found.columns) == [*frame.columns, "outside_all_patterns"]
    return found["outside_all_patterns"].to_numpy()


def test_sql_agrees_with_covers(orders):
    new = make_orders(400, seed=1)
    new.loc[5, "kind"] = "cheese"
    new.loc[6, "kind"] = " wine "
    new.loc[7, "sold"] = pd.Timestamp("2025-01-01")
    new.loc[8, "sold"] = pd.NaT
    new.loc[9, 'price "net"'] = np.nan
    covered = orders.covers(new)
    assert 0 < covered.mean() < 1
    np.testing.assert_array_equal(flagged_by_sql(orders, new), ~covered)


def test_sql_agrees_at_the_ends_of_ranges(rectangles):
    ends = np.concatenate([rectangles.lower, rectangles.upper])
    rows = np.concatenate(
        [np.where(np.isnan(ends), 50.0, beside(ends)) for beside in (lambda e: e, _above, _below)]
    )
    frame = pd.DataFrame(rows, columns=list(rectangles.feature_names))
    np.testing.assert_array_equal(flagged_by_sql(rectangles, frame), ~rectangles.covers(rows))
    single = frame.astype(np.float32)
    np.testing.assert_array_equal(flagged_by_sql(rectangles, single), ~rectangles.covers(single))


def _above(ends):
    return np.nextafter(ends, np.inf)


def _below(ends):
    return np.nextafter(ends, -np.inf)


def test_names_of_tables_are_quoted(rectangles):
    assert rectangles.to_sql("a.b c").endswith('FROM "a"."b c"')
    for bad in ("", "a.", 3):
        with pytest.raises(InputError, match="name of a table"):
            rectangles.to_sql(bad)


def test_a_model_without_kept_rows_estimates():
    patterns = DiffInt(kept_rows=0, **QUICK).fit(planted()).patterns()
    assert not patterns.kept
    assert "estimated" in patterns.text()
    assert patterns.covers(planted(500, seed=1)).mean() > 0.5


@pytest.mark.parametrize("count", [0, -1, 2.5, "3", True])
def test_limits_are_checked(count):
    detector = DiffInt(**QUICK).fit(planted(100))
    with pytest.raises(InputError, match="max_patterns"):
        detector.patterns(max_patterns=count)
    with pytest.raises(InputError, match="max_conditions"):
        detector.patterns(max_conditions=count)


def test_an_unfitted_detector_has_no_patterns():
    with pytest.raises(NotFittedError):
        DiffInt().patterns()


def test_constant_and_tiny_tables_have_patterns():
    constant = DiffInt(**QUICK).fit(np.full((30, 2), 7.0)).patterns()
    np.testing.assert_array_equal(constant.covers([[7.0, 7.0], [7.0, 8.0]]), [True, False])
    tiny = DiffInt(**QUICK).fit(np.arange(12.0).reshape(4, 3)).patterns()
    assert len(tiny.text()) > 0


def test_one_pattern_with_one_condition():
    patterns = DiffInt(**QUICK).fit(planted(200)).patterns(max_patterns=1, max_conditions=1)
    assert patterns.has_condition.sum() == 1


def test_the_picture_names_the_features(orders):
    figure = orders.plot()
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert len(labels) == orders.has_condition.any(axis=0).sum()
    assert len(figure.axes[0].get_xticklabels()) == len(orders)


def test_the_picture_shows_which_training_rows_are_inside():
    """Also of a long tail, and of a value that many rows have."""
    rng = np.random.default_rng(0)
    size = rng.lognormal(0, 2, 800)
    table = np.column_stack([size, size**2 * rng.uniform(0.9, 1.1, 800), rng.poisson(1, 800)])
    patterns = DiffInt(**QUICK, scaling="minmax").fit(table).patterns()
    (axes,) = patterns.plot().axes
    lines = [label.get_text() for label in axes.get_yticklabels()]
    coloured = [patch for patch in axes.patches if same_color(patch.get_facecolor(), NORMAL)]
    assert len(coloured) == patterns.has_condition.sum() > 5
    for patch in coloured:
        k, line = round(patch.get_x() + 0.4), round(patch.get_y())
        j = patterns.feature_names.index(lines[line])
        column, lower, upper = table[:, j], patterns.lower[k, j], patterns.upper[k, j]
        top = 1 - (patch.get_y() - line + 0.42) / 0.84
        bottom = top - patch.get_height() / 0.84
        shares = (column < lower).mean(), (column <= upper).mean()
        np.testing.assert_allclose((bottom, top), shares, atol=0.1)  # of a few stored quantiles


@pytest.mark.parametrize("n_rows", [12, 31, 60])
def test_few_rows_still_measure(n_rows):
    """A set of few rows covers new rows too, and says what it was measured on."""
    patterns = DiffInt(**QUICK).fit(planted(n_rows)).patterns()
    assert patterns.n_measured >= min(12, n_rows // 2)
    assert patterns.covers(planted(500, seed=1)).mean() > 0.5


def test_every_pattern_has_rows_and_ranges_of_the_table(rectangles, orders):
    rows = planted()
    assert (rectangles.inside(rows).sum(axis=0) >= 3).all()
    assert np.nanmin(rectangles.lower) >= 0
    assert np.nanmax(rectangles.upper) <= 100.5
    assert (orders.inside(make_orders()).sum(axis=0) >= 3).all()
    counts = orders.to_frame().query("feature == 'count'")
    assert (counts["lower"] >= 0).all()


def test_conditions_that_fewest_rows_meet_come_first(rectangles):
    rows = planted()
    for k in range(len(rectangles)):
        met = [
            np.mean((rows[:, j] >= rectangles.lower[k, j]) & (rows[:, j] <= rectangles.upper[k, j]))
            for j in rectangles.conditions(k)
        ]
        assert met == pytest.approx(sorted(met), abs=0.1)


def test_constant_features_have_no_condition():
    rows = np.column_stack([planted(200), np.full(200, 3.0)])
    patterns = DiffInt(**QUICK).fit(rows).patterns()
    assert not patterns.has_condition[:, -1].any()
    assert patterns.distance(np.append(rows[0, :-1], 4.0)[None]) > patterns.distance(rows[:1])


def test_few_normal_rows_are_farther_than_1():
    patterns = DiffInt(**QUICK).fit(planted()).patterns()
    distance = patterns.distance(planted(4_000, seed=1))
    assert (distance > 1).mean() == pytest.approx(0.05, abs=0.04)
    assert distance.mean() == pytest.approx(0.0, abs=0.2)


@pytest.mark.parametrize(
    ("values", "options"),
    [
        ([True, False, True], {}),
        ([True, False, True], {"categories": ["a"]}),
        ([0.0, 1.0, 2.0], {"categories": ["a"]}),
        (["x\t", "\ny", "z"], {}),
        (["2020-01-01 03:00", "2020-02-01 10:00", "2020-03-05 17:00"], {}),
    ],
)
def test_sql_reads_columns_as_the_library_does(values, options):
    rng = np.random.default_rng(0)
    which = rng.integers(3, size=400)
    frame = pd.DataFrame({"a": np.array(values)[which], "b": 5.0 * which + rng.normal(size=400)})
    patterns = DiffInt(**QUICK, **options).fit(frame).patterns(max_patterns=8)
    frame["b"] = rng.permutation(frame["b"].to_numpy())
    np.testing.assert_array_equal(flagged_by_sql(patterns, frame), ~patterns.covers(frame))


def test_a_column_with_the_name_of_the_flag_is_refused():
    frame = pd.DataFrame(planted(100)[:, :2], columns=["a", "outside_all_patterns"])
    with pytest.raises(InputError, match="rename"):
        DiffInt(**QUICK).fit(frame).patterns().to_sql("t")


def test_missing_cells_leave_distances_about_as_they_are():
    rng = np.random.default_rng(3)
    mixing = rng.normal(size=(6, 6))
    patterns = DiffInt(**QUICK).fit(rng.normal(size=(800, 6)) @ mixing).patterns()
    new = rng.normal(size=(800, 6)) @ mixing
    for count in range(7):
        is_missing = np.argsort(rng.random(new.shape), axis=1) < count
        distance = patterns.distance(np.where(is_missing, np.nan, new))
        assert distance.mean() == pytest.approx(0.0, abs=0.35)


def test_one_row_repeated_is_at_distance_zero():
    rows = np.tile(np.random.default_rng(0).normal(size=(1, 4)), (100, 1))
    patterns = DiffInt(**QUICK).fit(rows).patterns()
    assert patterns.distance(rows[:1]) == pytest.approx(0.0, abs=1e-6)
    assert 0 < patterns.distance(rows[:1] + 1)[0] < 1e6


def test_a_table_with_few_different_rows_has_few_patterns():
    frame = pd.DataFrame({"a": np.random.default_rng(0).choice(list("abc"), 300)})
    assert len(DiffInt(**QUICK).fit(frame).patterns()) <= 10


def test_long_tails_that_are_not_scaled_have_finite_ranges():
    rows = np.random.default_rng(0).lognormal(0, 4, size=(300, 3))
    patterns = DiffInt(**QUICK, scaling="none").fit(rows).patterns()
    assert np.isfinite(patterns.lower[patterns.has_condition]).all()
    assert np.isfinite(patterns.upper[patterns.has_condition]).all()


def test_few_planted_rectangles_are_found_though_most_features_say_nothing():
    rng = np.random.default_rng(0)
    rows = rng.uniform(0, 100, size=(900, 12))
    for part, (j, low) in enumerate([(0, 20.0), (3, 70.0), (6, 40.0)]):
        members = np.arange(900) % 3 == part
        rows[members, j] = rng.uniform(low, low + 12, members.sum())
        rows[members, j + 1] = rng.uniform(low - 10, low + 5, members.sum())
    patterns = DiffInt(**QUICK).fit(rows).patterns()
    conditions = [tuple(np.flatnonzero(one)) for one in patterns.has_condition]
    assert {(0, 1), (3, 4), (6, 7)} == set(conditions)


@pytest.mark.parametrize(("n_values", "most_covered"), [(3, 0.0), (4, 0.0), (5, 0.25)])
def test_a_pattern_for_every_value_of_a_column_does_not_cover_everything(n_values, most_covered):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=600), "few": rng.integers(0, n_values, 600)})
    table = table.assign(**{name: table["a"] + rng.normal(0, 0.3, 600) for name in "bc"})
    patterns = DiffInt(**QUICK).fit(table).patterns()
    assert patterns.covers(table).mean() > 0.8
    assert patterns.set_anomalies_outside > 0.4
    far = table.head(20).assign(a=-9.0, b=9.0, c=0.0)
    assert patterns.covers(far).mean() <= most_covered


def test_no_pattern_is_shown_twice():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=400), "few": rng.integers(0, 4, 400)})
    for rows in (table, table.head(12)):
        lines = DiffInt(**QUICK).fit(rows).patterns().to_frame()
        shown = [
            tuple(map(str, one[["feature", "lower", "upper"]].to_numpy().ravel()))
            for _, one in lines.groupby("pattern")
        ]
        assert len(shown) == len(set(shown))


@pytest.mark.parametrize("written", ["as texts", "as moments"])
def test_sql_of_times_with_a_zone(written):
    rng = np.random.default_rng(0)
    hour = rng.integers(8, 18, 400)
    sold = pd.Timestamp("2024-03-01", tz="UTC") + pd.to_timedelta(
        24 * rng.integers(0, 90, 400) + hour, unit="h"
    )
    table = pd.DataFrame({"sold": sold, "price": 10.0 * hour + rng.normal(0, 2, 400)})
    if written == "as texts":
        table["sold"] = table["sold"].dt.strftime("%Y-%m-%dT%H:%M:%SZ")
    patterns = DiffInt(**QUICK).fit(table).patterns()
    assert any("hour" in name for name in patterns.to_frame()["feature"])
    new = table.assign(price=table["price"].sample(400, random_state=0).to_numpy())
    covered = patterns.covers(new)
    assert 0 < covered.mean() < 1
    np.testing.assert_array_equal(flagged_by_sql(patterns, new), ~covered)


@pytest.mark.parametrize("blank", [c for c in map(chr, range(0x3001)) if c.isspace()])
def test_sql_cuts_off_every_blank(blank, places_patterns):
    new = pd.DataFrame({"g": ["Paris", "Oslo"] * 50, "x": [10.0, 0.0] * 50})
    new["g"] = blank + new["g"] + blank
    np.testing.assert_array_equal(
        flagged_by_sql(places_patterns, new), ~places_patterns.covers(new)
    )


@pytest.fixture(scope="module")
def places_patterns():
    rng = np.random.default_rng(0)
    place = rng.integers(0, 3, 600)
    table = pd.DataFrame({"g": np.array(["Paris\u00a0", "Rome", "Oslo"])[place]})
    table["x"] = place * 10 + rng.normal(size=600)
    patterns = DiffInt(**QUICK).fit(table).patterns(5, 2)
    np.testing.assert_array_equal(flagged_by_sql(patterns, table), ~patterns.covers(table))
    assert patterns.covers(table).mean() > 0.8
    return patterns


def test_a_column_without_a_name_cannot_be_written_in_sql():
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 2)), columns=["", "b"])
    with pytest.raises(InputError, match="the name '' cannot be written in SQL"):
        DiffInt(**QUICK).fit(table).patterns(3).to_sql("t")


def test_a_text_says_that_values_may_be_missing_where_many_are():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(500, 2)), columns=["a", "b"])
    table["b"] += table["a"]
    table.loc[rng.random(500) < 0.5, "b"] = np.nan
    lines = DiffInt(**QUICK).fit(table).patterns().text().splitlines()
    of_b = [line for line in lines if line.startswith("  b ")]
    assert of_b
    assert all(line.endswith(" or missing") for line in of_b)
    assert not any("missing" in line for line in lines if line.startswith("  a "))


def test_many_values_are_named_by_the_few_others():
    assert values_text("abcdefg", 0, 5) == "any known value but g"
    assert values_text("abcdefg", 1, 5) == "any known value but a and g"
    assert values_text("abcdefg", 2, 5) == "one of c, d, e, f"
    assert values_text("abc", 0, 1) == "one of a, b"
    assert values_text(["9", "21", "2", "30", "4", "7"], 0, 2) == "one of 2, 9, 21"
    assert values_text(["Sunday", "Monday", "Friday"], 0, 1) == "one of Monday, Sunday"


@pytest.mark.parametrize(
    ("cell", "says"),
    [((0, 1), "is no category"), ((99, 0), "pattern=99 does not"), (("x", 0), "whole number")],
)
def test_allowed_values_of_what_is_not_there(orders, cell, says):
    assert isinstance(orders.allowed_values(0, 0), list)
    with pytest.raises(InputError, match=says):
        orders.allowed_values(*cell)
