"""Columns of text: fitted, scored, explained, saved and bounded like numbers."""

import dataclasses
import re
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from diffint import DiffInt, plots
from diffint.core.errors import IdentifierWarning, InputError, InputTypeError, InputWarning
from diffint.engine.reference import score
from diffint.tables.categories import find_categories

from .conftest import QUICK, make_rows


def make_table(n_rows=400, seed=0):
    """A colour that decides the size, a shop that has nothing to do with either."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, n_rows)
    return pd.DataFrame(
        {
            "colour": np.array(["red", "green", "blue"])[kind],
            "size": 5.0 * kind + rng.normal(size=n_rows),
            "shop": rng.choice(["north", "south"], n_rows),
            "age": rng.normal(size=n_rows),
        }
    )


@pytest.fixture(scope="module")
def table():
    return make_table()


@pytest.fixture(scope="module")
def detector(table):
    return DiffInt(n_units=40, epochs=60, n_members=3, random_state=0).fit(table)


def test_a_value_that_does_not_go_with_the_rest_is_flagged_and_named(detector):
    rows = make_table(60, seed=1)
    blue = rows[rows["colour"] == "blue"].iloc[:10]
    swapped = blue.assign(colour="red")
    assert (detector.p_values(swapped) <= 0.02).mean() >= 0.9
    assert (detector.p_values(blue) > 0.02).mean() >= 0.8
    why = detector.explain(swapped)
    assert re.search(
        r"colour = red, but none of \d+ sampled training rows with size [\d.–]+ \(here [\d.]+\) "
        r"has it; blue would fit",
        why.text(0),
    )
    reasons = why.reasons_frame().query("feature == 'colour'")
    assert set(reasons["expected"]) == {"blue"}


def test_a_new_value_is_an_anomaly_by_itself(detector, table):
    rows = table.iloc[:20].assign(colour="pink")
    assert (detector.p_values(rows) <= 0.01).all()
    assert "colour = pink, a value that no training row has" in detector.explain(rows).text(0)


def test_a_rarer_value_is_more_anomalous():
    rng = np.random.default_rng(0)
    kinds = rng.choice(["often", "rarely", "hardly"], p=[0.9, 0.08, 0.02], size=1000)
    table = pd.DataFrame({"kind": kinds, "number": rng.normal(size=1000)})
    detector = DiffInt(n_units=40, epochs=20, n_members=3, random_state=0).fit(table)
    rows = pd.DataFrame({"kind": ["often", "rarely", "hardly"], "number": 0.0})
    assert (np.diff(detector.anomaly_score(rows)) > 0).all()


def test_parts_sum_to_the_score_and_are_those_of_the_definition(detector):
    rows = make_table(50, seed=2)
    rows.loc[3, "colour"], rows.loc[4, "shop"], rows.loc[5, "size"] = "pink", None, np.nan
    x = detector._read(rows)
    why = detector.explain(rows)
    np.testing.assert_allclose(why.share.sum(axis=1), 1.0)
    np.testing.assert_allclose(
        why.share * why.score[:, None], score.parts(detector.model_, x), rtol=1e-4, atol=1e-5
    )
    assert np.array_equal(why.score, detector.anomaly_score(rows))


def test_a_saved_detector_gives_the_same_results(detector, tmp_path):
    rows = make_table(30, seed=3)
    detector.save(tmp_path / "m")
    loaded = DiffInt.load(tmp_path / "m")
    assert np.array_equal(loaded.anomaly_score(rows), detector.anomaly_score(rows))
    assert loaded.explain(rows).text() == detector.explain(rows).text()
    assert loaded.model_.categories == detector.model_.categories


def test_suggestions_are_values_of_the_training_table(detector):
    rows = make_table(40, seed=4).assign(colour="pink")
    nearest = detector.nearest_normal(rows)
    changes = nearest.to_frame()
    colours = changes[changes["feature"] == "colour"]
    assert len(colours) >= 30
    assert set(colours["suggested"]) <= {"red", "green", "blue"}
    assert set(colours["value"]) == {"pink"}
    assert "instead of pink" in nearest.text(0)


def test_frames_and_patterns_name_the_values(detector, table):
    frame = detector.explain(table.iloc[:5]).to_frame()
    values = set(frame.loc[frame["feature"] == "shop", "value"])
    assert values <= {"north", "south"}
    text = detector.explain_global().text(n_units=20)
    assert "colour" in text
    assert any(colour in text for colour in ("red", "green", "blue"))


def test_region_bounds_hold(detector):
    rows = make_table(300, seed=5)
    x = detector._read(rows)
    scores = detector.anomaly_score(rows)
    rng = np.random.default_rng(0)
    for _ in range(10):
        a, b = x[rng.integers(0, len(x), 2)]
        lower, upper = np.minimum(a, b), np.maximum(a, b)
        inside = ((x >= lower) & (x <= upper)).all(axis=1)
        bounds = detector.certify_region(lower, upper)
        assert (scores[inside] >= bounds.lower).all()
        assert (scores[inside] <= bounds.upper).all()


def test_missing_cells_and_empty_texts_are_missing(detector, table):
    rows = pd.concat([table.iloc[:1]] * 3, ignore_index=True)
    rows["colour"] = [None, "", "  "]
    assert len(set(detector.anomaly_score(rows))) == 1
    assert "colour is missing" in detector.explain(rows.iloc[1:2]).text(0, n_reasons=4)


@pytest.mark.parametrize("kind", ["category", "string", "object"])
def test_every_kind_of_text_column(kind, table, detector):
    table = table.astype({"colour": kind})
    again = DiffInt(n_units=40, epochs=60, n_members=3, random_state=0).fit(table)
    assert np.array_equal(again.anomaly_score(table), detector.anomaly_score(table))


def test_categories_only():
    rng = np.random.default_rng(0)
    first = rng.choice(["a", "b", "c"], 300)
    table = pd.DataFrame({"one": first, "two": np.char.upper(first.astype(str))})
    detector = DiffInt(**QUICK).fit(table)
    fine, wrong = detector.anomaly_score(pd.DataFrame({"one": ["a", "a"], "two": ["A", "B"]}))
    assert wrong > 2 * fine


def test_a_column_of_one_text(table):
    detector = DiffInt(**QUICK).fit(table.assign(country="here"))
    rows = table.iloc[:5].assign(country="elsewhere")
    assert (detector.p_values(rows) <= 0.02).all()


def test_numbers_named_as_categories(table):
    table = table.assign(code=np.random.default_rng(0).integers(0, 4, len(table)))
    detector = DiffInt(**QUICK, categories=["code"]).fit(table)
    assert sorted(detector.model_.categories[4]) == ["0", "1", "2", "3"]
    assert 0 in detector.model_.categories  # text is a category without being named
    gaps = table.astype({"code": float})
    gaps.loc[0, "code"] = np.nan  # whole numbers become floats
    np.testing.assert_array_equal(
        detector.anomaly_score(gaps)[1:], detector.anomaly_score(table)[1:]
    )


def test_unknown_names_are_an_error(table):
    with pytest.raises(InputError, match="categories names color"):
        DiffInt(**QUICK, categories=["color"]).fit(table)


def test_identifiers_are_ignored_with_a_warning(table):
    named = table.assign(name=[f"customer {i}" for i in range(len(table))])
    with pytest.warns(InputWarning, match="like identifiers: name \\(400\\)"):
        detector = DiffInt(**QUICK).fit(named)
    assert np.isfinite(detector.anomaly_score(named)).all()


def test_identifiers_of_a_small_table_are_ignored_too(table):
    few = table.iloc[:80].assign(name=[f"animal {i}" for i in range(80)])
    with pytest.warns(InputWarning, match="like identifiers: name \\(80\\)"):
        detector = DiffInt(**QUICK).fit(few)
    renamed = few.assign(name="another animal")
    assert np.array_equal(detector.anomaly_score(renamed), detector.anomaly_score(few))


@pytest.mark.parametrize(
    ("n_rows", "n_texts", "ignored"),
    [(100, 50, False), (100, 51, True), (20, 20, False), (21, 21, True), (40, 21, True)],
)
def test_texts_are_identifiers_if_more_than_half_of_them_differ(n_rows, n_texts, ignored):
    """And more than 20; cells without a text do not count."""
    texts = pd.Series([f"t{i % n_texts}" for i in range(n_rows)] + [None] * 30)
    frame = pd.DataFrame({"name": texts, "x": np.arange(len(texts), dtype=float)})
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        found = find_categories(frame)
    assert len(found[0]) == (0 if ignored else n_texts)
    names = [w.message.columns for w in warned if isinstance(w.message, IdentifierWarning)]
    assert names == ([("name",)] if ignored else [])


def test_a_few_rows_with_different_values_are_learned(table):
    few = table.iloc[:12].assign(town=[f"town {i}" for i in range(12)])
    detector = DiffInt(**QUICK).fit(few)
    assert len(detector.model_.categories[4]) == 12


def test_many_values_are_cut_with_a_warning(table):
    many = pd.concat([table] * 4, ignore_index=True)
    many["town"] = [f"town {i % 300}" for i in range(len(many))]
    with pytest.warns(InputWarning, match="199 most common values"):
        detector = DiffInt(**QUICK).fit(many)
    assert len(detector.model_.categories[4]) == 200
    rare = set(many["town"]) - set(detector.model_.categories[4])
    rows = pd.concat([many.iloc[:1]] * 2).assign(town=["a new town", min(rare)])
    assert len(set(detector.anomaly_score(rows))) == 1
    assert set(detector.explain(rows).to_frame().query("feature == 'town'")["value"]) == {
        "a new town",
        min(rare),
    }


def test_a_constant_column_is_no_reason():
    kinds = np.resize(["often"] * 199 + ["rarely"], 400)
    table = pd.DataFrame({"year": 2013, "kind": kinds})
    detector = DiffInt(**QUICK).fit(table)
    text = detector.explain(table.iloc[[199]]).text(0)
    assert re.search(
        r"kind = rarely, a value that only \d+ of \d+ sampled training rows ha(s|ve)\.", text
    )
    assert "year" not in text.split("Parts of the score")[0]


def test_very_many_values_do_not_hide_other_anomalies():
    rng = np.random.default_rng(0)
    table = make_table(2000).assign(town=[f"town {i}" for i in rng.integers(0, 800, 2000)])
    rows = table.iloc[:50].assign(size=30.0)
    with pytest.warns(InputWarning, match="most common values"):
        detector = DiffInt(n_units=40, epochs=10, n_members=2, random_state=0).fit(table)
    assert (detector.predict(rows) == -1).mean() >= 0.95


def test_mixed_types_in_a_column(table):
    mixed = table.assign(code=np.array(["1", "a", 3.5, True] * 100, dtype=object))
    detector = DiffInt(**QUICK).fit(mixed)
    assert len(detector.model_.categories[4]) == 4
    dirty = table.astype({"size": object})
    dirty.loc[7, "size"] = "large"
    dirty.loc[9, "size"] = "small"
    with pytest.raises(
        InputTypeError, match=r"'size' has numbers, but also text \(first 'large' at row 7\)"
    ):
        DiffInt(**QUICK).fit(dirty)


def test_a_column_that_changed_its_kind(detector, table):
    with pytest.raises(InputTypeError, match="'size' contains text"):
        detector.anomaly_score(table.iloc[:5].assign(size="large"))
    with pytest.raises(InputTypeError, match=r"'colour' had text in training .* now has"):
        detector.anomaly_score(table.iloc[:5].assign(colour=3.0))


def test_an_array_has_no_categories(detector, table):
    with pytest.raises(InputError, match="has no column names"):
        DiffInt(**QUICK, categories=["x0"]).fit(make_rows())


def test_numbers_alone_are_fitted_as_before():
    rows = make_rows()
    named = pd.DataFrame(rows, columns=list("abcde"))
    assert np.array_equal(
        DiffInt(**QUICK).fit(rows).anomaly_score(rows),
        DiffInt(**QUICK, categories=[]).fit(named).anomaly_score(named),
    )


def test_figures_and_the_report_name_the_values(detector, tmp_path):
    rows = make_table(20, seed=6)
    rows.loc[0, "colour"] = "pink"
    figure = detector.explain(rows).plot(0)
    labels = {text.get_text() for axis in figure.axes for text in axis.get_yticklabels()}
    assert "colour = pink" in labels
    learned = detector.explain_global()
    unit = int(np.argmax(learned.importance[:, 0]))
    for figure in (
        plots.constraint_bars(detector, unit=unit, n_constraints=4),
        plots.box_projection(detector, rows, unit=unit, features=["colour", "size"]),
    ):
        ticks = {text.get_text() for axis in figure.axes for text in axis.get_xticklabels()}
        assert {"red", "green", "blue"} & ticks
    detector.report(rows, tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert '"pink"' in page
    assert any(f">{colour}</" in page for colour in ("red", "green", "blue"))


def test_a_range_of_all_values_excludes_nothing(detector):
    learned = detector.explain_global()
    everything = ~learned.binds_below[:, 2] & ~learned.binds_above[:, 2]  # both shops
    assert everything.any()
    assert (learned.importance[everything, 2] < 0.05).all()


def test_a_categorical_column_may_have_numbers():
    rng = np.random.default_rng(0)
    floors = rng.integers(0, 4, 100)
    table = pd.DataFrame({"floor": pd.Categorical(floors), "x": rng.normal(size=100)})
    detector = DiffInt(**QUICK).fit(table)
    assert sorted(detector.model_.categories[0]) == ["0", "1", "2", "3"]
    np.testing.assert_array_equal(
        detector.anomaly_score(table), detector.anomaly_score(table.assign(floor=floors))
    )


def test_an_array_cannot_have_text(detector, table):
    for rows in (np.zeros((3, 4)), table.to_numpy()):
        with pytest.raises(InputError, match="needs text in 'colour' and 'shop'; pass a data fr"):
            detector.anomaly_score(rows)


def test_a_region_names_values_of_categories(detector, table):
    region = detector.certify_region({"colour": "red", "size": 1}, {"colour": "red", "size": 2})
    assert "Every complete row with colour = red, size in [1, 2] scores" in region.text()
    scores = detector.anomaly_score(table[table["colour"].eq("red") & table["size"].between(1, 2)])
    assert (scores >= region.lower).all()
    assert (scores <= region.upper).all()
    first, *_, last = detector.model_.categories[0]
    place = float(detector.model_.categories[0].index(last))
    text = detector.certify_region([place, *[-np.inf] * 3], None).text()
    assert f"colour one of {last}, a new value scores" in text
    with pytest.raises(InputError, match="'colour' has no value 'pink'; its values are '"):
        detector.certify_region({"colour": "pink"}, {"colour": "pink"})
    for ends in [({"colour": last}, {"colour": first}), ({"colour": first}, {"colour": last})]:
        with pytest.raises(InputError, match="'colour' has different ends, and its values have no"):
            detector.certify_region(*ends)
    for ends in [({"colour": last}, None), (None, pd.Series({"colour": first}))]:
        with pytest.raises(InputError, match="give one value as both ends"):
            detector.certify_region(*ends)
    for missing in (None, np.nan, pd.NA):
        with pytest.raises(InputError, match="no value for category 'colour'; leave it out"):
            detector.certify_region({"colour": missing}, None)


def test_a_number_in_a_region_is_a_value_of_a_category_and_not_a_position():
    rng = np.random.default_rng(0)
    code, size = rng.choice([2, 10, 20], 300), rng.normal(size=300)
    table = pd.DataFrame({"code": pd.Categorical(code), "size": code + size, "age": size})
    detector = DiffInt(**QUICK, decoder="certified").fit(table)
    place = int(np.flatnonzero(code == 2)[0])
    row, score = table.iloc[place], detector.anomaly_score(table.iloc[[place]])[0]
    for ends in (row, row.to_dict(), {**row.to_dict(), "code": " 2"}):
        region = detector.certify_region(ends, ends)
        assert "Every complete row with code = 2, size" in region.text()
        assert region.lower <= score <= region.upper
    with pytest.raises(InputError, match="category 'code' has no value '1'; its values are"):
        detector.certify_region({"code": 1}, {"code": 1})
    anywhere = detector.certify_region({"code": -np.inf}, {"code": np.inf})
    assert "with any values" in anywhere.text()


def test_a_certificate_does_not_say_that_a_text_is_above_others(table):
    detector = DiffInt(**QUICK, decoder="certified").fit(table[["shop", "age"]])
    text = detector.certify(table[["shop", "age"]].iloc[:1].assign(shop="west")).text(0)
    assert "beyond the intervals of all units: shop." in text


def test_a_number_that_is_surprising_beside_others_is_the_first_reason():
    rng = np.random.default_rng(0)
    asleep = rng.uniform(2, 20, 300).round(1)
    kind = rng.choice(["cat", "dog", "cow", "emu"], 300)
    table = pd.DataFrame(
        {"asleep": asleep, "awake": 24 - asleep, "kind": kind, "age": rng.normal(size=300)}
    )
    detector = DiffInt(n_units=40, epochs=60, n_members=3, random_state=0).fit(table)
    why = detector.explain(table.iloc[:40].assign(awake=25 - asleep[:40]))
    assert np.isin(why.order[:, 0], [0, 1]).mean() >= 0.8


def test_a_number_that_contradicts_another_column_is_found():
    rng = np.random.default_rng(0)
    far = rng.uniform(0, 100, 800)
    table = pd.DataFrame(
        {
            "distance": far,
            "time": far / 2 + rng.normal(size=800),
            "kind": rng.choice(["a", "b"], 800),
        }
    )
    detector = DiffInt(n_units=40, epochs=60, n_members=3, random_state=0).fit(table)
    wrong = pd.DataFrame({"distance": [20.0, 80.0], "time": [40.0, 10.0], "kind": "a"})
    assert (detector.p_values(wrong) <= 0.02).all()
    why = detector.explain(wrong)
    assert set(why.order[:, 0]) <= {0, 1}
    assert re.match(
        r"time = 40, but \d+ % of rows with distance [\d.–]+ \(here 20\) have",
        why.reason(0, 1),
    )
    apart = replace(why, comparable=None)  # only how often values go together
    number = r"(\d+\.?\d*)"
    clash = re.fullmatch(
        rf"time = 40, but none of {number} sampled training rows with distance {number}–{number} "
        rf"\(here 20\) has a value of {number}–{number}; {number} would fit, "
        r"unless distance is wrong\.",
        apart.reason(0, 1),
    )
    _, nearest, farthest, low, high, _ = map(float, clash.groups())
    assert nearest <= 20 <= farthest
    assert low <= 40 <= high
    alike = table[table["distance"].between(nearest, farthest)]
    assert not alike["time"].between(low, high).any()
    (reason,) = apart.reasons_frame(1).query("row == 0").itertuples()
    assert reason.conditions == f"distance {clash[2]}–{clash[3]}"


def test_a_common_value_is_no_reason_because_others_are_more_common(detector, table):
    texts = [detector.explain(table.iloc[[i]]).text(0, 4) for i in range(10)]
    assert not any("shop = " in line for text in texts for line in text.splitlines())


@pytest.mark.parametrize("calibration", ["holdout", "members"])
def test_new_values_are_as_rare_in_the_calibration_as_among_new_rows(calibration):
    """One row in twenty has a value that no training row has; such rows are not all flagged."""
    rng = np.random.default_rng(0)

    def rows(n):
        texts = [f"v{k}" for k in np.minimum(rng.zipf(1.7, n), 150)]
        return pd.DataFrame({"a": rng.normal(size=n), "t": texts})

    rates = []
    for seed in range(8):
        settings = {"calibration": calibration, "false_positive_rate": 0.05}
        detector = DiffInt(epochs=5, random_state=seed, **settings).fit(rows(500))
        rates.append((detector.predict(rows(2000)) == -1).mean())
    assert np.mean(rates) <= 0.05 + 2 * np.std(rates) / np.sqrt(len(rates))


def crowded_rows(rng, n_rows, n_ids=600):
    """A column of very many values, all as common as each other."""
    ids = [f"id{k}" for k in rng.integers(n_ids, size=n_rows)]
    return pd.DataFrame({"a": rng.normal(size=n_rows), "t": ids, "b": rng.normal(size=n_rows)})


def few_values(rng, n_rows):
    """Two categories, of which each decides on the order of the other's values."""
    first, second = rng.choice(["x", "y", "z"], n_rows), rng.choice(["k", "l", "m"], n_rows)
    return pd.DataFrame({"a": rng.normal(size=n_rows), "t": first, "u": second})


@pytest.mark.filterwarnings("ignore::diffint.core.errors.InputWarning")
@pytest.mark.parametrize("draw", [few_values, crowded_rows])
def test_held_out_rows_have_no_influence_on_members(draw):
    """Not even by a value that only they have, or often have, or by the order of the values."""
    table = draw(np.random.default_rng(0), 1_500)

    def fit(frame):
        detector = DiffInt(epochs=2, random_state=0, calibration="holdout")
        split = detector._fit(frame, None, None)
        return detector.model_, split

    model, split = fit(table)
    changed, held = table.copy(), split.held_out
    changed.loc[held[:50], "t"] = "new"
    changed.loc[held[50:150], "t"] = table["t"].iloc[held[50]]
    changed.loc[held[150:], "a"] += 3.0
    again, same = fit(changed)
    np.testing.assert_array_equal(held, same.held_out)
    assert again.categories == model.categories
    for one, other in zip(model.members, again.members, strict=True):
        np.testing.assert_array_equal(one.center, other.center)
        np.testing.assert_array_equal(one.kept_rows, other.kept_rows)
        assert one.distance_weight == other.distance_weight
        for field in dataclasses.fields(one.associations):
            values = (getattr(member.associations, field.name) for member in (one, other))
            np.testing.assert_array_equal(*values)


@pytest.mark.filterwarnings("ignore::diffint.core.errors.InputWarning")
@pytest.mark.parametrize("calibration", ["holdout", "members"])
def test_very_many_values_are_no_drift_and_keep_the_false_positive_rate(calibration):
    rng, rates, p_values = np.random.default_rng(0), [], []
    for seed in range(6):
        detector = DiffInt(**QUICK | {"random_state": seed}, calibration=calibration)
        detector.fit(crowded_rows(rng, 2_000))
        new = crowded_rows(rng, 1_000)
        p_values.append(detector.drift(new).p_value)
        rates.append((detector.p_values(new) <= 0.1).mean())
    assert np.median(p_values) > 0.1
    assert min(p_values) > 0.001
    assert np.mean(rates) == pytest.approx(0.1, abs=0.02)


def test_a_rare_value_of_a_held_out_row_is_treated_as_one_of_a_later_row():
    """Of a column with very many values, it is any other value, and not a new one."""
    rng = np.random.default_rng(0)

    def draw(n_rows):
        values = [f"v{k}" for k in np.minimum(rng.zipf(1.4, n_rows), 3_000)]
        return pd.DataFrame({"many": values, "x": rng.normal(size=n_rows)})

    table = draw(2_500)
    with pytest.warns(InputWarning, match="most common values"):
        detector = DiffInt(**QUICK, calibration="holdout").fit(table)
    model = detector.model_
    n_values = model.kinds.n_values[0]
    assert n_values == 200
    later = detector._read(draw(500))
    assert later[:, 0].max() < n_values
    assert model.calibration.sample[:, 0].max() < n_values


def test_one_of_many_values_is_not_rare():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"place": rng.integers(0, 150, 2_000).astype(str)})
    table = table.assign(a=rng.normal(size=2_000), b=rng.normal(size=2_000))
    table.loc[:5, "place"] = "Atlantis"
    few = table.assign(place=np.where(table["place"] == "Atlantis", "Atlantis", "here"))
    why = DiffInt(**QUICK).fit(table).explain(table.iloc[6:400])
    assert (why.reasons_frame()["kind"] == "rare").sum() <= 0.02 * 394
    frame = DiffInt(**QUICK).fit(few).explain(few.head(6)).reasons_frame()
    assert (frame["kind"] == "rare").any()


def test_a_number_is_no_clash_beside_others_that_are_nearly_the_same():
    rng = np.random.default_rng(0)
    sleeping = rng.uniform(2, 20, 900).round(1)
    table = pd.DataFrame({"sleeping": sleeping, "awake": 24 - sleeping})
    table["kind"] = rng.choice(["a", "b"], 900)
    detector = DiffInt(**QUICK).fit(table.head(600))
    assert not (detector.explain(table).reasons_frame()["kind"] == "clash").any()
