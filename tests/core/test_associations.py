"""How surprising values of categories are beside the rest of their row."""

from dataclasses import replace

import numpy as np
import pytest

from diffint.core.associations import N_EDGES, Associations


def make_table(n_rows=600, seed=0):
    """Two categories that go together, a number that depends on them, and one that does not."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 4, n_rows)
    second = np.where(rng.random(n_rows) < 0.9, first, rng.integers(0, 5, n_rows))
    number = first * 10.0 + rng.normal(size=n_rows)
    x = np.stack([first, second, number, rng.normal(size=n_rows)], axis=1).astype(float)
    x[rng.random(x.shape) < 0.03] = np.nan
    return x


def defined_surprise(train, row, values, edges, prior):
    """Row by row and column by column, as it is described."""

    def bin_of(j, cell):
        if np.isnan(cell):
            return None
        if j in values:
            return int(cell) if 0 <= cell < values[j] else None
        return int((edges[j][~np.isnan(edges[j])] <= cell).sum())

    result = []
    for c, added in enumerate(prior):
        own = bin_of(c, row[c])
        if own is None:
            result.append(0.0)
            continue
        all_bins = [bin_of(c, cell) for cell in train[:, c]]
        n_values = values.get(c, N_EDGES + 1)
        counts = [sum(b == v for b in all_bins) for v in range(n_values)]
        shares = [(n + 0.5) / (sum(counts) + 0.5 * n_values) for n in counts]
        usual = -sum(p * np.log(p) for p in shares)
        most = 0.0
        for other in range(train.shape[1]):
            there = bin_of(other, row[other])
            if other == c or there is None:
                continue
            inside = [
                b
                for b, r in zip(all_bins, train, strict=True)
                if b is not None and bin_of(other, r[other]) == there
            ]
            n_same = sum(b == own for b in inside)
            q = (n_same + added[other] * shares[own]) / (len(inside) + added[other])
            most = max(most, np.log(shares[own] / q))
        rarity = -np.log(shares[own]) - usual if c in values else 0.0
        result.append(max(rarity, most))
    return result


@pytest.mark.parametrize("seed", range(3))
def test_surprise_is_the_defined_one(seed):
    values = {0: 4, 1: 5}
    train, rows = make_table(seed=seed), make_table(40, seed=seed + 10)
    rows[0, 0], rows[1, 1] = 7, 99  # new values
    found = Associations.of(train, values)
    expected = [defined_surprise(train, row, values, found.edges, found.prior) for row in rows]
    np.testing.assert_allclose(found.surprise(rows)[0], expected, rtol=1e-12, atol=1e-14)


def test_a_value_that_never_occurs_with_the_rest_is_surprising():
    found = Associations.of(make_table(), {0: 4, 1: 5})
    usual, swapped = np.array([[2.0, 2.0, 20.0, 0.0], [2.0, 2.0, 0.0, 0.0]])
    surprise, shown_by = found.surprise(np.stack([usual, swapped]))
    assert surprise[1, 0] > surprise[0, 0] + 2
    assert shown_by[1, 0] == 2
    why = found.clashes(swapped[None], 0)
    assert (why.n_value[0], why.n_all[0]) == (found.table(0, 0)[2, 2], found.table(0, 0).sum())
    assert (why.other[0], why.n_same[0]) == (2, 0)
    beside = found.table(0, 2)[:, found.bins(swapped[None])[0, 2]]
    assert why.n_alike[0] == beside.sum() > 20
    lower, upper = why.near_other[0]
    assert lower <= swapped[2] < upper
    table = make_table()[~np.isnan(make_table()[:, 0])]
    assert ((table[:, 2] >= lower) & (table[:, 2] < upper)).sum() == why.n_alike[0]
    assert np.isnan(why.near_value[0]).all()  # a category


def test_a_rare_value_is_more_surprising_than_a_common_one():
    rng = np.random.default_rng(0)
    x = rng.choice([0.0, 1.0, 2.0], p=[0.9, 0.09, 0.01], size=(2000, 1))
    surprise = Associations.of(x, {0: 3}).surprise(np.array([[0.0], [1.0], [2.0]]))[0][:, 0]
    assert surprise[0] == 0
    assert surprise[0] < surprise[1] < surprise[2]


def test_new_values_and_missing_cells():
    found = Associations.of(make_table(), {0: 4, 1: 5})
    rows = np.array([[4.0, 0.0, 0.0, 0.0], [np.nan, 0.0, 0.0, 0.0], [0.0, -3.0, 0.0, 0.0]])
    new = [[True, False], [False, False], [False, True]]
    assert found.is_new(rows)[:, :2].tolist() == new
    assert not found.is_new(rows)[:, 2:].any()
    assert found.surprise(rows)[0][1, 0] == 0


@pytest.mark.parametrize("seed", range(5))
def test_bounds_hold_for_all_rows_of_a_box(seed):
    rng = np.random.default_rng(seed)
    values = {0: 4, 1: 5}
    counted = Associations.of(make_table(seed=seed), values)
    found = replace(counted, weight=np.ones(4), unseen=np.array([9.0, 9.0, 0.0, 0.0]))
    for _ in range(40):
        a, b = make_table(2, seed=rng.integers(10**6))
        lower, upper = np.nan_to_num(np.minimum(a, b)), np.nan_to_num(np.maximum(a, b))
        lower[rng.random(4) < 0.2] = -np.inf
        upper[rng.random(4) < 0.2] = np.inf
        low, high = found.bounds(lower[None], upper[None])
        rows = rng.uniform(np.maximum(lower, -50), np.minimum(upper, 50), size=(200, 4))
        rows[:, :2] = np.round(rows[:, :2])
        inside = ((rows >= lower) & (rows <= upper)).all(axis=1)
        total = found.parts(rows[inside]).sum(axis=1)
        assert (total >= low[0] - 1e-9).all()
        assert (total <= high[0] + 1e-9).all()


def test_few_rows_are_added_where_a_column_tells_the_category():
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 4, 500)
    told, unrelated = (kind + 1) % 4, rng.integers(0, 4, 500)
    found = Associations.of(np.stack([kind, told, unrelated], axis=1).astype(float), {0: 4})
    assert found.prior[0, 1] <= 0.1
    assert found.prior[0, 2] >= 100


@pytest.mark.parametrize("seed", range(3))
def test_added_rows_predict_each_value_from_the_other_rows_best(seed):
    train = make_table(seed=seed)
    found = Associations.of(train, {0: 4, 1: 5})
    table = found.table(0, 1)
    own = found.table(0, 0).diagonal()
    share = (own + 0.5) / (own.sum() + 2.0)

    def likelihood(prior):
        total = 0.0
        for value, bin_ in np.ndindex(*table.shape):
            for _ in range(table[value, bin_]):
                rest, size = table[value, bin_] - 1, table[:, bin_].sum() - 1
                total += np.log((rest + prior * share[value]) / (size + prior))
        return total

    best = found.prior[0, 1]
    assert all(likelihood(best) >= likelihood(best * f) for f in (0.1, 0.3163, 3.162, 10))
