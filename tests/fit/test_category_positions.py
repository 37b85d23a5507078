"""The order and the positions of the values of categories, compared with their definitions."""

import numpy as np
import pytest
from scipy.stats import rankdata

from diffint.core.scaling.curves import LIMIT
from diffint.fit.category_positions import category_curves, order_values, with_values_of

NAN = np.nan


def centered(column):
    """Ranks from −1 to 1, 0 where missing."""
    known = ~np.isnan(column)
    ranks = np.zeros(len(column))
    ranks[known] = (2 * rankdata(column[known]) - 1) / known.sum() - 1
    return ranks


def means_of(codes, count, others):
    """Mean ranks of the column that depends on a category most, and its correlation ratio."""
    known = (codes >= 0) & (codes < count)
    best = (-1.0, None)
    for column in others.T:
        groups = [column[known & (codes == code)] for code in range(count)]
        means = np.array([group.mean() if len(group) else 0.0 for group in groups])
        sizes = np.array(list(map(len, groups)))
        total = (column[known] ** 2).sum()
        ratio = (sizes * means**2).sum() / total if total else 0.0
        if ratio > best[0] + 1e-12:
            best = (ratio, means)
    return best


def defined_orders(x, n_values, sweeps=3):
    ranks = np.stack([centered(column) for column in x.T], axis=1)
    orders = {}
    for _ in range(sweeps if len(n_values) > 1 else 1):
        for j, count in n_values.items():
            _, means = means_of(x[:, j], count, np.delete(ranks, j, axis=1))
            orders[j] = np.argsort(means, kind="stable")
            place = np.full(count + 1, NAN)
            place[orders[j]] = np.arange(count)
            ranks[:, j] = centered(place[np.nan_to_num(x[:, j], nan=count).astype(int)])
    return orders


def table(seed, numbers):
    """Two categories that depend on a place on a circle or a line, some of their cells missing."""
    rng = np.random.default_rng(seed)
    place = rng.uniform(0, 1, 400)
    first = rng.permutation(9)[(place * 9).astype(int)].astype(float)
    second = rng.permutation(7)[((place + 0.3 * rng.normal(size=400)) % 1 * 7).astype(int)]
    x = np.column_stack([first, second.astype(float), *rng.normal(size=(numbers, 400))])
    if numbers:
        x[:, 2] += 2 * place
    x[::11, 0], x[::7, 1] = NAN, NAN
    x[::13, 0] = 9.0  # not listed
    return x


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("numbers", [0, 1, 3])
def test_values_are_ordered_by_what_depends_on_them_most(seed, numbers):
    x = table(seed, numbers)
    found, expected = order_values(x, {0: 9, 1: 7}), defined_orders(x, {0: 9, 1: 7})
    assert {j: order.tolist() for j, order in found.items()} == {
        j: order.tolist() for j, order in expected.items()
    }
    if numbers:
        alone = order_values(x, {0: 9})[0]
        assert alone.tolist() == defined_orders(x, {0: 9})[0].tolist()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_categories_that_depend_on_each_other_are_ordered_three_times(seed):
    x = np.random.default_rng(seed).integers(0, [9, 7], size=(60, 2)).astype(float)
    n_values = {0: 9, 1: 7}
    found, expected = order_values(x, n_values), defined_orders(x, n_values)
    for j in n_values:
        np.testing.assert_array_equal(found[j], expected[j])
    once = defined_orders(x, n_values, sweeps=1)
    assert any((once[j] != expected[j]).any() for j in n_values)


def test_positions_are_those_of_shares_and_strength():
    x = table(0, 2)
    curve = category_curves(x, {0: 9})[0]
    ranks = np.stack([centered(column) for column in x.T], axis=1)[:, 1:]
    codes = x[:, 0]
    sizes = np.array([(codes == code).sum() for code in range(9)])
    ratio, _ = means_of(codes, 9, ranks)
    strength = np.sqrt(ratio - 8 / sizes.sum())
    ends = np.append(0, np.cumsum(sizes)) / sizes.sum()
    expected = strength * (ends[1:] + ends[:-1] - 1)
    np.testing.assert_allclose(curve.scaled, [-LIMIT, *expected, LIMIT], rtol=1e-12)
    assert curve.values.tolist() == [-1, *range(9), 9]


def test_a_value_without_rows_hardly_takes_any_of_the_range():
    x = np.column_stack([np.repeat([0.0, 2.0], 50), np.arange(100.0)])
    scaled = category_curves(x, {0: 3})[0].scaled[1:-1]
    ratio, _ = means_of(x[:, 0], 3, centered(x[:, 1])[:, None])
    strength = np.sqrt(ratio - 2 / 100)
    width = np.array([0.5, 1e-4, 0.5]) / (1 + 1e-4)
    ends = np.append(0, np.cumsum(width))
    np.testing.assert_allclose(scaled, strength * (ends[1:] + ends[:-1] - 1), rtol=1e-9)


def test_values_that_deciding_rows_lack_count_as_others():
    x = np.array([[0.0], [1.0], [1.0], [2.0], [NAN], [3.0]])
    found, values = with_values_of(x, {0: ("d", "c", "b", "a")}, np.array([0, 1, 2, 4]))
    assert set(values[0]) == {"c", "d"}
    place = {value: i for i, value in enumerate(values[0])}
    assert found[:3, 0].tolist() == [place["d"], place["c"], place["c"]]
    assert found[[3, 5], 0].tolist() == [2.0, 2.0]
    assert np.isnan(found[4, 0])
