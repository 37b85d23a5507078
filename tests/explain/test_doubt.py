"""Which values of a row are doubted: against the definition, and with values that are wrong."""

import numpy as np
import pandas as pd
import pytest

from diffint import DiffInt
from diffint.engine.cpu.neighbour_kernel import BEYOND_MOST, find_deviations

from ..conftest import QUICK


def defined_deviation(row, known, floor, most, j, count, missing=None):
    """Of one cell, as it is described. known: (n, features); missing: the same, or None"""
    if missing is not None:
        known = known[~missing[:, j]]
    if not len(known):
        return 0.0
    used = [k for k in range(len(row)) if k != j and floor[k] > 0 and not np.isnan(row[k])]
    apart = np.abs(row[used] - known[:, used])
    distance = np.minimum(apart, most[used] + BEYOND_MOST * apart).sum(axis=1)
    values = known[np.argsort(distance, kind="stable")[:count], j]
    middle = np.median(values)
    return abs(row[j] - middle) / (np.abs(values - middle).mean() + floor[j])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n_known", [3, 16, 50, 163])
@pytest.mark.parametrize("missing_share", [0.0, 0.4, 1.0])
def test_deviations_are_the_defined_ones(seed, n_known, missing_share):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(20, 5)).astype(np.float32)
    rows[rng.random(rows.shape) < 0.1] = np.nan
    known = rng.normal(size=(n_known, 5)).astype(np.float32)
    floor = np.array([0.1, 0.2, 0.0, 0.1, 0.3])
    most = np.array([0.5, np.inf, 1.0, 0.9, 2.0], dtype=np.float32)
    wanted = np.stack([rng.permutation(5)[:3] for _ in rows])
    missing = rng.random(known.shape) < missing_share
    counts = np.maximum(np.minimum((~missing).sum(axis=0), [7, 1, 5, 7, 3]), 1)
    found, scratch = np.empty(wanted.shape), np.empty((2, n_known), dtype=np.float32)
    nearest = np.empty((2, 7), dtype=np.float32)
    compared = (np.ascontiguousarray(known.T), np.ascontiguousarray(missing.T), counts)
    find_deviations(rows, *compared, floor, most, wanted, found, scratch, nearest)
    for i, features in enumerate(wanted):
        for place, j in enumerate(features):
            unused = floor[j] == 0 or np.isnan(rows[i, j])
            expected = 0.0
            if not unused:
                given = (rows[i], known, floor, most, j, counts[j], missing)
                expected = defined_deviation(*given)
            assert found[i, place] == pytest.approx(expected, rel=1e-4)


def make_linked(n_rows=400, seed=0):
    """Three columns that follow from each other, and three that do not."""
    rng = np.random.default_rng(seed)
    base = rng.uniform(-1, 1, n_rows)
    linked = [base + 0.05 * rng.normal(size=n_rows) for _ in range(3)]
    return np.stack([*linked, *rng.normal(size=(3, n_rows))], axis=1)


@pytest.fixture(scope="module")
def detector():
    return DiffInt(n_units=40, epochs=60, n_members=3, random_state=0).fit(make_linked())


def test_an_ordinary_value_that_contradicts_the_others_is_doubted_first(detector):
    rows = make_linked(40, seed=1)
    rows[:, 1] = np.where(rows[:, 1] > 0, -0.8, 0.8)
    why = detector.explain(rows)
    assert (why.order[:, 0] == 1).mean() >= 0.9
    assert (why.doubt >= 0).all()


def test_a_value_beyond_all_training_values_comes_first(detector):
    rows = make_linked(40, seed=1)
    rows[:, 4] = 9.0
    assert (detector.explain(rows).order[:, 0] == 4).all()


def defined_doubt(why, model, i, categories):
    """Of a row's features as docs/method.md has it, right for the foremost four; and these."""
    member, features = model.members[0], model.features
    kept = member.kept_rows.astype(np.float64)
    row = member.scaler.target(why.value[[i]], "unclipped")[0] * member.kept_weight
    levels = list(features.levels)
    found, n_features = [], len(row)
    for j in range(n_features):
        quantile = dict(zip(levels, features.quantiles[j], strict=True))
        low, high, value = quantile[levels[0]], quantile[levels[-1]], why.value[i, j]
        below = (low - value) / (high - low), (quantile[0.05] - low) / (high - low)
        above = (value - high) / (high - low), (high - quantile[0.95]) / (high - low)
        beyond = [(far - min(tail, 0.3)) / (min(tail, 0.3) + 0.05) for far, tail in (below, above)]
        far, apart = max(0, *beyond), abs(row[j] - kept[:, j].mean()) / kept[:, j].std()
        if j in categories or np.isnan(value):
            far = apart = 0
        part = why.responsibility[i, j] * np.sqrt(why.share[i, j] + 0.001)
        found.append(part * (min(apart, 8) + 0.3) ** 0.25 * (1 + 4 * min(far, 4)))
    floor, most = 0.2 * kept.std(axis=0), 0.7 * kept.std(axis=0)
    foremost = np.argsort(found)[-4:]
    for j in foremost:
        deviation = 0.0
        if not np.isnan(why.value[i, j]):
            deviation = defined_deviation(row, kept, floor, most, j, 10)
        found[j] *= deviation / (1 + deviation / 6) + 0.1
    return found, foremost


def test_doubt_is_the_defined_one():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(make_linked(600), columns=list("abcdef"))
    table["kind"] = rng.choice(["x", "y", "z"], 600)
    detector = DiffInt(**(QUICK | {"n_members": 2})).fit(table)
    assert len(detector.model_.members[0].kept_rows) <= 1024  # all of them are compared
    rows = table.iloc[:60].reset_index(drop=True)
    rows["a"] = rng.permutation(rows["a"])
    rows.loc[10:19, "d"] = rng.uniform(3, 12, 10)
    rows.loc[20:29, "e"] = -rng.uniform(3, 5, 10)
    rows.loc[30:39, "f"] = np.nan
    rows.loc[40:45, "kind"] = "new"
    why = detector.explain(rows)
    for i in range(len(rows)):
        expected, foremost = defined_doubt(why, detector.model_, i, {6})
        np.testing.assert_allclose(why.doubt[i, foremost], np.take(expected, foremost), rtol=1e-4)


def test_without_kept_rows_doubt_is_responsibility():
    why = DiffInt(**QUICK, kept_rows=0).fit(make_linked()).explain(make_linked(10, seed=1))
    np.testing.assert_array_equal(why.doubt, why.responsibility)


def test_rows_do_not_depend_on_each_other(detector):
    rows = make_linked(300, seed=2)
    rows[5, 2] = np.nan
    together = detector.explain(rows).doubt
    alone = np.concatenate([detector.explain(rows[i : i + 1]).doubt for i in range(0, 300, 37)])
    np.testing.assert_array_equal(together[::37], alone)


def test_a_column_that_few_rows_have_is_not_doubted_for_that():
    rng = np.random.default_rng(0)
    table = make_linked(600)
    table[rng.random(600) < 0.8, 5] = np.nan
    detector = DiffInt(**QUICK).fit(table)
    rows = make_linked(60, seed=1)
    rows[:, 1] = np.where(rows[:, 1] > 0, -0.8, 0.8)
    first = detector.explain(rows).order[:, 0]
    assert (first == 1).mean() >= 0.9
