"""Ranks and tests, compared with results by hand and published ones."""

from __future__ import annotations

import math

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diffint.bench.paper_numbers import RANKS, RankKey
from diffint.bench.ranking import (
    compare,
    complete_tables,
    critical_difference,
    friedman,
    holm,
    mean_ranks,
    table_ranks,
    undecided_groups,
)

NAN = math.nan


def frame(rows, methods="abcd"):
    index = [f"t{i}" for i in range(len(rows))]
    return pandas.DataFrame(rows, index=index, columns=list(methods)[: len(rows[0])], dtype=float)


MISSING = frame(
    [
        [0.9, 0.8, 0.8, 0.7],  # 1, 2.5, 2.5, 4
        [0.6, 0.9, NAN, 0.7],  # 3, 1, –, 2
        [0.5, NAN, NAN, 0.6],  # 2, –, –, 1
        [NAN, NAN, NAN, NAN],  # nothing to rank
    ]
)


def test_scheme_a_gives_missing_runs_the_worst_rank():
    expected = [[1, 2.5, 2.5, 4], [3, 1, 4, 2], [2, 4, 4, 1]]
    np.testing.assert_array_equal(table_ranks(MISSING, "A"), expected)
    ranks = mean_ranks(MISSING, "A")
    assert list(ranks.index) == ["a", "d", "b", "c"]
    assert ranks.to_dict() == pytest.approx({"a": 2, "d": 7 / 3, "b": 2.5, "c": 3.5})


def test_scheme_b_leaves_out_tables_with_missing_runs():
    assert complete_tables(MISSING) == ["t0"]
    np.testing.assert_array_equal(table_ranks(MISSING, "B"), [[1, 2.5, 2.5, 4]])
    no_tables = mean_ranks(MISSING.drop(index="t0"), "B")
    assert no_tables.isna().all()


def test_scheme_c_gives_missing_runs_the_median_rank():
    expected = [[1, 2.5, 2.5, 4], [3, 1, 2, 2], [2, 1.5, 1.5, 1]]
    np.testing.assert_array_equal(table_ranks(MISSING, "C"), expected)


def test_values_that_differ_only_by_the_order_of_a_sum_tie():
    np.testing.assert_array_equal(table_ranks(frame([[0.1 + 0.2, 0.3]])), [[1.5, 1.5]])


values_of_any_kind = st.integers(2, 6).flatmap(
    lambda k: st.lists(
        st.lists(st.integers(0, 20).map(lambda v: v / 20), min_size=k, max_size=k),
        min_size=1,
        max_size=6,
    )
)


@given(values_of_any_kind)
@settings(max_examples=60)
def test_ranks_of_complete_tables(rows):
    values = frame(rows, "abcdef")
    k = values.shape[1]
    ranks = table_ranks(values)
    np.testing.assert_allclose(ranks.sum(axis=1), k * (k + 1) / 2)
    for scheme in ("B", "C", "D"):
        pandas.testing.assert_frame_equal(table_ranks(values, scheme), ranks)
    pandas.testing.assert_frame_equal(table_ranks(np.exp(3 * values) - 7), ranks)
    if friedman(values):
        assert friedman(values) == pytest.approx(friedman(np.exp(3 * values)))


# --- All methods at once -------------------------------------------------------------------------


def test_friedman_by_hand():
    # Ranks 1 2 3 | 1 3 2 | 1 2 3: sums 3, 7, 8; 12/(3·3·4)·(9+49+64) − 3·3·4 = 4.667.
    result = friedman(frame([[3, 2, 1], [3, 1, 2], [9, 5, 4]]))
    assert result.chi2 == pytest.approx(14 / 3)
    assert result.p == pytest.approx(math.exp(-7 / 3))  # χ² of two degrees of freedom


@pytest.mark.parametrize(
    "rows", [[[1, 2]] * 5, [[1, 2, 3]], [[1, 1, 1], [2, 2, 2]], [[NAN] * 3] * 4]
)
def test_friedman_without_enough_values(rows):
    assert friedman(frame(rows)) is None


@pytest.mark.parametrize(
    ("n_methods", "n_tables", "expected"),
    [
        (4, 24, 0.957),  # q = 2.569 in table 5 of Demšar (2006), and the others of that table
        (2, 6, 1.960 * math.sqrt(6 / 36)),
        (10, 30, 3.164 * math.sqrt(110 / 180)),
        (23, 48, 5.01),  # the paper
    ],
)
def test_critical_difference_equals_published_values(n_methods, n_tables, expected):
    assert critical_difference(n_methods, n_tables) == pytest.approx(expected, abs=0.005)


def test_critical_difference_needs_methods_and_tables():
    assert math.isnan(critical_difference(1, 10))
    assert math.isnan(critical_difference(5, 0))


def test_undecided_groups_are_the_largest_ones():
    ranks = [1.0, 1.5, 2.4, 4.0, 4.9]
    assert undecided_groups(ranks, 1.0) == [(0, 1), (1, 2), (3, 4)]
    assert undecided_groups(ranks, 0.1) == []
    assert undecided_groups(ranks, 10.0) == [(0, 4)]
    assert undecided_groups(ranks, NAN) == []


# --- One method against the others ----------------------------------------------------------------


def test_wins_ties_losses_and_wilcoxon_by_hand():
    a = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4]
    b = [value - d for value, d in zip(a, (0.01, 0.02, 0.03, 0.04, 0.05, 0.06), strict=True)]
    c = [a[0] + 0.0004, a[1] - 0.0004, a[2] + 0.1, NAN, NAN, NAN]
    table = compare(frame(list(zip(a, b, c, strict=True))), "a").set_index("opponent")
    counts = table[["n_tables", "wins", "ties", "losses"]]
    assert counts.loc["b"].tolist() == [6, 6, 0, 0]
    assert counts.loc["c"].tolist() == [3, 0, 2, 1]
    assert table.loc["b", "mean_difference"] == pytest.approx(0.035)
    assert table.loc["b", "p"] == pytest.approx(2 / 2**6)  # all signs alike, two-sided
    assert table.loc["b", "p_holm"] == pytest.approx(4 / 2**6)
    assert table.loc["c", "p_holm"] >= table.loc["c", "p"]


def test_comparison_without_differences_or_common_tables():
    same = compare(frame([[1, 1, NAN], [2, 2, NAN]]), "a").set_index("opponent")
    assert same.loc["b", ["p", "p_holm", "ties"]].tolist() == [1, 1, 2]
    assert same.loc["c", "n_tables"] == 0
    assert math.isnan(same.loc["c", "p_holm"])
    assert compare(frame([[1.0]]), "a").empty
    single = compare(frame([[1, 2]]), "a")
    assert single["p"].tolist() == [1.0]


def test_holm_by_hand():
    corrected = holm(np.array([0.01, 0.04, NAN, 0.03, 0.5]))
    np.testing.assert_allclose(corrected, [0.04, 0.09, NAN, 0.09, 0.5])


@pytest.mark.parametrize("n_tests", [1, 2, 24])
def test_holm_equals_statsmodels(n_tests):
    multipletests = pytest.importorskip("statsmodels.stats.multitest").multipletests
    p = np.random.default_rng(n_tests).uniform(size=n_tests) ** 3
    np.testing.assert_allclose(holm(p), multipletests(p, method="holm")[1])


# --- The paper's numbers --------------------------------------------------------------------------


def test_the_papers_main_ranks():
    def rank(metric, method, scheme="A", group="overall", pool="line-up"):
        return RANKS[RankKey(pool, scheme, group, metric, method)].value

    assert rank("roc_auc", "DiffInt-paper") == 4.10
    assert rank("average_precision", "DiffInt-paper") == 4.16
    assert rank("roc_auc", "LUNAR") == 6.00
    assert rank("average_precision", "LUNAR") == 4.91
    assert rank("average_precision", "LUNAR", group="high-dimensional") == 5.45
    assert rank("roc_auc", "DiffInt-paper", "B", pool="contaminated") == 3.59
    # Two metrics: 8 methods × 3 schemes, 4 scales of DiffInt and of the best baseline, pools of 4
    # and 3, 4 scales in the former; and AutoEncoder there by one metric.
    assert len(RANKS) == 2 * (8 * 3 + 4 + 4 + 4 + 3 + 4) + 1
