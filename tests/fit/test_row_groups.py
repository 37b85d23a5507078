"""Rows that are not independent: copies, near copies and groups named by the user."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest

from diffint import DiffInt, InputError
from diffint.core.calibration import Calibration
from diffint.core.errors import CalibrationWarning
from diffint.fit.fit_warnings import warn_about_former_groups, warn_about_groups
from diffint.fit.row_groups import RowGroups, find_row_groups

QUICK = {"n_units": 48, "epochs": 60, "false_positive_rate": 0.05, "random_state": 0}


def normal(n_rows: int, seed: int = 0, n_features: int = 8) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n_rows, n_features))


def copied(times: int, n_rows: int = 400, noise: float = 0.0, seed: int = 0) -> np.ndarray:
    """Normal rows, each several times, with some noise on every copy."""
    rows = np.repeat(normal(n_rows // times, seed), times, axis=0)
    return rows + noise * normal(len(rows), seed + 1_000)


def subjects(n_subjects: int, seed: int = 0, spread: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    """20 rows of every subject, and the number of the subject."""
    names = np.repeat(np.arange(n_subjects), 20)
    return normal(n_subjects, seed)[names] + spread * normal(len(names), seed + 1_000), names


def flagged_share(make_rows, new_rows, **fit) -> float:
    """The share of new normal rows that three detectors flag at a rate of 5 %."""
    shares = []
    for seed in range(3):
        detector = DiffInt(**{**QUICK, "random_state": seed})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalibrationWarning)
            detector.fit(make_rows(seed), **fit)
        shares.append((detector.predict(new_rows) == -1).mean())
    return float(np.mean(shares))


@pytest.mark.parametrize(("times", "noise"), [(1, 0.0), (2, 0.0), (5, 0.0), (5, 0.01)], ids=str)
def test_the_rate_holds_when_rows_are_copied(times, noise):
    share = flagged_share(lambda seed: copied(times, noise=noise, seed=seed), normal(2_000, 99))
    assert share < 0.08


def test_the_rate_holds_for_new_subjects():
    new = normal(2_000, 99) + 0.3 * normal(2_000, 98)
    names = subjects(20)[1]
    assert flagged_share(lambda seed: subjects(20, seed)[0], new, groups=names) < 0.08
    # Without the groups it does not: the members that leave a row out know its subject.
    assert flagged_share(lambda seed: subjects(20, seed)[0], new) > 0.3


def test_groups_are_never_split():
    x, names = subjects(30)
    x = np.concatenate([x, normal(7, 3)])
    names = np.concatenate([names, 100 + np.arange(7)])
    detector = DiffInt(**{**QUICK, "epochs": 2}).fit(x, groups=[f"subject {n}" for n in names])
    calibration = detector.model_.calibration
    assert calibration.n_groups == 37
    assert sorted(calibration.group_sizes.tolist()) == [1] * 7 + [20] * 600


def test_independent_rows_are_no_groups():
    for seed in range(20):
        x = normal(int(60 * 1.3**seed), seed, 1 + seed % 9)
        found = find_row_groups(x)
        assert len(np.unique(found.codes)) == len(x)
        assert (found.n_copies, found.n_equal, found.close) == (0, 0, 0)


def test_rows_that_agree_by_chance_are_no_copies():
    rng = np.random.default_rng(0)
    for x in (
        rng.integers(0, 2, size=(3_000, 3)),  # 8 different rows
        rng.geometric(0.3, size=(500, 3)),  # grades or counts
        rng.normal(size=(50, 4))[np.minimum(rng.geometric(0.05, size=800), 50) - 1],  # few types
        np.stack([np.arange(2_000) % 24, np.arange(2_000) // 24 % 7], axis=1),  # hours of a week
        rng.uniform(-10, 10, (20, 5))[rng.integers(20, size=600)] + 0.3 * normal(600, 1, 5),
    ):
        assert find_row_groups(x.astype(float)).n_copies == 0


def test_ordinary_tables_give_no_warning():
    rng = np.random.default_rng(0)
    holes, zeros = normal(300, 1, 5), normal(500, 2, 6)
    holes[rng.random(holes.shape) < 0.7] = np.nan
    zeros[rng.random(zeros.shape) < 0.8] = 0.0
    for x in (
        holes,
        zeros,
        rng.poisson(5, size=(500, 1)),
        rng.integers(0, 60, size=(900, 4)),
        np.array([*itertools.product(range(3), repeat=3)] * 10),
    ):
        found = find_row_groups(x.astype(float))
        assert (found.n_copies, found.n_equal, found.close) == (0, 0, 0)


def repeated(n_subjects: int, times: int, n_features: int = 8, spread: float = 0.1) -> np.ndarray:
    names = np.repeat(np.arange(n_subjects), times)
    return normal(n_subjects, 5, n_features)[names] + spread * normal(len(names), 6, n_features)


@pytest.mark.parametrize(
    "x",
    [
        np.hstack([repeated(100, 20, spread=0.0), normal(2_000, 7, 2)]),
        np.hstack([repeated(150, 12, spread=0.0), np.tile(np.arange(12), 150)[:, None]]),
        repeated(10, 5, spread=0.01),
        repeated(50, 200),
        repeated(200, 110),
    ],
    ids=["columns of a subject", "customer and month", "50 rows", "groups of 200", "22,000 rows"],
)
def test_signs_of_groups(x):
    found = find_row_groups(x)
    assert found.n_copies == 0
    assert found.n_equal > 0.2 * len(x) or found.close > 0


@pytest.mark.parametrize(
    ("x", "n_groups"),
    [
        (copied(2), 200),
        (copied(5), 80),
        (copied(5)[np.random.default_rng(0).random(400) < 0.9], 80),
        (copied(2, noise=0.01), 200),
        (copied(5, noise=0.01), 80),
        (np.repeat(np.random.default_rng(0).integers(0, 9, (300, 6)), 2, axis=0), 300),
    ],
    ids=["twice", "five times", "about five times", "twice, noise", "five times, noise", "counts"],
)
def test_copies_are_found(x, n_groups):
    x = x.astype(float)
    found = find_row_groups(x[np.random.default_rng(1).permutation(len(x))])
    assert len(np.unique(found.codes)) == n_groups
    assert found.n_copies == len(x) - n_groups


def test_missing_and_negative_zero_cells_are_equal():
    x = copied(2)
    x[::7, 2] = np.nan
    x[1::7, 2] = np.nan
    x[2, 3], x[3, 3] = 0.0, -0.0
    x = np.where(np.isnan(x), np.nan, x)
    x[0::2], x[1::2] = x[0::2], np.where(np.isnan(x[0::2]), -np.nan, x[0::2])
    assert find_row_groups(x).n_copies == 200


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (copied(5), "320 of 400 training rows repeat other rows exactly or nearly"),
        (subjects(20)[0], "training rows come in groups of about 1.* that are close"),
        (
            normal(300)[np.random.default_rng(0).integers(300, size=300)],
            "agree with other rows",
        ),
    ],
    ids=["copies", "subjects", "drawn with replacement"],
)
def test_rows_that_are_not_independent_give_a_warning_with_the_remedy(x, message):
    with pytest.warns(CalibrationWarning, match=f"{message}.*groups in Python, --group"):
        DiffInt(**{**QUICK, "epochs": 2}).fit(x)
    # The user has said which rows belong together: no warning.
    with warnings.catch_warnings():
        warnings.simplefilter("error", CalibrationWarning)
        DiffInt(**{**QUICK, "epochs": 2}).fit(x, groups=range(len(x)))


def test_labels_of_any_type():
    x, names = subjects(20)
    quick = {**QUICK, "epochs": 2}
    expected = DiffInt(**quick).fit(x, groups=names).model_.calibration
    frame = pd.DataFrame(x, index=np.arange(400) + 7).add_prefix("c")
    for labels in (
        [f"s{n}" for n in names],
        pd.Series(names, index=frame.index).astype("category"),
        pd.date_range("2020-01-01", periods=20)[names],
        names.astype(float) / 3,
    ):
        found = DiffInt(**quick).fit(frame, groups=labels).model_.calibration
        np.testing.assert_array_equal(found.scores, expected.scores)
        np.testing.assert_array_equal(found.group_sizes, expected.group_sizes)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([1, 2, 3], "groups has 3 labels, but the table has 400 rows"),
        ("subject", "groups is the text 'subject'; pass the column itself"),
        ([None] * 400, "groups has no label for 400 rows, the first of them row 0"),
        (np.zeros((400, 2)), "groups must have one label per row"),
        (pd.Series(0, index=range(1, 401)), "groups and the table have different indexes"),
    ],
    ids=["length", "name", "missing", "shape", "index"],
)
def test_bad_groups(groups, message):
    with pytest.raises(InputError, match=message):
        DiffInt(**QUICK).fit(pd.DataFrame(normal(400)).add_prefix("c"), groups=groups)


def test_too_few_groups_to_leave_one_out():
    with pytest.warns(CalibrationWarning, match="4 groups are too few to leave some out"):
        DiffInt(**{**QUICK, "epochs": 2}).fit(normal(400), groups=np.arange(400) % 4)


def repeated(counts, seed=0):
    """Different rows, each so many times."""
    return np.repeat(normal(len(counts), seed), counts, axis=0)


@pytest.mark.parametrize(
    ("counts", "are_copies"),
    [
        ([2, 4, 8, 12] * 6, True),  # even
        ([3, 6, 9, 15] * 6, True),  # multiples of three
        ([2, 4, 8, 12] * 5 + [1, 3], True),  # nearly all are even
        ([2, 4, 8, 12] * 5 + [1, 3, 5], False),
        ([1, 4, 7, 13] * 6, False),  # one more than a multiple of three
        ([2] * 20, True),
        ([2] * 19, False),  # too few to tell
    ],
)
def test_rows_are_copies_if_their_numbers_say_so(counts, are_copies):
    found = find_row_groups(repeated(counts), search_near=False)
    assert found.n_copies == (sum(counts) - len(counts) if are_copies else 0)
    assert len(np.unique(found.codes)) == sum(counts) - found.n_copies


@pytest.mark.parametrize(("n_columns", "n_equal"), [(3, 0), (4, 100), (8, 100)])
def test_rows_that_agree_in_four_columns_of_their_own_may_be_copies(n_columns, n_equal):
    """Each of 100 sets of values occurs in two of 200 rows, which differ in another column."""
    x = np.column_stack([np.tile(normal(100, n_features=n_columns), (2, 1)), normal(200)[:, 0]])
    assert find_row_groups(x, search_near=False)[1:] == (0, n_equal, 0)


@pytest.mark.parametrize(("n_shared", "n_equal"), [(1, 100), (2, 0)])
def test_three_of_four_values_must_be_their_own(n_shared, n_equal):
    """Values of the other columns occur with other ones, too."""
    values = normal(100, n_features=4)
    values[:, :n_shared] = np.arange(100)[:, None] // 2
    x = np.column_stack([np.tile(values, (2, 1)), normal(200)[:, 0]])
    assert find_row_groups(x, search_near=False)[1:] == (0, n_equal, 0)


@pytest.mark.parametrize(("n_rows", "close"), [(29, 0), (30, 2)])
def test_close_rows_are_looked_for_among_30(n_rows, close):
    pairs = np.repeat(normal(15), 2, axis=0) + 1e-6 * normal(30, 1)
    assert find_row_groups(pairs[:n_rows])[1:] == (0, 0, close)


def test_nearly_equal_rows_are_copies_beside_rows_that_are_alone():
    pairs = np.repeat(normal(100), 2, axis=0) + 1e-6 * normal(200, 1)
    found = find_row_groups(np.concatenate([pairs, normal(4, 2)]))
    assert (found.n_copies, found.close) == (100, 0)
    assert (found.codes[:200:2] == found.codes[1:200:2]).all()
    assert len(np.unique(found.codes[::2])) == 102


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ((5, 0, 0), None),
        ((6, 0, 0), "6 of 100 training rows repeat other rows"),
        ((0, 20, 0), None),
        ((0, 21, 0), "21 of 100 training rows agree with other rows"),
        ((0, 0, 3), "training rows come in groups of about 3 "),
    ],
)
def test_shares_of_rows_that_are_warned_about(found, message):
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        warn_about_groups(RowGroups(np.arange(100), *found))
    assert [str(w.message).startswith(message) for w in warned] == [True] * (message is not None)


@pytest.mark.parametrize(("size", "n_warnings"), [(1, 0), (2, 1), (3, 1)])
def test_rows_that_came_in_groups_before_a_refresh(size, n_warnings):
    former = Calibration("members", np.arange(60.0), np.full(60, size))
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        warn_about_former_groups(RowGroups(np.arange(100), 0, 0, 0), former)
    assert len(warned) == n_warnings
    assert all(f"came in groups of about {size}," in str(w.message) for w in warned)


@pytest.mark.parametrize(("size", "are_copies"), [(2, True), (31, True), (32, False)])
def test_more_than_30_nearly_equal_rows_of_one_are_only_warned_about(size, are_copies):
    rows = np.repeat(normal(25), size, axis=0)
    found = find_row_groups(rows + 1e-6 * normal(len(rows), 1))
    assert found.n_copies == (25 * (size - 1) if are_copies else 0)
    assert (found.close == 0) == are_copies


def test_a_third_of_the_rows_may_be_nearly_equal():
    rows = np.repeat(normal(21), [2] * 20 + [18], axis=0)
    assert find_row_groups(rows + 1e-6 * normal(58, 1)).n_copies == 58 - 21


@pytest.mark.parametrize(("seed", "close"), [(0, 40), (1, 0)])
def test_signs_of_groups_of_more_than_40_rows_must_be_clearer(seed, close):
    """Both tables have 12 groups of 41 rows; in the second the gap is seen one row farther out."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(rng.normal(size=(12, 5)), 41, axis=0)
    assert find_row_groups(groups + 0.3 * rng.normal(size=groups.shape)).close == close
