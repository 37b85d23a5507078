"""Reasons: the search for conditions against its definition, and what every reason keeps."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from diffint import DiffInt
from diffint.engine.cpu.comparable_kernel import add_differences, find_meeting
from diffint.engine.cpu.condition_kernel import DEEP_INSIDE, N_FIRST, search_conditions
from diffint.tables.datasets import breast_cancer

from ..conftest import QUICK

TAIL, NARROWEST, SHARPER, BASE, MOST = 0.05, 0.1, 1.3, 1, 4


def defined_window(own, column, size, category):
    """The rows nearest to a value, and those as near as the last of them. column: (n,)"""
    distance = np.abs(column - own)
    known = np.sort(distance[~np.isnan(distance)])
    radius = 0.0 if category else known[min(size, len(known)) - 1]
    return set(np.flatnonzero(distance <= radius).tolist())


def defined_gap(value, values, most_left_out, fewest=0):
    values = np.sort(values[~np.isnan(values)])
    if len(values) < fewest:
        return None
    tail = min(int(TAIL * len(values)), most_left_out)
    low, high = values[tail], values[len(values) - 1 - tail]
    return max(low - value, value - high) / max(high - low, NARROWEST)


def defined_search(row, feature, candidates, alone, categories, scaled, sizes, fewest):
    """All sets of conditions as (gap, set of (feature, rows)), the best first."""
    most_left_out = int(TAIL * sizes[-1])
    column = scaled[feature]
    n = int((~np.isnan(column)).sum())
    tail = int(TAIL * n)
    low, high = np.sort(column)[[tail, n - 1 - tail]]
    value = row[feature]
    found = [(max(low - value, value - high) / max(high - low, NARROWEST), ())]
    windows, firsts = {}, []
    for c, single in zip(candidates, alone, strict=True):
        each = [defined_window(row[c], scaled[c], size, categories[c]) for size in sizes]
        each = [w for i, w in enumerate(each) if len(w) >= fewest and w not in each[:i]]
        windows[c] = each
        gaps = [defined_gap(value, column[sorted(w)], most_left_out, fewest) for w in each]
        gaps = [gap for gap in gaps if gap is not None]
        found += [(gap / SHARPER, (c,)) for gap in gaps if single]
        if gaps:
            firsts.append((max(gaps), c))
    firsts = sorted(firsts, key=lambda item: -item[0])[:N_FIRST]
    if not firsts or firsts[0][0] < DEEP_INSIDE:
        return sorted(found, key=lambda item: -item[0])
    wanted = SHARPER * max(firsts[0][0], 0.0)
    for _, c in firsts:
        first = windows[c][min(BASE, len(windows[c]) - 1)]
        for other in candidates:
            if other == c or not windows[other]:
                continue
            for window in windows[other][min(BASE, len(windows[other]) - 1) :]:
                both = first & window
                gap = defined_gap(value, column[sorted(both)], most_left_out, fewest)
                if gap is not None and gap > wanted:
                    found.append((gap / SHARPER**2, (c, other)))
    return sorted(found, key=lambda item: -item[0])


@pytest.mark.parametrize("seed", range(30))
def test_the_search_is_the_defined_one(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(30, 200))
    base = rng.normal(size=n)
    scaled = np.stack([base, base + rng.normal(0, 0.2, n), -base, *rng.normal(size=(2, n))])
    scaled[3] = rng.integers(0, 3, n)  # a category
    scaled[1] = np.round(scaled[1], 1)  # with ties
    if seed % 2:  # with missing values
        scaled[rng.random(scaled.shape) < 0.15] = np.nan
    categories = np.arange(5) == 3
    row = np.nan_to_num(scaled[:, 0]) + rng.normal(0, 0.5, 5)
    row[3] = rng.integers(0, 4)  # also one that no row has
    feature = int(rng.integers(3))
    candidates = rng.permutation(np.setdiff1d(np.arange(5), feature))
    alone = rng.random(len(candidates)) < 0.7
    order = np.argsort(scaled, axis=1, kind="stable")
    fewest = 6
    sizes = np.maximum(np.array([0.1, 0.2, 0.4]) * n, fewest).astype(int)
    gaps, places = np.full(MOST, -np.inf), np.zeros((MOST, 6), dtype=np.int64)
    search_conditions(
        row,
        feature,
        candidates,
        alone,
        categories,
        np.take_along_axis(scaled, order, axis=1),
        order,
        np.argsort(order, axis=1),
        (~np.isnan(scaled)).sum(axis=1),
        sizes,
        BASE,
        fewest,
        TAIL,
        int(TAIL * sizes[-1]),
        NARROWEST,
        SHARPER,
        gaps,
        places,
    )
    expected = defined_search(row, feature, candidates, alone, categories, scaled, sizes, fewest)
    expected = expected[:MOST]
    np.testing.assert_allclose(gaps[: len(expected)], [gap for gap, _ in expected])
    assert np.isneginf(gaps[len(expected) :]).all()
    for place, (_, conditions) in zip(places, expected, strict=False):
        assert tuple(c for c in place[[0, 3]] if c >= 0) == conditions


def inside(rows, conditions):
    """Which rows (rows, features) meet all conditions. → (rows,)"""
    found = np.ones(len(rows), dtype=bool)
    for c, lower, upper in conditions:
        found &= (rows[:, c] >= lower) & (rows[:, c] <= upper)
    return found


@pytest.mark.parametrize("seed", range(10))
def test_values_of_rows_that_meet_conditions(seed):
    rng = np.random.default_rng(seed)
    rows = np.round(rng.normal(size=(int(rng.integers(1, 60)), 4)), 1)  # with ties
    rows[rng.random(rows.shape) < 0.2] = np.nan
    ends = np.sort(rng.normal(size=(3, 2)), axis=1)
    conditions = [(j, *ends[j]) for j in rng.permutation(3)[: rng.integers(0, 3)]]
    columns = np.ascontiguousarray(rows.T)
    found = np.empty(len(rows))
    count = find_meeting(
        columns,
        np.argsort(columns, axis=1),
        3,
        (~np.isnan(rows[:, 3])).sum(),
        np.array([j for j, _, _ in conditions], dtype=np.intp),
        np.array([lower for _, lower, _ in conditions]),
        np.array([upper for _, _, upper in conditions]),
        found,
    )
    values = rows[inside(rows, conditions), 3]
    np.testing.assert_array_equal(found[:count], np.sort(values[~np.isnan(values)]))


@pytest.mark.parametrize("seed", range(5))
def test_differences_from_rows(seed):
    rng = np.random.default_rng(seed)
    rows, row = rng.normal(size=(7, 50)), rng.normal(size=7)
    rows[rng.random(rows.shape) < 0.2] = np.nan
    row[seed] = np.nan
    features, total = rng.permutation(7)[:5], np.ones(50)
    add_differences(row, rows, features, total)
    differences = np.abs(row[features, None] - rows[features])
    np.testing.assert_allclose(total, 1 + np.nansum(differences, axis=0))


def make_linked(n_rows=3_000, seed=0):
    """`size`, `weight` and `price` follow from each other, `age` and `noise` do not."""
    rng = np.random.default_rng(seed)
    size = rng.uniform(1, 10, n_rows)
    return pd.DataFrame(
        {
            "size": size,
            "weight": size**2 + rng.normal(0, 0.5, n_rows),
            "price": 100 - 5 * size + rng.normal(0, 1, n_rows),
            "age": rng.integers(18, 80, n_rows),
            "noise": rng.normal(size=n_rows),
        }
    )


def break_weight(rows):
    """Ordinary weights that are wrong for their rows."""
    return rows.assign(weight=np.where(rows["size"] > 5.5, 9.0, 81.0))


@pytest.fixture(scope="module")
def detector():
    return DiffInt(n_units=40, epochs=60, random_state=0).fit(make_linked())


@pytest.fixture(scope="module")
def broken(detector):
    return detector.explain(break_weight(make_linked(200, seed=1)))


class TestConditionalReasons:
    def test_the_wrong_value_is_named_with_what_would_fit(self, broken):
        rows = make_linked(200, seed=1)
        # In the middle of the sizes the wrong weights are not that wrong.
        clear = np.flatnonzero((rows["size"] - 5.5).abs() > 2)
        first = [broken.reasons_of(i, 1)[0] for i in clear]
        assert np.mean([reason.feature == 1 for reason in first]) >= 0.95
        fits = [(r.expected, rows["weight"][i]) for i, r in zip(clear, first, strict=True)]
        off = [abs(expected - true) for expected, true in fits]
        assert np.median(off) < 6  # the range of training weights is 100

    def test_every_reason(self, detector, broken):
        kept = broken.comparable
        n_kept = kept.rows.shape[1]
        checked = 0
        for row in range(len(broken)):
            reasons = broken.reasons_of(row)
            doubted = {reason.feature for reason in reasons}
            for reason in reasons:
                assert len(reason.conditions) <= 2
                assert reason.support >= 30 or reason.support >= 0.05 * n_kept
                assert reason.value < reason.lower or reason.value > reason.upper
                assert {condition.feature for condition in reason.conditions}.isdisjoint(doubted)
                assert inside(broken.value[[row]], reason.conditions).all()
                checked += 1
        assert checked >= 200

    def test_stated_coverage_holds_for_new_rows(self, broken):
        fresh = make_linked(20_000, seed=2).to_numpy(dtype=float)
        errors = []
        for row in range(len(broken)):
            for reason in broken.reasons_of(row):
                if reason.kind.value == "range":
                    values = fresh[inside(fresh, reason.conditions), reason.feature]
                    covered = np.mean((values >= reason.lower) & (values <= reason.upper))
                    errors.append(covered - reason.coverage)
        assert len(errors) > 150
        assert np.abs(errors).mean() <= 0.02
        assert abs(np.mean(errors)) <= 0.01

    def test_text(self, broken):
        pattern = (
            r"weight = [\d.]+, but \d+ % of rows with (size|price) [\d.–]+ \(here [\d.]+\)"
            r"( and \w+ [\d.–]+ \(here [−\d.]+\))? have [\d.–]+ \(from [\d,]+ training rows\); "
            r"[\d.]+ would fit( \(10 times as much\))?(, unless (size|price) is wrong)?\."
        )
        texts = [text for row in range(200) for text in broken.reasons(row) if "weight" in text]
        matching = [text for text in texts if re.fullmatch(pattern, text)]
        assert len(matching) >= 0.9 * len(texts)
        assert re.fullmatch(r"weight = [\d.]+, not [\d.–]+ where [^()]*(;.*)?", broken.brief(0, 1))

    def test_two_values_that_contradict_only_each_other(self):
        """Either may be wrong, which the text says; a third value would tell which one."""
        rng = np.random.default_rng(0)
        table = pd.DataFrame({"a": rng.uniform(0, 10, 1_500)})
        table["b"] = 3 * table["a"] + rng.normal(0, 0.5, 1_500)
        table["noise"] = rng.normal(size=1_500)
        rows = table.tail(100).copy()
        rows["b"] = rng.permutation(rows["b"])
        far = np.abs(rows["b"] - 3 * rows["a"]) > 5
        both = DiffInt(**QUICK).fit(table.head(1_400)).explain(rows)
        either = r"^(a|b) = .* would fit, unless (a|b) is wrong\.$"
        texts = [both.reasons(row)[0] for row in np.flatnonzero(far & both.flagged)]
        assert len(texts) > 30
        assert np.mean([bool(re.match(either, text)) for text in texts]) > 0.75
        third = table.assign(c=5 * table["a"] + rng.normal(0, 0.5, 1_500))
        rows["c"] = third["c"]
        told = DiffInt(**QUICK).fit(third.head(1_400)).explain(rows)
        texts = [told.reasons(row)[0] for row in np.flatnonzero(far & told.flagged)]
        assert np.mean(["unless" in text for text in texts]) < 0.2
        assert np.mean([text.startswith("b = ") for text in texts]) > 0.9

    def test_a_value_beyond_all_training_values_needs_no_condition(self, detector):
        rows = make_linked(1, seed=3).assign(weight=500.0)
        (reason, *_) = detector.explain(rows).reasons_of(0)
        assert (reason.kind.value, reason.conditions, reason.coverage) == ("beyond", (), 1.0)
        assert reason.expected == pytest.approx(float(rows["size"][0]) ** 2, abs=8)

    @pytest.mark.parametrize(
        ("height", "says"),
        [
            (1.72, r"height = 1\.72, but no .*; 172 would fit \(100 times as much\)\."),
            (1712.3, r"height = 1712\.3, but no .*; 171\.23 would fit \(a tenth of it\)\."),
            (1000.0, r"height = 1000, but no training row is above [\d.]+; [\d.]+ would fit\."),
        ],
    )
    def test_a_value_in_another_unit(self, height, says):
        rng = np.random.default_rng(0)
        table = pd.DataFrame({"height": rng.uniform(160, 185, 600)})
        table["weight"] = table["height"] - 100 + rng.normal(0, 5, 600)
        detector = DiffInt(**QUICK).fit(table)
        row = pd.DataFrame({"height": [height], "weight": [72.0]})
        assert re.fullmatch(says, detector.explain(row).reason(0, 0))

    @pytest.mark.parametrize(
        ("mass", "fits"), [(3.7, r"3700 would fit \("), (3.7004, r"\d{4} would fit \(about ")]
    )
    def test_a_whole_number_in_another_unit(self, mass, fits):
        rng = np.random.default_rng(0)
        table = pd.DataFrame({"mass": rng.integers(3_000, 4_500, 600)})
        table["length"] = table["mass"] / 20 + rng.normal(0, 5, 600)
        detector = DiffInt(**QUICK).fit(table)
        why = detector.explain(pd.DataFrame({"mass": [mass], "length": [185.0]}))
        assert re.search(f"; {fits}1,000 times as much\\)", why.reason(0, 0))

    def test_a_power_of_ten_that_does_not_fit_the_rest_of_the_row_is_not_said(self):
        rng = np.random.default_rng(0)
        table = pd.DataFrame({"a": rng.uniform(1, 3, 1_000)})
        table = table.assign(**{name: table["a"] + rng.normal(0, 0.01, 1_000) for name in "bc"})
        detector = DiffInt(**QUICK).fit(table)
        rows = pd.DataFrame({"a": [2.0, 2.0], "b": [24.0, 20.0], "c": [2.0, 2.0]})
        why = detector.explain(rows)
        chance, shifted = why.reason_of(0, 1), why.reason_of(1, 1)
        assert (chance.power, shifted.power, shifted.expected) == (0, -1, 2.0)
        assert chance.expected == pytest.approx(2.0, abs=0.05)
        assert re.search(r"; (1\.9|2)[.\d]* would fit\.$", why.reason(0, 1))
        assert why.reason(1, 1).endswith("; 2 would fit (a tenth of it).")

    def test_a_power_of_ten_is_not_said_if_another_one_leads_into_the_range_too(self):
        """5,000 may be 5, 50 or 500, though 5 is what the rest of the row tells."""
        rng = np.random.default_rng(0)
        table = pd.DataFrame({"a": 10 ** rng.uniform(0, 3, 1_500)})
        table = table.assign(**{name: table["a"] * rng.uniform(0.99, 1.01, 1_500) for name in "bc"})
        detector = DiffInt(**QUICK).fit(table)
        why = detector.explain(pd.DataFrame({"a": [5.0], "b": [5_000.0], "c": [5.0]}))
        found = why.reason_of(0, 1)
        assert (found.kind.value, found.power) == ("beyond", 0)
        assert 1 <= found.expected <= 10
        assert why.reason(0, 1).endswith(" would fit.")

    @pytest.mark.parametrize("wrong", [["b"], ["a", "b"]])
    def test_values_in_doubt_do_not_tell_what_is_wrong_with_others(self, wrong):
        """`a` and `b` follow from each other most closely, but either may be wrong."""
        rng = np.random.default_rng(0)
        table = pd.DataFrame({"a": rng.uniform(0, 10, 2_050)})
        for name, noise in {"b": 0.01, "c": 0.1, "d": 0.1, "e": 0.1}.items():
            table[name] = table["a"] + rng.normal(0, noise, 2_050)
        rows = table.tail(50).copy()
        rows[wrong] = (rows[wrong] + 5) % 10
        why = DiffInt(**QUICK).fit(table.head(2_000)).explain(rows)
        why = replace(why, doubt=np.tile([1.0, 3.0, 0.0, 0.0, 0.0], (50, 1)))
        for row in range(50):
            reasons = why.reasons_of(row)
            assert reasons[0].feature == 1
            assert len(reasons) >= len(wrong)
            for reason in reasons:
                assert {condition.feature for condition in reason.conditions} <= {2, 3, 4}

    def test_the_value_of_a_condition_is_seen_to_be_inside_it(self):
        rng = np.random.default_rng(0)
        table = pd.DataFrame({"lat": rng.normal(40.8, 0.02, 3_000)})
        table["price"] = 1_000 * (table["lat"] - 40) + rng.normal(0, 1, 3_000)
        rows = table.head(100).assign(price=table["price"].sample(100, random_state=0).to_numpy())
        why = DiffInt(**QUICK).fit(table).explain(rows)
        texts = [text for i in range(100) for text in why.reasons(i)]
        found = [re.search(r"lat ([\d.]+)–([\d.]+) \(here ([\d.]+)\)", text) for text in texts]
        ends = [tuple(map(float, one.groups())) for one in found if one]
        assert len(ends) > 20
        assert all(low <= own <= high for low, high, own in ends)

    @pytest.mark.parametrize("other", ["told", "free"])
    def test_what_would_fit_an_ordinary_value_better_is_said_if_other_columns_tell(self, other):
        rng = np.random.default_rng(0)
        table = pd.DataFrame(rng.lognormal(0, 2, size=(2_000, 1)), columns=["a"])
        table["told"] = table["a"] * rng.uniform(0.95, 1.05, 2_000)
        table["free"] = rng.normal(size=2_000)
        detector = DiffInt(n_units=40, epochs=60, random_state=0).fit(table)
        rows = pd.DataFrame({"a": [1.0] * 40, "told": [1.0] * 40, "free": np.linspace(-2, 2, 40)})
        if other == "told":  # far less than a twentieth of the training range, but far off
            rows["told"] = 5.0
        why = detector.explain(rows)
        texts = [why.reason(i, list(table).index(other)) for i in range(40)]
        better = [("would fit" in text) for text in texts]
        assert np.mean(better) > 0.9 if other == "told" else not any(better)

    def test_what_tells_nothing_about_a_value_is_no_condition_by_itself(self):
        rng = np.random.default_rng(0)
        kinds = rng.choice(list("abcd"), 4_000)
        # By chance, the tails are not equally long for all kinds.
        table = pd.DataFrame({"kind": kinds, "height": rng.standard_t(3, size=4_000)})
        table["width"] = table["height"] + rng.normal(0, 0.1, 4_000)
        detector = DiffInt(n_units=40, epochs=60, random_state=0).fit(table)
        far = np.quantile(table["height"], 0.9995)
        rows = pd.DataFrame({"kind": list("abcd"), "height": far, "width": far})
        why = detector.explain(rows)
        reasons = [why.reason_of(i, 1) for i in range(4)]
        assert sum(reason is not None for reason in reasons) >= 3
        for reason in filter(None, reasons):
            assert {condition.feature for condition in reason.conditions} <= {2}

    def test_missing_cells_and_rare_values_do_not_make_a_column_tell_about_others(self):
        rng = np.random.default_rng(0)
        table = pd.DataFrame(rng.normal(size=(3_000, 4)), columns=list("abcd"))
        table.loc[rng.random(3_000) < 0.3, ["a", "b"]] = np.nan  # together
        table["rare"] = (rng.random(3_000) < 0.02).astype(float)
        detector = DiffInt(**QUICK).fit(table)
        rows = pd.DataFrame(rng.normal(size=(300, 4)) * 1.3, columns=list("abcd")).assign(rare=0.0)
        why = detector.explain(rows)
        reasons = [r for i in range(300) for r in (why.reason_of(i, 0), why.reason_of(i, 1))]
        ranges = [r for r in reasons if r is not None and r.kind.value == "range"]
        assert len(ranges) > 20
        assert np.mean([len(r.conditions) == 1 for r in ranges]) < 0.05

    def test_a_value_that_no_training_row_has_is_no_condition(self):
        table = make_linked(400)
        detector = DiffInt(n_units=40, epochs=60, random_state=0).fit(table)
        rows = table.head(40).assign(size=12.0, weight=lambda t: t["weight"] * 0.5)
        why = detector.explain(rows)
        why = replace(why, doubt=why.doubt + np.eye(5)[1] * 2 * why.doubt.max())
        seen = 0
        for i in range(40):
            for reason in why.reasons_of(i):
                assert 0 not in {condition.feature for condition in reason.conditions}
                seen += reason.kind.value == "range"
        assert seen > 5

    def test_a_value_next_to_its_range_is_no_second_reason_if_in_little_doubt(self, broken):
        reasons = [broken.reasons_of(row) for row in range(len(broken))]
        row = next(i for i, found in enumerate(reasons) if any(r.next_to_range for r in found[1:]))
        for reason in reasons[row][1:]:
            doubt = broken.doubt.copy()
            doubt[row, reason.feature] = 0.2 * doubt[row].max()
            again = replace(broken, doubt=doubt).doubted(row)
            assert (reason.feature in again) == (not reason.next_to_range)

    def test_values_that_contradict_each_other_beside_a_new_category(self):
        rng = np.random.default_rng(0)
        asleep = rng.uniform(2, 20, 400)
        table = pd.DataFrame({"order": rng.choice(list("abc"), 400), "asleep": asleep})
        table["awake"] = 24 - asleep
        detector = DiffInt(n_units=40, epochs=60, random_state=0).fit(table)
        wrong = pd.DataFrame({"order": ["new"], "asleep": [8.0], "awake": [8.0]})
        why = replace(detector.explain(wrong), doubt=np.array([[3.0, 1.0, 2.0]]))
        new, contradiction = why.reasons_of(0)
        assert (new.kind.value, contradiction.kind.value) == ("new", "range")
        assert {contradiction.feature, contradiction.conditions[0].feature} == {1, 2}

    def test_the_same_reasons_for_a_row_alone(self, detector, broken):
        alone = detector.explain(break_weight(make_linked(200, seed=1)).iloc[[7]])
        assert alone.reasons_of(0) == broken.reasons_of(7)
        assert broken.reasons_of(7, 1) == broken.reasons_of(7, 3)[:1]

    def test_frame(self, broken):
        frame = broken.reasons_frame(2)
        assert list(frame.columns) == [
            *("row", "rank", "feature", "kind", "value", "expected", "lower", "upper"),
            *("conditions", "support", "coverage", "share"),
        ]
        for line in frame.itertuples():
            reason = broken.reasons_of(line.row, 2)[line.rank - 1]
            assert broken.feature_names[reason.feature] == line.feature
            assert (reason.lower, reason.upper, reason.support) == (
                *(line.lower, line.upper, line.support),
            )
            if line.conditions:
                assert line.conditions in broken.reason(line.row, reason.feature)


class TestWithoutAReason:
    def test_ordinary_rows_have_none(self, detector):
        rows = make_linked(300, seed=4)
        why = detector.explain(rows)
        # A range of about 97 % has a row outside of it now and then; three values are tried.
        assert np.mean([bool(why.reasons_of(i)) for i in range(300)]) < 0.5
        quiet = next(i for i in range(300) if not why.reasons_of(i) and not why.flagged[i])
        assert why.reasons(quiet) == []
        assert why.brief(quiet) == ""
        assert why.text(quiet).count("\n") == 0
        assert "an ordinary value" in why.reason(quiet, 0)

    def test_a_flagged_row_still_says_what_its_score_comes_from(self):
        # Each value is ordinary beside every other one, but not all four together.
        rng = np.random.default_rng(0)
        signs = rng.choice([-1, 1], size=(1_500, 3))
        table = np.column_stack([signs, signs.prod(axis=1)]) * rng.uniform(0.9, 1.1, (1_500, 4))
        why = (
            DiffInt(random_state=0, epochs=40, false_positive_rate=0.2)
            .fit(table)
            .explain([[1, 1, 1, -1.0], [-1, 1, 1, 1.0]])
        )
        assert why.flagged.all()
        for row in range(2):
            assert not why.reasons_of(row)
            (text,) = why.reasons(row)
            assert text.startswith("No single value stands out; ")
            assert "no single value stands out" in why.brief(row)
            # Another sign of any of the four would make the row ordinary.
            values = dict(re.findall(r"(x\d) = (−?[\d.]+\d|−?\d)", text))
            for name, value in values.items():
                assert float(value.replace("−", "-")) == why.value[row, int(name[1])]
            doubted, _, better = re.search(
                r"Most in doubt is (x\d)( = \S+)?; (\S+) would fit", text
            ).groups()
            assert values[doubted].startswith("−") != better.startswith("−")

    def test_of_a_single_column(self):
        rng = np.random.default_rng(0)
        table = np.where(rng.random((2_000, 1)) < 0.5, -5, 5) + 0.1 * rng.normal(size=(2_000, 1))
        why = DiffInt(**QUICK, false_positive_rate=0.2).fit(table).explain([[0.1]])
        assert why.flagged.all()
        (text,) = why.reasons(0)
        assert not why.reasons_of(0)
        assert text.endswith("between values that training rows have, but hardly any is near it.")

    def test_of_a_single_column_with_frequent_values(self):
        table = np.random.default_rng(0).poisson(1.0, size=(2_000, 1)).astype(float)
        why = DiffInt(**QUICK, false_positive_rate=0.2).fit(table).explain([[3.0]])
        why = replace(why, threshold=0.0)
        assert not why.reasons_of(0)
        assert why.reasons(0) == [
            "x0 = 3 does not stand out, but scores higher than most training rows."
        ]

    @pytest.mark.parametrize("n_rows", [12, 25, 300])
    @pytest.mark.parametrize("value", [50.0, 4.0, 0.1])
    def test_every_value_of_a_single_column_has_a_text(self, n_rows, value):
        table = np.random.default_rng(0).normal(size=(n_rows, 1))
        why = DiffInt(**QUICK).fit(table).explain([[value]])
        assert why.reason(0, 0).startswith(f"x0 = {value:.3g}, ")
        assert (value == 50.0) <= bool(why.reasons_of(0))


class TestWithoutKeptRows:
    def test_reasons_come_from_the_nearest_pattern(self):
        detector = DiffInt(**QUICK, kept_rows=0).fit(make_linked(400))
        why = detector.explain(break_weight(make_linked(40, seed=1)))
        assert why.comparable is None
        found = [reason for i in range(40) for reason in why.reasons_of(i)]
        assert {reason.kind.value for reason in found} == {"pattern"}
        assert all(reason.value < reason.lower or reason.value > reason.upper for reason in found)
        assert any(
            "that otherwise fit its pattern have" in t or "its pattern has" in t
            for i in range(40)
            for t in why.reasons(i)
        )


class TestMissingTrainingCells:
    """Kept rows have the median in place of missing cells; it is not a value of theirs."""

    @pytest.fixture(scope="class")
    def table(self):
        table = make_linked(3_000)
        rng = np.random.default_rng(5)
        return table.mask(rng.random(table.shape) < np.array([0, 0.6, 0.05, 0, 0]))

    def test_ranges_are_those_of_rows_with_a_value(self, table):
        detector = DiffInt(n_units=40, epochs=60, random_state=0).fit(table)
        why = detector.explain(break_weight(make_linked(100, seed=1)))
        fresh = make_linked(20_000, seed=2).to_numpy(dtype=float)
        errors = []
        for row in range(100):
            for reason in why.reasons_of(row):
                if reason.kind.value == "range":
                    values = fresh[inside(fresh, reason.conditions), reason.feature]
                    covered = (values >= reason.lower) & (values <= reason.upper)
                    errors.append(covered.mean() - reason.coverage)
        assert len(errors) > 80
        assert np.abs(errors).mean() <= 0.03

    def test_no_more_rows_are_counted_than_there_are(self, table):
        small = table.iloc[:400]
        why = DiffInt(**QUICK).fit(small).explain(break_weight(make_linked(100, seed=1)))
        assert why.comparable.rows.shape[1] == 400
        assert np.isnan(why.comparable.rows).sum(axis=1).tolist() == small.isna().sum().tolist()
        found = [reason.support for row in range(100) for reason in why.reasons_of(row)]
        assert max(found) <= 400

    def test_one_missing_cell_takes_no_value_from_other_rows(self):
        table = make_linked(400).assign(steps=np.resize(np.arange(40.0), 400))
        table.loc[7, "steps"] = np.nan
        rows = DiffInt(**QUICK).fit(table).explain(table.head(1)).comparable.rows
        assert rows.shape[1] == 400
        assert np.isnan(rows).sum() == 1

    def test_missing_cells_of_a_saved_model(self, table, tmp_path):
        detector = DiffInt(**QUICK).fit(table.iloc[:400])
        detector.save(tmp_path / "model.diffint")
        rows = break_weight(make_linked(40, seed=1))
        loaded = DiffInt.load(tmp_path / "model.diffint")
        assert loaded.explain(rows).text() == detector.explain(rows).text()


def test_a_row_without_any_value_has_suggestions_and_a_report(detector, tmp_path):
    blank = make_linked(3, seed=1) * np.nan
    assert "no change" in detector.nearest_normal(blank).text(0) or not detector.predict(blank)[0]
    assert detector.report(blank, tmp_path / "blank.html").exists()


def test_values_beyond_training_values_are_named_without_kept_rows():
    detector = DiffInt(**QUICK, kept_rows=0).fit(make_linked(400))
    (reason, *_) = detector.explain(make_linked(1, seed=1).assign(weight=-1e9)).reasons_of(0)
    assert reason.kind.value == "beyond"
    assert (reason.lower, reason.upper) == tuple(make_linked(400)["weight"].agg(["min", "max"]))


class TestNumberOfReasons:
    def test_fewer_are_the_first_of_more(self):
        """Whether there is a reason, and which is first, depends neither on the number nor on the
        order of the questions."""
        table = breast_cancer()
        benign = np.flatnonzero(table.y == 0)
        detector = DiffInt(random_state=0, false_positive_rate=0.05).fit(table.x[benign[:214]])
        rows = np.delete(table.x, benign[:214], axis=0)
        fewer, more = detector.explain(rows), detector.explain(rows)
        late = 0  # rows whose two most doubted values are no reasons, but a later one is
        for i in range(len(rows)):
            one, two = fewer.reasons_of(i, 1), fewer.reasons_of(i, 2)
            three, five = more.reasons_of(i, 3), more.reasons_of(i, 5)
            assert (one, two) == (three[:1], three[:2])
            assert five[: len(three)] == three
            assert bool(five) == bool(three)
            late += bool(three) and three[0].feature not in fewer.order[i, :2]
            assert fewer.brief(i, 1).startswith("no single value") == (
                bool(fewer.flagged[i]) and not three
            )
            assert (more.reasons_of(i, 1), fewer.reasons_of(i, 3)) == (one, three)
        assert late > 0

    def test_a_rare_value_that_is_hardly_doubted_is_no_reason_for_any_number(self):
        rng = np.random.default_rng(0)
        table = pd.DataFrame(rng.normal(size=(1_000, 8)), columns=list("abcdefgh"))
        table["kind"] = np.where(np.arange(1_000) % 250 == 0, "rare", "often")
        rows = table[table["kind"] == "rare"] * 1
        why = DiffInt(**QUICK).fit(table).explain(rows.assign(**dict.fromkeys("abcdefgh", 0.0)))
        for rank, has_reason in ((0, True), (3, True), (6, False)):
            order, doubt = np.insert(np.arange(8), rank, 8), np.empty(9)
            doubt[order] = np.linspace(1.0, 0.2, 9)
            again = replace(why, doubt=np.tile(doubt, (len(why), 1)))
            for most in (1, 3, 6, 9):
                assert bool(again.reasons_of(0, most)) == has_reason
