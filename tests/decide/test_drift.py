"""Whether the population has moved: verdicts, where, what that explains, and bad input."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from diffint import DiffInt
from diffint.core.errors import InputError, InputWarning
from diffint.decide.drift_dictionary import build_dictionary
from diffint.decide.permutation_test import _FEW, compare_means, equal_chances
from diffint.decide.restored import with_former_numbers, with_former_values

QUICK = {"epochs": 10, "n_members": 2, "n_units": 32, "random_state": 0}


def rows_of(rng, n):
    """Numbers that go together in twos, a category, and a few missing cells."""
    a, b = rng.normal(size=(2, n))
    frame = pd.DataFrame(
        {
            "a": 10 + 2 * a,
            "b": 50 + 10 * a + 3 * rng.normal(size=n),
            "c": np.exp(b),
            "d": b + 0.3 * rng.normal(size=n),
            "e": rng.poisson(0.3, n).astype(float),
            "shop": rng.choice(["x", "y", "z"], n, p=[0.6, 0.3, 0.1]),
        }
    )
    frame.loc[rng.random(n) < 0.03, "d"] = np.nan
    return frame


@pytest.fixture(scope="module")
def detector():
    return DiffInt(**QUICK).fit(rows_of(np.random.default_rng(0), 1500))


@pytest.fixture(scope="module")
def held_out():
    """Its stored rows were not trained on, and their scores are comparable."""
    train = rows_of(np.random.default_rng(0), 4000)
    return DiffInt(**QUICK, calibration="holdout").fit(train)


@pytest.fixture
def new():
    return rows_of(np.random.default_rng(1), 800)


def test_no_drift(detector, new):
    found = detector.drift(new)
    assert not found.drifted
    assert found.p_value > 0.01
    assert found.moved == ()
    assert sorted(found.features) == ["a", "b", "c", "d", "e", "shop"]
    assert found.explained == ()
    assert found.n_rows == found.n_compared == 800
    assert found.text().startswith("No sign that the population has moved (p = ")
    assert found.text().endswith("of the rows are flagged, 1 % expected.")


def test_the_same_rows_give_the_same_result(detector, new):
    assert detector.drift(new).to_json() == detector.drift(new).to_json()


def test_a_mean_that_moved(detector, new):
    new["b"] += 60.0
    found = detector.drift(new)
    assert found.drifted
    assert found.features[0] == "b"
    assert found.p_value < 1e-10
    shift = found.shifts[0]
    assert (shift.kind, shift.measure) == ("mean", "median")
    assert shift.shift == pytest.approx(60, abs=2)
    assert shift.shift_sd == pytest.approx(6, abs=0.5)
    assert "b moved from 49.5 to 109 (median; +6 sd)" in found.text()
    assert found.flagged_share > 0.7
    name, share = found.explained[0]
    assert name == "b"
    assert share < 0.1
    assert "with b as in training" in found.text()


def test_a_spread_that_grew(detector, new):
    new["c"] = np.exp(1.6 * np.log(new["c"]))
    found = detector.drift(new)
    assert found.features[0] == "c"
    assert found.shifts[0].kind == "spread"
    assert "c varies more (10–90 % range" in found.text()


def test_a_relation_that_is_lost(detector, new):
    new["a"] = np.random.default_rng(2).permutation(new["a"])
    found = detector.drift(new)
    (first,) = found.moved  # which of the two has changed cannot be known
    assert {first.feature, first.kind} in ({"a", "with b"}, {"b", "with a"})
    assert first.was > 0.9
    assert abs(first.now) < 0.2
    assert "in another way (rank correlation" in found.text()
    assert found.explained[0][1] < 0.5 * found.flagged_share


def test_a_relation_of_three_is_that_of_the_one_that_changed():
    rng = np.random.default_rng(0)

    def rows(n):
        return rng.normal(size=(n, 1)) + 0.5 * rng.normal(size=(n, 4))

    detector, new = DiffInt(**QUICK).fit(rows(1500)), rows(500)
    new[:, 2] = rng.permutation(new[:, 2])
    assert [shift.feature for shift in detector.drift(new).moved] == ["x2"]


def test_features_are_in_the_order_of_what_is_their_own():
    """A lost relation counts for one of both features only: the other one comes at the end."""
    rng = np.random.default_rng(0)

    def rows(n):
        return np.column_stack(
            [rng.normal(size=(n, 1)) + 0.5 * rng.normal(size=(n, 4)), rng.normal(size=n)]
        )

    detector, new = DiffInt(**QUICK).fit(rows(1500)), rows(500)
    new[:, 2] = rng.permutation(new[:, 2])
    new[:, 4] += 0.4
    found = detector.drift(new)
    assert found.features[:2] == ("x2", "x4")
    assert [shift.statistic for shift in found.shifts] == sorted(
        (shift.statistic for shift in found.shifts), reverse=True
    )


def test_a_number_that_moved_explains_alerts_with_its_ranks_kept():
    """Another number follows from it so closely that other former values would be alerts, too."""
    rng = np.random.default_rng(0)

    def rows(n):
        a = rng.normal(size=n)
        return pd.DataFrame({"a": a, "b": a + 0.2 * rng.normal(size=n)})

    detector = DiffInt(**{**QUICK, "epochs": 30}, false_positive_rate=0.02).fit(rows(1500))
    new = rows(500)
    found = detector.drift(new.assign(a=2 * new["a"] + 30.0))
    assert found.flagged_share > 0.9
    assert found.explained[0][0] == "a"
    assert found.explained[0][1] < 0.1


def test_missing_cells(detector, new):
    new.loc[np.random.default_rng(2).random(800) < 0.13, "a"] = np.nan
    found = detector.drift(new)
    assert found.features[0] == "a"
    assert found.shifts[0].kind == "missing"
    assert found.shifts[0].was == 0.0
    assert "a is missing in 1" in found.text()


def test_a_new_value(detector, new):
    new.loc[:39, "shop"] = "new shop"
    found = detector.drift(new)
    assert found.features[0] == "shop"
    assert found.shifts[0].kind == "new values"
    assert found.shifts[0].now == pytest.approx(0.05, abs=0.001)
    assert "shop has new values in 5 % of the rows, before in 0 %" in found.text()


@pytest.mark.parametrize("trained_on", [False, True])
def test_which_values_count_as_new(trained_on):
    """If stored rows helped to list the values, theirs are new if no other stored row has them."""
    stored, later = [0, 0, 0, 1, 2, 2, np.nan, 4], [3, 1, 0, 4, np.nan, 3]
    pooled = np.array([*stored, *later])[:, None]
    rng = np.random.default_rng(0)
    found = build_dictionary(pooled, len(stored), {0: 4}, (), trained_on, rng)
    column = found.columns[:, [entry.kind for entry in found.entries].index("new values")]
    not_listed = [0, 0, 0, 0, 0, 0, 0, 1, *(0, 0, 0, 1, 0, 0)]
    as_if_left_out = [0, 0, 0, 1, 0, 0, 0, 1, *(1, 0, 0, 1, 0, 1)]
    assert column.tolist() == (as_if_left_out if trained_on else not_listed)


def test_other_shares_of_values(detector, new):
    new["shop"] = np.random.default_rng(2).choice(["x", "y", "z"], 800, p=[0.3, 0.6, 0.1])
    found = detector.drift(new)
    assert found.features[0] == "shop"
    assert found.shifts[0].kind == "values"
    assert found.shifts[0].value in ("x", "y")
    assert "shop is" in found.text()


def test_rare_values_are_no_drift():
    """Values that only stored rows have are unseen elsewhere as often as new ones are."""
    rng = np.random.default_rng(0)
    shares = 1.0 / np.arange(1, 151)
    values = [f"v{i}" for i in range(150)]

    def rows(n):
        return pd.DataFrame(
            {"x": rng.normal(size=n), "v": rng.choice(values, n, p=shares / shares.sum())}
        )

    detector = DiffInt(**QUICK).fit(rows(400))
    assert sum(detector.drift(rows(400)).drifted for _ in range(20)) <= 1


def test_the_score_is_compared_if_it_can_be(detector, held_out, new):
    assert "(score)" not in detector.drift(new).features
    assert "(score)" in held_out.drift(new).features
    # The category and the number are as before, each by itself, but not together.
    train = pd.DataFrame({"x": np.tile([0.0, 5.0], 1500), "shop": ["u", "v"] * 1500})
    train["x"] += np.random.default_rng(0).normal(size=3000)
    detector = DiffInt(**QUICK, calibration="holdout").fit(train)
    swapped = train[:400].assign(shop=train["shop"][:400].map({"u": "v", "v": "u"}))
    found = detector.drift(swapped)
    assert found.features[0] == "(score)"
    assert found.drifted
    assert "The score moved from" in found.text()


def test_the_score_of_training_rows_is_not_compared(held_out, new):
    """It is lower than that of rows that were left out of training."""
    train = rows_of(np.random.default_rng(0), 4000)
    single_precision = train.astype(dict.fromkeys("abcde", np.float32))
    for rows in (train, train[:1000], pd.concat([new, train]), single_precision):
        found = held_out.drift(rows)
        assert found.training_rows
        assert "(score)" not in found.features
        assert "The model was trained on these rows or on some of them" in found.text()
        assert json.loads(found.to_json())["training_rows"]
    assert not held_out.drift(train).drifted
    for rows in (new, pd.concat([new, train[:20]])):
        assert not held_out.drift(rows).training_rows
        assert "trained on" not in held_out.drift(rows).text()


def test_new_rows_that_equal_training_rows_by_chance():
    rng = np.random.default_rng(0)
    for n_values in (3, 8, 40):
        train = rng.integers(n_values, size=(4000, 3))
        detector = DiffInt(**{**QUICK, "epochs": 1}, calibration="holdout").fit(train)
        for n_rows in (50, 1000, 20_000):
            assert not detector.drift(rng.integers(n_values, size=(n_rows, 3))).training_rows


def test_a_few_anomalies_are_no_drift(detector):
    for seed in range(10):
        new = rows_of(np.random.default_rng(seed), 1000)
        new.loc[:9, ["a", "c", "d"]] = 1e9
        assert not detector.drift(new).drifted


def test_more_rows_than_are_compared(detector):
    new = rows_of(np.random.default_rng(3), 8000)
    found = detector.drift(new)
    assert (found.n_rows, found.n_compared) == (8000, 5000)
    assert not found.drifted
    assert found.flagged_share == pytest.approx((detector.predict(new) == -1).mean())


def test_precision_is_no_drift():
    rng = np.random.default_rng(0)
    train, new = (rng.integers(0, 10, (600, 3)) / 10 for _ in range(2))
    for kinds in ((np.float32, np.float64), (np.float64, np.float32)):
        detector = DiffInt(**QUICK).fit(train.astype(kinds[0]))
        assert not detector.drift(new.astype(kinds[1])).drifted


def test_times_are_not_compared():
    rng = np.random.default_rng(0)
    hours = pd.date_range("2024-01-01", periods=3000, freq="h")
    table = pd.DataFrame({"when": hours, "x": rng.normal(size=3000)})
    detector = DiffInt(**QUICK).fit(table[:2000])
    found = detector.drift(table[2000:])
    assert found.features == ("x",)
    assert not found.drifted
    with pytest.raises(InputError, match="only columns of times"):
        DiffInt(**QUICK).fit(table[["when"]][:2000]).drift(table[["when"]][2000:])


def test_rows_of_another_time_are_not_flagged_for_it():
    """The population is as before, and no training row is of these days."""
    rng = np.random.default_rng(0)

    def month(start, n):
        minutes = pd.to_timedelta(rng.uniform(0, 28 * 24 * 60, n), unit="min")
        when = pd.to_datetime(start) + minutes
        return pd.DataFrame({"when": when, "x": rng.normal(size=n), "y": rng.normal(size=n)})

    detector = DiffInt(**QUICK, calibration="holdout").fit(month("2024-01-01", 2000))
    assert detector.drift(month("2024-01-01", 500)).explained == ()
    found = detector.drift(month("2024-06-01", 500))
    assert not found.drifted  # neither the features nor the score, which has times in it
    assert found.flagged_share < 0.04
    assert found.explained == ()


def test_a_number_that_is_stuck_explains_alerts(detector, new):
    """Its values are all equal, so that there are no ranks to keep."""
    found = detector.drift(new.assign(c=new["c"].iloc[2]))
    assert found.flagged_share > 0.5
    assert found.explained[0][0] == "c"
    assert found.explained[0][1] < 0.1


def test_segments_decide_what_is_flagged():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=2000), "y": rng.normal(size=2000)})
    table["store"] = rng.choice(["s", "t"], 2000)
    table.loc[table["store"] == "t", "x"] *= 5
    detector = DiffInt(**QUICK, false_positive_rate=0.05).fit(table[:1500], segments="store")
    found = detector.drift(table[1500:].assign(y=table["y"] + 3))
    assert found.drifted
    assert found.features[0] == "y"
    flagged = detector.predict(table[1500:].assign(y=table["y"] + 3)) == -1
    assert found.flagged_share == pytest.approx(flagged.mean())
    assert found.explained[0][1] < found.flagged_share


def test_all_ways_to_show_it(detector, new):
    new["b"] += 60.0
    found = detector.drift(new)
    frame = found.to_frame()
    assert frame.columns[0] == "feature"
    assert list(frame["feature"]) == list(found.features)
    assert {"p_value", "kind", "was", "now", "shift", "shift_sd"} <= set(frame.columns)
    assert (frame["statistic"].diff()[1:] <= 0).all()
    values = json.loads(found.to_json())
    assert values["drifted"] is True
    assert values["shifts"][0]["feature"] == "b"
    assert values["explained"][0]["feature"] == "b"
    assert values["text"] == found.text()
    assert "NaN" not in found.to_json()
    assert found.text() in found._repr_html_().replace("&lt;", "<")
    assert "moved: b" in repr(found)
    assert len(found.plot().axes[0].patches) == len(found.features)
    assert len(detector.drift(rows_of(np.random.default_rng(4), 30)).plot().axes) == 1
    with pytest.raises(AttributeError):
        found.p_value = 1.0


def test_odd_batches(detector, new):
    gone = new.copy()
    gone[["a", "b", "c", "d", "e"]] = np.nan
    gone["shop"] = None
    found = detector.drift(gone)
    assert {shift.kind for shift in found.moved} == {"missing"}
    assert "NaN" not in found.to_json()
    found.plot()
    strange = detector.drift(new.assign(shop="q"))
    assert strange.features[0] == "shop"
    assert strange.shifts[0].now in (0.0, 1.0)
    same = detector.drift(pd.concat([new[:1]] * 50, ignore_index=True))
    assert same.drifted
    same.plot()


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (lambda new: new[:0], "at least 20 rows; there are only 0"),
        (lambda new: new[:1], "at least 20 rows; there are only 1"),
        (lambda new: new[:19], "at least 20 rows; there are only 19"),
        (lambda new: new.drop(columns="a"), "a"),
        (lambda new: new.assign(a="text"), "a"),
    ],
)
def test_rows_that_cannot_be_compared(detector, new, table, message):
    with pytest.raises(InputError, match=message):
        detector.drift(table(new))


def test_very_small_levels(detector, new):
    """Where no permutation could be so rare, a bound still can."""
    assert not detector.drift(new, level=1e-9).drifted
    found = detector.drift(new.assign(b=new["b"] + 60), level=1e-9)
    assert [shift.feature for shift in found.moved] == ["b"]
    found.plot()


@pytest.mark.parametrize("level", [0, 1, -0.1, np.nan, "x", None])
def test_levels_that_cannot_be_used(detector, new, level):
    with pytest.raises(InputError, match="level"):
        detector.drift(new, level=level)


def test_a_model_without_rows():
    x = np.random.default_rng(0).normal(size=(200, 2))
    with pytest.raises(InputError, match="stores no calibration rows"):
        DiffInt(**QUICK, kept_rows=0).fit(x).drift(x)
    with pytest.raises(InputError, match=r"stores only 4 .* at least 20"), pytest.warns():
        DiffInt(**QUICK).fit(x[:12]).drift(x)


def test_false_alarms():
    """The level holds: of 200 divisions of the same rows, few have p ≤ 0.05."""
    rng = np.random.default_rng(0)
    smallest = []
    for _ in range(200):
        x = rng.normal(size=(120, 4)) @ rng.normal(size=(4, 4))
        x[:, 0] = np.round(x[:, 0])
        found = build_dictionary(x, 80, {}, [], True, rng)
        test = compare_means(found.columns, 80, equal_chances(found.is_pair, 0.05), 0.05, rng)
        top = np.abs(test.statistics).max()
        smallest.append(test.p_values(np.array([top]), np.array([test.bounds.min()]))[0])
    assert np.mean(np.array(smallest) <= 0.05) <= 0.09  # 0.05 + 2.6 standard errors


def test_restored_values_have_the_former_distribution():
    rng = np.random.default_rng(0)
    stored, new = rng.normal(size=500), rng.exponential(size=300) + 5
    new[:90] = np.nan
    found = with_former_numbers(new, stored, rng)
    assert not np.isnan(found).any()
    assert set(found) <= set(stored)
    assert (np.argsort(found[90:]) == np.argsort(new[90:])).all()
    was, now = rng.choice([0.0, 1, 2], 1000, p=[0.5, 0.3, 0.2]), np.full(400, 1.0)
    now[:40] = np.nan
    codes, counts = np.unique(with_former_values(now, was, rng), return_counts=True)
    assert codes.tolist() == [0, 1, 2]
    np.testing.assert_allclose(counts / 400, np.bincount(was.astype(int)) / 1000, atol=0.06)


def test_the_spread_of_a_number_that_is_mostly_one_value():
    """The ranks of all values hardly change, those of the others do."""

    def mostly_zero(seed):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(2_000, 3))
        x[:, 2] = np.round(3 * x[:, 2]) * (rng.random(2_000) < 0.4)
        return x

    detector = DiffInt(**{**QUICK, "epochs": 2}).fit(mostly_zero(0))
    for seed in (1, 2, 3):
        new = mostly_zero(seed)[:1_000]
        assert not detector.drift(new).drifted
        new[:, 2] *= 1.5
        found = detector.drift(new)
        assert found.drifted
        assert (found.shifts[0].feature, found.shifts[0].kind) == ("x2", "spread")


def test_many_strong_pairs_do_not_displace_a_weaker_one():
    """Of 50 features, 40 go together, whose pairs are more than all that are compared."""

    def rows(n, seed):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(n, 50))
        x[:, :40] += 2 * rng.normal(size=(n, 1))
        x[:, 40:] += rng.normal(size=(n, 5)).repeat(2, axis=1)
        return x

    stored = rows(800, 0)
    for j in range(40, 50):
        new = rows(400, j)
        new[:, j] = np.random.default_rng(j).permutation(new[:, j])
        pooled = np.concatenate([stored, new])
        entries = build_dictionary(pooled, 800, {}, [], True, np.random.default_rng(j)).entries
        assert (j - j % 2, j - j % 2 + 1) in {entry.features for entry in entries}


def test_pairs_of_many_columns():
    """Half are the most correlated ones, by the place that each has among those of its columns."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 50))
    x[:, 1:] += np.linspace(0.1, 1.0, 49) * x[:, :-1]
    found = build_dictionary(x, 100, {}, (), False, rng)
    scores = found.columns[:, [entry.kind == "mean" for entry in found.entries]]
    pairs = [entry.features for entry in found.entries if entry.kind == "pair"]
    assert len(pairs) == len(set(pairs)) == 780
    assert all(i < j for i, j in pairs)
    size = np.sqrt((scores**2).sum(axis=0))
    related = np.abs(scores.T @ scores) / np.outer(size, size)
    np.fill_diagonal(related, -1.0)
    place = (related[:, :, None] < related[:, None, :]).sum(axis=2)  # 0: the strongest of a column
    every = sorted(
        (
            (min(place[i, j], place[j, i]), -related[i, j], (i, j))
            for i in range(50)
            for j in range(i)
        ),
    )
    first = {(j, i) for _, _, (i, j) in every[:390]}
    assert first <= set(pairs)
    rest = {(j, i) for _, _, (i, j) in every[390:700]}
    assert 60 < len(rest & set(pairs)) < 200  # the others are drawn from all the rest


def test_columns_without_a_value_in_training_are_not_compared(new):
    with pytest.warns(InputWarning, match="has no value"):
        detector = DiffInt(**QUICK).fit(new.assign(empty=np.nan))
    found = detector.drift(new.assign(empty=1.0))
    assert found.level == 0.01
    assert sorted(found.features) == ["a", "b", "c", "d", "e", "shop"]


@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_statistics_of_a_max_test(scale):
    """Differences of sums from the mean, in standard errors that a few rows do not make large."""
    rng = np.random.default_rng(0)
    columns = (scale * rng.normal(size=(300, 4))).astype(np.float32)
    columns[:, 3] = 1.0
    weights = np.array([1.0, 0.5, 1.0, 1.0])
    found = compare_means(columns, 100, weights, 0.05, rng)
    centred = columns - columns.mean(axis=0)
    deviation = np.sqrt(columns.var(axis=0) + (centred**2).max(axis=0) * max(1 / 100, _FEW))
    error = deviation / np.sqrt(1 / 100 + 1 / 200)
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = np.nan_to_num(weights * centred[100:].sum(axis=0) / error, posinf=0, neginf=0)
    expected[3] = 0.0
    np.testing.assert_allclose(found.statistics, expected, rtol=1e-3)
    assert found.bounds[3] == 1.0


@pytest.mark.parametrize("shift", [0.0, 0.2, 0.6])
def test_permutations_have_the_distribution_of_the_statistic(shift):
    """The p-value of a difference is the share of exchanged rows with one as large."""
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(60, 1)).astype(np.float32)
    columns[:20] += shift
    found = compare_means(columns, 20, np.ones(1), 0.5, rng)
    centred = columns[:, 0] - columns.mean()
    sums = [abs(centred[rng.permutation(60)[:20]].sum()) for _ in range(4_000)]
    observed = abs(centred[20:].sum())
    expected = np.mean([value >= observed for value in sums])
    p = found.p_values(np.abs(found.statistics), np.ones(1))[0]
    assert p == pytest.approx(expected, abs=0.06)
    assert found.critical(0.1) == pytest.approx(
        np.quantile(sums, 0.9) / observed * abs(found.statistics[0]), rel=0.15
    )


def test_weights_of_two_families():
    """Of 10 and 1,000 columns: the larger family's limit is farther out."""
    weights = equal_chances(np.repeat([False, True], [10, 1_000]), 0.05)
    few, many = -norm.ppf(0.05 / 40), -norm.ppf(0.05 / 4_000)
    np.testing.assert_allclose(weights, np.repeat([1.0, few / many], [10, 1_000]))
    assert (equal_chances(np.ones(5, dtype=bool), 0.05) == 1.0).all()
