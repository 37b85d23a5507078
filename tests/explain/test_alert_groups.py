"""Groups of flagged rows that break the same thing in the same way."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from diffint import DiffInt, InputError

from .test_reasons import make_linked

KINDS = ("a", "b", "c")


def make_table(n_rows, seed):
    rng = np.random.default_rng(seed + 100)
    return make_linked(n_rows, seed).assign(kind=rng.choice(KINDS, n_rows))


@pytest.fixture(scope="module")
def detector():
    return DiffInt(n_units=40, epochs=60, random_state=0).fit(make_table(2_000, 0))


CAUSES = {
    "weight = −1": {"weight": -1.0},
    "kind = z": {"kind": "z"},
    "both": {"noise": 40.0, "age": 300.0},
    "price": {"price": None},  # ten times too high
}


@pytest.fixture(scope="module")
def planted():
    """20 rows with each cause, and 20 ordinary rows at the end; shuffled by nobody."""
    rows = make_table(20 * (len(CAUSES) + 1), 5).astype({"age": float})
    for place, changes in enumerate(CAUSES.values()):
        where = rows.index[20 * place : 20 * (place + 1)]
        for column, value in changes.items():
            rows.loc[where, column] = 10 * rows.loc[where, column] if value is None else value
    rows.index = [f"r{i}" for i in range(len(rows))]
    return rows


@pytest.fixture(scope="module")
def groups(detector, planted):
    return detector.explain(planted).alert_groups()


def test_one_group_for_each_cause(groups):
    truth = np.repeat(np.arange(len(CAUSES) + 1), 20)
    main = [group for group in groups if len(group) >= 15]
    assert len(main) == len(CAUSES)
    for group in main:
        assert (truth[group.rows] == truth[group.rows[0]]).mean() >= 0.95
    names = [group.name for group in main]
    assert any(name == "weight = −1" for name in names), names
    assert any(name == "kind = z" for name in names)
    assert any("price far too high (" in name for name in names)
    assert any("noise = 40" in name and "age = 300" in name for name in names)


def test_every_flagged_row_is_in_one_group(detector, planted, groups):
    flagged = detector.predict(planted) == -1
    np.testing.assert_array_equal(groups.group_of >= 0, flagged)
    rows = np.concatenate([group.rows for group in groups])
    assert sorted(rows.tolist()) == np.flatnonzero(flagged).tolist()
    for place, group in enumerate(groups):
        assert (groups.group_of[group.rows] == place).all()
        scores = groups.explanation.score[group.rows]
        assert (np.diff(scores) <= 0).all()
        assert (group.score_high, group.score_low) == (scores[0], scores[-1])
    assert [len(group) for group in groups] == sorted(map(len, groups), reverse=True)


def test_the_order_of_rows_does_not_matter(detector, planted, groups):
    order = np.random.default_rng(3).permutation(len(planted))
    shuffled = detector.explain(planted.iloc[order]).alert_groups()
    np.testing.assert_array_equal(shuffled.group_of, groups.group_of[order])
    assert [group.name for group in shuffled] == [group.name for group in groups]


def test_frame_text_and_html(groups):
    frame = groups.to_frame()
    assert list(frame.columns) == [
        *("name", "rows", "features", "score_low", "score_high", "example", "text"),
    ]
    assert frame["rows"].sum() == (groups.group_of >= 0).sum()
    assert frame["example"].str.startswith("r").all()
    first = groups[0]
    line = groups.text(1).splitlines()[0]
    assert line.startswith(f"{first.name}: {len(first)} rows, scores ")
    assert f"Row {frame['example'][0]!r}: {first.text}" in line
    if len(groups) > 1:
        assert groups.text(1).splitlines()[1].startswith(f"{len(groups) - 1} more group")
    assert "<table" in groups._repr_html_()
    assert repr(groups).startswith(f"AlertGroups({len(groups)} groups, ")


def test_nothing_is_flagged(detector):
    rows = make_table(50, 7)
    calm = rows[detector.predict(rows) == 1]
    groups = detector.explain(calm).alert_groups()
    assert len(groups) == 0
    assert groups.text() == "No row is flagged."
    assert groups.to_frame().empty
    assert (groups.group_of == -1).all()
    assert isinstance(groups.to_frame(), pd.DataFrame)


def test_new_values_that_several_rows_share_are_a_group(detector):
    rows = make_table(40, 5)
    rows["kind"] = ["EWR"] * 20 + [f"new {i}" for i in range(20)]
    first, second, *_ = detector.explain(rows).alert_groups()
    assert (first.name, len(first)) == ("kind = EWR", 20)
    assert second.name.startswith("kind = a new value (new ")
    one = pd.concat([rows.tail(1)] * 5, ignore_index=True).assign(kind=list("vwxyz"))
    name, text = "kind = a new value (v, w, x, …)", "kind = v, a value that no training row has."
    for order in (one, one.iloc[::-1]):
        (group,) = detector.explain(order).alert_groups()
        assert (group.name, group.text) == (name, text)


@pytest.mark.parametrize(
    ("age_too", "noise_too", "sizes"),
    [(4, 0, [8, 4]), (1, 8, [8, 4]), (2, 4, [12]), (3, 3, [8, 4])],
)
def test_groups_are_joined_if_half_of_each_breaks_what_the_other_does(
    detector, age_too, noise_too, sizes
):
    """4 rows break `noise` first, some of them `age` too; 8 rows the other way round.

    Each breaks another column as well, so that few rows break exactly the same.
    """
    rows = make_table(12, 5).astype({"age": float})
    rows.loc[[*range(4), *range(4, 4 + noise_too)], "noise"] = 40.0
    rows.loc[[*range(4, 12), *range(age_too)], "age"] = 300.0
    for place, (column, value) in enumerate([("weight", 500.0), ("price", -900), ("size", 90)]):
        rows.loc[place::3, column] = value
    why = detector.explain(rows)
    doubt = np.ones((12, 6))
    doubt[:4, 4] = doubt[4:, 3] = 3.0
    doubt[:4, 3] = doubt[4:, 4] = 2.0
    groups = replace(why, doubt=doubt).alert_groups()
    assert why.flagged.all()
    assert [len(group) for group in groups] == sizes


def test_rows_with_equal_scores_are_ordered_by_their_values(detector):
    row = make_table(1, 5).astype({"age": float})
    rows = pd.concat([row.assign(age=10.0**power) for power in range(6, 12)], ignore_index=True)
    why, back = detector.explain(rows), detector.explain(rows.iloc[::-1])
    assert len(set(why.score)) == 1
    assert why.alert_groups().to_frame()["text"][0] == back.alert_groups().to_frame()["text"][0]


@pytest.mark.parametrize("most", ["x", None, 1.5, 0, True])
def test_a_wrong_number_of_groups(groups, most):
    with pytest.raises(InputError, match="groups cannot be shown"):
        groups.text(most)
